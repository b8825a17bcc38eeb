"""``matroot stylize``."""

import argparse
import math
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn
from torch import Tensor

from .._names import valid_names
from .._registry import METHODS, PRESETS
from .._terminal import CommandError
from ..methods import Method
from ..style import StyleNetwork, StyleStatistics, apply_style, load, style_statistics
from ..style.images import WRITABLE, ImageError, read, require_writable, write
from ..style.resizing import limited


@dataclass(frozen=True)
class Job:
    """A photo, and the file that its result is written to."""

    photo: Path
    target: Path


def run(arguments: argparse.Namespace) -> int:
    """Write the results and return 0, or 1 if some could not be made; CommandError if none can be."""
    _check_numbers(arguments)
    jobs = plan(arguments.photos, arguments.style, arguments.output, arguments.out)
    method = _method(arguments.method)
    network = _network(arguments.network, arguments.device, arguments.half)
    # Paintings are kept for all photos, so they are reduced at once.
    styles = [limited(read(path, arguments.max_pixels)[None], arguments.style_size)[0] for path in arguments.style]
    transfer = _Transfer(arguments, method, network, styles)
    # Also if each photo will have its own: wrong weights are found before anything is written.
    style = transfer.statistics()
    _make_folder(jobs[0].target.parent)
    failures = 0
    # Standard output lists the files; the bar is for those who wait.
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        for k, job in enumerate(jobs):
            bar = bars.add_task(f"{job.photo.name}, {k + 1} of {len(jobs)}", total=1.0)
            failed = False
            try:
                line = transfer.write(job, None if arguments.keep_colors else style, _update(bars, bar))
            except (ImageError, MemoryError, RuntimeError) as error:
                if isinstance(error, RuntimeError) and not _is_out_of_memory(error):
                    raise
                failed, line = True, _reason(job, error)
            # While the bar is shown rich sends both streams to it, and standard output may be a file.
            bars.remove_task(bar)
            bars.stop()
            print(line, file=sys.stderr if failed else sys.stdout, flush=True)
            bars.start()
            failures += failed
    if failures:
        print(f"{failures} of {len(jobs)} photos failed", file=sys.stderr)
    return 1 if failures else 0


def plan(photos: list[Path], styles: list[Path], output: Path | None, folder: Path) -> list[Job]:
    """Which file each result is written to; CommandError if it cannot be, is an input, or is that of two photos."""
    if output is not None and len(photos) > 1:
        raise CommandError(f"-o names the result of one photo; --out DIR is for all of {len(photos)}")
    style = styles[0].stem if len(styles) == 1 else "blend"
    jobs = [
        Job(photo, folder / f"{photo.stem}-{style}{_suffix(photo)}" if output is None else output) for photo in photos
    ]
    inputs = {_resolved(path) for path in (*photos, *styles)}
    files = {_file(path) for path in inputs} - {None}
    first: dict[Path, Path] = {}
    for job in jobs:
        if job.target.is_dir():
            raise CommandError(f"{job.target} is a folder; -o names a file, --out the folder of all results")
        require_writable(job.target)
        target = _resolved(job.target)
        if target in inputs or _file(target) in files:
            raise CommandError(f"{job.target} is an input; its result must be another file")
        if target in first:
            raise CommandError(f"{first[target]} and {job.photo} would both be written to {job.target}")
        first[target] = job.photo
    return jobs


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(f"cannot make the folder {folder}: {error.strerror}") from error


def _suffix(photo: Path) -> str:
    """The photo's own, if results can have it."""
    return photo.suffix if photo.suffix.lower() in WRITABLE else ".png"


def _resolved(path: Path) -> Path:
    """Without links; one that leads to itself stays, as a file that cannot be read."""
    return Path(os.path.realpath(path))


def _file(path: Path) -> tuple[int, int] | None:
    """What two names of a file have in common: links, and names that differ in case where the file system does not.

    None where there is no such file.
    """
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _check_numbers(arguments: argparse.Namespace) -> None:
    if not 0 <= arguments.strength <= 1:
        raise CommandError(f"--strength must be from 0 to 1, got {arguments.strength}")
    if not 0 <= arguments.grain < math.inf:
        raise CommandError(f"--grain must be at least 0, got {arguments.grain}")
    for option in ("max_size", "style_size", "tile", "scales", "max_pixels"):
        value = getattr(arguments, option)
        if value is not None and value < 1:
            raise CommandError(f"--{option.replace('_', '-')} must be at least 1, got {value}")


def _method(name: str) -> str | Method:
    """A method by its own name, or that of one of the paper's combinations."""
    methods = {method: kind() for method, kind in METHODS.items()}
    methods |= {preset: options["method"] for preset, options in PRESETS.items()}
    usable = {"auto": "auto"} | {known: method for known, method in methods.items() if method.has_inverse}
    if name not in usable:
        problem = "has no inverse root" if name in methods else "unknown method"
        raise CommandError(f"--method {name}: {problem}; {valid_names(name, usable)}")
    return usable[name]


def _network(file: Path | None, device: str | None, half: bool) -> StyleNetwork:
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    network = load(file)
    try:
        # Processors have bfloat16; GPUs have both, and this one has three more bits.
        dtype = torch.bfloat16 if torch.device(device).type == "cpu" else torch.float16
        return network.to(device, dtype if half else torch.float32)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise CommandError(f"--device {device} cannot be used: {reason}") from error


@dataclass(frozen=True)
class _Transfer:
    """All that the photos of a call have in common."""

    arguments: argparse.Namespace
    method: str | Method
    network: StyleNetwork
    styles: list[Tensor]

    def statistics(self, colors_of: Tensor | None = None) -> StyleStatistics:
        """Of the styles, with the colours of a photo if there is one."""
        try:
            return style_statistics(
                self.styles,
                weights=self.arguments.weights,
                colors_of=colors_of,
                style_size=self.arguments.style_size,
                tile=self.arguments.tile,
                method=self.method,
                network=self.network,
            )
        except ValueError as error:
            raise CommandError(str(error)) from error

    def write(self, job: Job, style: StyleStatistics | None, progress: Callable[[float], None]) -> str:
        """Write one result and return a line about it. Without a style its own, with the colours of the photo."""
        start = time.perf_counter()
        photo = read(job.photo, self.arguments.max_pixels)
        picture = apply_style(
            photo,
            style or self.statistics(colors_of=photo),
            self.arguments.strength,
            max_size=self.arguments.max_size,
            tile=self.arguments.tile,
            transform=self.arguments.transform,
            grain=self.arguments.grain,
            scales=self.arguments.scales,
            method=self.method,
            network=self.network,
            progress=progress,
        )
        write(job.target, picture)
        _, height, width = picture.shape
        return f"{job.target}  {width} x {height}  {time.perf_counter() - start:.1f} s"


def _update(bars: Progress, bar: TaskID) -> Callable[[float], None]:
    return lambda done: bars.update(bar, completed=done)


def _is_out_of_memory(error: RuntimeError) -> bool:
    # On the CPU it has no class of its own.
    return isinstance(error, torch.OutOfMemoryError) or "allocate memory" in str(error)


def _reason(job: Job, error: Exception) -> str:
    if isinstance(error, ImageError):
        return str(error)
    return f"{job.photo}: out of memory; a smaller --tile or --max-size needs less"
