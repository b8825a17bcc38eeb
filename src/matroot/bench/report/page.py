"""The page: one HTML file that needs no other. All text from result files goes through ``escape``."""

from collections.abc import Sequence
from html import escape

from ..._page import frame, html_page
from .content import Content, SuiteContent
from .drawings import Drawing, inline
from .findings import Finding
from .findings.headline import headline_findings
from .machines import Machine
from .results import Results
from .tables import case_table, machine_table, paper_table

INTRODUCTION = (
    "Root and gradient of symmetric positive definite matrices: matroot, called without a method, next to what else"
    " there is, and to the paper it reproduces (Song, Sebe, Wang, <cite>Fast Differentiable Matrix Square Root and"
    " Inverse Square Root</cite>)."
)
LEGEND = (
    "Shorter bars are faster, dots further left more exact; both axes are logarithmic. Pale bars do less: they have no"
    " gradient, and those of JAX and CuPy no root, only the decomposition. Times are medians of interleaved calls with"
    " Python around them, errors the largest against an eigendecomposition in float64."
)
NO_HEADLINE = "The files have no times of the default next to another solver: see the sections below."
QUICK = "A quick run: fewer and smaller matrices than the text says, and the numbers are rough."
MAX_SHOWN = 2
"""Findings of a suite that are not folded away."""
MAX_ROWS = 12
"""A finding about more cases links to the table of the section."""


def page(content: Content) -> str:
    """One page of one or several files, side by side."""
    links = "".join(f'<li><a href="#{part.ident}">{escape(part.about.title)}</a></li>' for part in content.sections)
    body = "\n".join(map(_section, content.sections))
    return html_page(
        "; ".join(dict.fromkeys(one.name for one in content.files)),
        f"<header><h1>Matrix square roots, measured</h1>\n<p>{INTRODUCTION}</p></header>\n"
        f"<main>\n{_headline(content)}\n"
        f'<nav aria-label="Sections"><ul>{links}<li><a href="#machines">Machines and files</a></li></ul></nav>\n'
        f"{body}\n{_machines(content.files)}\n</main>\n",
    )


def _headline(content: Content) -> str:
    if not content.machines:
        return f'<section aria-label="Summary"><p>{NO_HEADLINE}</p>{_warning(content.files)}</section>'
    cards = "".join(
        _machine(machine, charts) for machine, charts in zip(content.machines, content.headlines, strict=True)
    )
    return f'<section aria-label="Summary"><div class="wide-cards">{cards}</div><p class="note">{LEGEND}</p></section>'


def _machine(machine: Machine, charts: Sequence[Drawing]) -> str:
    items = "".join(f"<li>{_headline_finding(one)}</li>" for one in headline_findings(machine))
    return (
        f'<div class="card"><h2>{escape(machine.name)}</h2><p class="note">{escape(machine.versions)}</p>'
        f"{_warning([machine.file])}"
        f'<div class="pair">{"".join(map(_figure, charts))}<ul class="leads">{items}</ul></div></div>'
    )


def _warning(files: Sequence[Results]) -> str:
    return f'<p class="rough">{QUICK}</p>' if any(one.settings.get("quick") for one in files) else ""


def _headline_finding(finding: Finding) -> str:
    return f"<strong>{escape(finding.lead)}</strong> {escape(finding.text)} {_numbers(finding)}"


def _figure(one: Drawing) -> str:
    return f"<figure><figcaption>{escape(one.caption)}</figcaption>{inline(one)}</figure>"


def _numbers(finding: Finding, table: str = "") -> str:
    """The numbers a finding states, folded; or, of many, a link to the table that has them."""
    if not finding.cases:
        return ""
    if table and len(finding.cases) > MAX_ROWS:
        return f'<a class="raw" href="#{table}">numbers</a>'
    rows = frame("Numbers of this finding", case_table([("", list(finding.cases))]))
    return f'<details class="raw"><summary>numbers</summary>{rows}</details>'


def _section(part: SuiteContent) -> str:
    about, table = part.about, f"{part.ident}-table"
    cards = "".join(_card(one, found, table) for one, found in zip(part.files, part.findings, strict=True))
    numbers = case_table([(one.name, one.suite(part.suite)) for one in part.files])
    return (
        f'<section id="{part.ident}">\n<h2>{escape(about.title)}</h2>\n<p>{escape(about.about)}</p>\n'
        f"{_figures(part)}\n{_paper(part)}\n"
        f'<div class="cards">{cards}</div>\n'
        f"<details><summary>All numbers: {escape(about.title)}</summary>"
        f"{frame(f'All numbers: {about.title}', numbers, table)}</details>\n</section>"
    )


def _paper(part: SuiteContent) -> str:
    about = part.about
    if not about.paper:
        return ""
    table = (
        f"<details><summary>its numbers, Tesla K40</summary>{paper_table(about.paper_numbers)}</details>"
        if about.paper_numbers
        else ""
    )
    return f'<div class="paper"><p><strong>The paper:</strong> {escape(about.paper)}</p>{table}</div>'


def _card(one: Results, findings: Sequence[Finding], table: str) -> str:
    items = [f"<li>{escape(found.sentence)} {_numbers(found, table)}</li>" for found in findings]
    body = f"<ul>{''.join(items[:MAX_SHOWN])}</ul>" if items else "<p>Too few numbers for a statement.</p>"
    if more := items[MAX_SHOWN:]:
        body += f"<details><summary>{len(more)} more</summary><ul>{''.join(more)}</ul></details>"
    measured = escape(f"torch {one.environment['torch']}, {one.date}")
    return f'<div class="card"><h3>{escape(one.name)}</h3><p class="note">{measured}</p>{_warning([one])}{body}</div>'


def _figures(part: SuiteContent) -> str:
    """A row per figure, one chart per file; the charts of a single file share one row."""
    rows = ["".join(map(_figure, charts)) for charts in part.figures]
    if len(part.files) == 1 and rows:
        rows = ["".join(rows)]
    return "".join(f'<div class="figures">{row}</div>' for row in rows)


def _machines(files: Sequence[Results]) -> str:
    return (
        '<section id="machines">\n<h2>Machines and files</h2>\n<p>The links save the result files, which this page'
        f" contains, as they were read, compressed.</p>\n{machine_table(files)}\n</section>"
    )
