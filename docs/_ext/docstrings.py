"""Docstrings of the package as reStructuredText.

They are written to be read in a terminal: lists of ``name: text``, indented formulas, shapes like (*, n, n). Sections
in Google's convention are left to napoleon.
"""

import inspect
import re
from collections.abc import Iterator

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
    lines[:] = inspect.cleandoc("\n".join(lines)).splitlines()
    if any(_SECTION.match(line) for line in lines):
        lines[:] = [_escape(line) for line in lines]
    else:
        lines[:] = list(_converted(lines, _parameters(obj)))


def _parameters(obj: object) -> frozenset[str]:
    try:
        return frozenset(inspect.signature(obj).parameters)  # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError):
        return frozenset()


def _converted(lines: list[str], parameters: frozenset[str]) -> Iterator[str]:
    after_text = False
    for paragraph in _paragraphs(lines):
        first = paragraph[0]
        if first.startswith(">>>"):
            yield from paragraph
        elif first.startswith("=="):
            # Tables are drawn for the terminal, with more than reStructuredText allows in a column.
            yield from ("::", "", *("   " + line.replace("``", "") for line in paragraph))
        elif first.startswith(" "):
            # A formula on lines of its own; below an item of a list it has become part of that already.
            yield from ("::", "") if after_text else ()
            yield from paragraph
        elif _ITEM.match(first):
            yield from _items(paragraph, parameters)
        else:
            yield from map(_escape, paragraph)
        yield ""
        after_text = not first.startswith(" ")


def _paragraphs(lines: list[str]) -> Iterator[list[str]]:
    paragraph: list[str] = []
    for line in [*lines, ""]:
        if line.strip():
            # A list may follow its heading sentence, and text a list, without an empty line.
            if paragraph and _ITEM.match(line) and not _ITEM.match(paragraph[0]):
                yield paragraph
                paragraph = []
            paragraph.append(line)
        elif paragraph:
            yield paragraph
            paragraph = []


def _items(paragraph: list[str], parameters: frozenset[str]) -> Iterator[str]:
    for line in paragraph:
        item = _ITEM.match(line)
        if item is None:
            yield "   " + _escape(line.strip())
            continue
        head, text = item["head"], _escape(item["text"])
        if parameters.issuperset(head.split(", ")):
            yield f":param {head}: {text}"
        else:
            yield f"* *{_escape(head)}*: {text}"


def _escape(line: str) -> str:
    parts = _VERBATIM.split(line)
    return "".join(part if index % 2 else _SPECIAL.sub(r"\\\1", part) for index, part in enumerate(parts))
