"""Which tests this process can run."""

import os

import torch

collect_ignore = []
_ignored = []
if not torch.cuda.is_available():
    collect_ignore.append("cuda")
    _ignored.append("tests/cuda needs a CUDA device")
if os.environ.get("TRITON_INTERPRET") != "1":
    collect_ignore.append("interpreted")
    _ignored.append("tests/interpreted needs TRITON_INTERPRET=1, see make test")


def pytest_report_header() -> list[str]:
    return [f"not collected: {reason}" for reason in _ignored]
