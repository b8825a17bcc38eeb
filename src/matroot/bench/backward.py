"""Backward passes alone: time, error and memory of the gradient rules on the way back from the same root."""

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

import matroot

from ..gradients import Exact, Gradient, Implicit, Lyapunov, Smith, Unrolled
from ..methods import Eigen, Method, Minimax, NewtonSchulz, Pade
from .baselines import EighRoot
from .cases import Case, Group, Outcome, Settings
from .memory import PeakMemory
from .problems import distance, value_and_gradient
from .racing import Check, Work, contest, matrices, worst
from .theory import TRUNCATED, gradient_bound, lyapunov_factor

Choice = tuple[str, Method, Gradient, dict[str, int]]


def backward(settings: Settings) -> Iterator[Group]:
    """64 covariances 64 x 64 (quick: 4 of 32 x 32): iterations of the rules against the exact gradient.

    Lyapunov and the exact gradient start from exact roots, Smith from those of ``Minimax``.
    """
    steps = (4, 8) if settings.quick else range(4, 13)
    for inverse in (False, True):
        choices: list[Choice] = [("lyapunov", Eigen(), Lyapunov(iterations=k), {"iterations": k}) for k in steps]
        choices += [
            ("newton-schulz unrolled", NewtonSchulz(iterations=k), Unrolled(), {"iterations": k})
            for k in ((3, 5) if settings.quick else range(3, 8))
        ]
        choices += [("smith", Minimax(), Smith(), {}), ("exact", Eigen(), Exact(), {})]
        cases = tuple(Case("backward", name, {**order, "inverse": inverse}) for name, _, _, order in choices)
        yield Group(cases, partial(_backward, settings, cases, choices, inverse))


def _backward(settings: Settings, cases: tuple[Case, ...], choices: list[Choice], inverse: bool) -> list[Outcome]:
    A, G = (settings.place(T) for T in matrices(*((4, 32) if settings.quick else (64, 64))))
    _, true = value_and_gradient(partial(EighRoot.apply, inverse), A.double(), G.double())
    values, U = torch.linalg.eigh(A.double())
    function = matroot.invsqrtm if inverse else matroot.sqrtm

    entries: dict[str, tuple[Work, Check]] = {}
    for case, (_, method, gradient, _) in zip(cases, choices, strict=True):
        work = _way_back(partial(function, method=method, gradient=gradient), A, G)

        def check(work=work, gradient=gradient):
            bound = _bound(gradient, values, U, G.double(), true, settings.eps, inverse)
            return {"gradient": worst(work(), true)}, {} if bound is None else {"gradient": bound}

        entries[case.name] = work, check
    found = contest(entries, settings)
    return [found[case.name] for case in cases]


def _way_back(function: Callable[[Tensor], Tensor], A: Tensor, G: Tensor) -> Callable[[], Tensor]:
    """The backward pass of a root that has been computed, to be called many times."""
    X = A.clone().requires_grad_()
    value = function(X)
    return lambda: torch.autograd.grad(value, X, G, retain_graph=True)[0]


def _bound(
    gradient: Gradient, values: Tensor, U: Tensor, G: Tensor, true: Tensor, eps: float, inverse: bool
) -> float | None:
    """What the rule's own truncation makes of the error, and rounding on top; None for unrolled iterations."""
    rounding = gradient_bound(None, values.cpu(), eps)
    if isinstance(gradient, Unrolled) or rounding is None:
        return None
    if not isinstance(gradient, Lyapunov):
        return rounding
    # With R = A^(-1/2) the right-hand side of the inverse root is -R G R in the equation of R: see _rule.
    right = U.mT @ G @ U
    roots = values.sqrt()
    if inverse:
        right = -right / (roots[..., :, None] * roots[..., None, :])
    factor = lyapunov_factor(values.cpu(), gradient.iterations).to(values.device)
    return 1.05 * worst(U @ (factor * right) @ U.mT, true) + rounding + TRUNCATED * eps


def schemes(settings: Settings) -> Iterator[Group]:
    """Backward passes from a Pade root of 64 x 64 x 64 (quick: 4 x 32 x 32), and the memory of forward and backward."""
    rules = {"lyapunov": Lyapunov(), "unrolled": Unrolled(), "implicit": Implicit()}
    cases = tuple(Case("schemes", name, {}) for name in rules)
    yield Group(cases, partial(_schemes, settings, rules))


def _schemes(settings: Settings, rules: dict[str, Gradient]) -> list[Outcome]:
    A, G = (settings.place(T) for T in matrices(*((4, 32) if settings.quick else (64, 64))))
    _, true = value_and_gradient(partial(EighRoot.apply, False), A.double(), G.double())
    functions = {name: partial(matroot.sqrtm, method=Pade(), gradient=rule) for name, rule in rules.items()}
    entries: dict[str, tuple[Work, Check]] = {}
    for name, function in functions.items():
        work = _way_back(function, A, G)
        entries[name] = work, lambda work=work: ({"gradient": distance(work(), true).max().item()}, {})
    found = contest(entries, settings)
    return [
        Outcome(o.milliseconds, o.errors, {"megabytes": _megabytes(functions[name], A, G)}, o.note, o.bounds)
        for name, o in found.items()
    ]


def _megabytes(function: Callable[[Tensor], Tensor], A: Tensor, G: Tensor) -> float:
    """Peak of what lives beyond the input, saved matrices included."""
    X = A.clone().requires_grad_()
    if A.is_cuda:
        # The allocator also sees what kernels take for themselves.
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        torch.autograd.grad(function(X), X, G)
        return (torch.cuda.max_memory_allocated() - before) / 2**20
    with PeakMemory(X, G) as meter:
        torch.autograd.grad(function(X), X, G)
    return meter.peak / 2**20
