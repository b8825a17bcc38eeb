"""The page: one HTML file that needs no other. All text from result files goes through ``escape``."""

from collections.abc import Sequence
from html import escape

from ..._page import html_page
from .figures import draw
from .findings import Finding, suite_findings, summary
from .results import Results, case_names, named, suites
from .sections import SECTIONS, section
from .tables import case_table, frame, machine_table, paper_table

INTRODUCTION = (
    "What matroot bench measured on these machines, next to what the paper reports: Song, Sebe, Wang, <cite>Fast"
    " Differentiable Matrix Square Root and Inverse Square Root</cite>. The default is matroot called without a method."
    " Times are medians of interleaved calls, errors are relative unless said, and every sentence links to its numbers."
)
QUICK = "A quick run: fewer and smaller matrices than the text says, and the numbers are rough."
MAX_LINKS = 4
"""A finding about more cases links to the whole table."""


def page(files: Sequence[Results]) -> str:
    """One page of one or several files, side by side."""
    files = named(files)
    found = suites(files)
    order = [s for s in SECTIONS if s in found] + [s for s in found if s not in SECTIONS]
    anchors = Anchors(files, order)
    links = "".join(f'<li><a href="#{anchors.suites[s]}">{escape(section(s).title)}</a></li>' for s in order)
    body = "\n".join(_section(s, files, anchors) for s in order)
    return html_page(
        "; ".join(one.name for one in files),
        f"<header><h1>Matrix square roots, measured</h1>\n<p>{INTRODUCTION}</p></header>\n"
        f"<main>\n{_summary(files, anchors)}\n"
        f'<nav aria-label="Sections"><ul>{links}<li><a href="#machines">Machines and files</a></li></ul></nav>\n'
        f"{body}\n{_machines(files)}\n</main>\n",
    )


class Anchors:
    """Identifiers of suites and cases in the page; they are numbered, never made of names from files."""

    def __init__(self, files: Sequence[Results], order: Sequence[str]) -> None:
        self.suites = {s: f"suite-{s if s in SECTIONS else f'other-{k}'}" for k, s in enumerate(order)}
        self.cases = {
            (suite, case): f"{ident}-{k}"
            for suite, ident in self.suites.items()
            for k, case in enumerate(case_names(suite, files))
        }

    def table(self, suite: str) -> str:
        return f"{self.suites[suite]}-table"


def _summary(files: Sequence[Results], anchors: Anchors) -> str:
    warnings = [f'<p class="rough">{QUICK}</p>' if one.settings.get("quick") else "" for one in files]
    cards = "".join(
        _card(one.name, warning + _findings(summary(one), anchors))
        for one, warning in zip(files, warnings, strict=True)
    )
    return f'<section aria-label="Summary"><div class="cards">{cards}</div></section>'


def _card(title: str, body: str) -> str:
    return f'<div class="card"><h3>{escape(title)}</h3>{body}</div>'


def _findings(findings: Sequence[Finding], anchors: Anchors) -> str:
    return f"<ul>{''.join(f'<li>{escape(one.text)}{_links(one, anchors)}</li>' for one in findings)}</ul>"


def _links(finding: Finding, anchors: Anchors) -> str:
    """Links to the rows whose numbers a finding states."""
    if not finding.cases:
        return ""
    suite = finding.cases[0].suite
    names = list(dict.fromkeys(case.case for case in finding.cases))
    if len(names) > MAX_LINKS:
        links = f'<a href="#{anchors.table(suite)}">{len(names)} rows of the table</a>'
    else:
        links = ", ".join(f'<a href="#{anchors.cases[suite, name]}">{escape(name)}</a>' for name in names)
    return f' <span class="raw">Numbers: {links}.</span>'


def _section(suite: str, files: Sequence[Results], anchors: Anchors) -> str:
    about, ident = section(suite), anchors.suites[suite]
    cards = _paper_card(suite) + "".join(_card(one.name, _suite_body(suite, one, anchors)) for one in files)
    rows = [anchors.cases[suite, name] for name in case_names(suite, files)]
    table = frame(f"Numbers: {about.title}", case_table(suite, files, rows), anchors.table(suite))
    return (
        f'<section id="{ident}">\n<h2>{escape(about.title)}</h2>\n<p>{escape(about.about)}</p>\n'
        f'<div class="cards">{cards}</div>\n{_figures(suite, files, ident)}\n{table}\n</section>'
    )


def _paper_card(suite: str) -> str:
    about = section(suite)
    if not about.paper:
        return ""
    table = paper_table(about.paper_numbers) if about.paper_numbers else ""
    return f'<div class="card paper"><h3>The paper says</h3><p>{escape(about.paper)}</p>{table}</div>'


def _suite_body(suite: str, one: Results, anchors: Anchors) -> str:
    if findings := suite_findings(suite, one):
        return _findings(findings, anchors)
    return f"<p>{'Too few numbers for a statement.' if one.suite(suite) else 'This file does not have this suite.'}</p>"


def _figures(suite: str, files: Sequence[Results], ident: str) -> str:
    """A row per figure, one plot per file; the plots of a single file share one row."""
    drawn = [draw(figure, suite, files, f"{ident}-plot-{k}") for k, figure in enumerate(section(suite).figures)]
    rows = [html for html in drawn if html]
    if len(files) == 1 and rows:
        rows = ["".join(rows)]
    return "".join(f'<div class="figures">{row}</div>' for row in rows)


def _machines(files: Sequence[Results]) -> str:
    return (
        '<section id="machines">\n<h2>Machines and files</h2>\n<p>The links save the result files, which this page'
        f" contains, as they were read.</p>\n{machine_table(files)}\n</section>"
    )
