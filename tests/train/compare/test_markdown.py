"""The page of committed comparisons."""

from pathlib import Path

import pytest

from matroot.train.compare.markdown import section
from matroot.train.compare.results import read

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs/results.md"
COMMITTED = sorted((ROOT / "benchmarks/results").glob("compare-*.json"))


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.stem)
def test_page_has_the_tables_of_the_files(path):
    """``matroot compare --markdown benchmarks/results/compare-*.json`` prints what stands there."""
    assert section(read(path)) in PAGE.read_text(encoding="utf-8")


def test_page_has_no_other_tables():
    titles = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("### ")]
    assert titles == [section(read(path)).splitlines()[0] for path in COMMITTED]
