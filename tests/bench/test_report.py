"""``matroot report``: what it reads, what it says, and the page it writes."""

import base64
import copy
import errno
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from matroot._cli import main
from matroot.bench.report import ResultError, page, read, results, sections, words
from matroot.bench.report.plots import Axis, Series, plot, span, ticks

from .bench_results import SUITES, case, document, save

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


def loaded(tmp_path, found, name="file.json"):
    return read(save(tmp_path / name, found))


def edited(path, value):
    """A good document with one field replaced, or removed for ``...``."""
    found = copy.deepcopy(document(suites=("scalar", "speed")))
    at = found
    for key in path[:-1]:
        at = at[key]
    if value is ...:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return found


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        (("format",), "matroot-bench 2", "format"),
        (("format",), ..., "format"),
        (("command",), 1, "command"),
        (("surroundings",), [], "surroundings"),
        (("surroundings", "torch"), ..., "surroundings.torch"),
        (("surroundings", "cores"), [], "surroundings.cores"),
        (("settings", "dtype"), None, "settings.dtype"),
        (("cases",), {}, "cases"),
        (("cases", 5), 3, "cases[5]"),
        (("cases", 5, "contestant"), ..., "cases[5].contestant"),
        (("cases", 5, "parameters"), None, "cases[5].parameters"),
        (("cases", 5, "parameters", "n"), {}, "cases[5].parameters.n"),
        (("cases", 5, "milliseconds"), 1.0, "cases[5].milliseconds"),
        (("cases", 5, "milliseconds", "median"), ..., "cases[5].milliseconds.median"),
        (("cases", 5, "milliseconds", "median"), -1.0, "cases[5].milliseconds.median"),
        (("cases", 5, "errors", "root"), -1e-9, "cases[5].errors.root"),
        (("cases", 5, "errors", "root"), "small", "cases[5].errors.root"),
        (("cases", 5, "errors", "root"), True, "cases[5].errors.root"),
        (("cases", 5, "errors", "root"), 10**400, "cases[5].errors.root"),
        (("cases", 5, "note"), 4, "cases[5].note"),
        (("cases", 0, "values", "z"), [0.0], "cases[0].values"),
        (("cases", 0, "values", "z", 3), "x", "cases[0].values.z"),
        (("cases", 0, "values", "z"), ..., "cases[0].values"),
        (("cases", 5, "case"), "auto batch=1 n=16", "cases[5].case"),
    ],
)
def test_wrong_fields_are_named(tmp_path, path, value, field):
    with pytest.raises(ResultError, match=re.escape(f"file.json: field {field} ")):
        loaded(tmp_path, edited(path, value))


@pytest.mark.parametrize("text", ["", "[", '{"format": NaN}', "\xff", "[" * 100000, "1e999", "[]", "null"])
def test_what_is_no_result_file(tmp_path, text):
    path = tmp_path / "file.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ResultError, match=r"file\.json: "):
        read(path)


def test_a_file_cut_anywhere_is_refused(tmp_path):
    whole = json.dumps(document(suites=("schemes",)))
    path = tmp_path / "file.json"
    for end in range(0, len(whole), 37):
        path.write_text(whole[:end])
        with pytest.raises(ResultError):
            read(path)


def test_bad_files_do_not_stop_the_good(tmp_path, file, capsys):
    bad, out = tmp_path / "bad.json", tmp_path / "page.html"
    bad.write_text("{")
    missing = tmp_path / "missing.json"
    assert main.main(["report", str(bad), str(file), str(missing), "--out", str(out)]) == 1
    told = capsys.readouterr().err
    assert str(bad) in told
    assert str(missing) in told
    assert "Example Processor" in out.read_text(encoding="utf-8")


def test_nothing_good(tmp_path, capsys):
    out = tmp_path / "page.html"
    assert main.main(["report", str(tmp_path / "missing.json"), "--out", str(out)]) == 1
    assert not out.exists()
    assert "no file to report" in capsys.readouterr().err


def test_good(tmp_path, file, capsys):
    out = tmp_path / "page.html"
    assert main.main(["report", str(file), "--out", str(out)]) == 0
    assert capsys.readouterr() == (f"{out}\n", "")


def test_unwritable_output(tmp_path, file, capsys):
    for out in (tmp_path, tmp_path / "missing" / "page.html"):
        assert main.main(["report", str(file), "--out", str(out)]) == 1
        assert str(out) in capsys.readouterr().err


def test_a_full_disk_leaves_the_earlier_page(tmp_path, file, monkeypatch, capsys):
    out = tmp_path / "page.html"
    out.write_text("earlier")
    write = Path.write_bytes

    def full(path, data):
        write(path, data[:20])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    assert main.main(["report", str(file), "--out", str(out)]) == 1
    assert f"{out}: No space left on device" in capsys.readouterr().err
    assert out.read_text() == "earlier"
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_a_result_file_is_not_overwritten(tmp_path, capsys):
    path = save(tmp_path / "file.json")
    before = path.read_bytes()
    assert main.main(["report", str(path), "--out", str(path)]) == 2
    assert path.read_bytes() == before
    assert str(path) in capsys.readouterr().err


def test_all_suites_appear(html):
    tags = Tree(html).tags
    found = [a.get("id") for tag, a in tags if tag == "section"]
    assert {f"suite-{suite}" for suite in SUITES} <= set(found)
    assert set(SUITES) == set(sections.SECTIONS) == set(words.CLAIMS)
    for suite in SUITES:
        body = html.partition(f'<section id="suite-{suite}">')[2].partition("</section>")[0]
        assert '<svg class="plot"' in body, suite
        assert f'id="suite-{suite}-table"' in body


def test_the_scalar_picture_has_the_root_and_the_papers_approximants(html):
    body = html.partition('<section id="suite-scalar">')[2].partition("</section>")[0]
    picture, errors = re.findall(r"<svg.*?</svg>", body, re.S)
    for name in ("taylor degree=11", "pade degree=5", "newton-schulz iterations=5", "√(1-z)"):
        assert f">{name}</text>" in picture
    assert "pade degree=3" in errors
    assert "pade degree=3" not in picture


def test_plots_have_text_and_content(html):
    plots = re.findall(r"<svg.*?</svg>", html, re.S)
    assert len(plots) >= len(SUITES)
    for one in plots:
        named_by = re.search(r'role="img".*aria-labelledby="(\S+) (\S+)"', one)
        assert named_by
        for ident, tag in zip(named_by.groups(), ("title", "desc"), strict=True):
            assert re.search(rf'<{tag} id="{ident}">[^<]+</{tag}>', one)
        assert 'class="mark' in one or 'class="line' in one
        assert not re.search(r"nan|inf\b", re.sub(r"<(title|desc).*?</\1>", "", one))


def test_identifiers_are_unique_and_links_lead_somewhere(html):
    tags = Tree(html).tags
    idents = [a["id"] for _, a in tags if "id" in a]
    assert len(idents) == len(set(idents))
    links = [a["href"] for tag, a in tags if tag == "a" and not a["href"].startswith("data:")]
    assert links
    assert {link.removeprefix("#") for link in links} <= set(idents)
    for _, a in tags:
        assert set(a.get("aria-labelledby", "").split()) <= set(idents)


def test_nothing_is_fetched(html):
    for tag, a in Tree(html).tags:
        assert tag not in ("script", "img", "link", "iframe", "object")
        assert not {"src", "srcset", "xlink:href"} & set(a)
        assert a.get("href", "#").startswith(("#", "data:application/json;base64,"))
    assert not re.search(r"https?:|url\(|@import|//[a-z]", re.sub(r"base64,[^\"]*", "", html))


def test_the_files_are_in_the_page(file, html):
    held = re.findall(r'download="([^"]*)" href="data:application/json;base64,([^"]*)"', html)
    assert [(name, base64.b64decode(data)) for name, data in held] == [(file.name, file.read_bytes())]


def test_everything_from_files_is_escaped(tmp_path):
    evil = "<script>alert(1)</script>\"'&\ud800"
    found = document()
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
    allowed = {
        "id",
        "class",
        "href",
        "download",
        "role",
        "tabindex",
        "aria-label",
        "aria-labelledby",
        "scope",
        "colspan",
    }
    svg = {"viewbox", "d", "x", "y", "dx", "dy", "cx", "cy", "r", "text-anchor", "transform", "stroke-dasharray"}
    head = {"charset", "http-equiv", "content", "name", "lang"}
    assert {key for _, a in tree.tags for key in a} <= allowed | svg | head
    assert any("<script>alert(1)</script>" in text for text in tree.text)


def test_sentences_match_the_numbers(tmp_path):
    found = document(suites=())
    for contestant, time, error in (("auto", 2.0, 3e-7), ("eigh", 7.4, 5e-7), ("paper", 1.0, 4e-4)):
        errors = {"root": error, "gradient": 2 * error}
        found["cases"].append(case("speed", contestant, {"batch": 64, "n": 64}, time, errors))
    speed, exact = words.summary(loaded(tmp_path, found))
    assert speed.text == (
        "For 64 matrices 64 x 64, the default takes 2 ms, 3.7 times as fast as torch.linalg.eigh (7.4 ms)"
        " and 2 times as long as the method of the paper (1 ms)."
    )
    assert exact.text == (
        "Its error there is 3.0·10⁻⁷ in the root and 6.0·10⁻⁷ in the gradient;"
        " that of torch.linalg.eigh is 5.0·10⁻⁷ and 1.0·10⁻⁶."
    )
    assert [one.contestant for one in speed.cases] == ["auto", "eigh", "paper"]


def test_padé_against_newton_schulz_is_computed(tmp_path):
    found = document(suites=())
    for iterations, time, error in ((3, 1.0, 1e-1), (5, 2.0, 1e-2)):
        parameters = {"iterations": iterations, "inverse": False}
        found["cases"].append(case("forward", "newton-schulz", parameters, time, {"mae": error}))
    found["cases"].append(case("forward", "pade", {"degree": 5, "inverse": False}, 1.5, {"mae": 1e-3}))
    first, fastest = words.claims("forward", loaded(tmp_path, found))
    assert "only for the iteration counts 5 (1 of 2)" in first.text
    assert "newton-schulz iterations=3 inverse=False with 1 ms" in fastest.text


def test_padé_on_the_scalar_is_computed(tmp_path):
    found = document(suites=())
    for contestant, error in (("pade", [1e-3, 1e-3, 1e-2]), ("taylor", [1e-2, 1e-4, 1e-1])):
        found["cases"].append(case("scalar", contestant, {"degree": 5}, values={"z": [0.1, 0.5, 0.9], "error": error}))
    _, closest = words.claims("scalar", loaded(tmp_path, found))
    assert closest.text == "A Padé approximant is the closest at 2 of 3 values of z."
    for contestant, order, error in (
        ("taylor", {"degree": 11}, [1, 1, 0.2]),
        ("newton-schulz", {"iterations": 5}, [1, 1e-4, 1]),
    ):
        found["cases"].append(case("scalar", contestant, order, values={"z": [0.1, 0.5, 0.9], "error": error}))
    *_, settings = words.claims("scalar", loaded(tmp_path, found))
    assert "Padé [5,5] is the closest at 2 of 3; the errors at z = 0.9 are 0.01 (pade degree=5), 0.2" in settings.text


def test_where_the_default_is_slower(tmp_path):
    found = document(suites=())
    for n, ours, theirs in ((8, 2.0, 1.0), (64, 1.0, 4.0)):
        found["cases"].append(case("dimension", "auto", {"n": n}, ours))
        found["cases"].append(case("dimension", "eigh", {"n": n}, theirs))
    texts = [claim.text for claim in words.summary(loaded(tmp_path, found))]
    assert "between 0.5 (matrices 8 x 8) and 4 (matrices 64 x 64)" in texts[-1]
    assert texts[-1].endswith("slower for matrices 8 x 8.")


def test_shapes_are_named_with_their_outputs(tmp_path):
    found = document(suites=())
    for output, ours in (("root", 1.0), ("inverse", 3.0)):
        for contestant, time in (("mpa-lya", ours), ("ns", 2.0)):
            found["cases"].append(case("applications", contestant, {"shape": "64 x 48 x 48", "output": output}, time))
    (claim,) = words.claims("applications", loaded(tmp_path, found))
    assert "faster than Newton-Schulz only for shape 64 x 48 x 48 (root) (1 of 2)" in claim.text


def test_residuals_stand_next_to_the_papers(tmp_path):
    found = document(suites=())
    values = {"steps": [5, 6, 7, 8, 9], "residual": [0.5, 0.1, 2e-2, 3e-4, 1e-6]}
    found["cases"].append(case("residuals", "lyapunov", {}, values=values))
    (claim,) = words.claims("residuals", loaded(tmp_path, found))
    assert "after 5, 6, 7 and 8 iterations: 0.5, 0.1, 0.02 and 3.0·10⁻⁴; in the paper 0.354, 0.041" in claim.text
    assert claim.text.endswith("It is below 10⁻⁵ from 9 iterations on; in the paper from 8.")


def test_accuracy_names_the_exceptions_and_who_has_no_number(tmp_path):
    found = document(suites=())
    for spectrum, condition, ours, theirs in (
        ("log", 1e3, 1e-3, 1e-2),
        ("log", 1e6, 0.3, 0.1),
        ("low-rank", 1e3, 0.2, None),
    ):
        for contestant, error in (("mpa-lya", ours), ("ns", theirs)):
            parameters = {"spectrum": spectrum, "condition": condition}
            found["cases"].append(case("accuracy", contestant, parameters, errors={"root": error}))
    regular, singular, closer = (claim.text for claim in words.claims("accuracy", loaded(tmp_path, found)))
    assert regular == "Largest error of the root on matrices of condition up to 1.0·10⁶: ns 0.1 and mpa-lya 0.3."
    assert singular == "Largest error of the root on singular matrices: mpa-lya 0.2; not always a number: ns."
    assert closer.endswith("than Newton-Schulz for 1 of 2 kinds; not for log of condition 1.0·10⁶.")


def test_the_papers_method_against_a_decomposition(tmp_path):
    found = document(suites=())
    for n, ours, theirs in ((16, 3.0, 1.0), (64, 2.0, 4.0)):
        for contestant, time in (("paper", ours), ("eigh", theirs)):
            found["cases"].append(case("speed", contestant, {"batch": 2, "n": n}, time))
    (claim,) = words.claims("speed", loaded(tmp_path, found))
    assert claim.text.endswith("faster than torch.linalg.eigh only for the shapes 2 matrices 64 x 64 (1 of 2).")


def test_the_cost_of_the_inverse_root(tmp_path):
    found = document(suites=())
    for inverse, time in ((False, 2.0), (True, 3.0)):
        found["cases"].append(case("backward", "lyapunov", {"iterations": 8, "inverse": inverse}, time))
    (claim,) = words.claims("backward", loaded(tmp_path, found))
    assert "the inverse root takes 1.5 times as long as the root" in claim.text


def test_values_alone_are_no_rivals(tmp_path):
    found = document(suites=())
    for contestant, time in (("auto", 2.0), ("eigh", 3.0), ("scipy", 1.0)):
        found["cases"].append(case("dimension", contestant, {"n": 8}, time, {"root": 1e-7}))
    (claim,) = words.claims("dimension", loaded(tmp_path, found))
    assert "the default is the fastest everywhere" in claim.text


def test_every_suite_of_the_paper_has_its_statement():
    assert all(section.paper for section in sections.SECTIONS.values())


def test_ctrl_c(monkeypatch, file):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("matroot.bench.report.write", interrupted)
    assert main.main(["report", str(file)]) == 130


def test_the_papers_figures_are_shown_as_the_papers(html):
    body = html.partition('<section id="suite-schemes">')[2].partition("</section>")[0]
    assert "Figures of the paper, Tesla K40" in body
    for figure in ("2.19", "1.99", "5.69", "3.08", "4.71", "2.03"):
        assert f"<td>{figure}</td>" in body


def test_several_files_stand_side_by_side(tmp_path):
    one = loaded(tmp_path, document(), "bench-cpu-float32.json")
    two = loaded(tmp_path, document("cuda", speed=30.0, suites=SUITES[2:]), "bench-cuda-float32.json")
    html = page([one, two])
    assert html.count("base64,") == 2
    body = html.partition('<section id="suite-speed">')[2].partition("</section>")[0]
    for name in ("Example Processor 9000, float32", "NVIDIA Example 1, float32"):
        assert f'<th scope="colgroup" colspan="4">{name}</th>' in body
        assert f"<h3>{name}</h3>" in body
    assert body.count("<svg") == 2
    rows = [a["id"] for tag, a in Tree(html).tags if tag == "tr" and a.get("id", "").startswith("suite-speed-")]
    assert len(rows) == len(one.suite("speed"))
    assert "This file does not have this suite." in html.partition('id="suite-scalar"')[2].partition("</section>")[0]


def test_names_tell_files_apart(tmp_path):
    (tmp_path / "sub").mkdir()
    files = [loaded(tmp_path, None, name) for name in ("a.json", "b.json", "sub/a.json")]
    names = [one.name for one in results.named(files)]
    assert len(set(names)) == 3
    assert "b.json" in names[1]


def test_few_numbers_make_a_page_too(tmp_path):
    """Every suite with no numbers, with one case, and of an unknown name."""
    found = document()
    for one in found["cases"]:
        one |= {"milliseconds": None, "errors": {}, "values": {}, "note": "failed"}
    Tree(page([loaded(tmp_path, found)]))
    for one in document()["cases"][::7]:
        Tree(page([loaded(tmp_path, document(suites=()) | {"cases": [one]})]))
    Tree(page([loaded(tmp_path, document(suites=()))]))
    found = document(suites=(), quick=True) | {"cases": [case("later", "auto", {"n": 1}, 0.0, {"root": 0})]}
    html = page([loaded(tmp_path, found)])
    assert "Not known to this version" in html
    assert "numbers are rough" in html


def test_zero_times_and_errors_break_nothing(tmp_path):
    found = document()
    for one in found["cases"]:
        one["errors"] = dict.fromkeys(one["errors"], 0)
        if one["milliseconds"]:
            one["milliseconds"] = dict.fromkeys(one["milliseconds"], 0)
    Tree(page([loaded(tmp_path, found)]))


@pytest.mark.parametrize("extreme", [1e-320, 1e199, [1.0] * 3])
def test_extreme_numbers_break_nothing(tmp_path, extreme):
    found = document()
    for k, one in enumerate(found["cases"]):
        one["errors"] = dict.fromkeys(one["errors"], 0.0 if isinstance(extreme, list) else extreme)
        one["parameters"] = {k: "9" * 400 if isinstance(v, str) else v for k, v in one["parameters"].items()}
        if "megabytes" in one["values"]:
            one["values"]["megabytes"] = extreme
        if one["milliseconds"] and k % 2 and not isinstance(extreme, list):
            one["milliseconds"] = dict.fromkeys(one["milliseconds"], extreme)
    html = page([loaded(tmp_path, found)])
    Tree(html)
    assert not re.search(r"\b(nan|inf)\b", html)


@pytest.mark.parametrize("log", [True, False])
@pytest.mark.parametrize("numbers", [(1.0,), (1e-12, 1e3), (0.97, 0.99), (2.0, 3.0), (3e-7, 3.1e-7), (1e-199, 1e199)])
def test_ticks_are_few_and_inside(log, numbers):
    axis = Axis("x", log)
    ends = span(numbers, axis)
    found = ticks(axis, ends)
    assert 1 <= len(found) <= 10
    assert found == sorted(set(found))
    svg = plot("p", "t", "d", axis, axis, [Series("s", [(x, x) for x in numbers], 0)], (ends, ends))
    assert svg.count("<circle") == len(numbers) + 1  # and the legend's


def test_an_empty_axis_has_no_span():
    assert span([0.0, -1.0], Axis("x")) is None
    assert span([], Axis("x", log=False)) is None
