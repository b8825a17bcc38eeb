"""LPIPS: how different two images look, by the features of a network (Zhang et al., CVPR 2018), version 0.1, AlexNet.

The weights are those of the published metric, from a file that is given: the convolutions of an ImageNet AlexNet, named
as torchvision does (``features.0.weight``), and five heads that people's judgements were fitted with
(``lpips.lin0.weight``).
"""

from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from .._terminal import CommandError

CONVOLUTIONS = {0: (64, 3, 11, 11), 3: (192, 64, 5, 5), 6: (384, 192, 3, 3), 8: (256, 384, 3, 3), 10: (256, 256, 3, 3)}
"""Place in torchvision's ``features`` and shape of the weights."""
STRIDES = {0: 4}
POOLED_BEFORE = (3, 6)
"""Convolutions with a max-pooling of 3x3, stride 2, before them."""
SHIFT, SCALE = (-0.030, -0.088, -0.188), (0.458, 0.448, 0.450)
"""Mean and deviation of the channels that version 0.1 normalises images in [-1, 1] with."""
SMALLEST = 31
"""Pixels of a side that leave one position after all pooling."""


class LpipsError(CommandError):
    """What is wrong with a file of weights."""


class LPIPS(nn.Module):
    """Distances (B,) of images (B, 3, H, W) in [0, 1]; :func:`load_lpips` fills it. Parameters are not trained."""

    shift: Tensor
    scale: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.convolutions = nn.ModuleList(
            nn.Conv2d(shape[1], shape[0], shape[2:], STRIDES.get(place, 1), padding=2 if shape[2] > 3 else 1)
            for place, shape in CONVOLUTIONS.items()
        )
        self.heads = nn.ParameterList(torch.zeros(1, shape[0], 1, 1) for shape in CONVOLUTIONS.values())
        self.register_buffer("shift", torch.tensor(SHIFT)[:, None, None])
        self.register_buffer("scale", torch.tensor(SCALE)[:, None, None])
        self.requires_grad_(False)

    def features(self, images: Tensor) -> list[Tensor]:
        """After each convolution and ReLU, (B, C, h, w), every position divided by its norm over the channels."""
        x, found = (2 * images - 1 - self.shift) / self.scale, []
        for place, convolution in zip(CONVOLUTIONS, self.convolutions, strict=True):
            if place in POOLED_BEFORE:
                x = functional.max_pool2d(x, 3, 2)
            x = functional.relu(convolution(x))
            found.append(x / (torch.linalg.vector_norm(x, dim=1, keepdim=True) + 1e-10))
        return found

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """Distances of images.

        Args:
            x: (B, 3, H, W) in [0, 1].
            y: the same shape.

        Returns:
            The distances, (B,), float32.

        Raises:
            ValueError: for images that are not RGB, are too small or differ in shape.
        """
        if x.shape != y.shape or x.ndim != 4 or x.shape[1] != 3 or min(x.shape[2:]) < SMALLEST:
            raise ValueError(
                f"expected two batches (B, 3, H, W) of the same shape, H and W at least {SMALLEST}; "
                f"got {tuple(x.shape)} and {tuple(y.shape)}"
            )
        pairs = zip(self.features(x.float()), self.features(y.float()), self.heads, strict=True)
        distances = [((a - b).square() * head).sum(1).mean((1, 2)) for a, b, head in pairs]
        return torch.stack(distances).sum(0)


def lpips(x: Tensor, y: Tensor, weights: LPIPS | Path | str) -> Tensor:
    """LPIPS distance of images in [0, 1], one number a pair, as ``lpips.LPIPS(net="alex")`` of the authors.

    Args:
        x: (B, 3, H, W), RGB, H and W at least 31.
        y: the same shape.
        weights: what :func:`load_lpips` returns, or its file, which is then read at every call.

    Returns:
        The distances, (B,), float32, on the device of the images; differentiable.

    Raises:
        LpipsError: for a file that is none.
        ValueError: for images that do not fit.
    """
    metric = weights if isinstance(weights, LPIPS) else load_lpips(weights).to(x.device)
    return metric(x, y)


def load_lpips(path: Path | str) -> LPIPS:
    """The metric with the weights of a file, in evaluation mode, on the CPU.

    Args:
        path: a file of torch, with AlexNet and the heads of LPIPS v0.1.

    Returns:
        The metric, a module.

    Raises:
        LpipsError: naming what was expected, if there is no such file, it is none of torch's, or it has other tensors.
    """
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError as error:
        raise LpipsError(f"there is no file {path}; expected AlexNet and the heads of LPIPS v0.1") from error
    except Exception as error:  # torch's errors for foreign files are of every kind
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise LpipsError(f"{path} cannot be read as weights of torch: {reason}") from error
    with torch.device("cpu"):
        metric = LPIPS()
    state = {}
    for k, (place, shape) in enumerate(CONVOLUTIONS.items()):
        state[f"convolutions.{k}.weight"] = _tensor(path, found, f"features.{place}.weight", shape)
        state[f"convolutions.{k}.bias"] = _tensor(path, found, f"features.{place}.bias", shape[:1])
        state[f"heads.{k}"] = _tensor(path, found, f"lpips.lin{k}.weight", (1, shape[0], 1, 1))
    metric.load_state_dict(state, strict=False)
    return metric.eval()


def _tensor(path: Path | str, found: object, name: str, shape: tuple[int, ...]) -> Tensor:
    tensor = found.get(name) if isinstance(found, dict) else None
    if not isinstance(tensor, Tensor) or tensor.shape != shape:
        has = f"a tensor {tuple(tensor.shape)}" if isinstance(tensor, Tensor) else "none"
        raise LpipsError(f"{path}: expected {name} of shape {shape}, found {has}")
    return tensor.float()
