"""Compiles src/matroot/backends/cpu when the package is built; where that fails the package does without."""

import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import mac_platforms, platform_tags

SOURCES = Path("src/matroot/backends/cpu")
LIBRARY = SOURCES / "_roots.so"
FAILURE = SOURCES / "_roots_failure.txt"
"""Why there is no library, in the compiler's words; shipped instead of it."""


class CompiledRoots(BuildHookInterface):
    def initialize(self, version: str, build_data: dict) -> None:
        """Compile for wheels and editable installations; tag the wheel with the platform if that worked."""
        root = Path(self.root)
        for outdated in (LIBRARY, FAILURE):
            (root / outdated).unlink(missing_ok=True)
        try:
            compile_library(root / SOURCES / "roots.c", root / LIBRARY)
        except CompilationError as problem:
            self.app.display_warning(f"matroot is built without compiled code: {problem}")
            (root / FAILURE).write_text(f"{problem}\n", encoding="utf-8")
            build_data["artifacts"].append(str(FAILURE))
            return
        build_data["artifacts"].append(str(LIBRARY))
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform_tag()}"  # nothing in the library knows of Python


class CompilationError(Exception):
    """The compiler's command and what it said."""


def platform_tag() -> str:
    """The tag of the machines that a library compiled here runs on.

    On macOS these have MACOSX_DEPLOYMENT_TARGET or later, which the compiler reads too. On Linux the tag claims no more
    than this machine: which other C libraries will do is for auditwheel to find in the compiled library.
    """
    target = os.environ.get("MACOSX_DEPLOYMENT_TARGET")
    if sys.platform == "darwin" and target:
        major, minor = map(int, f"{target}.0".split(".")[:2])
        return next(mac_platforms((major, minor), platform.machine()))
    return next(tag for tag in platform_tags() if not tag.startswith(("manylinux", "musllinux")))


def compile_library(source: Path, library: Path, *more: str) -> None:
    """Compile for OpenMP, but link without it: torch's own is there when the library is loaded."""
    compiler = shlex.split(os.environ.get("CC", "")) or [next(filter(shutil.which, ("cc", "gcc", "clang")), "cc")]
    # Elsewhere symbols may be missing without a word.
    missing = ["-Wl,-undefined,dynamic_lookup"] if sys.platform == "darwin" else []
    with tempfile.TemporaryDirectory() as folder:
        compiled = Path(folder, "roots.o")
        options = ["-std=gnu11", "-O3", "-fno-math-errno", "-fPIC", *_openmp(compiler), *more]
        _run([*compiler, *options, "-c", str(source), "-o", str(compiled)])
        _run([*compiler, "-shared", *missing, str(compiled), "-lm", "-o", str(library)])


def _openmp(compiler: list[str]) -> list[str]:
    """Options for threads, if the compiler is made for the OpenMP that torch brings: GNU's on Linux, LLVM's on macOS.

    Other code would not find its functions there, so it is compiled for one thread.
    """
    is_clang = "__clang__" in _run([*compiler, "-dM", "-E", "-x", "c", os.devnull])
    if is_clang != (sys.platform == "darwin"):
        return []
    return ["-Xclang", "-fopenmp"] if is_clang else ["-fopenmp"]  # Apple's driver refuses what its compiler can do


def _run(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    except OSError as problem:
        raise CompilationError(f"{command[0]} cannot be run: {problem}") from problem
    if done.returncode:
        raise CompilationError(f"{' '.join(command)} ended with status {done.returncode}\n{done.stderr}".rstrip())
    return done.stdout
