"""Figures of *Numerics* about arithmetic: refinement, half-precision products, shifts; computed by the library."""

from collections.abc import Callable

import torch
from matplotlib import pyplot as plt
from numerics import CONDITIONS, error, spectra
from style import INK, ONE, SIX, THREE, TWO
from torch import Tensor

import matroot
from matroot.methods.minimax import schedules_for

Product = Callable[[Tensor, Tensor], Tensor]
ROUNDS = 5
UNIT = 16.0
"""What stands for one, as in the kernels: the low parts of float16 pairs keep their digits."""


def refinement():
    """Errors of roots and gradients after rounds with residuals in float64 and everything else in float32."""
    figure, axes = plt.subplots(1, 3, figsize=(8.2, 3.1), sharey=True)
    for condition, colour in ((1e2, THREE), (1e4, ONE), (1e6, TWO)):
        for ax, errors in zip(axes, _refined(condition), strict=True):
            ax.semilogy(range(len(errors)), errors, "o-", markersize=3.5, color=colour, label=f"κ = {condition:,.0f}")
    for ax, title in zip(axes, ("root", "inverse root", "gradient"), strict=True):
        ax.set_title(title)
        ax.set_xlabel("rounds")
        ax.grid()
    axes[0].set_ylabel("relative error")
    axes[0].set_ylim(1e-16, 1)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=9)
    return figure


def _refined(condition: float) -> tuple[list[float], list[float], list[float]]:
    """Errors of root, inverse root and gradient after 0 … ROUNDS rounds."""
    A = spectra(condition)
    torch.manual_seed(1)
    G = torch.randn_like(A)
    G = G + G.mT
    exact_S, exact_R = matroot.roots(A, "eigen")
    exact_X = matroot.Exact().solve(exact_S, G, ())
    S, R = (root.double() for root in matroot.roots(A.float(), "minimax", backend="torch"))
    eye = torch.eye(A.shape[-1], dtype=A.dtype)
    roots, inverses, gradients = [error(S, exact_S)], [error(R, exact_R)], []
    for _ in range(ROUNDS):
        S = _symmetric(S + _solve(S, R, A - S @ S))
        R = _symmetric(R + R @ (eye - S @ R))
        roots.append(error(S, exact_S))
        inverses.append(error(R, exact_R))
    X = torch.zeros_like(G)
    for _ in range(ROUNDS + 1):
        X = X + _solve(S, R, G - S @ X - X @ S)
        gradients.append(error(X, exact_X))
    return roots, inverses, gradients


def _solve(S: Tensor, R: Tensor, right: Tensor) -> Tensor:
    """The X with S X + X S = right that float32 finds; the right-hand side has any size."""
    size = right.abs().amax((-2, -1), keepdim=True)
    X = matroot.Smith().solve(S.float(), _symmetric(right / size).float(), (R.float(),))
    return size * X.double()


def _symmetric(M: Tensor) -> Tensor:
    return 0.5 * (M + M.mT)


def half_products():
    """Error of the coupled iteration by the kind of its products, each emulated with sums in float32."""
    kinds: dict[str, tuple[Product, str]] = {
        "TF32": (_tf32, TWO),
        "float32": (torch.matmul, SIX),
        "three float16 products": (_fp16x3, ONE),
    }
    figure, axes = plt.subplots(1, 2, figsize=(8.2, 3.4), sharey=True)
    for label, (product, colour) in kinds.items():
        errors = [_iteration_errors(condition, product) for condition in CONDITIONS[:5]]
        for ax, own in zip(axes, zip(*errors, strict=True), strict=True):
            style = "s--" if product is _fp16x3 else "o-"  # it covers that of float32
            ax.loglog(CONDITIONS[:5], own, style, markersize=3.5, color=colour, label=label)
            ax.set_ylim(1e-7, 10)
    for ax, title in zip(axes, ("the root", "the inverse root"), strict=True):
        ax.set_title(f"Relative error of {title}")
        ax.set_xlabel("condition number")
        ax.grid()
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=9)
    return figure


def _iteration_errors(condition: float, product: Product) -> tuple[float, float]:
    """Of root and inverse root by the schedule for this condition number."""
    A = spectra(condition).float()
    exact_S, exact_R = matroot.roots(A.double(), "eigen")
    theta = 1.02
    eye = torch.eye(A.shape[-1])
    Y, Z = A / theta, eye
    steps = next(s.steps for s in schedules_for(torch.float32) if s.condition >= theta * condition)
    for number, q in enumerate(steps):
        M = Y if number == 0 else product(Z, Y)
        square = product(M, M)
        c = [*q, 0.0, 0.0][:5]
        T = c[0] * eye + c[1] * M + c[2] * square
        if c[4]:
            T = T + product(square, c[3] * M + c[4] * square)
        Y, Z = product(Y, T), T if number == 0 else product(T, Z)
    return error(_symmetric(Y) * theta**0.5, exact_S), error(_symmetric(Z) / theta**0.5, exact_R)


def _tf32(a: Tensor, b: Tensor) -> Tensor:
    """Factors rounded to ten bits after the leading one."""
    return _rounded(a) @ _rounded(b)


def _rounded(matrix: Tensor) -> Tensor:
    bits = matrix.contiguous().view(torch.int32)
    return ((bits + (1 << 12)) & -(1 << 13)).view(torch.float32)


def _fp16x3(a: Tensor, b: Tensor) -> Tensor:
    """Factors as sums of two float16 matrices; the product of the low parts is left out."""
    (a0, a1), (b0, b1) = _pair(a), _pair(b)
    return (a0 @ b0 + (a1 @ b0 + a0 @ b1)) / UNIT**2


def _pair(matrix: Tensor) -> tuple[Tensor, Tensor]:
    scaled = UNIT * matrix
    high = scaled.half().float()
    return high, (scaled - high).half().float()


def shifted():
    """What a shift of one does to the root of an eigenvalue, with and without the correction."""
    x = torch.logspace(-3, 3, 400, dtype=torch.float64)
    figure, ax = plt.subplots(figsize=(6.4, 3.0))
    curves = {
        r"$\sqrt{\lambda + \sigma}$": (torch.sqrt(x + 1) - x.sqrt(), TWO),
        r"$\lambda/\sqrt{\lambda + \sigma}$, as computed": (x.sqrt() - x / torch.sqrt(x + 1), ONE),
    }
    for label, (distance, colour) in curves.items():
        ax.semilogx(x, distance, color=colour, label=label)
    ax.axhline(0.3, color=INK, linewidth=0.8, linestyle=":")
    ax.set_xlabel(r"eigenvalue $\lambda$, in units of the shift $\sigma$")
    ax.set_ylabel(r"distance from $\sqrt{\lambda}$, in $\sqrt{\sigma}$")
    ax.legend()
    ax.grid()
    return figure
