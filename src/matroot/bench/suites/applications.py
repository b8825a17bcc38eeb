"""Forward and backward pass at the shapes of the paper's applications."""

from collections.abc import Iterator

from ..cases import Group, Settings
from ..compare import cases_of, forward_backward_group
from ..entries import all_solvers

APPLICATIONS = (
    ((1, 64), "inverse"),
    ((64, 48), "root"),
    ((10, 64), "root"),
    ((16, 128), "root"),
    ((256, 256), "root"),
    ((4, 256), "both"),
)
"""Whitening, video, second-order heads, attention, covariance pooling; whitening and colouring of style transfer."""


def groups(settings: Settings) -> Iterator[Group]:
    """All solvers that have the output of the application."""
    for (batch, n), output in (APPLICATIONS[0], ((2, 32), "both")) if settings.quick else APPLICATIONS:
        parameters = {"shape": f"{batch} x {n} x {n}", "output": output}
        entries = cases_of("applications", parameters, all_solvers(output))
        yield forward_backward_group(entries, settings, batch, n, output)
