"""The lists of files in CONTRIBUTING.md: every file is there, is reached from above, and calls none above it."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src/matroot"
LISTS = [
    block.split()
    for block in re.findall(r"^```\n(.*?)^```", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE | re.DOTALL)
    if "/" in block and "make" not in block
]


def imports(file: str) -> set[str]:
    """Files that a file imports, anywhere in it; for those that ``import_module`` by name, all of their folder."""
    path = SOURCE / file
    text = path.read_text()
    if path.suffix != ".py":
        return {str((path.parent / name).relative_to(SOURCE)) for name in re.findall(r'#include "(.*?)"', text)}
    found = {f"backends/cpu/{name}.c" for name in re.findall(r'"_(\w+)\.so"', text)}
    if "import_module" in text:
        found |= {str(other.relative_to(SOURCE)) for other in path.parent.glob("*.py")} - {file}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.level:
            folder = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            for target in (folder, *(folder / alias.name for alias in node.names)):
                for candidate in (target.with_suffix(".py"), target / "__init__.py"):
                    if candidate.exists():
                        found.add(str(candidate.relative_to(SOURCE)))
    return found


def test_there_are_lists():
    assert len(LISTS) == 6


@pytest.mark.parametrize("files", LISTS, ids=lambda files: f"{files[0]}-{files[-1]}")
def test_calls_go_down(files):
    for place, file in enumerate(files):
        assert (SOURCE / file).exists(), file
        above = set(files[:place])
        assert place == 0 or any(file in imports(other) for other in above), f"nothing above imports {file}"
        upwards = imports(file) & above
        assert not upwards, f"{file} imports {upwards}, which is above it"
