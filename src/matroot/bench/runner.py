"""Runs groups of cases and saves what they measured."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from .cases import FAILED, WRONG, Group, Record, Settings
from .format import ResultError
from .results import command_of, load, path_of, require_writable, save, start
from .suites import SUITES

Suites = Mapping[str, Callable[[Settings], Iterator[Group]]]
Key = tuple[str, str]
"""Suite and name of a case."""


def run(
    settings: Settings,
    folder: Path,
    names: Sequence[str] = (),
    fresh: bool = False,
    console: Console | None = None,
    suites: Suites = SUITES,
) -> int:
    """Measure the named suites, all if none is named, and write DIR/bench-<device>-<dtype>.json after every group.

    Cases that are in the file are not measured again unless ``fresh``; those that are missing, wrong or failed are,
    in turns with each other. Ctrl-C saves the cases of the running group that are finished.

    Returns the exit status: 0; 1 if an error is above its bound or a case failed; 2 if the device is missing or the
    file cannot be used or written, and then nothing is overwritten; 130 after Ctrl-C.
    """
    console = console or Console(highlight=False)
    try:
        if settings.device == "cuda" and not torch.cuda.is_available():
            raise ResultError("there is no CUDA device here")
        file = _open(path_of(folder, settings), settings, fresh)
    except ResultError as error:
        return _fail(error)
    groups = [group for name in dict.fromkeys(names or suites) for group in suites[name](settings)]
    chosen = {(case.suite, case.name) for group in groups for case in group.cases}
    present = chosen & {_key(case) for case in file.cases if not _is_bad(case)}
    if present:
        _say(console, f"resuming {file.path}: {len(present)} of {len(chosen)} cases are there")
    try:
        for group in _progress([part for group in groups if (part := _without(group, present))], console):
            began = time.perf_counter()
            file.add(group)
            if not console.is_interactive:
                _say(console, f"{_title(group)}, {time.perf_counter() - began:.1f} s")
    except ResultError as error:
        return _fail(error)
    except KeyboardInterrupt:
        print(
            f"interrupted; {len(file.cases)} cases are in {file.path}; the same command without --fresh resumes",
            file=sys.stderr,
        )
        return 130
    return _finish([case for case in file.cases if _key(case) in chosen], file.path, console)


class _ResultFile:
    """The cases on disk, and those that are added to them."""

    def __init__(self, path: Path, settings: Settings, content: Mapping[str, Any]) -> None:
        self.path, self.settings, self.content = path, settings, content
        self.cases: list[Record] = content["cases"]

    def add(self, group: Group) -> None:
        """Measure a group and save it; after an interrupt, the cases that are finished."""
        records: list[Record] = []
        try:
            for record in group.measure():
                records.append(record)
        finally:
            if records:
                order = [case.name for case in group.cases]
                self._save(sorted(records, key=lambda record: order.index(record["case"])))

    def _save(self, records: Iterable[Record]) -> None:
        """New records replace old ones of the same case."""
        new = {_key(record): record for record in records}
        cases = [*(case for case in self.cases if _key(case) not in new), *new.values()]
        save(self.path, {**self.content, "command": command_of(self.settings, cases), "cases": cases})
        self.cases = cases


def _open(path: Path, settings: Settings, fresh: bool) -> _ResultFile:
    try:
        content = None if fresh else load(path, settings)
    except ResultError as error:
        raise ResultError(f"{error}; nothing is overwritten: pass --fresh to start over, or another --out") from error
    require_writable(path)
    return _ResultFile(path, settings, start(settings) if content is None else content)


def _without(group: Group, present: set[Key]) -> Group | None:
    """The group with the cases that are to be measured; None if there are none."""
    cases = tuple(case for case in group.cases if (case.suite, case.name) not in present)
    return Group(cases, group.outcomes) if cases else None


def _progress(groups: Sequence[Group], console: Console) -> Iterator[Group]:
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_interactive) as progress:
        task = progress.add_task("", total=len(groups))
        for group in groups:
            progress.update(task, description=_title(group))
            yield group
            progress.advance(task)


def _title(group: Group) -> str:
    """The suite and what the cases of the group have in common."""
    first, *others = group.cases
    common = [
        f"{key}={value}"
        for key, value in first.parameters.items()
        if all(key in case.parameters and case.parameters[key] == value for case in others)
    ]
    what = first.contestant if not others else f"{len(group.cases)} cases"
    return " ".join((f"{first.suite}:", what, *common))


def _key(case: Record) -> Key:
    return case["suite"], case["case"]


def _is_bad(case: Record) -> bool:
    return (case["note"] or "").startswith((WRONG, FAILED))


def _finish(cases: Sequence[Record], path: Path, console: Console) -> int:
    """Print how many cases there are, and each that is wrong or failed."""
    _say(console, f"{len(cases)} cases in {path}")
    bad = [case for case in cases if _is_bad(case)]
    for case in bad:
        print(f"{case['suite']}: {case['case']}: {case['note']}", file=sys.stderr)
    if bad:
        print(
            f"{len(bad)} of {len(cases)} cases are wrong or failed; the next run measures them again", file=sys.stderr
        )
    return 1 if bad else 0


def _say(console: Console, text: str) -> None:
    # A path is neither markup nor to be broken.
    console.print(text, markup=False, soft_wrap=True)


def _fail(error: ResultError) -> int:
    print(f"matroot bench: {error}", file=sys.stderr)
    return 2
