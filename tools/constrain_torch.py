"""Change constraints.txt for another torch: ``python tools/constrain_torch.py oldest``, in a copy that may be spoilt.

pinned: as it is. oldest: the first torch that pyproject.toml allows, with what belongs to it. newest: whatever there
is, of everything but the formatter, whose versions disagree.
"""

import argparse
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BELONG_TO_TORCH = ("torch", "torchvision", "triton")
NUMPY_OF_OLDEST = "numpy<2.4"
"""From 2.4 on it no longer does what the interpreter of Triton 3.6 asks of it."""


def constrain(lines: list[str], which: str, requirement: str) -> list[str]:
    """The lines of constraints.txt for ``which`` torch, given what pyproject.toml requires."""
    if which == "newest":
        return [line for line in lines if _name(line) == "ruff"]
    if which == "oldest":
        oldest = requirement.removeprefix("torch>=")
        others = [line for line in lines if _name(line) not in (*BELONG_TO_TORCH, "numpy")]
        return [*others, f"torch=={oldest}.*", NUMPY_OF_OLDEST]
    return lines


def _name(line: str) -> str:
    return re.split(r"==|;", line)[0].strip()


def main() -> None:
    parser = argparse.ArgumentParser(description="Change constraints.txt for another torch.")
    parser.add_argument("which", choices=("pinned", "oldest", "newest"))
    which = parser.parse_args().which
    (requirement,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    constraints = ROOT / "constraints.txt"
    lines = constrain(constraints.read_text().splitlines(), which, requirement)
    constraints.write_text("".join(f"{line}\n" for line in lines))
    print("\n".join(line for line in lines if _name(line) in BELONG_TO_TORCH) or "any torch")


if __name__ == "__main__":
    main()
