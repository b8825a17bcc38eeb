"""Approximants of sqrt(1 - z): the scalar functions behind the truncated methods."""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from ...coefficients import pade
from ...methods import Method, NewtonSchulz, Pade, Taylor
from ..cases import Case, Group, Outcome, Settings
from ..theory import approximant

POINTS = 199
"""Values of z, evenly from -0.99 to 0.99."""


def groups(settings: Settings) -> Iterator[Group]:
    """Approximants on |z| < 1 and their distances from sqrt(1 - z), in float64 whatever the dtype."""
    for method, parameters in (
        *((Taylor(degree=d), {"degree": d}) for d in (6, 11, 18)),
        *((NewtonSchulz(iterations=k), {"iterations": k}) for k in (3, 5, 7)),
        *((Pade(degree=d), {"degree": d}) for d in (3, 5, 9)),
    ):
        yield Group.single(Case("scalar", method.name, parameters), partial(_outcome, method))


def _outcome(method: Method) -> Outcome:
    z = torch.linspace(-0.99, 0.99, POINTS, dtype=torch.float64)
    x = 1 - z
    # The closed form of Pade's approximant holds for z >= 0 only.
    found = _pade(method.degree, z) if isinstance(method, Pade) else approximant(method, x)
    error = (found - x.sqrt()).abs()
    return Outcome(values={"z": z.tolist(), "value": found.tolist(), "error": error.tolist()})


def _pade(degree: int, z: Tensor) -> Tensor:
    powers = z[:, None] ** torch.arange(degree + 1)
    P, Q = (powers @ torch.tensor([float(c) for c in p], dtype=z.dtype) for p in pade(degree))
    return P / Q
