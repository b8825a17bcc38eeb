"""Residuals against steps: degrees or iterations of a method, iterations of the backward pass."""

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

import matroot

from ...methods import Method, NewtonSchulz, Pade, Taylor
from ...methods.minimax import _iterate, _scale, schedules_for
from ..cases import Case, Group, Outcome, Settings
from ..compare import small_batch
from ..problems import covariances


def groups(settings: Settings) -> Iterator[Group]:
    """Mean ||S^2 - A||/||A|| of covariances after 1, 2, ... steps.

    "lyapunov" is the paper's measure of the backward pass, the mean ||B - I||, on covariances of 200 samples: the
    paper does not say which matrices it took.
    """
    makers: dict[str, Callable[[int], Method]] = {
        "taylor": lambda k: Taylor(degree=k),
        "pade": lambda k: Pade(degree=k),
        "newton-schulz": lambda k: NewtonSchulz(iterations=k),
    }
    measures: dict[str, Callable[[], Outcome]] = {
        **{name: partial(_residuals, settings, make) for name, make in makers.items()},
        "minimax": partial(_minimax_residuals, settings),
        "lyapunov": partial(_sign_residuals, settings),
    }
    for name, measure in measures.items():
        yield Group.single(Case("residuals", name, {}), measure)


def _residuals(settings: Settings, make: Callable[[int], Method]) -> Outcome:
    A, _ = small_batch(settings)
    steps = range(1, 7 if settings.quick else 19)
    return _outcome([matroot.residual(A, matroot.sqrtm(A, make(k))) for k in steps])


def _minimax_residuals(settings: Settings) -> Outcome:
    """Of the beginnings of the schedule for the worst condition number in the batch."""
    A, _ = small_batch(settings)
    square = A @ A
    theta = _scale(A, square)
    values = torch.linalg.eigvalsh(A.double())
    condition = (theta[:, 0, 0] / values[:, 0]).max().item()
    schedule = next(schedule.steps for schedule in schedules_for(A.dtype) if schedule.condition >= condition)
    steps = range(1, len(schedule) + 1)
    found = [_iterate([A / theta, square / theta**2], schedule[:k], True, False)[0] * theta.sqrt() for k in steps]
    return _outcome([matroot.residual(A, root) for root in found])


def _sign_residuals(settings: Settings) -> Outcome:
    """Of B <- B (3I - B^2)/2 from a Pade root, normalised as ``Lyapunov`` does."""
    A = settings.place(covariances(4 if settings.quick else 1000, 64, samples=200))
    B = matroot.sqrtm(A, Pade()) / torch.linalg.matrix_norm(A, keepdim=True).sqrt()
    eye, found = torch.eye(64, dtype=B.dtype, device=B.device), []
    for _ in range(9):
        B = 1.5 * B - 0.5 * B @ B @ B
        found.append(torch.linalg.matrix_norm(B - eye))
    return _outcome(found)


def _outcome(residuals: list[Tensor]) -> Outcome:
    """Mean residuals after 1, 2, ... steps."""
    steps = list(range(1, len(residuals) + 1))
    return Outcome(values={"steps": steps, "residual": [r.mean().item() for r in residuals]})
