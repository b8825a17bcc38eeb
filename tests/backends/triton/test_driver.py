"""Machines on which Triton cannot launch anything, as images of containers without a C compiler."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch

import matroot
from matroot import _dispatch
from matroot.backends._base import CallContext
from matroot.backends.triton import driver, minimax

pytest.importorskip("triton")

WITHOUT_COMPILER = """
import logging
from triton.backends.nvidia import driver as nvidia
nvidia.CudaDriver.is_active = staticmethod(lambda: True)
nvidia.library_dirs = lambda: []
from matroot.backends.triton import driver
logging.basicConfig(format="%(name)s: %(message)s")
print(driver.failure())
assert driver.failure() is driver.failure()
"""
"""As on a machine with a GPU, whose driver is not looked for."""


def test_without_a_c_compiler(tmp_path):
    environment = os.environ | {"CC": "/nothing/cc", "TRITON_CACHE_DIR": str(tmp_path)}
    call = [sys.executable, "-c", WITHOUT_COMPILER]
    ended = subprocess.run(call, env=environment, capture_output=True, text=True, check=True)
    reason = ended.stdout.strip()
    assert reason.startswith("Triton does not start, which takes a C compiler and Python's headers: ")
    assert "/nothing/cc" in reason
    assert [line for line in ended.stderr.splitlines() if line.startswith("matroot: ")] == [
        f"matroot: {reason}; ordinary operations replace kernels"
    ]


@pytest.fixture
def cuda(monkeypatch):
    """As where there is an H200: sets what Triton does when it is asked for it."""
    monkeypatch.setattr(torch.version, "hip", None)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    for function in (driver.failure, minimax._unavailable_reason):
        function.cache_clear()
    active = "triton.runtime.driver._active"
    yield lambda target: monkeypatch.setattr(active, SimpleNamespace(get_current_target=target))
    for function in (driver.failure, minimax._unavailable_reason):
        function.cache_clear()


def refuse():
    raise OSError("Read-only file system\nand more")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64])
def test_ordinary_operations_replace_kernels(dtype, cuda):
    context = CallContext(torch.device("cuda", 0), dtype, torch.Size((3, 64, 64)))
    cuda(refuse)
    plan = _dispatch._plan(context, "auto", None, "auto")
    assert (plan.method, plan.gradient, plan.backend) == (matroot.Minimax(), matroot.Krylov(), "torch")
    for method in ("auto", "minimax"):
        with pytest.raises(ValueError, match=r"Python's headers: Read-only file system$"):
            _dispatch._plan(context._replace(dtype=torch.float32), method, None, "triton")


def test_a_triton_that_cannot_be_imported(cuda, monkeypatch):
    """As one for a newer C library."""
    monkeypatch.setitem(sys.modules, "triton.runtime", None)
    assert "import of triton.runtime halted" in minimax.unavailable_reason(torch.device("cuda", 0))


def test_it_is_asked_once(cuda):
    asked = []
    cuda(lambda: asked.append(None))
    for _ in range(2):
        assert minimax.unavailable_reason(torch.device("cuda", 0)) is None
        assert minimax.unavailable_reason(torch.device("cuda", 1)) is None
    assert len(asked) == 1
