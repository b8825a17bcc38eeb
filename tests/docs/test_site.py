"""The site as it is built: without warnings or network, with every public name, and links that lead somewhere."""

import importlib
import os
import re
import subprocess
import sys
import zlib
from html.parser import HTMLParser
from pathlib import Path

import pytest
from filelock import FileLock

from .public import MODULES, public_names

pytest.importorskip("sphinx")
pytest.importorskip("furo")
pytest.importorskip("myst_parser")

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
ELSEWHERE = re.compile(r"[a-z]+:")
"""Addresses with a scheme."""


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """Built with squares in the place of figures, which ``make docs`` draws and which take longer than the pages."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "docs"
    with FileLock(f"{folder}.lock"):  # one for all processes that test
        if not (folder / "site/index.html").exists():
            build(folder)
    return folder / "site"


def build(folder: Path) -> None:
    (folder / "figures").mkdir(parents=True)
    pages = [page.read_text() for page in DOCS.rglob("*.md")]
    for name in re.findall(r"```\{drawn\} (\w+)", "\n".join(pages)):
        (folder / f"figures/{name}.svg").write_text('<svg viewBox="0 0 9 9"><rect id="square" width="9"/></svg>')
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", str(DOCS), str(folder / "site")]
    environment = {**os.environ, "MATROOT_DOCS_BUILD": str(folder), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (folder / "site/report.html").touch()  # make docs writes it, from the results


class Page(HTMLParser):
    """What a page is made of, as far as links and files are concerned."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.described = 0
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors.add(given.get("id", ""))
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag == "link" and given.get("rel") in ("stylesheet", "icon"):
            self.loaded.append(given["href"])
        elif tag == "script" and "src" in given:
            self.loaded.append(given["src"])
        elif tag == "img":
            self.loaded.append(given["src"])
            assert given.get("alt"), "an image without a description"
        elif tag == "svg" and given.get("role") == "img":
            self.described += bool(given.get("aria-label"))


@pytest.fixture(scope="module")
def pages(site) -> dict[Path, Page]:
    return {path: Page(path) for path in sorted(site.rglob("*.html"))}


def documented(site: Path) -> dict[str, str]:
    """Names of the site's inventory and their kinds."""
    raw = (site / "objects.inv").read_bytes()
    body = zlib.decompress(raw.split(b"zlib.\n", 1)[1]).decode()
    return dict(line.split()[:2] for line in body.splitlines() if " py:" in line)


def find(name: str) -> object:
    """The object that a documented name stands for."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            found = getattr(found, part)
        return found
    raise LookupError(name)


def test_every_public_name_is_on_a_page(site):
    """By identity: ``matroot.Pade`` and ``matroot.methods.Pade`` are one object on one page."""
    names = documented(site)
    kinds = ("py:function", "py:class", "py:exception", "py:module")
    there = {id(find(name)) for name, kind in names.items() if kind in kinds}
    missing = [
        f"{module}.{name}"
        for module in MODULES
        for name in public_names(module)
        if f"{module}.{name}" not in names and id(getattr(importlib.import_module(module), name)) not in there
    ]
    assert not missing


def test_there_are_public_names():
    """What the test above goes through is not empty for any module."""
    assert {"sqrtm", "Pade", "nn"} <= set(public_names("matroot"))
    assert all(len(public_names(module)) > 1 for module in MODULES)
    assert "frechet_distance" in public_names("matroot.metrics")
    assert "sqrtm" not in public_names("matroot.metrics")  # which imports it


def test_links_lead_somewhere(site, pages):
    broken = []
    for path, page in pages.items():
        for link in page.links:
            if ELSEWHERE.match(link):
                continue
            file, _, anchor = link.partition("#")
            target = (path.parent / file).resolve() if file else path
            if not target.exists() or (anchor and target in pages and anchor not in pages[target].anchors):
                broken.append(f"{path.relative_to(site)}: {link}")
    assert not broken


def test_nothing_is_loaded_from_a_network(site, pages):
    for path, page in pages.items():
        for address in page.loaded:
            assert not address.startswith(("http", "//")), f"{path.name} loads {address}"
            assert (path.parent / address.partition("?")[0]).exists(), f"{path.name} loads {address}"


def test_every_page_of_the_sources_is_in_the_site(site, pages):
    sources = {page.relative_to(DOCS).with_suffix(".html") for page in DOCS.rglob("*.md")}
    assert sources <= {path.relative_to(site) for path in pages}


def test_figures_are_described(pages):
    assert sum(page.described for page in pages.values()) == sum(
        page.read_text().count("```{drawn}") for page in DOCS.rglob("*.md")
    )


def test_formulas_are_mathml(site):
    html = (site / "paper.html").read_text()
    assert "<msup>" in html
    assert "$" not in re.sub(r"<(script|pre)\b.*?</\1>", "", html, flags=re.DOTALL)


def test_search_has_an_index(site):
    """A script, which browsers load from a disk too."""
    assert "lyapunov" in (site / "searchindex.js").read_text()


def test_docstrings_are_converted(site):
    """Parameters become fields, shapes do not become emphasis, formulas keep their lines, tables are tables."""
    html = (site / "api/functions.html").read_text()
    text = re.sub(r"<[^>]+>", "", html)
    assert "<strong>ridge</strong>" in html
    assert "(*, n, n), float16" in text
    assert "n &lt;= 256, or n &lt;= 384 from four matrices on" in " ".join(text.split())
    assert "y = weight * W (x - mean) + bias" in re.sub(r"<[^>]+>", "", (site / "api/nn.html").read_text())
