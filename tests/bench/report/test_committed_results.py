"""The report of the committed results: every file is read, and the first screen says what they say."""

import json
import re
from pathlib import Path

import pytest

from matroot.bench.formatting import ratio
from matroot.bench.report import content_of, read
from matroot.bench.report.findings.headline import headline_findings

RESULTS = Path(__file__).parents[3] / "benchmarks/results"
FILES = sorted(path for kind in ("bench", "gpu", "layers", "solver") for path in RESULTS.glob(f"{kind}-*.json"))


@pytest.fixture(scope="module")
def content():
    return content_of([read(path) for path in FILES])


def test_every_section_has_a_figure_of_every_file_and_every_file_a_finding(content):
    for part in content.sections:
        assert part.figures, part.suite
        assert all(part.findings), part.suite
        drawn = {one.title.rpartition(": ")[2] for charts in part.figures for one in charts}
        assert drawn == {one.name for one in part.files}, part.suite


def test_sentences_have_no_names_of_the_files(content):
    """Not ``minimax+smith`` nor ``inverse=False``."""
    for part in content.sections:
        for finding in (one for findings in part.findings for one in findings):
            assert not re.search(r"[a-z]\+[a-z]|\w=\w", finding.sentence), finding.sentence


def test_names_of_figures_are_those_of_files(content):
    names = [one.name for one in content.drawings]
    assert len(set(names)) == len(names)
    assert all(set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-") for name in names)


def test_the_gpu_is_compared_with_the_faster_batched_eigensolver_of_its_latest_file(content):
    """Computed here from the JSON of the table of shapes alone."""
    files = [json.loads(path.read_text()) for path in FILES if path.name.startswith("gpu-nvidia-")]
    latest = max(files, key=lambda found: found["surroundings"]["date"])
    shapes = {(1, 64), (64, 48), (16, 128), (256, 256), (10000, 64)}
    quotients = []
    for result in latest["results"]:
        times = {name: found["single"]["median"] for name, found in result["milliseconds"].items()}
        if (result["batch"], result["n"]) in shapes:
            quotients.append(min(times["jax eigh"], times["cupy eigh"]) / times["auto"])
    assert len(quotients) == len(shapes)
    gpu = content.machines[0]
    assert gpu.name == latest["surroundings"]["device"]
    finding = headline_findings(gpu)[0]
    assert finding.lead == f"{ratio(min(quotients))} to {ratio(max(quotients))} times"
    assert "the faster of JAX and CuPy" in finding.text
    for version in (latest["surroundings"]["torch"], *latest["versions"].values()):
        assert version in gpu.versions


def test_the_error_of_the_headline_is_the_largest_of_its_shapes(content):
    for machine in content.machines:
        errors = [shape.cases["auto"].errors["root"] for shape in machine.shapes]
        lead = headline_findings(machine)[-1].lead
        mantissa, _, power = lead.partition("·10")
        exponent = int(power.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")))
        # The lead has one decimal.
        assert float(mantissa) * 10.0**exponent == pytest.approx(max(errors), rel=0.05)
