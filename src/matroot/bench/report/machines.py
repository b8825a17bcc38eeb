"""Machines, and what was measured on each at the common shapes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .case import Case
from .results import Results

SHAPES = ((1, 64), (64, 48), (16, 128), (256, 256), (10000, 64))
"""Of the paper's networks and of its tests."""
MAX_SHAPES = 5
SUITES = ("gpu", "speed", "applications", "batch", "dimension")
"""Where a shape is looked for, in this order; all times of a shape come from one suite, taken in turns."""
NAMES = {
    "auto": "matroot",
    "jax eigh": "JAX eigh, forward",
    "cupy eigh": "CuPy eigh, forward",
    "torch eigh": "torch {torch} eigh",
    "eigh": "torch {torch} eigh",
    "paper": "paper's MPA-Lya",
    "mpa-lya": "paper's MPA-Lya",
    "ns": "Newton-Schulz",
    "scipy": "SciPy, forward",
}
"""Who is in the headline, and in which order."""
FORWARD_ONLY = ("jax eigh", "cupy eigh", "scipy")


@dataclass(frozen=True)
class Shape:
    """A batch of matrices and what was measured with it, by contestant."""

    batch: int
    n: int
    cases: dict[str, Case]

    @property
    def title(self) -> str:
        return f"{self.batch} {'matrix' if self.batch == 1 else 'matrices'} {self.n} x {self.n}"


@dataclass(frozen=True)
class Machine:
    """A device, the file that speaks for it, and its shapes of the headline."""

    name: str
    file: Results
    shapes: tuple[Shape, ...]

    @property
    def versions(self) -> str:
        """``torch 2.11.0, triton 3.6.0, float32; matroot 0.1.0, 2026-11-16``; of a CPU the cores before that."""
        found = self.file.environment
        libraries = [f"{name} {found[name]}" for name in ("torch", "triton", "jax", "cupy") if found.get(name)]
        where = f"{found['cores']} cores, " if found.get("cores") and self.file.settings["device"] == "cpu" else ""
        own = f"matroot {found['matroot']}, {self.file.date}"
        return f"{where}{', '.join(libraries)}, {self.file.settings['dtype']}; {own}"

    @property
    def torch(self) -> str:
        return ".".join(str(self.file.environment["torch"]).split(".")[:2])


def machines(files: Sequence[Results]) -> list[Machine]:
    """A machine for each device with a time of the default next to another's, GPUs first."""
    found = []
    for device in dict.fromkeys(one.device for one in files):
        own = sorted((one for one in files if one.device == device), key=_rank, reverse=True)
        shown = next(((one, shapes) for one in own if (shapes := _shapes(one))), None)
        if shown:
            found.append(Machine(device, *shown))
    return sorted(found, key=lambda machine: machine.file.settings["device"] == "cpu")


def _rank(one: Results) -> tuple[bool, bool, str]:
    """Full runs before quick ones, those with libraries' batched solvers before others, then the latest."""
    return not one.settings.get("quick"), bool(one.suite("gpu")), str(one.environment["date"])


def _shapes(one: Results) -> tuple[Shape, ...]:
    found: dict[tuple[int, int], Shape] = {}
    for suite in SUITES:
        by_shape: dict[tuple[int, int], dict[str, Case]] = {}
        for case in one.suite(suite):
            if (at := shape_of(case)) and case.contestant in NAMES:
                by_shape.setdefault(at, {})[case.contestant] = case
        for at, contestants in by_shape.items():
            if at not in found and _is_compared(contestants):
                found[at] = Shape(*at, contestants)
    common = [found[at] for at in SHAPES if at in found]
    if len(common) < 2:
        common = list(found.values())[:MAX_SHAPES]
    return tuple(sorted(common, key=lambda shape: shape.batch * shape.n**3))


def _is_compared(contestants: dict[str, Case]) -> bool:
    timed = [name for name, case in contestants.items() if case.time]
    return "auto" in timed and len(timed) > 1


def shape_of(case: Case) -> tuple[int, int] | None:
    """Batch and size of the matrices whose root a case measured; None if it says neither, or another output."""
    if case.parameters.get("output", "root") != "root":
        return None
    if case.suite == "applications":
        parts = str(case.parameters.get("shape")).split(" x ")
        sizes = [int(part) for part in parts if part.isdecimal() and len(part) < 9]
        return (sizes[0], sizes[1]) if len(sizes) == 3 == len(parts) else None
    fixed = {"batch": (None, 64), "dimension": (4, None)}.get(case.suite, (None, None))
    batch, n = (case.parameters.get(key, value) for key, value in zip(("batch", "n"), fixed, strict=True))
    return (batch, n) if _is_size(batch) and _is_size(n) else None  # type: ignore[return-value]


def _is_size(x: object) -> bool:
    return isinstance(x, int) and not isinstance(x, bool) and 0 < x < 10**9


def timed_cases(shapes: Iterable[Shape], *contestants: str) -> list[tuple[Case, Case]]:
    """The default and the fastest of some contestants, at every shape where both have a time."""
    found = []
    for shape in shapes:
        others = [case for name in contestants if (case := shape.cases.get(name)) and case.time]
        auto = shape.cases["auto"]
        if others and auto.time:
            found.append((auto, min(others, key=lambda case: case.time or 0.0)))
    return found
