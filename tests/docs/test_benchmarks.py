"""The table of hard and large matrices is that of the committed results."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/benchmarks.md").read_text()


def measured(suite):
    return json.loads((ROOT / f"benchmarks/results/gpu-{suite}-nvidia-h200.json").read_text())


def number(x):
    return f"{x:.3g}" if x < 1000 else f"{x:.0f}"


def milliseconds(case, name):
    return number(case["milliseconds"][name]["back_to_back"]["median"])


@pytest.mark.parametrize("suite", ["hard", "large"])
def test_rows(suite):
    rows = dict(re.findall(r"^\| (\d+ x .+? (?:samples|1e\+\d+)(?:, forward)?) \| (.+) \|$", PAGE, re.MULTILINE))
    for case in measured(suite)["results"]:
        times, errors = case["milliseconds"], case["errors"]
        suffix = "" if "matroot" in times else " forward"
        names = ("matroot" + suffix, "torch eigh" + suffix, "jax eigh")
        expected = [milliseconds(case, name) for name in names]
        expected += [f"{errors[name]['root']:.1e}" for name in ("matroot", "torch eigh")]
        assert rows[case["case"] + (", forward" if suffix else "")].split(" | ") == expected


def test_float64():
    *cases, distance = measured("float64")["results"]
    rows = dict(re.findall(r"^\| (\d+ x .+?, \w+) \| (\S+ \| \S+ \| \S+) \|$", PAGE, re.MULTILINE))
    names = ("matroot", "torch eigh", "jax eigh")
    assert rows == {case["case"]: " | ".join(milliseconds(case, name) for name in names) for case in cases}
    own, eigh = (milliseconds(distance, f"{name} forward") for name in ("matroot", "torch eigh"))
    assert f"takes {own} ms; by `torch.linalg.eigh` {eigh} ms" in PAGE


@pytest.mark.parametrize("suite", ["hard", "large", "singular", "steps", "first-use", "float64", "overhead"])
def test_machine_and_date(suite):
    machine = measured(suite)["surroundings"]
    section = PAGE.partition("### Hard and large matrices")[2]
    for words in (machine["device"], f"torch {machine['torch'].partition('+')[0]}", machine["date"].partition("T")[0]):
        assert words in section


def test_the_overhead_of_a_call():
    (case,) = measured("overhead")["results"]
    own, least = (milliseconds(case, name) for name in ("matroot", "empty Function"))
    assert f"takes {own} ms, an autograd Function that does nothing {least} ms (`overhead`)" in PAGE


def test_jumps_between_sizes():
    ratios = {case["case"]: case["largest_ratio"] for case in measured("steps")["results"]}
    assert {case: round(ratio, 1) for case, ratio in ratios.items() if ratio > 2} == {
        "1000 x 64, 128 samples": 15.4,
        "1000 x 64, log 1e+04": 14.9,
        "64 x 128, log 1e+04": 4.3,
        "1000 x 128, 256 samples": 2.6,
        "1000 x 128, log 1e+04": 6.1,
    }
