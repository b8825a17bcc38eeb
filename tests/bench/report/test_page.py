"""The page: well-formed, complete, escaped, self-contained."""

import base64
import gzip
import re
from html.parser import HTMLParser

import pytest

from matroot._cli import main
from matroot.bench.report import content_of, read
from matroot.bench.report import page as page_of
from matroot.bench.report.findings import FINDINGS
from matroot.bench.report.findings.headline import headline_findings
from matroot.bench.report.results import named
from matroot.bench.report.sections import SECTIONS

from .example_results import SUITES, case, document, load, save


def page(files):
    return page_of(content_of(files))


FEW = ("batch", "schemes", "speed")
"""Suites with charts of every kind."""
VOID = {"meta", "br", "hr", "img", "link", "input"}


class Tree(HTMLParser):
    """Tags in order; fails on tags that do not close."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.text = [], [], []
        self.feed(html)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.text.append(data)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return save(tmp_path_factory.mktemp("one") / "bench-cpu-float32.json")


@pytest.fixture(scope="module")
def html(file):
    return page([read(file)])


def body_of(html, suite):
    return html.partition(f'<section id="suite-{suite}">')[2].partition("</section>")[0]


def test_all_suites_appear_with_figures_findings_and_folded_numbers(html):
    assert set(SUITES) < set(SECTIONS) == set(FINDINGS)
    for suite in SUITES:
        body = body_of(html, suite)
        figures, findings, table = (body.find(part) for part in ("<svg", '<div class="card">', "<details><summary>All"))
        assert 0 < figures < findings < table, suite
        assert f'id="suite-{suite}-table"' in body
        assert "<table" not in re.sub(r"<details.*?</details>", "", body, flags=re.DOTALL), "a table is not folded away"


def test_every_finding_is_on_the_page_with_its_numbers(file, html):
    text = "".join(Tree(html).text)
    for part in content_of([read(file)]).sections:
        body = body_of(html, part.suite)
        findings = [finding for found in part.findings for finding in found]
        assert findings, part.suite
        for finding in findings:
            assert finding.sentence in text
        assert body.count(">numbers<") == len(findings)


def test_the_scalar_figure_has_the_root_and_the_papers_approximants(html):
    values, errors = re.findall(r"<svg.*?</svg>", body_of(html, "scalar"), re.DOTALL)
    for name in ("Taylor, degree 11", "Padé, degree 5", "Newton-Schulz, 5 iterations", "√(1-z)"):
        assert f">{name}</text>" in values
    assert "Padé, degree 3" in errors
    assert "Padé, degree 3" not in values


def test_figures_have_text_and_content(html):
    figures = re.findall(r"<svg.*?</svg>", html, re.DOTALL)
    assert len(figures) >= len(SUITES)
    for one in figures:
        named_by = re.search(r'role="img".*aria-labelledby="(\S+) (\S+)"', one)
        assert named_by
        for ident, tag in zip(named_by.groups(), ("title", "desc"), strict=True):
            assert re.search(rf'<{tag} id="{ident}">[^<]+</{tag}>', one)
        assert not re.search(r"nan|inf\b", re.sub(r"<(title|desc).*?</\1>", "", one))


def test_figures_are_described_by_the_findings(file, html):
    content = content_of([read(file)])
    for charts, machine in zip(content.headlines, content.machines, strict=True):
        for finding in headline_findings(machine):
            assert all(finding.sentence in one.description for one in charts)
    for part in content.sections:
        for charts in part.figures:
            assert part.findings[0][0].sentence in charts[0].description


def test_colours_and_letters_are_those_of_the_page(html):
    """Every colour changes between light and dark, and no font is one that the reader may not have."""
    figures = "".join(re.findall(r'<svg class="plot".*?</svg>', html, re.DOTALL))
    assert "var(--c0)" in figures
    assert "currentColor" in figures
    assert not re.search(r"#[0-9a-f]{6}|rgb\(|font-family|font:", figures)


def test_the_same_files_make_the_same_bytes(tmp_path):
    found = load(tmp_path, document(suites=("speed", "schemes")))
    assert page([found]) == page([found])


def test_identifiers_are_unique_and_links_lead_somewhere(html):
    tags = Tree(html).tags
    idents = [a["id"] for _, a in tags if "id" in a]
    assert len(idents) == len(set(idents))
    links = [a["href"] for _, a in tags if not a.get("href", "data:").startswith("data:")]
    assert links
    links += re.findall(r"url\((#[^)]+)\)", html)
    assert {link.removeprefix("#") for link in links} <= set(idents)
    for _, a in tags:
        assert set(a.get("aria-labelledby", "").split()) <= set(idents)


def test_nothing_is_fetched(html):
    for tag, a in Tree(html).tags:
        assert tag not in ("script", "img", "link", "iframe", "object")
        assert not {"src", "srcset", "xlink:href"} & set(a)
        assert a.get("href", "#").startswith(("#", "data:application/gzip;base64,"))
    assert not re.search(r"https?:|url\([^#]|@import|//[a-z]", re.sub(r"base64,[^\"]*", "", html))


def test_the_files_are_in_the_page(file, html):
    held = re.findall(r'download="([^"]*)" href="data:application/gzip;base64,([^"]*)"', html)
    unpacked = [(name, gzip.decompress(base64.b64decode(data))) for name, data in held]
    assert unpacked == [(f"{file.name}.gz", file.read_bytes())]


def test_everything_from_files_is_escaped(tmp_path):
    evil = "<script>alert(1)</script>\"'&\ud800"
    found = document(suites=("residuals", *FEW))
    for group in ("surroundings", "settings"):
        found[group] = {k: evil if isinstance(v, str) else v for k, v in found[group].items()} | {evil: evil}
    found["command"] = evil
    for k, one in enumerate(found["cases"]):
        one["case"] += evil
        one["note"] = evil
        one["errors"][evil] = 1.0
        if k % 2:
            one["contestant"] += evil
            one["parameters"] |= {evil: evil}
    for contestant in ("auto", evil):
        found["cases"].append(case(evil, contestant, {"n": evil, "batch": evil, "shape": evil}, 1.0, note=evil))
    out = tmp_path / "page.html"
    path = save(tmp_path / "a<b>'&.json", found)
    assert main.main(["report", str(path), "--out", str(out)]) == 0
    html = out.read_text(encoding="utf-8")
    tree = Tree(html)
    assert not any(tag == "script" for tag, _ in tree.tags)
    body = {"id", "class", "href", "download", "role", "tabindex", "aria-label", "aria-labelledby", "scope", "colspan"}
    svg = {"viewbox", "d", "x", "y", "width", "height", "style", "clip-path", "transform", "stroke-linejoin"}
    head = {"charset", "http-equiv", "content", "name", "lang"}
    assert {key for _, a in tree.tags for key in a} <= body | svg | head
    assert any("<script>alert(1)</script>" in text for text in tree.text)


def test_every_suite_of_the_paper_has_its_statement():
    assert all(SECTIONS[suite].paper for suite in SUITES)


def test_the_papers_figures_are_shown_as_the_papers(html):
    body = body_of(html, "schemes")
    assert "Figures of the paper, Tesla K40" in body
    for figure in ("2.19", "1.99", "5.69", "3.08", "4.71", "2.03"):
        assert f"<td>{figure}</td>" in body


def test_several_files_stand_side_by_side(tmp_path):
    one = load(tmp_path, document(suites=("scalar", "schemes", "speed")), "bench-cpu-float32.json")
    two = load(tmp_path, document("cuda", speed=30.0, suites=("schemes", "speed")), "bench-cuda-float32.json")
    html = page([one, two])
    assert html.count("base64,") == 2
    body = body_of(html, "speed")
    for name in ("Example Processor 9000, float32", "NVIDIA Example 1, float32"):
        assert f'<th scope="colgroup" colspan="4">{name}</th>' in body
        assert f"<h3>{name}</h3>" in body
    assert body.index("NVIDIA Example") < body.index("Example Processor"), "GPUs come first"
    assert body.count("<svg") == 2
    numbers = body.partition("<details><summary>All numbers")[2]
    assert numbers.count("<tr>") == len(one.suite("speed")) + 2
    assert "NVIDIA Example" not in body_of(html, "scalar")


def test_names_tell_files_apart(tmp_path):
    (tmp_path / "sub").mkdir()
    files = [load(tmp_path, None, name) for name in ("a.json", "b.json", "sub/a.json")]
    names = [one.name for one in named(files)]
    assert len(set(names)) == 3
    assert "b.json" in names[1]


def test_few_numbers_make_a_page_too(tmp_path):
    """Every suite with no numbers, with one case, and of an unknown name."""
    found = document()
    for one in found["cases"]:
        one |= {"milliseconds": None, "errors": {}, "values": {}, "note": "failed"}
    assert "<svg" not in page([load(tmp_path, found)])
    first = {one["suite"]: one for one in document()["cases"]}
    for one in first.values():
        Tree(page([load(tmp_path, document(suites=()) | {"cases": [one]})]))
    Tree(page([load(tmp_path, document(suites=()))]))
    found = document(suites=(), quick=True) | {"cases": [case("later", "auto", {"n": 1}, 0.0, {"root": 0})]}
    html = page([load(tmp_path, found)])
    assert "Not known to this version" in html
    assert "numbers are rough" in html


def test_zero_times_and_errors_break_nothing(tmp_path):
    found = document(suites=FEW)
    for one in found["cases"]:
        one["errors"] = dict.fromkeys(one["errors"], 0)
        if one["milliseconds"]:
            one["milliseconds"] = dict.fromkeys(one["milliseconds"], 0)
    Tree(page([load(tmp_path, found)]))


@pytest.mark.parametrize("extreme", [1e-320, 1e199, [1.0] * 3])
def test_extreme_numbers_break_nothing(tmp_path, extreme):
    found = document(suites=FEW)
    for k, one in enumerate(found["cases"]):
        one["errors"] = dict.fromkeys(one["errors"], 0.0 if isinstance(extreme, list) else extreme)
        one["parameters"] = {k: "9" * 400 if isinstance(v, str) else v for k, v in one["parameters"].items()}
        if "megabytes" in one["values"]:
            one["values"]["megabytes"] = extreme
        if one["milliseconds"] and k % 2 and not isinstance(extreme, list):
            one["milliseconds"] = dict.fromkeys(one["milliseconds"], extreme)
    html = page([load(tmp_path, found)])
    Tree(html)
    assert not re.search(r"\b(nan|inf)\b", html)
