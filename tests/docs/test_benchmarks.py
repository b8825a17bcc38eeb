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


@pytest.mark.parametrize("suite", ["hard", "large"])
def test_rows(suite):
    rows = dict(re.findall(r"^\| (\d+ x .+? (?:samples|1e\+\d+)(?:, forward)?) \| (.+) \|$", PAGE, re.MULTILINE))
    for case in measured(suite)["results"]:
        times, errors = case["milliseconds"], case["errors"]
        suffix = "" if "matroot" in times else " forward"
        names = ("matroot" + suffix, "torch eigh" + suffix, "jax eigh")
        expected = [number(times[name]["back_to_back"]["median"]) for name in names]
        expected += [f"{errors[name]['root']:.1e}" for name in ("matroot", "torch eigh")]
        assert rows[case["case"] + (", forward" if suffix else "")].split(" | ") == expected


@pytest.mark.parametrize("suite", ["hard", "large", "singular", "steps", "first-use"])
def test_machine_and_date(suite):
    machine = measured(suite)["surroundings"]
    section = PAGE.partition("### Hard and large matrices")[2]
    for words in (machine["device"], f"torch {machine['torch'].partition('+')[0]}", machine["date"].partition("T")[0]):
        assert words in section


def test_jumps_between_sizes():
    ratios = {(case["n"], "log" in case["case"]): case["largest_ratio"] for case in measured("steps")["results"]}
    large = {key: round(ratio, 1) for key, ratio in ratios.items() if ratio > 2}
    assert large == {(64, False): 18.7, (64, True): 28.4, (128, True): 2.2}
