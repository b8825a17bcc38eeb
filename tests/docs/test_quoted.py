"""Numbers that pages quote in sentences are those of the committed results."""

import json
import re
from pathlib import Path

import pytest

from matroot.bench.solver import BENCHMARKS

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks/results"


def page(name: str) -> str:
    """As one line."""
    return " ".join((ROOT / name).read_text().split())


def read(name: str) -> dict:
    return json.loads((RESULTS / f"{name}.json").read_text())


def quoted(name: str, pattern: str) -> tuple[str, ...]:
    """The groups of a pattern that a page has once."""
    (match,) = re.finditer(pattern, page(name))
    return match.groups()


def test_errors_of_singular_matrices():
    errors = [case["errors"] for case in read("gpu-singular-nvidia-h200")["results"]]
    pattern = r"have roots with errors up to (\S+), `eigh` (\S+) to (\S+)\."
    found = quoted("docs/benchmarks.md", pattern)
    own, eigh = ([each[f"{name} forward"]["root"] for each in errors] for name in ("matroot", "torch eigh"))
    assert [float(x) for x in found] == [float(f"{x:.0e}") for x in (max(own), min(eigh), max(eigh))]


def test_seconds_of_a_first_call():
    seconds = {case["n"]: case["seconds"] for case in read("gpu-first-use-nvidia-h200")["results"]}
    pattern = r"(\d+) s at n = 64, (\d+) and (\d+) s at 128 and 256; with the kernels on disk it takes (\d) to (\d) s"
    compiled = [round(seconds[n]["empty"]["first"]) for n in (64, 128, 256)]
    on_disk = [round(seconds[n]["filled"]["first"]) for n in (64, 128, 256)]
    assert [int(x) for x in quoted("docs/benchmarks.md", pattern)] == [*compiled, min(on_disk), max(on_disk)]


def test_the_error_of_the_default_for_singular_matrices():
    (error,) = quoted("docs/choosing.md", r"an error of (\S+) \(`low-rank` in `benchmarks/results/solver-accuracy-cpu")
    cases = [
        case
        for case in read("solver-accuracy-cpu")["results"]
        if (case["dtype"], case["spectrum"], case["solver"]) == ("float32", "low-rank", "minimax+smith")
    ]
    assert float(error) == float(f"{max(case['root_error'] for case in cases):.0e}")


def test_products_of_the_gradient():
    least, most = quoted("docs/numerics.md", r"(\d+) when well conditioned, (\d+) at κ = 1e6 \(float32, CPU\)")
    products = {
        case["condition"]: case["backward"]["products"]
        for case in read("solver-accuracy-cpu")["results"]
        if (case["dtype"], case["spectrum"], case["solver"]) == ("float32", "log", "minimax+smith")
    }
    assert (int(least), int(most)) == (products[10], products[1e6])


def test_the_papers_method_against_the_default():
    pattern = r"off by (\d) to (\d) per cent, and `sqrtm` is (\d+) to (\d+) times as fast"
    cases = read("gpu-nvidia-h200")["results"]
    errors = [100 * case["errors"]["paper"]["root"] for case in cases]
    times = [[case["milliseconds"][name]["single"]["median"] for name in ("paper", "auto")] for case in cases]
    ratios = [paper / auto for paper, auto in times]
    expected = [round(x) for x in (min(errors), max(errors), min(ratios), max(ratios))]
    assert [int(x) for x in quoted("docs/paper.md", pattern)] == expected


@pytest.mark.parametrize(("step", "limit"), [("matroot train dbn", 180), ("make demo", 180)])
def test_first_steps_take_minutes(step, limit):
    assert read("first-steps-cpu")["seconds"][step] < limit


def test_captions_of_the_landing_page_name_machine_and_date():
    cpu, gpu = (read(name)["surroundings"] for name in ("bench-cpu-float32", "gpu-nvidia-h200"))
    text = page("docs/index.md")
    for device, machine in (("CPU", cpu), ("GPU", gpu)):
        assert f"the {device} on {machine['date'].partition('T')[0]}" in text
    assert f"{cpu['processor']} with torch {cpu['torch'].partition('+')[0]}" in text


def test_memory_of_compiled_code():
    """Whatever the batch."""
    pattern = r"(\S+) MB at n = 64 and (\S+) MB at n = 128 in compiled code"
    own = [case for case in read("solver-memory-cpu")["results"] if case["solver"] == "minimax+smith"]
    for said, n in zip(quoted("docs/practice.md", pattern), (64, 128), strict=True):
        assert {f"{case['bytes'] / 2**20:.1f}" for case in own if case["n"] == n} == {said}


def test_the_costs_of_steps_name_machine_and_date():
    machine = read("steps-nvidia-h200")["environment"]
    text = page("docs/cluster.md")
    for words in (machine["device"], f"torch {machine['torch'].partition('+')[0]}", machine["date"].partition("T")[0]):
        assert words in text


def test_every_result_has_a_line():
    """In benchmarks/README.md, by name or by a pattern; those of matroot bench in its text."""
    names = re.findall(r"`([\w<>*.-]+\.jsonl?)`", page("benchmarks/README.md"))
    patterns = [re.compile(re.sub(r"<\w+>|\*", ".*", name)) for name in names]
    for file in RESULTS.iterdir():
        assert any(pattern.fullmatch(file.name) for pattern in patterns), file.name


def test_results_of_older_kernels_are_named():
    """In benchmarks/README.md, with their day; all others of a GPU are newer."""
    names, day = quoted("benchmarks/README.md", r"## On a GPU (.+?) are of (\S+) and of the kernels of that day")
    files = [
        file for kind in ("gpu", "bench-cuda", "layers", "steps") for file in sorted(RESULTS.glob(f"{kind}-*.json"))
    ]
    found = {file.stem: read(file.stem) for file in files}
    dates = {name: (one.get("surroundings") or one["environment"])["date"][:10] for name, one in found.items()}
    assert {name for name, date in dates.items() if date <= day} == set(re.findall(r"`([\w-]+)\.json`", names))


def test_files_and_commands_of_the_solver_exist():
    """Those that benchmarks/README.md names in full."""
    text = page("benchmarks/README.md")
    names = re.findall(r"`([\w-]+\.jsonl?)`", text)
    assert len(names) > 5
    assert all((RESULTS / name).exists() for name in names)
    (command,) = re.findall(r"`python -m matroot\.bench\.solver ([\w ]+)`", text)
    assert command.split() == list(BENCHMARKS)
