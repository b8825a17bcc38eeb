"""Contestants on the same matrices: times side by side, errors against a float64 eigendecomposition."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ..peers import EighRoot
from ..problems import covariances, distance, symmetric
from ..timing import race, reason, spread
from .cases import FAILED, Case, Group, Outcome, Settings
from .contestants import Contestant
from .theory import gradient_bound, value_bound

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
    """Times, errors and bounds of all entries; one that fails says so in its note, and the others go on.

    The order is turned round after each round. An entry so slow that its first turn uses up the patience has no other.
    """
    works = {name: work for name, (work, _) in entries.items()}
    laps, failures = race(works, settings.rounds, settings.device, settings.patience)
    outcomes: dict[str, Outcome] = {}
    for name, (_, check) in entries.items():
        time = spread(laps[name]["single"]) if name in laps and name not in failures else None
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
    """A group that times a forward and backward pass of ``output`` for ``batch`` matrices of size ``n``."""

    def outcomes() -> list[Outcome]:
        A, G = (settings.place(T) for T in matrices(batch, n))
        X = A.clone().requires_grad_()
        exact = Exact(A[:CHECKED], G[:CHECKED], output)
        entries: dict[str, tuple[Work, Check]] = {}
        for case, c in field:
            if not _too_large(c, batch, n):
                entries[case.name] = (lambda c=c: step(c.function, X, G), lambda c=c: exact.check(c, settings.eps))
        found = contest(entries, settings)
        left_out = Outcome(note="left out: it keeps a matrix for every eigenvector")
        return [found.get(case.name, left_out) for case, _ in field]

    return Group(tuple(case for case, _ in field), outcomes)


def _too_large(contestant: Contestant, batch: int, n: int) -> bool:
    return contestant.name == "pi" and batch * n**3 > 1 << 26


def step(function: Callable[[Tensor], Any], X: Tensor, G: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
    """The outputs, and the gradient of the sum of their products with ``G``; ``X`` requires one."""
    outputs = function(X)
    outputs = (outputs,) if isinstance(outputs, Tensor) else tuple(outputs)
    return outputs, torch.autograd.grad(outputs, X, (G,) * len(outputs))[0]


class Exact:
    """Exact outputs and gradient for some matrices, and how far others are from them."""

    def __init__(self, A: Tensor, G: Tensor, output: str) -> None:
        """``output`` is "root", "inverse" or "both"."""
        self.A, self.G = A, G
        self.inverses = {"root": (False,), "inverse": (True,), "both": (False, True)}[output]
        wide = A.double().requires_grad_()
        self.outputs, self.gradient = step(
            lambda A: tuple(EighRoot.apply(i, A) for i in self.inverses), wide, G.double()
        )
        self.values = torch.linalg.eigvalsh(A.double()).cpu()

    def check(self, contestant: Contestant, eps: float) -> tuple[dict[str, float | None], dict[str, float]]:
        """Largest errors in the batch, and bounds where there are some; "root" is the root asked for if it is one."""
        outputs, gradient = step(contestant.function, self.A.clone().requires_grad_(), self.G)
        errors: dict[str, float | None] = {}
        bounds: dict[str, float | None] = {}
        for inverse, found, true in zip(self.inverses, outputs, self.outputs, strict=True):
            name = "inverse" if inverse and len(self.inverses) > 1 else "root"
            errors[name] = worst(found, true)
            bounds[name] = value_bound(contestant.method, self.values, eps, inverse)
        errors["gradient"] = worst(gradient, self.gradient)
        if contestant.exact:
            bounds["gradient"] = gradient_bound(self.values, eps)
        return errors, {name: bound for name, bound in bounds.items() if bound is not None}


def worst(found: Tensor, true: Tensor) -> float:
    """The largest relative distance in a batch, NaN if one is."""
    return distance(found.detach(), true.detach()).max().item()
