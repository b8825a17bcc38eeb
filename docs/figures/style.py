"""How figures of the site look: one set of colours, which pages exchange for those of the dark theme."""

from pathlib import Path

import matplotlib as mpl

mpl.use("svg")

INK, FAINT = "#24292f", "#d0d7de"
ONE, TWO, THREE, FOUR, FIVE, SIX = "#0b62a8", "#c2410c", "#15803d", "#7c3aed", "#a16207", "#64748b"
# As docs/_static/site.css names them. A file that is looked at by itself has the light colours.
_VARIABLES = {
    INK: "ink", FAINT: "faint", ONE: "one", TWO: "two", THREE: "three", FOUR: "four", FIVE: "five", SIX: "six",
}  # fmt: skip

RC = {
    "svg.hashsalt": "matroot",
    "savefig.transparent": True,
    "figure.constrained_layout.use": True,
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "axes.prop_cycle": mpl.cycler(color=[ONE, TWO, THREE, FOUR, FIVE, SIX]),
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "grid.color": FAINT,
    "grid.linewidth": 0.7,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}


def save(figure, path: Path) -> None:
    """Write an SVG file whose colours are CSS variables with the light colours behind them."""
    with mpl.rc_context(RC):
        figure.savefig(path, metadata={"Date": None})
    source = path.read_text()
    for colour, variable in _VARIABLES.items():
        source = source.replace(colour, f"var(--{variable}, {colour})")
    path.write_text(source)
