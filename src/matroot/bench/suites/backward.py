"""Backward passes alone: time and error of the gradient rules from the same root."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import torch
from torch import Tensor

from ..._timer import Work
from ...gradients import Exact, Gradient, Lyapunov, Smith, Unrolled
from ...methods import Eigen, Method, Minimax, NewtonSchulz
from ..baselines import EighRoot
from ..cases import Case, Group, Outcome, Settings
from ..compare import Check, Errors, compare, known, small_batch
from ..entries import OUTPUTS
from ..problems import largest_error, value_and_gradient
from ..theory import TRUNCATED, gradient_bound, lyapunov_factor

Rules = Mapping[str, tuple[Method, Gradient]]


def groups(settings: Settings) -> Iterator[Group]:
    """64 covariances 64 x 64 (quick: 4 of 32 x 32): iterations of the rules against the exact gradient.

    Lyapunov and the exact gradient start from exact roots, Smith from those of ``Minimax``.
    """
    steps, unrolled = ((4, 8), (3, 5)) if settings.quick else (range(4, 13), range(3, 8))
    rules: list[tuple[str, dict[str, int], Method, Gradient]] = [
        *(("lyapunov", {"iterations": k}, Eigen(), Lyapunov(iterations=k)) for k in steps),
        *(("newton-schulz unrolled", {"iterations": k}, NewtonSchulz(iterations=k), Unrolled()) for k in unrolled),
        ("smith", {}, Minimax(), Smith()),
        ("exact", {}, Eigen(), Exact()),
    ]
    for inverse in (False, True):
        cases = tuple(Case("backward", name, {**order, "inverse": inverse}) for name, order, _, _ in rules)
        by_name = {case.name: rule[2:] for case, rule in zip(cases, rules, strict=True)}
        yield Group(cases, partial(_outcomes, settings, by_name, inverse))


def _outcomes(settings: Settings, rules: Rules, inverse: bool, names: Sequence[str]) -> Iterator[tuple[str, Outcome]]:
    A, G = small_batch(settings)
    bounds = _Bounds(A.double(), G.double(), settings.eps, inverse)
    entries: dict[str, tuple[Work, Check]] = {}
    for name in names:
        method, gradient = rules[name]
        function = partial(OUTPUTS["inverse" if inverse else "root"], method=method, gradient=gradient)
        work = backward_pass(function, A, G)
        entries[name] = work, partial(bounds.check, work, gradient)
    yield from compare(entries, settings)


def backward_pass(function: Callable[[Tensor], Tensor], A: Tensor, G: Tensor) -> Callable[[], Tensor]:
    """The backward pass of a root that has been computed, to be called many times."""
    X = A.clone().requires_grad_()
    value = function(X)
    return lambda: torch.autograd.grad(value, X, G, retain_graph=True)[0]


class _Bounds:
    """The exact gradient, and how far the gradient of a rule may be from it."""

    def __init__(self, A: Tensor, G: Tensor, eps: float, inverse: bool) -> None:
        self.true = value_and_gradient(partial(EighRoot.apply, inverse), A, G)[1]
        self.eigenvalues, self.U = torch.linalg.eigh(A)
        self.eps = eps
        # With R = A^(-1/2) the right-hand side of the inverse root is -R G R in the equation of R.
        self.right = self.U.mT @ G @ self.U
        if inverse:
            roots = self.eigenvalues.sqrt()
            self.right = -self.right / (roots[..., :, None] * roots[..., None, :])

    def check(self, work: Callable[[], Tensor], gradient: Gradient) -> Errors:
        return {"gradient": largest_error(work(), self.true)}, known({"gradient": self.bound(gradient)})

    def bound(self, gradient: Gradient) -> float | None:
        """The error of the rule's truncation, and rounding on top; None for unrolled iterations."""
        rounding = gradient_bound(None, self.eigenvalues.cpu(), self.eps)
        if isinstance(gradient, Unrolled) or rounding is None:
            return None
        if not isinstance(gradient, Lyapunov):
            return rounding
        factor = lyapunov_factor(self.eigenvalues.cpu(), gradient.iterations).to(self.right.device)
        truncated = self.U @ (factor * self.right) @ self.U.mT
        return 1.05 * largest_error(truncated, self.true) + rounding + TRUNCATED * self.eps
