"""Compiles src/matroot/backends/cpu when the package is built; where that fails the package does without."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import platform_tags

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
        build_data["tag"] = f"py3-none-{next(platform_tags())}"  # nothing in the library knows of Python


class CompilationError(Exception):
    """The compiler's command and what it said."""


def compile_library(source: Path, library: Path, *more: str) -> None:
    """Compile with OpenMP, but link without it: torch's own is there when the library is loaded."""
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or "clang"
    with tempfile.TemporaryDirectory() as folder:
        compiled = Path(folder, "roots.o")
        options = ["-std=gnu11", "-O3", "-fno-math-errno", "-fopenmp", "-fPIC", *more]
        _run([compiler, *options, "-c", str(source), "-o", str(compiled)])
        _run([compiler, "-shared", str(compiled), "-lm", "-o", str(library)])


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    except OSError as problem:
        raise CompilationError(f"{command[0]} cannot be run: {problem}") from problem
    if done.returncode:
        raise CompilationError(f"{' '.join(command)} ended with status {done.returncode}\n{done.stderr}".rstrip())
