"""Runs groups of cases and keeps what they found."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from .cases import FAILED, WRONG, Group, Record, Settings
from .format import ResultError
from .results import command_of, load, path_of, require_writable, save, start
from .suites import SUITES

Suites = Mapping[str, Callable[[Settings], Iterator[Group]]]


def run(
    settings: Settings,
    folder: Path,
    names: Sequence[str] = (),
    fresh: bool = False,
    console: Console | None = None,
    suites: Suites = SUITES,
) -> int:
    """Measure the named suites, all if none is named, and write DIR/bench-<device>-<dtype>.json after every group.

    Cases that are in the file are not measured again unless ``fresh``; a group of which one is missing, wrong or failed
    is, whole.

    Returns the exit status: 0; 1 if an error is above its bound or a case failed; 2 if the device is missing or the
    file cannot be used or written, and then nothing is overwritten; 130 after Ctrl-C.
    """
    console = console or Console(highlight=False)
    path = path_of(folder, settings)
    try:
        if settings.device == "cuda" and not torch.cuda.is_available():
            raise ResultError("there is no CUDA device here")
        content = None if fresh else _load(path, settings)
        content = start(settings) if content is None else content
        require_writable(path)
    except ResultError as error:
        return _fail(error)
    groups = [group for name in dict.fromkeys(names or suites) for group in suites[name](settings)]
    cases: list[Record] = content["cases"]
    known = {(case["suite"], case["case"]) for case in cases if not _is_bad(case)}
    missing = [group for group in groups if not {(case.suite, case.name) for case in group.cases} <= known]
    if len(missing) < len(groups):
        _say(console, f"going on with {path}: {len(groups) - len(missing)} of {len(groups)} groups are there")
    try:
        for group in _progress(missing, console):
            began = time.perf_counter()
            records = group.measure()
            cases = _merged(cases, records)
            save(path, {**content, "command": command_of(settings, cases), "cases": cases})
            if not console.is_interactive:
                seconds = time.perf_counter() - began
                _say(console, f"{_title(group)} {seconds:.1f} s")
    except ResultError as error:
        return _fail(error)
    except KeyboardInterrupt:
        print(
            f"interrupted; {len(cases)} cases are in {path}; the same command without --fresh goes on", file=sys.stderr
        )
        return 130
    chosen = {(case.suite, case.name) for group in groups for case in group.cases}
    return _finish([case for case in cases if (case["suite"], case["case"]) in chosen], path, console)


def _load(path: Path, settings: Settings) -> dict | None:
    try:
        return load(path, settings)
    except ResultError as error:
        raise ResultError(f"{error}; nothing is overwritten: pass --fresh to start over, or another --out") from error


def _merged(cases: Sequence[Record], new: Sequence[Record]) -> list[Record]:
    """New records take the place of old ones of the same case."""
    replaced = {(case["suite"], case["case"]) for case in new}
    return [*(case for case in cases if (case["suite"], case["case"]) not in replaced), *new]


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
    what = first.contestant if not others else f"{len(group.cases)} contestants"
    return " ".join((f"{first.suite}:", what, *common))


def _is_bad(case: Record) -> bool:
    return (case["note"] or "").startswith((WRONG, FAILED))


def _finish(cases: Sequence[Record], path: Path, console: Console) -> int:
    """Say what there is, and loudly what is wrong."""
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
