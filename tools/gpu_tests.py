"""All tests that need a GPU, in several processes: ``python tools/gpu_tests.py``.

Needs PyTorch, Triton and pytest; the package itself need not be installed. Most of the time is spent compiling kernels,
which processes share on disk. Other options are pytest's: ``python tools/gpu_tests.py --parts 4 -k paper``.
"""

import argparse
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parent.parent
_PART = "MATROOT_TESTS_PART"
_NOTHING_SELECTED = 5


def pytest_collection_modifyitems(items: list) -> None:
    """As a plugin of the processes: keep the tests of one part, mixed so that all take about as long."""
    part, parts = map(int, os.environ[_PART].split("/"))
    random.Random(0).shuffle(items)
    items[:] = items[part::parts]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tests; returns the exit status."""
    import torch  # not where this file is a plugin of pytest

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", type=int, default=min(10, os.cpu_count() or 1), help="processes (%(default)s)")
    chosen, more = parser.parse_known_args(arguments)
    if chosen.parts < 1:
        parser.error(f"--parts must be at least 1, got {chosen.parts}")
    if not torch.cuda.is_available():
        print("no CUDA device: nothing would be tested", file=sys.stderr)
        return 1
    parts = [f"{part}/{chosen.parts}" for part in range(chosen.parts)]
    with ThreadPoolExecutor(chosen.parts) as pool:
        passed = list(pool.map(lambda part: _run(part, ["tests/cuda", *more]), parts))  # all of them, whichever fails
    return 0 if all(passed) else 1


def _run(part: str, arguments: Sequence[str]) -> bool:
    """Run a part and print its last line, or all of its output if it failed; returns whether it passed."""
    plugins = ("-p", "no:cacheprovider", "-p", Path(__file__).stem, "-o", "filterwarnings=default")
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tools")])
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugins, *arguments],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1", _PART: part},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    passed = ended.returncode in (0, _NOTHING_SELECTED)
    result = ended.stdout.splitlines()[-1] if passed else f"exit status {ended.returncode}\n{ended.stdout}"
    print(f"part {part}: {result}", flush=True)
    return passed


if __name__ == "__main__":
    sys.exit(main())
