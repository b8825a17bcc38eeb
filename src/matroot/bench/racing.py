"""Contestants on the same matrices: times side by side, errors against a float64 eigendecomposition."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from .baselines import EighRoot
from .cases import FAILED, LEFT_OUT, Case, Group, Outcome, Settings
from .contestants import VALUE_ALONE, Contestant
from .problems import covariances, distance, symmetric
from .theory import gradient_bound, value_bound
from .timer import reason, spread
from .turns import take_turns

CHECKED = 16
"""Matrices of a batch whose errors are measured where times are what matters."""

DISTINCT = 1000
"""Matrices of a batch that differ; more are repetitions, which cost the same."""

Work = Callable[[], object]
Check = Callable[[], tuple[Mapping[str, float | None], Mapping[str, float]]]
"""Errors, and bounds for them."""


def matrices(batch: int, n: int) -> tuple[Tensor, Tensor]:
    """Covariances and symmetric gradients in float64, (batch, n, n)."""
    different = min(batch, DISTINCT)
    repeats = -(-batch // different)
    A, G = covariances(different, n), symmetric(different, n)
    return A.repeat(repeats, 1, 1)[:batch], G.repeat(repeats, 1, 1)[:batch]


def contest(entries: Mapping[str, tuple[Work, Check]], settings: Settings) -> dict[str, Outcome]:
    """Times, errors and bounds of all entries; one that fails says so in its note, and the others go on."""
    works = {name: work for name, (work, _) in entries.items()}
    laps, failures = take_turns(works, settings.rounds, settings.device, settings.patience)
    outcomes: dict[str, Outcome] = {}
    for name, (_, check) in entries.items():
        time = spread(laps[name]) if name in laps else None
        try:
            errors, bounds = check()
        except Exception as error:
            errors, bounds = {}, {}
            failures.setdefault(name, reason(error))
        note = FAILED + failures[name] if name in failures else None
        outcomes[name] = Outcome(time, errors, note=note, bounds=bounds)
    return outcomes


def both_ways(
    field: Sequence[tuple[Case, Contestant]], settings: Settings, batch: int, n: int, output: str = "root"
) -> Group:
    """A group that times a forward and backward pass of ``output`` for ``batch`` matrices of size ``n``.

    Contestants without a gradient are timed without one, and say so; so do those that are left out.
    """

    def outcomes() -> list[Outcome]:
        A, G = (settings.place(T) for T in matrices(batch, n))
        X = A.clone().requires_grad_()
        exact = Exact(A[:CHECKED], G[:CHECKED], output)
        notes = {case.name: _note(c, settings.device, batch, n) for case, c in field}
        entries: dict[str, tuple[Work, Check]] = {}
        for case, c in field:
            if not (notes[case.name] or "").startswith(LEFT_OUT):
                entries[case.name] = (lambda c=c: step(c, X, G), lambda c=c: exact.check(c, settings.eps))
        found = contest(entries, settings)
        measured = {name: found.get(name, Outcome()) for name in notes}
        return [replace(outcome, note=outcome.note or notes[name]) for name, outcome in measured.items()]

    return Group(tuple(case for case, _ in field), outcomes)


def _note(contestant: Contestant, device: str, batch: int, n: int) -> str | None:
    if obstacle := contestant.obstacle(device, batch, n):
        return LEFT_OUT + obstacle
    return None if contestant.differentiable else VALUE_ALONE


def step(contestant: Contestant, X: Tensor, G: Tensor) -> tuple[tuple[Tensor, ...], Tensor | None]:
    """The outputs, and the gradient of the sum of their products with ``G`` where there is one; ``X`` requires it."""
    outputs = contestant.function(X)
    outputs = (outputs,) if isinstance(outputs, Tensor) else tuple(outputs)
    if not contestant.differentiable:
        return outputs, None
    return outputs, torch.autograd.grad(outputs, X, (G,) * len(outputs))[0]


class Exact:
    """Exact outputs and gradient for some matrices, and how far others are from them."""

    def __init__(self, A: Tensor, G: Tensor, output: str) -> None:
        """``output`` is "root", "inverse" or "both"."""
        self.A, self.G = A, G
        self.is_inverse = {"root": (False,), "inverse": (True,), "both": (False, True)}[output]
        wide = A.double().requires_grad_()
        self.outputs = tuple(EighRoot.apply(inverse, wide) for inverse in self.is_inverse)
        self.gradient = torch.autograd.grad(self.outputs, wide, (G.double(),) * len(self.outputs))[0]
        self.values = torch.linalg.eigvalsh(A.double()).cpu()

    def check(self, contestant: Contestant, eps: float) -> tuple[dict[str, float | None], dict[str, float]]:
        """Largest errors in the batch, and bounds where there are some; "root" is the root asked for if it is one."""
        outputs, gradient = step(contestant, self.A.clone().requires_grad_(), self.G)
        errors: dict[str, float | None] = {}
        bounds: dict[str, float | None] = {}
        for inverse, found, true in zip(self.is_inverse, outputs, self.outputs, strict=True):
            name = "inverse" if inverse and len(self.is_inverse) > 1 else "root"
            errors[name] = worst(found, true)
            bounds[name] = value_bound(contestant.method, self.values, eps, inverse)
        errors["gradient"] = None if gradient is None else worst(gradient, self.gradient)
        if contestant.exact:
            bounds["gradient"] = gradient_bound(contestant.method, self.values, eps)
        return errors, {name: bound for name, bound in bounds.items() if bound is not None}


def worst(found: Tensor, true: Tensor) -> float:
    """The largest relative distance in a batch, NaN if one is."""
    return distance(found.detach(), true.detach()).max().item()
