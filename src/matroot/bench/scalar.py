"""What needs no clock: the scalar picture, and residuals against steps."""

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

import matroot

from ..methods import Method, NewtonSchulz, Pade, Taylor
from ..methods.minimax import _iterate, _scale, schedules_for
from .cases import Case, Group, Outcome, Settings
from .problems import covariances
from .racing import matrices
from .theory import approximant

POINTS = 199
"""Values of z, evenly from -0.99 to 0.99."""


def scalar(settings: Settings) -> Iterator[Group]:
    """Approximants on |z| < 1 and their distances from sqrt(1 - z), in float64 whatever the dtype."""
    for method, parameters in (
        *((Taylor(degree=d), {"degree": d}) for d in (6, 11, 18)),
        *((NewtonSchulz(iterations=k), {"iterations": k}) for k in (3, 5, 7)),
        *((Pade(degree=d), {"degree": d}) for d in (3, 5, 9)),
    ):
        yield Group((Case("scalar", method.name, parameters),), partial(_scalar, method))


def _scalar(method: Method) -> list[Outcome]:
    z = torch.linspace(-0.99, 0.99, POINTS, dtype=torch.float64)
    x = 1 - z
    # The closed form of Pade's approximant holds for z >= 0 only.
    found = _pade(method.degree, z) if isinstance(method, Pade) else approximant(method, x)
    error = (found - x.sqrt()).abs()
    return [Outcome(values={"z": z.tolist(), "value": found.tolist(), "error": error.tolist()})]


def _pade(degree: int, z: Tensor) -> Tensor:
    powers = z[:, None] ** torch.arange(degree + 1)
    P, Q = (powers @ torch.tensor([float(c) for c in p], dtype=z.dtype) for p in matroot.coefficients.pade(degree))
    return P / Q


def residuals(settings: Settings) -> Iterator[Group]:
    """Mean ||S^2 - A||/||A|| of covariances after 1, 2, ... steps: degrees or iterations.

    "lyapunov" is the paper's measure of the backward pass, the mean ||B - I||, on covariances of 200 samples: what
    those are that the paper took is not known.
    """
    most = 6 if settings.quick else 18
    makers: dict[str, tuple[Callable[[int], Method], int]] = {
        "taylor": (lambda k: Taylor(degree=k), most),
        "pade": (lambda k: Pade(degree=k), most),
        "newton-schulz": (lambda k: NewtonSchulz(iterations=k), most),
    }
    for name, (make, last) in makers.items():
        yield Group((Case("residuals", name, {}),), partial(_residuals, settings, make, last))
    yield Group((Case("residuals", "minimax", {}),), partial(_minimax_residuals, settings))
    yield Group((Case("residuals", "lyapunov", {}),), partial(_sign_residuals, settings))


def _covariances(settings: Settings) -> Tensor:
    return settings.place(matrices(*((4, 32) if settings.quick else (64, 64)))[0])


def _residuals(settings: Settings, make: Callable[[int], Method], last: int) -> list[Outcome]:
    A, steps = _covariances(settings), list(range(1, last + 1))
    return [_outcome(steps, [matroot.residual(A, matroot.sqrtm(A, make(k))) for k in steps])]


def _minimax_residuals(settings: Settings) -> list[Outcome]:
    """Of the beginnings of the schedule for the worst condition number in the batch."""
    A = _covariances(settings)
    square = A @ A
    theta = _scale(A, square)
    values = torch.linalg.eigvalsh(A.double())
    condition = (theta[:, 0, 0] / values[:, 0]).max().item()
    schedule = next(schedule.steps for schedule in schedules_for(A.dtype) if schedule.condition >= condition)
    steps = list(range(1, len(schedule) + 1))
    found = [_iterate(A / theta, square / theta**2, schedule[:k], "sqrt")[0] * theta.sqrt() for k in steps]
    return [_outcome(steps, [matroot.residual(A, root) for root in found])]


def _sign_residuals(settings: Settings) -> list[Outcome]:
    """Of B <- B (3I - B^2)/2 from a Pade root, normalised as ``Lyapunov`` does."""
    A = settings.place(covariances(4 if settings.quick else 1000, 64, samples=200))
    B = matroot.sqrtm(A, Pade()) / torch.linalg.matrix_norm(A, keepdim=True).sqrt()
    eye, steps, found = torch.eye(64, dtype=B.dtype, device=B.device), list(range(1, 10)), []
    for _ in steps:
        B = 1.5 * B - 0.5 * B @ B @ B
        found.append(torch.linalg.matrix_norm(B - eye))
    return [_outcome(steps, found)]


def _outcome(steps: list[int], residuals: list[Tensor]) -> Outcome:
    return Outcome(values={"steps": steps, "residual": [r.mean().item() for r in residuals]})
