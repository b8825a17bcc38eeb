"""The table of the page on style transfer is that of the committed result."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def key(words: str) -> str:
    """What the result calls a row of the table."""
    if "--scales" in words:
        return f"default, scales {words.strip('`').split()[-1]}"
    grain = 0 if "--grain 0" in words else 4
    if "whitening" in words:
        return f"Whitening, grain {grain}"
    limit = re.search(r"up to (\d)", words)
    return f"OptimalTransport{float(limit[1]) if limit else 'inf'}, grain {grain}"


def test_measures_of_transforms():
    report = json.loads((ROOT / "benchmarks/results/style-measures.json").read_text())
    page = (ROOT / "docs/style.md").read_text()
    table = page.split("| | grain, levels |")[1].split("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    assert len(rows) == 9
    measured = {found["way"]: found for found in report["results"]}
    for words, *cells in rows:
        found = measured[key(words)]
        assert cells == [
            *(f"{found[name]:.1f}" for name in ("grain", "halo")),
            f"{found['palette']:.3f}",
            f"{found['content']:.3f}",
        ]
    assert f"over {len(report['contents'])} photographs" in page


def test_a_large_photo_needs_less_than_two_minutes_and_two_gigabytes():
    (found,) = json.loads((ROOT / "benchmarks/results/style-large-cpu.json").read_text())["results"]
    assert (found["width"], found["height"], found["threads"]) == (4000, 3000, 2)
    assert found["seconds"] < 120
    assert found["peak_bytes"] < 2e9
    page = (ROOT / "docs/style.md").read_text()
    seconds, gigabytes = f"{found['processor_seconds']:.0f}", f"{found['peak_bytes'] / 1e9:.1f}"
    assert f"takes {found['seconds']:.0f} s on two cores" in page.replace("\n", " ")
    assert f"{seconds} s of processor time on two threads and {gigabytes} GB" in page
