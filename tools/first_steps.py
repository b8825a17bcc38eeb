"""A newcomer's path, timed: the README's commands from a fresh clone to a trained network and a stylised picture.

    python tools/first_steps.py --out benchmarks/results/first-steps-cpu.json

clones this repository's last commit into a temporary folder and runs there what the README says, one after another. A
command that the README does not have is an error. Versions are those of the constraints.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from sklearn.datasets import load_sample_image

from matroot._environment import environment
from matroot._files import write_whole
from matroot._terminal import CommandError, exit_status
from matroot.style.images import write

ROOT = Path(__file__).resolve().parent.parent
STEPS = (
    "make demo",
    'pip install ".[training]"',
    "matroot train dbn",
    'pip install ".[style]"',
    "matroot stylize photo.jpg --style painting.jpg -o result.png",
)
"""As the README writes them for a clone."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all steps and write their seconds; returns the exit status, 1 where a step fails."""
    return exit_status(lambda: _run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, metavar="FILE", help="result file; none unless given")
    chosen = parser.parse_args(arguments)
    require_in_readme(STEPS, (ROOT / "README.md").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        seconds = _walk(Path(folder) / "matroot")
    total = sum(seconds.values())
    print(f"{total:7.1f} s  in all")
    if chosen.out is not None:
        content = {"command": "python tools/first_steps.py", "environment": environment(), "seconds": seconds}
        write_whole(chosen.out, (json.dumps(content, indent=2) + "\n").encode())
    return 0


def require_in_readme(steps: Sequence[str], readme: str) -> None:
    """CommandError for a step that is not a command of the README."""
    for step in steps:
        if step not in readme:
            raise CommandError(f"the README has no command {step}")


def _walk(clone: Path) -> dict[str, float]:
    """Seconds of every step, cloning first."""
    seconds = {"git clone": _timed(["git", "clone", "--quiet", str(ROOT), str(clone)], clone.parent, {})}
    seconds["make demo"] = _timed(["make", "demo"], clone, {})
    # A second environment: what the make targets install is more than a newcomer asks for.
    own = clone / "own"
    subprocess.run([sys.executable, "-m", "venv", str(own)], check=True)
    place = {"PATH": f"{own / 'bin'}{os.pathsep}{os.environ['PATH']}", "PIP_CONSTRAINT": str(clone / "constraints.txt")}
    for name, file in (("china.jpg", "photo.jpg"), ("flower.jpg", "painting.jpg")):
        write(clone / file, torch.from_numpy(load_sample_image(name).copy()).movedim(-1, 0) / 255)
    for step in STEPS[1:]:
        seconds[step] = _timed(["sh", "-c", step], clone, place)
    shutil.rmtree(own)
    return seconds


def _timed(command: Sequence[str], folder: Path, changes: dict[str, str]) -> float:
    start = time.perf_counter()
    done = subprocess.run(
        command, cwd=folder, env=os.environ | changes, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    spent = time.perf_counter() - start
    print(f"{spent:7.1f} s  {command[-1] if command[0] == 'sh' else ' '.join(command[:2])}", flush=True)
    if done.returncode:
        raise CommandError(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}")
    return spent


if __name__ == "__main__":
    sys.exit(main())
