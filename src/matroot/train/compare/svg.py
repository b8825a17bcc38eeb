"""Figures of matplotlib as SVG inside a page: its colours and letters, the same bytes every time."""

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from typing import TYPE_CHECKING, Any

from ..._terminal import CommandError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = 8
"""Colours of the page's style sheet, ``--c0`` to ``--c7``."""
INK, RULE = "#0b0b0b", "#0b0b0c"
"""Stand for the page's colours of text and of grids until the SVG is written."""
_VARIABLES = {INK: "currentColor", RULE: "var(--rule)", **{f"#0a0a{k:02x}": f"var(--c{k})" for k in range(COLOURS)}}


def colour(k: int) -> str:
    """Stands for colour ``--c`` k mod 8."""
    return f"#0a0a{k % COLOURS:02x}"


@contextmanager
def drawing() -> Iterator[None]:
    """matplotlib as it is delivered, whatever the user's settings, in the page's colours.

    CommandError if matplotlib is not installed.
    """
    try:
        import matplotlib
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != "matplotlib":
            raise
        raise CommandError('the page needs matplotlib: pip install "matroot[training]"') from missing
    settings: Any = {
        "svg.hashsalt": "matroot",
        "svg.fonttype": "none",
        # That of the page's style sheet, by which matplotlib leaves room for text.
        "font.size": 12.0,
        "xtick.labelsize": "medium",
        "ytick.labelsize": "medium",
        "text.color": INK,
        "axes.edgecolor": INK,
        "axes.labelcolor": INK,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": RULE,
        "grid.linewidth": 0.7,
        "xtick.color": INK,
        "ytick.color": INK,
    }
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(settings)
        yield


def to_svg(figure: "Figure", ident: str, title: str, description: str) -> str:
    """An SVG element that is named for those who do not see it; ``ident`` begins all its identifiers."""
    written = io.StringIO()
    figure.savefig(written, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = written.getvalue()
    found = re.search(r'<svg [^>]*viewBox="([^"]*)"[^>]*>(.*)</svg>', text, re.DOTALL)
    assert found is not None
    view_box, body = found.groups()
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    # Text takes the font of the page; a rule for all strokes that matplotlib writes would reach the whole page.
    body = re.sub(r"font(-family|-size)?: [^;\"]*;? ?", "", body)
    body = re.sub(r"<defs>\s*<style[^>]*>.*?</style>\s*</defs>", "", body, flags=re.DOTALL)
    body = re.sub(r' id="', f' id="{ident}-', body)
    body = re.sub(r"url\(#", f"url(#{ident}-", body)
    body = re.sub(r'(xlink:)?href="#', f'href="#{ident}-', body)
    for stand_in, meant in _VARIABLES.items():
        body = body.replace(stand_in, meant)
    return (
        f'<svg class="plot" role="img" viewBox="{view_box}" stroke-linejoin="round" '
        f'aria-labelledby="{ident}-t {ident}-d"><title id="{ident}-t">{escape(title)}</title>'
        f'<desc id="{ident}-d">{escape(description)}</desc>{body.strip()}</svg>'
    )
