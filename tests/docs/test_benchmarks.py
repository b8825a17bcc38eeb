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


def test_dates_of_the_table():
    (found,) = re.findall(r"on (\S+) \(one matrix: on (\S+), with kernels of that day\)", " ".join(PAGE.split()))
    assert found == tuple(measured(suite)["surroundings"]["date"].partition("T")[0] for suite in ("hard", "large"))


def test_the_overhead_of_a_call():
    (case,) = measured("overhead")["results"]
    own, least = (milliseconds(case, name) for name in ("matroot", "empty Function"))
    assert f"takes {own} ms, an autograd Function that does nothing {least} ms (`overhead`)" in PAGE


def test_jumps_between_sizes():
    """All that are above 2."""
    ratios = {case["case"]: case["largest_ratio"] for case in measured("steps")["results"]}
    text = " ".join(PAGE.split())
    (at_64,) = re.findall(r"takes (\d+) times as long at n = 65 as at n = 64, at condition 1e4 as well", text)
    pattern = (
        r"batches of 1000 take (\S+) and (\S+) times as long as at 128, and 64 matrices of condition 1e4 (\S+) times"
    )
    ((many, many_hard, few),) = re.findall(pattern, text)
    assert {case: f"{ratio:.0f}" if ratio > 10 else f"{ratio:.1f}" for case, ratio in ratios.items() if ratio > 2} == {
        "1000 x 64, 128 samples": at_64,
        "1000 x 64, log 1e+04": at_64,
        "64 x 128, log 1e+04": few,
        "1000 x 128, 256 samples": many,
        "1000 x 128, log 1e+04": many_hard,
    }
