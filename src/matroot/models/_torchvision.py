"""torchvision, also where its compiled operators cannot be loaded.

A torchvision built for CUDA beside a torch without it fails on import: it describes operators that the
library it cannot load should have defined. Networks, transforms and timm use none of these operators.
"""

import sys

import torch

DESCRIBED = ("nms", "qnms")
"""Operators that torchvision describes, whether it has them or not."""


def ensure_importable() -> None:
    """Make ``import torchvision`` work; ImportError where it is not installed, or fails for another reason."""
    try:
        import torchvision
    except RuntimeError as error:
        if "torchvision::nms" not in str(error):
            raise ImportError(f"torchvision cannot be imported: {error}") from error
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        for name in DESCRIBED:
            torch.library.define(f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        import torchvision  # noqa: F401


ensure_importable()
