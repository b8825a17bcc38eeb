"""What methods do to single eigenvalues, computed by the library."""

import torch
from matplotlib import pyplot as plt
from style import FIVE, FOUR, ONE, THREE, TWO

import matroot

CURVES = {
    "Eigen(), Minimax()": (matroot.Eigen(), ONE),
    "Pade(5)": (matroot.Pade(5), TWO),
    "Taylor(11)": (matroot.Taylor(11), THREE),
    "NewtonSchulz(5)": (matroot.NewtonSchulz(5), FOUR),
}


def small_eigenvalues():
    """Root and inverse root of a normalised eigenvalue x: each method's own way to regularise."""
    x = torch.logspace(-6, 0, 200, dtype=torch.float64)[:-1]
    A = torch.diag_embed(torch.stack((x, (1 - x**2).sqrt()), -1))  # Frobenius norm one, eigenvalue x first
    figure, axes = plt.subplots(1, 2, figsize=(8.2, 3.6))
    for ax, function, title in zip(
        axes, (matroot.sqrtm, matroot.invsqrtm), ("root of x", "inverse root of x"), strict=True
    ):
        for label, (method, colour) in CURVES.items():
            ax.loglog(x, function(A, method)[:, 0, 0], color=colour, label=label)
        ax.loglog(x, function(A, ridge=1e-3)[:, 0, 0], "--", color=FIVE, label="default with ridge=1e-3")
        ax.set_title(title)
        ax.set_xlabel("eigenvalue, divided by the Frobenius norm")
        ax.grid()
    figure.legend(*axes[1].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=9)
    return figure
