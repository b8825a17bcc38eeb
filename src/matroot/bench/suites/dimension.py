"""Forward and backward pass against the size of the matrices."""

from collections.abc import Iterator

from ..cases import Group, Settings
from ..compare import cases_of, forward_backward_group
from ..entries import all_solvers

DIMENSIONS = (8, 16, 32, 64, 128, 256, 512)
BATCH = 4


def groups(settings: Settings) -> Iterator[Group]:
    """Four matrices, larger and larger."""
    for n in (8, 32) if settings.quick else DIMENSIONS:
        entries = cases_of("dimension", {"n": n}, all_solvers("root"))
        yield forward_backward_group(entries, settings, BATCH, n)
