"""What a report contains before it is a page or a folder of figures: machines, sections, figures, findings."""

from collections.abc import Sequence
from dataclasses import dataclass

from .drawings import Drawing
from .figures import drawings
from .findings import Finding, suite_findings
from .headline import headline_drawings
from .machines import Machine, machines
from .results import Results, named, suites
from .section import Section
from .sections import SECTIONS, section


@dataclass(frozen=True)
class SuiteContent:
    """A section: the files that have the suite, what each shows, and for each figure a chart per file."""

    suite: str
    ident: str
    about: Section
    files: tuple[Results, ...]
    findings: tuple[tuple[Finding, ...], ...]
    figures: tuple[tuple[Drawing, ...], ...]


@dataclass(frozen=True)
class Content:
    files: tuple[Results, ...]
    machines: tuple[Machine, ...]
    headlines: tuple[tuple[Drawing, ...], ...]
    """The charts of each machine."""
    sections: tuple[SuiteContent, ...]

    @property
    def drawings(self) -> list[Drawing]:
        """All figures, in the order of the page."""
        first = [one for charts in self.headlines for one in charts]
        return first + [one for part in self.sections for charts in part.figures for one in charts]


def content_of(files: Sequence[Results]) -> Content:
    """GPUs come first; nothing is drawn yet."""
    files = named(sorted(files, key=lambda one: str(one.settings["device"]) == "cpu"))
    found = suites(files)
    order = [s for s in SECTIONS if s in found] + [s for s in found if s not in SECTIONS]
    compared = machines(files)
    return Content(
        tuple(files),
        tuple(compared),
        tuple(map(tuple, headline_drawings(compared))),
        tuple(_suite_content(suite, k, files) for k, suite in enumerate(order)),
    )


def _suite_content(suite: str, k: int, files: Sequence[Results]) -> SuiteContent:
    # Names come from files; identifiers and names of figures do not.
    ident = f"suite-{suite if suite in SECTIONS else f'other-{k}'}"
    about = section(suite)
    own = named([one for one in files if one.suite(suite)])
    if about.same_everywhere:
        own = own[:1]
    findings = [tuple(suite_findings(suite, one)) for one in own]
    said = [" ".join(finding.sentence for finding in found[:1]) for found in findings]
    figures = [
        drawings(one, suite, own, f"{ident.removeprefix('suite-')}-{j}", said) for j, one in enumerate(about.figures, 1)
    ]
    return SuiteContent(
        suite, ident, about, tuple(own), tuple(findings), tuple(tuple(charts) for charts in figures if charts)
    )
