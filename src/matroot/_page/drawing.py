"""Figures of matplotlib: in a page, in its colours and letters, or as files for a paper; the same bytes every time."""

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._files import write_whole
from .._terminal import CommandError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = 8
"""Colours of the style sheet, ``--c0`` to ``--c7``."""


@dataclass(frozen=True)
class Palette:
    """Colours of text, of what stands back, of grids, of the ground, and of lines."""

    ink: str
    faint: str
    rule: str
    back: str
    colours: tuple[str, ...]

    def colour(self, k: int) -> str:
        """Colour ``--c`` k mod 8."""
        return self.colours[k % COLOURS]


PAGE = Palette("#0b0b0b", "#0b0b0c", "#0b0b0d", "#0b0b0e", tuple(f"#0a0a{k:02x}" for k in range(COLOURS)))
"""Stand for the variables of the style sheet, which differ between light and dark, until the SVG is written."""
PAPER = Palette(
    "#1c1c1a",
    "#5c5c57",
    "#d5d5cf",
    "#ffffff",
    ("#c8102e", "#1f1f1f", "#0a66c2", "#008a5e", "#b35c00", "#7a3fb0", "#00798c", "#a0328c"),
)
"""The light colours of the style sheet, on white."""

_VARIABLES = {
    PAGE.ink: "currentColor",
    PAGE.faint: "var(--faint)",
    PAGE.rule: "var(--rule)",
    PAGE.back: "var(--back)",
    **{PAGE.colour(k): f"var(--c{k})" for k in range(COLOURS)},
}
_NO_DATE = {"svg": {"Date": None, "Creator": None}, "pdf": {"CreationDate": None, "Creator": None}, "png": {}}
FORMATS = tuple(_NO_DATE)


@contextmanager
def drawing(palette: Palette, extra: str) -> Iterator[None]:
    """matplotlib as it is delivered, whatever the user's settings, in the colours of a palette.

    CommandError if matplotlib is not installed; it names the extra that has it.
    """
    try:
        import matplotlib
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != "matplotlib":
            raise
        raise CommandError(f'the page needs matplotlib: pip install "matroot[{extra}]"') from missing
    settings: Any = {
        "svg.hashsalt": "matroot",
        "svg.fonttype": "none",
        "pdf.fonttype": 42,  # text that publishers and readers can search
        # That of the style sheet, by which matplotlib leaves room for text.
        "font.size": 12.0,
        "xtick.labelsize": "medium",
        "ytick.labelsize": "medium",
        "legend.fontsize": "medium",
        "legend.frameon": False,
        "text.color": palette.ink,
        "text.parse_math": False,  # text from files is no formula
        "axes.edgecolor": palette.ink,
        "axes.labelcolor": palette.ink,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": palette.rule,
        "grid.linewidth": 0.7,
        "xtick.color": palette.ink,
        "ytick.color": palette.ink,
    }
    with matplotlib.rc_context(), warnings.catch_warnings():
        # Letters that its font lacks: a page has other fonts, and files have an empty box there.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(settings)
        yield


def to_svg(figure: "Figure", ident: str, title: str, description: str) -> str:
    """An SVG element drawn with ``PAGE``, named for those who do not see it; ``ident`` begins all its identifiers."""
    written = io.StringIO()
    figure.savefig(written, format="svg", transparent=True, metadata=_NO_DATE["svg"])
    found = re.search(r'<svg [^>]*viewBox="([^"]*)"[^>]*>(.*)</svg>', written.getvalue(), re.DOTALL)
    assert found is not None
    view_box, body = found.groups()
    body = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", body, flags=re.DOTALL)
    # Text takes the font of the page; a rule for all strokes that matplotlib writes would reach the whole page.
    body = re.sub(r"font: (700|bold) [^;\"]*", "font-weight: 700", body)
    body = re.sub(r"font(-family|-size)?: [^;\"]*;? ?", "", body)
    body = re.sub(r"<defs>\s*<style[^>]*>.*?</style>\s*</defs>", "", body, flags=re.DOTALL)
    body = _shortened(body)
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


def _shortened(body: str) -> str:
    """The same picture in two thirds of the bytes: nothing refers to groups, and a hundredth of a pixel is not seen."""
    # Inside tags alone: what is between them is text.
    body = re.sub(r"<[^>]*>", lambda tag: _shortened_tag(tag[0]), body)
    body = re.sub(r">\s+<", "><", body)
    body = re.sub(r'<path d="[^"]*" style="fill:none"/>', "", body)
    # The style sheet says so of all grids and texts.
    grid = rf"fill:none;stroke:{PAGE.rule};stroke-width:0.7;stroke-linecap:square"
    body = body.replace(f'style="{grid}"', 'class="grid"')
    body = re.sub(rf"(<text style=\"[^\"]*?);?fill:{PAGE.ink}", r"\1", body)
    for _ in range(3):
        body = re.sub(r"<g>(<(?:use|text|path)[^>]*(?:/>|>[^<]*</text>))</g>|<g></g>", r"\1", body)
    for k, ident in enumerate(dict.fromkeys(re.findall(r' id="([^"]*)"', body))):
        body = body.replace(ident, f"p{k}")
    return body


def _shortened_tag(tag: str) -> str:
    tag = re.sub(r'^<g id="[^"]*"', "<g", tag)
    tag = re.sub(r"(\d+\.\d{2})\d+", r"\1", tag)
    tag = re.sub(r' transform="rotate\(-0 [^"]*"', "", tag)
    tag = re.sub(r' d="[^"]*"', lambda path: re.sub(r"\s*([MLCQz])\s*", r"\1", path[0].replace("\n", "")), tag)
    return re.sub(r"([:;]) ", r"\1", tag)


def save(figure: "Figure", folder: Path, name: str) -> list[Path]:
    """Write a figure drawn with ``PAPER`` as ``name.svg``, ``.pdf`` and ``.png``; OSError if that fails."""
    paths = []
    for kind in FORMATS:
        data = io.BytesIO()
        figure.savefig(data, format=kind, dpi=200, facecolor=PAPER.back, metadata=_NO_DATE[kind])
        paths.append(folder / f"{name}.{kind}")
        write_whole(paths[-1], data.getvalue())
    return paths
