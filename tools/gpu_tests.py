"""All tests that need a GPU, in several processes: ``python tools/gpu_tests.py``.

Needs PyTorch, Triton and pytest; the package itself need not be installed. Most of the time goes by compiling kernels,
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

import torch

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
        well = list(pool.map(lambda part: _goes_well(part, more), parts))  # all of them, whichever fails
    return 0 if all(well) else 1


def _goes_well(part: str, more: Sequence[str]) -> bool:
    """Run a part and show how it ended, with everything if that was not well."""
    files = ["tests/cuda"]
    plain = ("-p", "no:cacheprovider", "-p", Path(__file__).stem, "-o", "filterwarnings=default")
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tools")])
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plain, *files, *more],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1", _PART: part},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    well = ended.returncode in (0, _NOTHING_SELECTED)
    how = ended.stdout.splitlines()[-1] if well else f"exit status {ended.returncode}\n{ended.stdout}"
    print(f"part {part}: {how}", flush=True)
    return well


if __name__ == "__main__":
    sys.exit(main())
