"""Formulas as MathML, which browsers render without any script: pages need no network."""

from html import escape

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

_log = logging.getLogger(__name__)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", inline_renderers=(_inline, None), block_renderers=(_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _inline(translator, node: nodes.math) -> None:
    translator.body.append(_convert(node, as_block=False))
    raise nodes.SkipNode


def _block(translator, node: nodes.math_block) -> None:
    # A wide formula scrolls by itself on a narrow screen.
    translator.body.append(f'<div class="formula" tabindex="0">{_convert(node, as_block=True)}</div>\n')
    raise nodes.SkipNode


def _convert(node: nodes.Element, as_block: bool) -> str:
    source = node.astext()
    try:
        return tex2mathml(source, as_block=as_block)
    except MathError as error:
        _log.warning("formula cannot be converted: %s", error, location=node)
        return escape(source)
