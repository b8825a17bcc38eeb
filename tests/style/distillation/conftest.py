from types import SimpleNamespace

import pytest
import torch

from .tiny import teacher_state, write_pictures


@pytest.fixture
def files(tmp_path):
    """Paths of a teacher, of photographs and of paintings."""
    torch.save(teacher_state(), tmp_path / "teacher.pth")
    write_pictures(tmp_path / "photos", 3, seed=1)
    write_pictures(tmp_path / "paintings", 2, seed=2)
    return SimpleNamespace(
        teacher=tmp_path / "teacher.pth",
        photos=[str(tmp_path / "photos")],
        paintings=[str(tmp_path / "paintings")],
        out=tmp_path / "run",
    )
