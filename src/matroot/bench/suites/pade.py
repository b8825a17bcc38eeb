"""Degrees of the Pade approximant."""

from collections.abc import Iterator
from functools import partial

from ...methods import Pade
from ..cases import Case, Group, Settings
from ..compare import forward_backward_group
from ..entries import OUTPUTS, Entry


def groups(settings: Settings) -> Iterator[Group]:
    """Degree 3 to 6, forward and backward, on 64 (quick: 8) covariances 64 x 64."""
    for inverse in (False, True):
        output = "inverse" if inverse else "root"
        entries = [
            (
                Case("pade", "pade", {"degree": degree, "inverse": inverse}),
                Entry("pade", partial(OUTPUTS[output], method=Pade(degree=degree)), Pade(degree=degree)),
            )
            for degree in (3, 4, 5, 6)
        ]
        yield forward_backward_group(entries, settings, 8 if settings.quick else 64, 64, output)
