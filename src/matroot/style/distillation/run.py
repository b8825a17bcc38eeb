"""Distillations: one call, one folder."""

import json
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from ..._files import write_whole
from ..._lock import locked
from ..._png import png
from ..._terminal import CommandError
from .. import weights
from . import checkpoint
from .batches import Batches
from .checkpoint import Checkpoint
from .origin import Origin
from .pictures import Pictures, read_pictures
from .recipe import Recipe, option
from .sheet import evenly_chosen, middles, sheet
from .step import TERMS, Distiller
from .teacher import load_teacher

SHOWN = 4
"""Contents and styles of a sheet."""
FILES = ("weights.safetensors", "metrics.jsonl", "last.pt", "sheets/*.png")
"""Of the folder of a distillation."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a recipe is run; none of these changes its weights. CommandError if a number is out of range."""

    device: str | None = option(None, "such as cpu or cuda:1; CUDA if there is one")
    resume: bool = option(False, "go on with the run in that folder; start it if there is none")
    time_limit: float = option(float("inf"), "seconds after which a run stops at its next line; --resume goes on")
    log_every: int = option(50, "steps between two lines")
    save_every: int = option(1000, "steps between two checkpoints with their sheets, rounded up to a line")
    compile: bool = option(False, "compile the teacher's encoder, most of the work, with torch.compile")
    training_data: str = option("", "note in the exported file; the sources if empty")
    licence: str = option("", "note in the exported file")

    def __post_init__(self) -> None:
        for name in ("time_limit", "log_every", "save_every"):
            if not getattr(self, name) > 0:
                raise CommandError(f"--{name.replace('_', '-')} must be above 0, got {getattr(self, name)}")


@dataclass(frozen=True)
class Summary:
    """What a call did."""

    history: list[dict[str, Any]]
    """The lines of ``metrics.jsonl``."""
    finished: bool
    weights: Path


def distil(
    recipe: Recipe, teacher: Path, photos: Sequence[str], paintings: Sequence[str], out: Path, options: Options
) -> Summary:
    """Train a network and write it to ``out``: ``weights.safetensors``, ``metrics.jsonl``, ``last.pt``, ``sheets/``.

    teacher: see ``load_teacher``. photos, paintings: see ``read_pictures``.

    With ``resume`` it goes on from ``last.pt``, to the same bits on a CPU as if it had never stopped. CommandError for
    a folder that has a distillation already where it is not given, or in which another process trains, for a checkpoint
    of another recipe, for files that cannot be read or written, and where no step is finite.
    """
    start = time.perf_counter()
    with locked(out, *FILES):
        return _distil(recipe, teacher, photos, paintings, out, options, start)


def _distil(
    recipe: Recipe,
    teacher: Path,
    photos: Sequence[str],
    paintings: Sequence[str],
    out: Path,
    options: Options,
    start: float,
) -> Summary:
    device = _device(options.device)
    if not options.resume and (out / "last.pt").exists():
        raise CommandError(f"{out} holds a distillation; --resume goes on with it, another --out starts one")
    stored = checkpoint.load(out / "last.pt", asdict(recipe)) if options.resume else None
    first, second = read_pictures(photos, recipe.crop), read_pictures(paintings, recipe.crop)
    pictures = Pictures.of([*first, *second]).to(device)
    batches = Batches(pictures, len(first), recipe)
    distiller = Distiller(recipe, load_teacher(teacher), batches, device)
    parameters = sum(parameter.numel() for parameter in distiller.network.parameters())
    print(f"{parameters:,} parameters on {device}; {len(first)} photographs, {len(second)} paintings", flush=True)
    origin = Origin(
        options.training_data
        or f"photographs: {', '.join(map(_name, photos))}; paintings: {', '.join(map(_name, paintings))}",
        options.licence,
        shlex.join(["python", "-m", "matroot.style.distillation", *map(_name, sys.argv[1:])]),
        recipe,
    )
    if options.compile:
        distiller.teacher.compile_encoder()
    run = _Run(out, distiller, options, origin, start + options.time_limit)
    try:
        with _fastest_convolutions():
            return run.steps(stored)
    except OSError as error:
        raise CommandError(f"cannot write {error.filename or out}: {error.strerror}") from error


class _Run:
    """The steps of a distillation, and its files."""

    def __init__(self, out: Path, distiller: Distiller, options: Options, origin: Origin, end: float) -> None:
        self._out, self._distiller, self._options, self._origin, self._end = out, distiller, options, origin, end
        self._history: list[dict[str, Any]] = []
        self._seconds = 0.0
        batches, size = distiller.batches, distiller.recipe.crop
        self._contents, self._styles = (
            middles(batches.pictures, evenly_chosen(first, last, SHOWN), size)
            for first, last in ((0, batches.photos), (batches.photos, len(batches.pictures)))
        )

    def steps(self, stored: Checkpoint | None) -> Summary:
        """Train to the last step, or to the end of the time."""
        (self._out / "sheets").mkdir(parents=True, exist_ok=True)
        if stored is not None:
            self._distiller.load_state(stored.state)
            self._history, self._seconds = stored.history, stored.seconds
            print(f"resumed after step {self._distiller.done}", flush=True)
        last, options = self._distiller.recipe.steps, self._options
        saved, start = self._distiller.done, time.perf_counter()
        while self._distiller.done < last:
            self._distiller.step()
            done = self._distiller.done
            if done % options.log_every and done < last:
                continue
            row = self._row(start)
            late = time.perf_counter() >= self._end
            if done - saved >= options.save_every or done == last or late:
                self._save()
                saved = done
            print(_line(row), flush=True)
            start = time.perf_counter()
            if late and done < last:
                print(f"stopped after step {done} of {last} by the time limit; --resume goes on", flush=True)
                break
        return Summary(self._history, self._distiller.done == last, self._out / "weights.safetensors")

    def _row(self, start: float) -> dict[str, Any]:
        """A line of the history, of the steps since the last."""
        figures = self._distiller.read()  # waits for the device
        done = self._distiller.done
        steps = done - (self._history[-1]["step"] if self._history else 0)
        if figures["skipped"] == 1:
            raise CommandError(
                f"no step of the last {steps} up to step {done} has a finite gradient; the checkpoint is of before. "
                "A smaller --lr or --precision float32 may help"
            )
        seconds = time.perf_counter() - start
        self._seconds += seconds
        row = {"step": done, **figures, "milliseconds": 1e3 * seconds / steps, "seconds": self._seconds}
        self._history.append(row)
        return row

    def _save(self) -> None:
        done, recipe = self._distiller.done, self._distiller.recipe
        picture = sheet(self._distiller.average, self._contents, self._styles)
        write_whole(self._out / "sheets" / f"{done:06}.png", png(picture))
        weights.save(self._distiller.average, self._out / "weights.safetensors", self._origin.after(done))
        lines = "".join(json.dumps(row) + "\n" for row in self._history)
        write_whole(self._out / "metrics.jsonl", lines.encode())
        state = Checkpoint(asdict(recipe), self._distiller.state(), self._history, self._seconds)
        checkpoint.save(self._out / "last.pt", state)


def _line(row: dict[str, Any]) -> str:
    terms = "  ".join(f"{name} {row[name]:.4f}" for name in TERMS)
    return f"step {row['step']:6}  {terms}  gradient {row['gradient']:.2f}  {row['milliseconds']:.1f} ms"


def _device(name: str | None) -> torch.device:
    try:
        device = torch.device(name or ("cuda" if torch.cuda.is_available() else "cpu"))
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise CommandError(f"--device {name} cannot be used: {str(error).partition(chr(10))[0]}") from error
    return device


def _name(argument: str) -> str:
    """An argument that is a path, or names part of a zip file, without its folder: that is of this machine alone."""
    archive, colon, part = argument.partition(".zip:")
    path = Path(f"{archive}.zip" if colon else argument)
    return f"{path.name}:{part}" if colon else path.name if path.exists() else argument


@contextmanager
def _fastest_convolutions() -> Iterator[None]:
    """cuDNN tries its algorithms: shapes are the same in every step."""
    cudnn = torch.backends.cudnn
    before, cudnn.benchmark = cudnn.benchmark, True
    try:
        yield
    finally:
        cudnn.benchmark = before
