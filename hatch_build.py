"""Compiles src/matroot/backends/cpu when the package is built; without a compiler the package does without."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import platform_tags

SOURCES = Path("src/matroot/backends/cpu")


class CompiledRoots(BuildHookInterface):
    def initialize(self, version: str, build_data: dict) -> None:
        """Compile for wheels and editable installations; tag the wheel with the platform if that worked."""
        library = SOURCES / "_roots.so"
        try:
            compile_library(Path(self.root) / SOURCES / "roots.c", Path(self.root) / library)
        except (OSError, subprocess.CalledProcessError) as problem:
            self.app.display_warning(f"matroot is built without compiled code: {problem}")
            return
        build_data["artifacts"].append(str(library))
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{next(platform_tags())}"  # nothing in the library knows of Python


def compile_library(source: Path, library: Path, *more: str) -> None:
    """Compile with OpenMP, but link without it: torch's own is there when the library is loaded."""
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or "clang"
    with tempfile.TemporaryDirectory() as folder:
        compiled = Path(folder, "roots.o")
        options = ["-std=gnu11", "-O3", "-fno-math-errno", "-fopenmp", "-fPIC", *more]
        subprocess.run([compiler, *options, "-c", str(source), "-o", str(compiled)], check=True)
        subprocess.run([compiler, "-shared", str(compiled), "-lm", "-o", str(library)], check=True)
