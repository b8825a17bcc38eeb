"""Forward and backward pass against batch size."""

from collections.abc import Iterator

from ..cases import Group, Settings
from ..compare import cases_of, forward_backward_group
from ..entries import all_solvers

BATCHES = (1, 4, 16, 64, 256, 1024)


def groups(settings: Settings) -> Iterator[Group]:
    """64 x 64 matrices (quick: 32 x 32), more and more of them."""
    n = 32 if settings.quick else 64
    for batch in (1, 16) if settings.quick else BATCHES:
        entries = cases_of("batch", {"batch": batch}, all_solvers("root"))
        yield forward_backward_group(entries, settings, batch, n)
