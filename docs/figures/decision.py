"""The decision figure of *How to choose*."""

from matplotlib import pyplot as plt
from style import FIVE, INK, ONE, THREE, TWO

# Question, what to write if the answer is yes, its colour.
QUESTIONS = [
    ("Reproducing a paper,\nor loading its weights?", 'sqrtm(A, **preset("mpa-lya"))\nNewtonSchulz(norm="trace")', TWO),
    ("Exporting to ONNX, or\nno factorisations there?", 'method="newton-schulz"\nmethod="taylor"', THREE),
    ("Fewer samples than channels,\nand an inverse root?", "invsqrtm(A, ridge=1e-3)", FIVE),
    ("Root and inverse root\nof the same matrices?", "S, R = roots(A)", ONE),
    ("Anything else", "sqrtm(A)        invsqrtm(A)", ONE),
]


def decision():
    """Five questions from top to bottom; the way down is the usual one."""
    figure, ax = plt.subplots(figsize=(7.6, 5.2))
    ax.set_axis_off()
    ax.set_xlim(0, 10)
    ax.set_ylim(-0.6, len(QUESTIONS) - 0.4)
    ax.invert_yaxis()
    arrow = {"arrowstyle": "->", "color": INK, "linewidth": 1.2}
    box = {"boxstyle": "round,pad=0.55", "facecolor": "none"}
    for row, (question, code, colour) in enumerate(QUESTIONS):
        ax.text(2, row, question, ha="center", va="center", fontsize=10.5, bbox=box | {"edgecolor": INK})
        target = box | {"edgecolor": colour, "linewidth": 2}
        ax.text(7.6, row, code, ha="center", va="center", family="monospace", fontsize=10.5, bbox=target)
        ax.annotate("", (5.15, row), (3.95, row), arrowprops=arrow)
        if row < len(QUESTIONS) - 1:
            ax.text(4.5, row - 0.09, "yes", ha="center", va="bottom", fontsize=9.5)
            ax.annotate("", (2, row + 0.68), (2, row + 0.34), arrowprops=arrow)
            ax.text(2.12, row + 0.5, "no", va="center", fontsize=9.5)
    return figure
