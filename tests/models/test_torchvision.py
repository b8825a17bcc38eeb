"""torchvision beside a torch for which its operators are not compiled."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"


def import_beside(torchvision: str, folder: Path) -> subprocess.CompletedProcess:
    """Import ``_torchvision`` where the installed torchvision is this text."""
    (folder / "torchvision").mkdir()
    (folder / "torchvision/__init__.py").write_text(torchvision)
    environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{SOURCE}"}
    # The file itself: the package imports more of torchvision than the text has.
    program = "import runpy, matroot; runpy.run_path(matroot.__path__[0] + '/models/_torchvision.py')"
    command = [sys.executable, "-c", f"{program}; import torchvision; print(torchvision.answer)"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)


DESCRIBES_OPERATORS = """
import torch
for name in ("nms", "qnms"):
    torch.library.register_fake(f"torchvision::{name}")(lambda dets, scores, iou_threshold: dets)
answer = "imported"
"""


def test_operators_that_cannot_be_loaded_are_described_all_the_same(tmp_path):
    done = import_beside(DESCRIBES_OPERATORS, tmp_path)
    assert done.stdout == "imported\n", done.stderr


def test_a_working_torchvision_is_imported_as_it_is(tmp_path):
    done = import_beside("answer = 'imported'", tmp_path)
    assert done.stdout == "imported\n", done.stderr


@pytest.mark.parametrize("failure", ["RuntimeError('operator other::f does not exist')", "OSError('libcuda')"])
def test_another_failure_is_not_hidden(failure, tmp_path):
    done = import_beside(f"raise {failure}", tmp_path)
    assert done.returncode == 1
    assert failure.split("'")[1] in done.stderr
