"""Figures of *Numerics* about conditioning, compositions and gradients, computed by the library."""

from collections.abc import Callable

import torch
from matplotlib import pyplot as plt
from style import FIVE, INK, ONE, SIX, THREE, TWO
from torch import Tensor

import matroot
from matroot.methods.minimax import Schedule, schedules_for

CONDITIONS = [10.0**k for k in range(1, 8)]
SHOWN = 1.2e4
"""The condition number whose schedule is drawn step by step."""


def spectra(condition: float, n: int = 64, batch: int = 4) -> Tensor:
    """float64 matrices (batch, n, n) with logarithmically spaced eigenvalues up to one, in random bases."""
    torch.manual_seed(0)
    Q = torch.linalg.qr(torch.randn(batch, n, n, dtype=torch.float64)).Q
    values = torch.logspace(-torch.log10(torch.tensor(condition)).item(), 0, n, dtype=torch.float64)
    A = (Q * values) @ Q.mT
    return 0.5 * (A + A.mT)


def error(found: Tensor, exact: Tensor) -> float:
    """The relative error of the worst matrix, in the Frobenius norm."""
    distance = torch.linalg.matrix_norm(found.double() - exact)
    return (distance / torch.linalg.matrix_norm(exact)).max().item()


def through_eigh(A: Tensor, power: float = 0.5) -> Tensor:
    """What is usually written, differentiated by PyTorch."""
    values, U = torch.linalg.eigh(A)
    return (U * values.clamp_min(torch.finfo(A.dtype).tiny)[..., None, :] ** power) @ U.mT


def floors():
    """Errors of float32 roots against the condition number, next to what rounding of the input does."""
    rounding = torch.finfo(torch.float32).eps / 2
    figure, axes = plt.subplots(1, 2, figsize=(8.2, 3.5), sharey=True)
    for ax, function, power, growth, title in (
        (axes[0], matroot.sqrtm, 0.5, 0.5, "the root"),
        (axes[1], matroot.invsqrtm, -0.5, 1.0, "the inverse root"),
    ):
        ways: dict[str, tuple[Callable[[Tensor], Tensor], str]] = {
            "torch.linalg.eigh": (lambda A, power=power: through_eigh(A, power), SIX),
            "Minimax, float32 products": (lambda A, f=function: f(A, "minimax", backend="torch"), ONE),
            "the default on a CPU": (function, THREE),
        }
        errors: dict[str, list[float]] = {label: [] for label in ways}
        for condition in CONDITIONS:
            A = spectra(condition).float()
            exact = function(A.double(), "eigen")
            for label, (way, _) in ways.items():
                errors[label].append(error(way(A), exact))
        for label, (_, colour) in ways.items():
            ax.loglog(CONDITIONS, errors[label], "o-", markersize=3.5, color=colour, label=label)
        line = [0.5 * rounding * condition**growth for condition in CONDITIONS]
        ax.loglog(CONDITIONS, line, ":", color=INK, linewidth=1.2, label="conditioning: ½u√κ and ½uκ")
        ax.set_title(f"Relative error of {title}")
        ax.set_xlabel("condition number κ")
        ax.grid()
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=9)
    return figure


def composition():
    """A schedule step by step, and the errors of three of them next to those of Newton-Schulz."""
    known = {schedule.condition: schedule for schedule in schedules_for(torch.float32)}
    figure, axes = plt.subplots(1, 2, figsize=(8.2, 4.4))
    x = torch.logspace(-4.6, 0, 800, dtype=torch.float64)
    for number, (s, colour) in enumerate(zip(_after_steps(known[SHOWN], x), (SIX, FIVE, TWO, THREE, ONE), strict=True)):
        label = "start, √x" if number == 0 else f"after step {number}"
        axes[0].semilogx(x, s, ":" if number == 0 else "-", color=colour, linewidth=1.5, label=label)
    axes[0].axvline(1 / SHOWN, color=INK, linewidth=0.8, linestyle=":")
    axes[0].annotate(f"1/κ, κ = {SHOWN:,.0f}", (1.12 / SHOWN, 1.9), fontsize=9)
    axes[0].set_ylim(0, 2.05)
    axes[0].set_title("Computed root over exact root")
    axes[0].set_xlabel("eigenvalue x")
    for condition, colour in ((2e2, THREE), (SHOWN, ONE), (2.5e6, TWO)):
        schedule = known[condition]
        x = torch.logspace(-torch.log10(torch.tensor(condition)).item(), 0, 2000, dtype=torch.float64)
        errors = [(1 - s).abs().max().item() for s in _after_steps(schedule, x)[1:]]
        products = [2 + 5 * step for step in range(len(errors))]  # the square, Y, and five a step
        axes[1].semilogy(products, errors, "o-", markersize=3.5, color=colour, label=f"κ = {condition:,.0f}")
        axes[1].semilogy(*_newton_schulz(1 / condition), "--", linewidth=1.1, color=colour)
    axes[1].semilogy([], [], "--", color=INK, linewidth=1.1, label="Newton-Schulz")
    axes[1].set_ylim(1e-9, 2)
    axes[1].set_title("Largest relative error")
    axes[1].set_xlabel("matrix products, for both roots")
    for ax in axes:
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.19), ncols=2, fontsize=8.5)
        ax.grid()
    return figure


def _after_steps(schedule: Schedule, x: Tensor) -> list[Tensor]:
    """s after every step, beginning with √x."""
    values = [x.sqrt()]
    for q in schedule.steps:
        s = values[-1]
        values.append(s * sum(c * s ** (2 * k) for k, c in enumerate(q)))
    return values


def _newton_schulz(x: float) -> tuple[list[int], list[float]]:
    """Products for both roots, and |1 - s| for the smallest eigenvalue x; larger ones converge sooner."""
    products, errors, s = [], [], x**0.5
    while not errors or errors[-1] > 1e-10:
        s *= 0.5 * (3 - s * s)
        products.append(1 + 3 * len(products))
        errors.append(max(1 - s, 1e-17))
    return products, errors


def gaps():
    """Error of float32 gradients against the distance of two eigenvalues."""
    distances = [10.0**-k for k in range(9)]
    errors: dict[str, list[float]] = {"torch.linalg.eigh": [], "matroot": []}
    torch.manual_seed(0)
    Q = torch.linalg.qr(torch.randn(32, 8, 8, dtype=torch.float64)).Q
    G = torch.randn_like(Q)
    G = G + G.mT
    for gap in distances:
        values = torch.tensor([1, 1 + gap, 3, 4, 5, 6, 7, 8], dtype=torch.float64)
        A = ((Q * values) @ Q.mT).float()
        A = 0.5 * (A + A.mT)
        exact = _gradient(lambda M: matroot.sqrtm(M, "eigen"), A.double(), G)
        for name, function in (("torch.linalg.eigh", through_eigh), ("matroot", matroot.sqrtm)):
            errors[name].append(error(_gradient(function, A, G.float()), exact))
    figure, ax = plt.subplots(figsize=(6.4, 3.2))
    for (name, values), colour in zip(errors.items(), (SIX, ONE), strict=True):
        ax.loglog(distances, values, "o-", markersize=3.5, color=colour, label=name)
    ax.invert_xaxis()
    ax.set_xlabel("distance of two eigenvalues, of 1 … 8")
    ax.set_ylabel("relative error of the gradient")
    ax.legend()
    ax.grid()
    return figure


def _gradient(function: Callable[[Tensor], Tensor], A: Tensor, G: Tensor) -> Tensor:
    A = A.detach().requires_grad_()
    (found,) = torch.autograd.grad(function(A), A, G)
    return 0.5 * (found + found.mT)


def solvers():
    """Error of the four iterative gradients against their cost, in float64 so that rounding is out of sight."""
    A = spectra(1e4, batch=1)
    S, R = matroot.roots(A, "eigen")
    torch.manual_seed(1)
    G = torch.randn_like(A)
    G = G + G.mT
    exact = matroot.Exact().solve(S, G, ())
    families = {
        "Lyapunov, the paper's": (matroot.Lyapunov, range(2, 21), (), TWO),
        "Implicit": (matroot.Implicit, range(4, 80, 4), (), SIX),
        "Krylov": (lambda count: matroot.Krylov(tolerance=1e-16, iterations=count), range(1, 40, 2), (R,), ONE),
        "Smith": (matroot.Smith, range(1, 8), (R,), THREE),
    }
    figure, ax = plt.subplots(figsize=(6.4, 3.4))
    for label, (make, counts, known, colour) in families.items():
        costs, errors = [], []
        for count in counts:
            with matroot.count_operations() as operations:
                X = make(count).solve(S, G, known)
            costs.append(operations.products + operations.solves)
            errors.append(error(X, exact))
        ax.semilogy(costs, errors, "o-", markersize=3.5, color=colour, label=label)
    ax.set_ylim(1e-14, 3)
    ax.set_xlabel("matrix products, a solve counted as one")
    ax.set_ylabel("relative error of the gradient")
    figure.legend(loc="outside lower center", ncols=4, fontsize=9)
    ax.grid()
    return figure
