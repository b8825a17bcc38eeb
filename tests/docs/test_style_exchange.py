"""The tables of the page on style exchange are those of the committed results."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks/results"


def rows_of_table(first_line: str) -> dict[str, list[str]]:
    """Cells of each row of the table whose first line begins so, by the first cell."""
    lines = iter((ROOT / "docs/style-exchange.md").read_text().split(first_line)[1].splitlines()[2:])
    rows = {}
    while (line := next(lines)).startswith("|"):
        name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        rows[name] = cells
    return rows


def test_times_of_transforms():
    """The newest of each preset."""
    files = [json.loads(path.read_text()) for path in RESULTS.glob("style-transforms-*.json")]
    times = {}
    for found in sorted(files, key=lambda found: found["environment"]["date"]):
        timing = found["timing"]
        times |= {
            preset: [f"{timing[kind][preset]['median']:.3g}" for kind in ("transforms", "roots")]
            for preset in timing["transforms"]
        }
    table = rows_of_table("| preset | LPIPS |")
    assert {preset: cells[2:] for preset, cells in table.items()} == times
    page = " ".join((ROOT / "docs/style-exchange.md").read_text().split())
    for found in files:
        machine = found["environment"]
        torch, day = ".".join(machine["torch"].split(".")[:2]), machine["date"].partition("T")[0]
        assert f"our times on one {machine['device']} with torch {torch}, on {day}:" in page


@pytest.mark.parametrize(("row", "name"), [("Monet", "monet"), ("ukiyo-e", "ukiyoe")])
def test_losses_and_scores_of_the_runs(row, name):
    lines = (RESULTS / f"style-exchange-{name}-nvidia-h200.jsonl").read_text().splitlines()
    first, last = (json.loads(line) for line in (lines[0], lines[-1]))
    scores = json.loads((RESULTS / "style-scores-nvidia-h200.json").read_text())["scores"]
    (score,) = (score for score in scores if score["run"] == f"runs/style-{name}")
    cells = rows_of_table("| run |")[row]
    assert cells == [
        *(f"{first[loss]:.2f}, {last[loss]:.2f}" for loss in ("reconstruction", "cycle", "style")),
        f"{score['lpips']:.3f} ± {score['std']:.3f}",
    ]
    assert (last["step"], score["photos"]) == (3800, 40)
