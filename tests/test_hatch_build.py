"""The build hook: a library, or the reason why there is none."""

import platform
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


needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


@needs_compiler
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


# --- every platform and compiler ----------------------------------------------------------------


@pytest.fixture
def commands(tmp_path, monkeypatch):
    """Compile by a compiler that only says what it is: a function of what it defines, which returns its commands."""

    def run(defined):
        log = tmp_path / "log"
        compiler = tmp_path / "compiler"
        compiler.write_text(f'#!/bin/sh\necho "$@" >> {log}\ncase "$*" in *-dM*) echo "#define {defined} 1";; esac\n')
        compiler.chmod(0o755)
        monkeypatch.setenv("CC", f"{compiler} --first")
        hatch_build.compile_library(tmp_path / "roots.c", tmp_path / "roots.so")
        return [line.split() for line in log.read_text().splitlines()]

    return run


@pytest.mark.parametrize(
    ("system", "defined", "threads"),
    [
        ("linux", "__GNUC__", ["-fopenmp"]),
        ("linux", "__clang__", []),
        ("darwin", "__clang__", ["-Xclang", "-fopenmp"]),
        ("darwin", "__GNUC__", []),
    ],
)
def test_threads_are_those_of_torch(system, defined, threads, commands, monkeypatch):
    """GNU's on Linux, LLVM's on macOS: code for another OpenMP would not load. No OpenMP is linked, none installed."""
    monkeypatch.setattr(sys, "platform", system)
    _, compilation, link = commands(defined)
    assert [option for option in compilation if option in ("-Xclang", "-fopenmp")] == threads
    assert not any("omp" in option for option in link)
    assert ("-Wl,-undefined,dynamic_lookup" in link) == (system == "darwin")


def test_the_compiler_may_have_options(commands):
    assert all(command[0] == "--first" for command in commands("__GNUC__"))


@needs_compiler
def test_without_openmp_it_runs_on_one_thread(tmp_path, monkeypatch):
    """In a process of its own, for a library is loaded once."""
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(hatch_build, "_openmp", lambda compiler: [])
    library = tmp_path / "roots.so"
    hatch_build.compile_library(ROOT / hatch_build.SOURCES / "roots.c", library, "-O1", "-DDISPATCH(f)=f##_plain")
    script = f"""
import runpy
from pathlib import Path
import torch
from matroot.backends.cpu import compiled
compiled.LIBRARY = Path({str(library)!r})
torch.set_num_threads(2)
runpy.run_path({str(ROOT / "tools/check_installation.py")!r})["check_results"]("compiled")
"""
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize(
    ("target", "machine", "tag"),
    [
        ("11.0", "arm64", "macosx_11_0_arm64"),
        ("14", "arm64", "macosx_14_0_arm64"),
        ("10.13", "x86_64", "macosx_10_13_x86_64"),
    ],
)
def test_tag_of_the_target_on_macos(target, machine, tag, monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setenv("MACOSX_DEPLOYMENT_TARGET", target)
    assert hatch_build.platform_tag() == tag


@pytest.mark.parametrize("order", [1, -1])
def test_tag_claims_no_other_linux(order, monkeypatch):
    """Versions of packaging differ in which comes first."""
    monkeypatch.setattr(sys, "platform", "linux")
    tags = ["linux_x86_64", "manylinux_2_36_x86_64", "musllinux_1_2_x86_64"]
    monkeypatch.setattr(hatch_build, "platform_tags", lambda: iter(tags[::order]))
    assert hatch_build.platform_tag() == "linux_x86_64"


def test_git_ignores_both():
    """Neither is a source."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    for path in (hatch_build.LIBRARY, hatch_build.FAILURE):
        assert subprocess.run(["git", "check-ignore", "-q", str(path)], cwd=ROOT).returncode == 0
