"""The build hook: a library, or the reason why there is none."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
try:
    import hatch_build
finally:
    sys.path.pop(0)


@pytest.fixture
def build(tmp_path):
    """Run the hook on sources of one file; returns its build data."""

    def run(source):
        folder = tmp_path / hatch_build.SOURCES
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "roots.c").write_text(source)
        data = {"artifacts": []}
        hatch_build.CompiledRoots(str(tmp_path), {}, None, None, "", "wheel").initialize("standard", data)
        return data

    return run


def test_a_compiler_that_fails_leaves_the_reason(build, tmp_path, monkeypatch):
    monkeypatch.setenv("CC", "/bin/false")
    data = build("int one(void) { return 1; }")
    assert data == {"artifacts": [str(hatch_build.FAILURE)]}
    assert "/bin/false" in (tmp_path / hatch_build.FAILURE).read_text()
    assert not (tmp_path / hatch_build.LIBRARY).exists()


def test_a_compiler_that_is_missing_leaves_the_reason(build, tmp_path, monkeypatch):
    monkeypatch.setenv("CC", str(tmp_path / "nowhere"))
    build("int one(void) { return 1; }")
    assert "nowhere cannot be run" in (tmp_path / hatch_build.FAILURE).read_text()


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_library_and_reason_replace_each_other(build, tmp_path, monkeypatch):
    monkeypatch.delenv("CC", raising=False)
    library, failure = tmp_path / hatch_build.LIBRARY, tmp_path / hatch_build.FAILURE
    build("#error seven words\n")
    assert "seven words" in failure.read_text()
    data = build("int one(void) { return 1; }")
    assert library.exists()
    assert not failure.exists()
    assert data["artifacts"] == [str(hatch_build.LIBRARY)]
    assert data["pure_python"] is False
    build("#error eight words\n")
    assert not library.exists()
    assert "eight words" in failure.read_text()


def test_git_ignores_both():
    """Neither is a source."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    for path in (hatch_build.LIBRARY, hatch_build.FAILURE):
        assert subprocess.run(["git", "check-ignore", "-q", str(path)], cwd=ROOT).returncode == 0
