"""The script that measures a large photo, on a small one."""

import json
import runpy
from pathlib import Path

import torch

from matroot.style.images import write

SCRIPT = runpy.run_path(str(Path(__file__).parent.parent / "tools/style_large.py"))


def test_the_command(tmp_path, capsys):
    for name in ("photo.png", "painting.png"):
        write(tmp_path / name, torch.rand(3, 24, 24))
    arguments = [
        "--photo",
        str(tmp_path / "photo.png"),
        "--style",
        str(tmp_path / "painting.png"),
        "--size",
        "64",
        "48",
    ]
    assert SCRIPT["main"]([*arguments, "--out", str(tmp_path / "result.json")]) == 0
    (found,) = json.loads((tmp_path / "result.json").read_text())["results"]
    assert (found["width"], found["height"], found["threads"]) == (64, 48, 2)
    assert found["processor_seconds"] > 0
    # Python and torch alone are more than this, and less than that.
    assert 50e6 < found["peak_bytes"] < 2e9
    assert SCRIPT["main"]([*arguments[:2], "--style", str(tmp_path / "none.png"), "--size", "8", "8"]) == 2
