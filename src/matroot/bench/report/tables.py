"""Tables of the page: the cases of a suite, numbers of the paper, machines and files."""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from gzip import compress
from html import escape
from typing import Any, NamedTuple

from ..._page import frame
from ..formatting import number
from .case import Case
from .results import Results

MAX_LISTED = 12
"""Longer lists are not printed in cells."""


class Column(NamedTuple):
    """A column of a file's numbers: the attribute of ``Case``, the key in it, and the head."""

    attribute: str
    key: str
    head: str


MEDIAN = Column("milliseconds", "median", "ms")
QUARTILES = Column("milliseconds", "low", "quartiles")
NOTE = Column("note", "", "note")


def cell(value: Any) -> str:
    """The text of a cell, escaped."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return number(value)
    if isinstance(value, list):
        return _list_cell(value)
    return escape(str(value))


def _list_cell(values: Sequence[float | None]) -> str:
    if len(values) <= MAX_LISTED:
        return " ".join(number(x, missing="\u2013") for x in values)
    numbers = [x for x in values if x is not None]
    ends = f": {number(min(numbers))} to {number(max(numbers))}" if numbers else ""
    return f"{len(values)} numbers{ends}"


def paper_table(rows: Sequence[Sequence[str]]) -> str:
    """Numbers of the paper; the first row is the head."""
    head = "".join(f'<th scope="col">{escape(text)}</th>' for text in rows[0])
    body = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>{"".join(f"<td>{escape(text)}</td>" for text in row[1:])}</tr>'
        for row in rows[1:]
    )
    return frame("Figures of the paper, Tesla K40", f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>")


def case_table(files: Sequence[tuple[str, Sequence[Case]]]) -> str:
    """Head and body of a table with a row per case, the columns of all files, named, side by side."""
    by_file = [{(case.suite, case.case): case for case in cases} for _, cases in files]
    first: dict[tuple[str, str], Case] = {}
    for cases in by_file:
        first = cases | first
    parameters = list(dict.fromkeys(key for case in first.values() for key in case.parameters))
    columns = [_columns(cases.values()) for cases in by_file]
    rows = []
    for key, case in first.items():
        row = f'<th scope="row">{escape(case.contestant)}</th>'
        row += "".join(f'<td class="text">{cell(case.parameters.get(name))}</td>' for name in parameters)
        for cases, file_columns in zip(by_file, columns, strict=True):
            row += "".join(
                f"<td{_class(column, k)}>{_value(cases.get(key), column)}</td>" for k, column in enumerate(file_columns)
            )
        rows.append(f"<tr>{row}</tr>")
    return f"{_head([name for name, _ in files], parameters, columns)}<tbody>{''.join(rows)}</tbody>"


def _head(files: Sequence[str], parameters: Sequence[str], columns: Sequence[Sequence[Column]]) -> str:
    """Two rows, the files and the columns of each; the second alone where a single file has no name."""
    names = "".join(
        f'<th scope="colgroup" colspan="{len(file_columns)}">{escape(name)}</th>'
        for name, file_columns in zip(files, columns, strict=True)
        if file_columns
    )
    heads = "".join(f'<th scope="col" class="text">{escape(key)}</th>' for key in ("contestant", *parameters))
    heads += "".join(
        f'<th scope="col"{_class(column, k)}>{escape(column.head)}</th>'
        for file_columns in columns
        for k, column in enumerate(file_columns)
    )
    above = f'<tr><td colspan="{1 + len(parameters)}"></td>{names}</tr>' if any(files) else ""
    return f"<thead>{above}<tr>{heads}</tr></thead>"


def _columns(cases: Iterable[Case]) -> list[Column]:
    """The columns for which a file has numbers."""
    cases = list(cases)
    errors = dict.fromkeys(key for case in cases for key in case.errors)
    values = dict.fromkeys(key for case in cases for key in case.values)
    return [
        *((MEDIAN, QUARTILES) if any(case.milliseconds for case in cases) else ()),
        *(Column("errors", key, f"error: {key}") for key in errors),
        *(Column("values", key, key) for key in values),
        *((NOTE,) if any(case.note for case in cases) else ()),
    ]


def _class(column: Column, k: int) -> str:
    """The first column of a file has a line before it; notes are text."""
    names = " ".join(["first"] * (k == 0) + ["wide"] * (column is NOTE))
    return f' class="{names}"' if names else ""


def _value(case: Case | None, column: Column) -> str:
    if case is None:
        return ""
    if column is NOTE:
        return cell(case.note)
    found = getattr(case, column.attribute) or {}
    if column is QUARTILES:
        low, high = found.get("low"), found.get("high")
        return "" if low is None or high is None else f"{number(low)} to {number(high)}"
    return cell(found.get(column.key))


def machine_table(files: Sequence[Results]) -> str:
    """Settings and environment of every file, its command, and the file itself as a download."""
    keys = dict.fromkeys(key for one in files for key in (*one.settings, *one.environment))
    rows = [(key, [_setting(one, key) for one in files]) for key in keys]
    rows.append(("command", [f"<code>{escape(one.command)}</code>" for one in files]))
    rows.append(("all numbers", [_download(one) for one in files]))
    head = "".join(f'<th scope="col" class="text">{escape(one.name)}</th>' for one in files)
    between = '</td><td class="wide">'
    body = "".join(
        f'<tr><th scope="row">{escape(key)}</th><td class="wide">{between.join(texts)}</td></tr>' for key, texts in rows
    )
    return frame("Machines and files", f"<thead><tr><td></td>{head}</tr></thead><tbody>{body}</tbody>")


def _setting(one: Results, key: str) -> str:
    """A setting, followed by the environment's entry of the same name if it differs: ``cuda (NVIDIA H200)``."""
    value = one.settings.get(key, one.environment.get(key))
    detail = one.environment.get(key) if key in one.settings else None
    return cell(value) + (f" ({cell(detail)})" if detail is not None and detail != value else "")


def _download(one: Results) -> str:
    # Without a time stamp, so that the same file makes the same page.
    data, name = b64encode(compress(one.raw, mtime=0)).decode(), escape(f"{one.path.name}.gz")
    return f'<a download="{name}" href="data:application/gzip;base64,{data}">{name}</a>'
