"""The default next to a decomposition, the paper's method, and SciPy where there is little to compute."""

from collections.abc import Iterator

from ..cases import Group, Settings
from ..compare import cases_of, forward_backward_group
from ..entries import auto, eigh, paper, scipy

SHAPES = ((64, 48), (64, 64), (16, 128), (256, 32), (1, 64), (10, 64), (10000, 64))
QUICK = ((4, 16), (2, 32))


def groups(settings: Settings) -> Iterator[Group]:
    """Forward and backward pass of the root."""
    solvers = [auto("root"), eigh("root"), paper(), scipy()]
    for batch, n in QUICK if settings.quick else SHAPES:
        entries = cases_of("speed", {"batch": batch, "n": n}, solvers)
        yield forward_backward_group(entries, settings, batch, n)
