"""Docstrings of the package as reStructuredText.

They are written to be read in a terminal: lists of ``name: text``, indented formulas, shapes like (*, n, n). Sections
in Google's convention are left to napoleon.
"""

import inspect
import re
from collections.abc import Iterable, Iterator

from sphinx.application import Sphinx

_SECTION = re.compile(r"^(Args|Attributes|Returns|Raises|Yields|Example|Examples|Note|Notes|References):\s*$")
_ITEM = re.compile(r'^(?P<head>\w+(?:, \w+)*(?: "[\w-]+"| None)?):\s+(?P<text>\S.*)$')
_VERBATIM = re.compile(r"(``.*?``|:[\w:]+:`.*?`|`[^`]+`_)")
_SPECIAL = re.compile(r"([*|\\]|(?<=\w)_(?=\W|$)|`)")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", _process, priority=400)  # before napoleon
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _process(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    if what == "module":
        return
    # Docstrings made by a decorator or an f-string keep the indentation of their source.
    source = inspect.cleandoc("\n".join(lines)).splitlines()
    if any(_SECTION.match(line) for line in source):
        lines[:] = [_escape(line) for line in source]
    else:
        lines[:] = _converted(source, _parameters(obj))
    if what in ("attribute", "property"):
        # Napoleon takes "(*, n, n): the matrix" for a type and a description. An empty comment comes before it.
        lines[:0] = ["..", ""]


def _parameters(obj: object) -> frozenset[str]:
    try:
        return frozenset(inspect.signature(obj).parameters)  # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError):
        return frozenset()


def _converted(lines: list[str], parameters: frozenset[str]) -> Iterator[str]:
    after_text = False
    for paragraph in _paragraphs(lines, parameters):
        first = paragraph[0]
        if first.startswith(">>>"):
            yield from paragraph
        elif first.startswith("=="):
            # Tables are drawn for the terminal, with more than reStructuredText allows in a column.
            yield from _literal(line.replace("``", "") for line in paragraph)
        elif first.startswith(" "):
            # A formula on lines of its own; below an item of a list it belongs to that.
            yield from _literal(paragraph) if after_text else map(_escape, paragraph)
        elif _is_list(paragraph, parameters):
            yield from _items(paragraph, parameters)
        else:
            yield from map(_escape, paragraph)
        yield ""
        after_text = not first.startswith(" ")


def _literal(lines: Iterable[str]) -> Iterator[str]:
    yield from (".. code-block:: text", "", *("   " + line for line in lines))


def _paragraphs(lines: list[str], parameters: frozenset[str]) -> Iterator[list[str]]:
    paragraph: list[str] = []
    for line in [*lines, ""]:
        if line.strip():
            # A list of parameters may follow a sentence without an empty line.
            if paragraph and _names(line, parameters) and not _ITEM.match(paragraph[0]):
                yield paragraph
                paragraph = []
            paragraph.append(line)
        elif paragraph:
            yield paragraph
            paragraph = []


def _names(line: str, parameters: frozenset[str]) -> bool:
    """Whether a line begins with names of parameters and a colon."""
    item = _ITEM.match(line)
    return item is not None and parameters.issuperset(item["head"].split(", "))


def _is_list(paragraph: list[str], parameters: frozenset[str]) -> bool:
    if _names(paragraph[0], parameters):
        return True
    continued = all(line.startswith(" ") or _ITEM.match(line) for line in paragraph)
    return continued and _ITEM.match(paragraph[0]) is not None


def _items(paragraph: list[str], parameters: frozenset[str]) -> Iterator[str]:
    for line in paragraph:
        item = _ITEM.match(line)
        if item is None:
            yield "   " + _escape(line.strip())
        elif _names(line, parameters):
            # Sphinx takes a word before the last for a type.
            yield f":param {item['head'].replace(', ', ',')}: {_escape(item['text'])}"
        else:
            yield f"* *{_escape(item['head'])}*: {_escape(item['text'])}"


def _escape(line: str) -> str:
    parts = _VERBATIM.split(line)
    return "".join(part if index % 2 else _SPECIAL.sub(r"\\\1", part) for index, part in enumerate(parts))
