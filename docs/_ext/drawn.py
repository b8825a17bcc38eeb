"""The directive ``drawn``: a figure of ``docs/figures`` or of a tutorial, inline, in the colours of the page.

Figures are SVG files, drawn by ``python docs/figures`` with the colours of ``docs/figures/style.py``. Inline they take
the page's light or dark colours from CSS variables, and text for screen readers from ``:alt:``.
"""

import re
from html import escape
from pathlib import Path
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive, directives
from sphinx.application import Sphinx
from sphinx.util import logging

_WIDTH_OF_A_PHONE = 480.0
"""Figures that are not much wider shrink."""
_log = logging.getLogger(__name__)


class Drawn(Directive):
    required_arguments = 1
    has_content = True
    option_spec: ClassVar = {"alt": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        environment = self.state.document.settings.env
        name = self.arguments[0]
        path = Path(environment.config.drawn_folder) / f"{name}.svg"
        environment.note_dependency(str(path))
        if not path.exists():
            _log.warning("no figure %s; python docs/figures draws them", path.name, location=self.state.document)
            return []
        figure = nodes.figure(classes=["drawn"])
        drawing = inline_svg(path.read_text(), self.options["alt"], name)
        figure += nodes.raw("", f'<div class="drawing">{drawing}</div>', format="html")
        if self.content:
            caption = nodes.caption()
            children, _ = self.state.inline_text(" ".join(self.content), self.lineno)
            caption += children
            figure += caption
        return [figure]


def inline_svg(source: str, alt: str, prefix: str) -> str:
    """An SVG file as an element of a page, with unique names, a description, and its width for the style sheet."""
    source = source[source.index("<svg") :]
    width = re.search(r'\bwidth="([\d.]+)pt"', source)
    size = f' style="--width: {width[1]}px"' if width and float(width[1]) > _WIDTH_OF_A_PHONE else ""
    source = re.sub(r"<metadata>.*?</metadata>\s*", "", source, flags=re.DOTALL)
    source = re.sub(r'\bid="', f'id="{prefix}-', source)
    source = re.sub(r'(href="#|url\(#)', rf"\1{prefix}-", source)
    return re.sub(r"<svg\b", f'<svg role="img" aria-label="{escape(alt, quote=True)}"{size}', source, count=1)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_config_value("drawn_folder", "", "env")
    app.add_directive("drawn", Drawn)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
