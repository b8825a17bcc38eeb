"""The documentation is executed."""

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
    """Read as a file too, where the name of a heading is what hosts of repositories make of it."""
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", prose(page)):
        file = page.parent / target if target else page
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), f"{target}#{anchor}"


def prose(page: Path) -> str:
    """A page without its blocks."""
    return re.sub(r"(?ms)^```.*?^```$", "", page.read_text())


def anchors(page: Path) -> set[str]:
    """Names of headings: small letters, hyphens for spaces, and of other characters the underscore only."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_names_of_headings(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# From `a.b_c`, again\n```\n# no heading\n```\n## The paper's\n")
    assert anchors(page) == {"from-ab_c-again", "the-papers"}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_examples_are_as_wide_as_a_page(page):
    """The site shows so many letters of a line without scrolling, on a wide screen."""
    if page.name.startswith("style"):
        pytest.skip("wider")
    for kind, block in re.findall(r"(?ms)^```(.*?)$(.*?)^```$", page.read_text()):
        for line in block.splitlines():
            assert kind.startswith("{") or len(line) <= 92, line
