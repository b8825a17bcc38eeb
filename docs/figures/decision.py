"""The decision figure of *How to choose*."""

from matplotlib import pyplot as plt
from style import FIVE, INK, ONE, THREE, TWO

# Question, answer in words, what to write, colour of the answer.
QUESTIONS = [
    ("Reproducing a paper,\nor loading its weights?", "yes", 'sqrtm(A, **preset("mpa-lya"))\nNewtonSchulz(norm="trace")', TWO),
    ("Exporting to ONNX, or\nno factorisations there?", "yes", 'method="newton-schulz"\nmethod="taylor"', THREE),
    ("Fewer samples than channels,\nand an inverse root?", "yes", "invsqrtm(A, ridge=1e-3)", FIVE),
    ("Root and inverse root\nof the same matrices?", "yes", "S, R = roots(A)", ONE),
    ("Anything else", "", "sqrtm(A)        invsqrtm(A)", ONE),
]


def decision():
    """Five questions from top to bottom; the way down is the usual one."""
    figure, ax = plt.subplots(figsize=(7.6, 5.2))
    ax.set_axis_off()
    ax.set_xlim(0, 10)
    ax.set_ylim(-0.6, len(QUESTIONS) - 0.4)
    ax.invert_yaxis()
    for row, (question, answer, code, colour) in enumerate(QUESTIONS):
        last = row == len(QUESTIONS) - 1
        box = {"boxstyle": "round,pad=0.55", "facecolor": "none", "edgecolor": INK, "linewidth": 1}
        ax.text(2, row, question, ha="center", va="center", bbox=box, fontsize=10.5)
        target = {"boxstyle": "round,pad=0.55", "facecolor": "none", "edgecolor": colour, "linewidth": 2}
        ax.text(7.6, row, code, ha="center", va="center", family="monospace", bbox=target, fontsize=10.5)
        ax.annotate("", (5.15, row), (3.95, row), arrowprops={"arrowstyle": "->", "color": INK, "linewidth": 1.2})
        ax.text(4.5, row - 0.09, answer, ha="center", va="bottom", fontsize=9.5)
        if not last:
            ax.annotate("", (2, row + 0.68), (2, row + 0.34), arrowprops={"arrowstyle": "->", "color": INK, "linewidth": 1.2})
            ax.text(2.12, row + 0.5, "no", va="center", fontsize=9.5)
    return figure
