"""The documentation is executed."""

import json
import re
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", [p for p in PAGES if "```python" in p.read_text()], ids=name_of)
def test_python_blocks_run(page, capsys):
    torch.manual_seed(0)
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    exec("\n".join(blocks), {})


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_figures_are_those_of_the_committed_results():
    rows = re.findall(r"^\| (error, )?(\d+) x (\d+) x \d+ \|(.+)\|$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert len(rows) == 5
    measured = []
    for device in ("cpu", "cuda"):
        cases = json.loads((ROOT / f"benchmarks/results/bench-{device}-float32.json").read_text())["cases"]
        for name in ("auto", "eigh", "paper"):
            own = [case for case in cases if (case["suite"], case["contestant"]) == ("speed", name)]
            measured.append({(case["parameters"]["batch"], case["parameters"]["n"]): case for case in own})
    for error, batch, n, cells in rows:
        for cell, cases in zip(cells.split("|"), measured, strict=True):
            case = cases[int(batch), int(n)]
            value = case["errors"]["root"] if error else case["milliseconds"]["median"]
            assert float(cell) == float(f"{value:.2g}")
