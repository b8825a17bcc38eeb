"""Figures for *The paper, corrected*."""

import torch
from matplotlib import pyplot as plt
from style import INK, ONE, SIX, TWO

import matroot

STEPS = 14


def normalisations():
    """How far the paper's backward iteration is from its limit, by what it is normalised with.

    Covariances of 200 samples of 64 channels, in float64 so that rounding does not hide the tail.
    """
    torch.manual_seed(0)
    X = torch.randn(64, 64, 200, dtype=torch.float64)
    A = X @ X.mT / 200
    S = matroot.sqrtm(A, method="pade")
    norms = {
        "√‖A‖, as in the experiments": (torch.linalg.matrix_norm(A, keepdim=True).sqrt(), ONE),
        "‖S‖, as printed": (torch.linalg.matrix_norm(S, keepdim=True), TWO),
    }
    figure, ax = plt.subplots(figsize=(6.4, 3.2))
    for label, (norm, colour) in norms.items():
        distances = [_distance(S / norm, step) for step in range(1, STEPS + 1)]
        ax.semilogy(range(1, STEPS + 1), distances, "o-", markersize=3.5, color=colour, label=label)
    ax.axvline(8, color=SIX, linewidth=1, linestyle=":")
    ax.annotate("the paper's 8 steps", (8.15, 3), color=INK, fontsize=9)
    ax.set_ylim(1e-10, 20)
    ax.set_xlabel(r"steps $B \leftarrow B\,(3I - B^2)/2$")
    ax.set_ylabel(r"mean of $\Vert B - I\,\Vert$")
    ax.legend(title="normalised by", alignment="left")
    ax.grid()
    return figure


def _distance(B: torch.Tensor, steps: int) -> float:
    eye = torch.eye(B.shape[-1], dtype=B.dtype)
    for _ in range(steps):
        B = 0.5 * B @ (3 * eye - B @ B)
    return torch.linalg.matrix_norm(B - eye).mean().item()


def approximants():
    """Relative error of the published approximants of a root, over the whole interval."""
    x = torch.logspace(-5, 0, 300, dtype=torch.float64)[:-1]
    A = torch.diag_embed(torch.stack((x, (1 - x**2).sqrt()), -1))
    figure, ax = plt.subplots(figsize=(6.4, 3.2))
    for method in (matroot.NewtonSchulz(5), matroot.Taylor(10), matroot.Taylor(11), matroot.Pade(5)):
        error = (matroot.sqrtm(A, method)[:, 0, 0] / x.sqrt() - 1).abs().clamp_min(1e-17)
        name = type(method).__name__
        ax.loglog(x, error, label=f"{name}({getattr(method, 'degree', 5)})")
    ax.set_ylim(1e-8, 100)
    ax.set_xlabel("eigenvalue, divided by the Frobenius norm")
    ax.set_ylabel("relative error of its root")
    ax.legend()
    ax.grid()
    return figure
