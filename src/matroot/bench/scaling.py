"""Forward and backward pass against batch size, dimension, and at the shapes of the applications."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .cases import Case, Group, Settings
from .contestants import HEAVY, Contestant, auto, eigh, everyone, paper, scipy
from .racing import both_ways
from .solver import SHAPES

BATCHES = (1, 4, 16, 64, 256, 1024)
DIMENSIONS = (8, 16, 32, 64, 128, 256, 512)
MATRICES = 4
"""In a batch of the dimension test."""

APPLICATIONS = (
    ((1, 64), "inverse"),
    ((64, 48), "root"),
    ((10, 64), "root"),
    ((16, 128), "root"),
    ((256, 256), "root"),
    ((4, 256), "both"),
)
"""Whitening, video, second-order heads, attention, covariance pooling; whitening and colouring of style transfer."""


def batch(settings: Settings) -> Iterator[Group]:
    """64 x 64 matrices (quick: 32 x 32), more and more of them."""
    for number in (1, 16) if settings.quick else BATCHES:
        field = _field("batch", {"batch": number}, everyone("root"))
        yield both_ways(field, settings, number, 32 if settings.quick else 64)


def dimension(settings: Settings) -> Iterator[Group]:
    """Four matrices, larger and larger."""
    for n in (8, 32) if settings.quick else DIMENSIONS:
        yield both_ways(_field("dimension", {"n": n}, everyone("root")), settings, MATRICES, n)


def applications(settings: Settings) -> Iterator[Group]:
    """The shapes and outputs of the paper's applications."""
    for (number, n), output in (APPLICATIONS[0], ((2, 32), "both")) if settings.quick else APPLICATIONS:
        parameters = {"shape": f"{number} x {n} x {n}", "output": output}
        field = _field("applications", parameters, everyone(output))
        # In minutes much is lost by Ctrl-C: two groups, with neighbours, who are alike, apart.
        halves = (field[::2], field[1::2]) if settings.device == "cpu" and number * n**3 > HEAVY else (field,)
        for part in halves:
            yield both_ways(part, settings, number, n, output)


def speed(settings: Settings) -> Iterator[Group]:
    """The default next to a decomposition, the paper, and SciPy where there is little to do."""
    contestants = [auto("root"), eigh("root"), paper(), scipy()]
    for number, n in ((4, 16), (2, 32)) if settings.quick else SHAPES:
        yield both_ways(_field("speed", {"batch": number, "n": n}, contestants), settings, number, n)


def _field(
    suite: str, parameters: Mapping[str, Any], contestants: Sequence[Contestant]
) -> list[tuple[Case, Contestant]]:
    return [(Case(suite, c.name, parameters), c) for c in contestants]
