"""Figures that can be drawn, for the page and for files."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..._page.drawing import PAGE, PAPER, Palette, drawing, save, to_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXTRA = "bench"
"""Has matplotlib."""


@dataclass(frozen=True)
class Drawing:
    """A figure: its name among files, its title and a caption, what it shows in words, and how it is drawn."""

    name: str
    title: str
    caption: str
    description: str
    draw: "Callable[[Palette], Figure]"


def inline(one: Drawing) -> str:
    """As SVG for the page."""
    with drawing(PAGE, EXTRA):
        return to_svg(one.draw(PAGE), one.name, one.title, one.description)


def write_all(drawings: Sequence[Drawing], folder: Path) -> list[Path]:
    """As files for a paper; makes the folder. OSError if they cannot be written."""
    folder.mkdir(parents=True, exist_ok=True)
    with drawing(PAPER, EXTRA):
        return [path for one in drawings for path in save(one.draw(PAPER), folder, one.name)]
