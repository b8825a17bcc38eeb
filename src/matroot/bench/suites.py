"""The table of suites."""

from collections.abc import Callable, Iterator

from . import accuracy, backward, forward, scalar, scaling
from .cases import Group, Settings

SUITES: dict[str, Callable[[Settings], Iterator[Group]]] = {
    "scalar": scalar.scalar,
    "forward": forward.forward,
    "backward": backward.backward,
    "batch": scaling.batch,
    "dimension": scaling.dimension,
    "schemes": backward.schemes,
    "residuals": scalar.residuals,
    "pade": forward.pade,
    "applications": scaling.applications,
    "accuracy": accuracy.accuracy,
    "speed": scaling.speed,
}
