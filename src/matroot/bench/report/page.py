"""The page: HTML that needs nothing but itself. All text that comes from files goes through ``escape``."""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files as resources
from typing import Any

from . import words
from .claim import Claim
from .phrases import number
from .pictures import Picture
from .plots import plot, span
from .results import Case, Results, named, suites
from .sections import SECTIONS, section

INTRODUCTION = (
    "What matroot bench measured on these machines, next to what the paper reports: Song, Sebe, Wang, <cite>Fast"
    " Differentiable Matrix Square Root and Inverse Square Root</cite>. The default is matroot called without a method."
    " Times are medians of calls in turns, errors are relative unless said, and every sentence links to its numbers."
)
LINKS = 4
"""A claim about more cases points to the table."""
FEW = 12
"""Longer lists are not printed in tables."""


def page(files: Sequence[Results]) -> str:
    """One page of one or several files, which stand side by side."""
    shown = named(files)
    found = suites(shown)
    order = [s for s in SECTIONS if s in found] + [s for s in found if s not in SECTIONS]
    places = Places(shown, order)
    links = "".join(f'<li><a href="#{places.suites[s]}">{escape(section(s).title)}</a></li>' for s in order)
    style = resources("matroot.bench.report").joinpath("style.css").read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>matroot: {escape('; '.join(one.name for one in shown))}</title>\n"
        f"<style>\n{style}</style>\n</head>\n<body>\n"
        f"<header><h1>Matrix square roots, measured</h1>\n<p>{INTRODUCTION}</p></header>\n"
        f"<main>\n{_summary(shown, places)}\n"
        f'<nav aria-label="Sections"><ul>{links}<li><a href="#machines">Machines and files</a></li></ul></nav>\n'
        + "\n".join(_section(s, shown, places) for s in order)
        + f"\n{_machines(shown)}\n</main>\n</body>\n</html>\n"
    )


class Places:
    """Where in the page suites and cases are; names from files never become identifiers."""

    def __init__(self, files: Sequence[Results], order: Sequence[str]) -> None:
        self.suites = {s: f"suite-{s if s in SECTIONS else f'other-{k}'}" for k, s in enumerate(order)}
        self.cases: dict[tuple[str, str], str] = {}
        for suite in order:
            for k, case in enumerate(joined(suite, files)):
                self.cases[suite, case] = f"{self.suites[suite]}-{k}"


def joined(suite: str, files: Iterable[Results]) -> list[str]:
    """Names of the cases of a suite in any of the files."""
    return list(dict.fromkeys(case.case for one in files for case in one.suite(suite)))


def _summary(files: Sequence[Results], places: Places) -> str:
    quick = "A quick run: fewer and smaller matrices than the text says, and the numbers are rough."
    rough = f'<p class="rough">{quick}</p>'
    cards = "".join(_card(one, words.summary(one), places, rough if one.settings.get("quick") else "") for one in files)
    return f'<section aria-label="Summary"><div class="cards">{cards}</div></section>'


def _card(one: Results, claims: Sequence[Claim], places: Places, rough: str = "", missing: str = "") -> str:
    items = "".join(f"<li>{escape(claim.text)}{_links(claim, places)}</li>" for claim in claims)
    body = f"<ul>{items}</ul>" if items else f"<p>{escape(missing)}</p>"
    return f'<div class="card"><h3>{escape(one.name)}</h3>{rough}{body}</div>'


def _links(claim: Claim, places: Places) -> str:
    if not claim.cases:
        return ""
    suite = claim.cases[0].suite
    names = list(dict.fromkeys(case.case for case in claim.cases))
    if len(names) > LINKS:
        links = f'<a href="#{places.suites[suite]}-table">{len(names)} rows of the table</a>'
    else:
        links = ", ".join(f'<a href="#{places.cases[suite, name]}">{escape(name)}</a>' for name in names)
    return f' <span class="raw">Numbers: {links}.</span>'


def _section(suite: str, files: Sequence[Results], places: Places) -> str:
    what, ident = section(suite), places.suites[suite]
    paper = ""
    if what.paper:
        numbers = _paper_table(what.paper_numbers) if what.paper_numbers else ""
        paper = f'<div class="card paper"><h3>The paper says</h3><p>{escape(what.paper)}</p>{numbers}</div>'
    cards = "".join(_card(one, words.claims(suite, one), places, missing=_nothing(suite, one)) for one in files)
    figures = "".join(
        f'<div class="figures">{drawn}</div>'
        for k, picture in enumerate(what.pictures)
        if (drawn := _figures(picture, suite, files, f"{ident}-plot-{k}"))
    )
    if len(files) == 1:
        # One machine: its plots share rows.
        figures = figures.replace('</div><div class="figures">', "")
    return (
        f'<section id="{ident}">\n<h2>{escape(what.title)}</h2>\n<p>{escape(what.about)}</p>\n'
        f'<div class="cards">{paper}{cards}</div>\n{figures}\n{_table(suite, files, places)}\n</section>'
    )


def _nothing(suite: str, one: Results) -> str:
    return "Too few numbers for a statement." if one.suite(suite) else "This file does not have this suite."


def _figures(picture: Picture, suite: str, files: Sequence[Results], ident: str) -> str:
    lines = [picture.lines(one.suite(suite)) for one in files]
    points = [point for found in lines for one in found for point in one.points]
    # A point is seen where both of its numbers are.
    seen = [(x, y) for x, y in points if picture.x.shows(x) and picture.y.shows(y)]
    across, up = span((x for x, _ in seen), picture.x), span((y for _, y in seen), picture.y)
    if across is None or up is None:
        return ""
    visible = set(seen)
    drawn = []
    for k, (one, found) in enumerate(zip(files, lines, strict=True)):
        if not found:
            continue
        title = f"{picture.title}. {one.name}"
        hidden = sum(point not in visible for line in found for point in line.points)
        left_out = f" {hidden} points at zero are not drawn." if hidden else ""
        description = (
            f"{picture.y.label} against {picture.x.label}; {'; '.join(_described(line) for line in found)}.{left_out}"
        )
        svg = plot(f"{ident}-{k}", title, description, picture.x, picture.y, found, (across, up))
        drawn.append(f"<figure><figcaption>{escape(title)}.{left_out}</figcaption>{svg}</figure>")
    return "".join(drawn)


def _described(line: Any) -> str:
    ys = [y for _, y in line.points]
    return f"{line.name}: {len(ys)} points from {number(min(ys))} to {number(max(ys))}" if ys else f"{line.name}: none"


def _paper_table(rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in rows[0])
    body = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>{"".join(f"<td>{escape(c)}</td>" for c in row[1:])}</tr>'
        for row in rows[1:]
    )
    name = "Figures of the paper, Tesla K40"
    return f"<h3>{name}</h3>{_framed(name, f'<thead><tr>{head}</tr></thead><tbody>{body}</tbody>')}"


def _framed(label: str, table: str, ident: str = "") -> str:
    """Keyboards can scroll it."""
    at = f' id="{ident}"' if ident else ""
    return (
        f'<div class="table"{at} role="region" tabindex="0" aria-label="{escape(label)}"><table>{table}</table></div>'
    )


def _table(suite: str, files: Sequence[Results], places: Places) -> str:
    names = joined(suite, files)
    by_file = [{case.case: case for case in one.suite(suite)} for one in files]
    first = {name: next(found[name] for found in by_file if name in found) for name in names}
    parameters = list(dict.fromkeys(key for case in first.values() for key in case.parameters))
    columns = [_columns(found.values()) for found in by_file]
    lead = 1 + len(parameters)
    machines = "".join(
        f'<th scope="colgroup" colspan="{len(cells)}">{escape(one.name)}</th>'
        for one, cells in zip(files, columns, strict=True)
        if cells
    )
    head = "".join(f'<th scope="col" class="text">{escape(key)}</th>' for key in ("contestant", *parameters))
    head += "".join(
        f'<th scope="col"{_kind(group, k)}>{escape(label)}</th>'
        for cells in columns
        for k, (group, _, label) in enumerate(cells)
    )
    rows = []
    for name in names:
        row = f'<th scope="row">{escape(first[name].contestant)}</th>'
        row += "".join(f'<td class="text">{_cell(first[name].parameters.get(key))}</td>' for key in parameters)
        for found, cells in zip(by_file, columns, strict=True):
            row += "".join(_value(found.get(name), group, key, k) for k, (group, key, _) in enumerate(cells))
        rows.append(f'<tr id="{places.cases[suite, name]}">{row}</tr>')
    table = f'<thead><tr><td colspan="{lead}"></td>{machines}</tr><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody>'
    return _framed(f"Numbers: {section(suite).title}", table, f"{places.suites[suite]}-table")


def _kind(group: str, k: int) -> str:
    """Of a cell: where a machine begins there is a line, and notes are text."""
    kind = " ".join(["first"] * (k == 0) + ["wide"] * (group == "note"))
    return f' class="{kind}"' if kind else ""


def _columns(cases: Iterable[Case]) -> list[tuple[str, str, str]]:
    """What a file has numbers of: where in a case, under which key, and the head of the column."""
    found: dict[tuple[str, str, str], None] = {}
    cases = list(cases)
    if any(case.milliseconds for case in cases):
        found["milliseconds", "median", "ms"] = None
        found["milliseconds", "low", "quartiles"] = None
    for case in cases:
        found |= {("errors", key, f"error: {key}"): None for key in case.errors}
    for case in cases:
        found |= {("values", key, key): None for key in case.values}
    if any(case.note for case in cases):
        found["note", "", "note"] = None
    return list(found)


def _value(case: Case | None, group: str, key: str, k: int) -> str:
    start = f"<td{_kind(group, k)}>"
    if case is None:
        return f"{start}</td>"
    if group == "note":
        return f"{start}{_cell(case.note)}</td>"
    found = getattr(case, group) or {}
    if group == "milliseconds" and key == "low":
        low, high = found.get("low"), found.get("high")
        return (
            f"{start}{number(low)} to {number(high)}</td>" if low is not None and high is not None else f"{start}</td>"
        )
    return f"{start}{_cell(found.get(key))}</td>"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return number(value)
    if isinstance(value, list):
        if len(value) <= FEW:
            return escape(" ".join("\u2013" if x is None else number(x) for x in value))
        numbers = [x for x in value if x is not None]
        ends = f": {number(min(numbers))} to {number(max(numbers))}" if numbers else ""
        return f"{len(value)} numbers{ends}"
    return escape(str(value))


def _machines(files: Sequence[Results]) -> str:
    keys = dict.fromkeys(key for one in files for key in (*one.settings, *one.environment))
    head = "".join(f'<th scope="col" class="text">{escape(one.name)}</th>' for one in files)
    rows: list[tuple[str, list[str]]] = [(key, [_fact(one, key) for one in files]) for key in keys]
    rows.append(("command", [f"<code>{escape(one.command)}</code>" for one in files]))
    rows.append(("all numbers", [_download(one) for one in files]))
    between = '</td><td class="wide">'
    body = "".join(
        f'<tr><th scope="row">{escape(key)}</th><td class="wide">{between.join(cells)}</td></tr>' for key, cells in rows
    )
    table = _framed("Machines and files", f"<thead><tr><td></td>{head}</tr></thead><tbody>{body}</tbody>")
    return (
        '<section id="machines">\n<h2>Machines and files</h2>\n<p>The links save the result files, which this page'
        f" contains, as they were read.</p>\n{table}\n</section>"
    )


def _fact(one: Results, key: str) -> str:
    # The device that was measured, then the machine's GPU, share a name.
    value = one.settings.get(key, one.environment.get(key))
    extra = one.environment.get(key) if key in one.settings and key in one.environment else None
    return _cell(value) + (f" ({_cell(extra)})" if extra is not None and extra != value else "")


def _download(one: Results) -> str:
    data, name = b64encode(one.raw).decode(), escape(one.path.name)
    return f'<a download="{name}" href="data:application/json;base64,{data}">{name}</a>'
