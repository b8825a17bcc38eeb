"""Docstrings of the package as reStructuredText.

They are written to be read in a terminal too, with shapes like (*, n, n) and norms like ||A||_F as they are: what
reStructuredText would take for markup is escaped here. Sections are left to napoleon.
"""

import re
from collections.abc import Iterable, Iterator

from sphinx.application import Sphinx

_MARKUP = re.compile(r"(``.*?``|:[\w:]+:`.*?`|`[^`]+`_)")
_SPECIAL = re.compile(r"([*|\\]|(?<=\w)_(?=\W|$)|`)")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", _process, priority=400)  # before napoleon
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _process(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    if what == "module":
        return
    lines[:] = escaped(lines)
    if what in ("attribute", "property"):
        # Napoleon takes "(*, n, n): the matrix" for a type and a description. An empty comment comes before it.
        lines[:0] = ["..", ""]


def escaped(lines: Iterable[str]) -> Iterator[str]:
    """The lines with special characters escaped, but for markup, examples and what stands indented after ``::``."""
    literal: int | None = None  # indentation of the line that a literal block belongs to
    example = False
    for line in lines:
        text = line.strip()
        indent = len(line) - len(line.lstrip())
        if text:
            literal = None if literal is not None and indent <= literal else literal
            example = example or text.startswith(">>>")
        else:
            example = False
        yield line if literal is not None or example else _escape(line)
        if literal is None and not example and text.endswith("::"):
            literal = indent


def _escape(line: str) -> str:
    parts = _MARKUP.split(line)
    return "".join(part if index % 2 else _SPECIAL.sub(r"\\\1", part) for index, part in enumerate(parts))
