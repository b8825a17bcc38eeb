"""Launching the kernels that whiten features: (N, C, *) in half precision, channels last in memory."""

from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .. import launch as triton_launch
from ..minimax import missing

LARGEST = 128
"""Larger groups of channels take other ways."""

_MOST_POSITIONS = 1 << 30
_RESIDENT = 2
"""Programs on a multiprocessor; each leaves a matrix to be added up."""


def available(device: torch.device) -> bool:
    """Whether there is a GPU, and Triton for it."""
    return device.type == "cuda" and missing(device) is None


def fits(x: Tensor, groups: int) -> bool:
    """Whether ``x`` are features that the kernels take."""
    return (
        x.dtype in (torch.float16, torch.bfloat16)
        and x.shape[1] <= LARGEST * groups
        and 0 < x.numel() < _MOST_POSITIONS * x.shape[1]
        and channels_last(x)
        and not x.is_neg()  # kernels read memory as it is
        and available(x.device)
    )


def channels_last(x: Tensor) -> bool:
    return x.movedim(1, -1).is_contiguous()


def statistics(x: Tensor, groups: int, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """Mean (C,), covariance (G, d, d) and covariance + eps I over the positions of ``x``, in float32."""
    from .kernels import statistics_kernel

    launch, means, scatters = _moments(x, x, None, groups)
    mean = torch.empty(x.shape[1], dtype=torch.float32, device=x.device)
    covariance = torch.empty_like(scatters[:, 0])
    shifted = torch.empty_like(covariance)
    arguments = (means, scatters, mean, covariance, shifted, launch.positions, launch.chunk, launch.parts, eps)
    triton_launch.launch(statistics_kernel, launch.by_row, arguments, launch.adding)
    return mean, covariance, shifted


def transform(x: Tensor, mean: Tensor, W: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """weight * W (x - mean) + bias, for ``W`` (G, d, d)."""
    return _affine(x, x, mean, W, weight, mean if bias is None else bias, W, 0.0, BACK=False, GIVEN=False)


def gradients(g: Tensor, x: Tensor, mean: Tensor, W: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """From the gradient by what ``transform`` returns, those by bias (C,), weight (C,) and W, in float32.

    Without a weight the second means nothing.
    """
    from .kernels import gradients_kernel

    launch, sums, products = _moments(g, x, mean, len(W))
    total, by_weight, by_W = torch.empty_like(mean), torch.empty_like(mean), torch.empty_like(W)
    arguments = (sums, products, W, mean if weight is None else weight, total, by_W, by_weight, launch.parts)
    triton_launch.launch(gradients_kernel, launch.by_row, arguments, launch.adding | {"AFFINE": weight is not None})
    return total, by_weight, by_W


def pull_back(
    g: Tensor,
    x: Tensor,
    mean: Tensor,
    W: Tensor,
    weight: Tensor | None,
    H: Tensor,
    total: Tensor | None,
    by_mean: Tensor | None,
) -> Tensor:
    """The gradient by ``x`` of what ``transform`` returns, its statistics included.

    g, H: the gradients by that, and by the covariance.
    total: (C,), the gradient by the bias, when these are the statistics of ``x`` alone;
    by_mean: (C,), the gradient by the mean otherwise, divided by the number of positions, as H must be then.
    """
    if by_mean is not None:
        return _affine(g, x, mean, W, weight, by_mean, H, 1.0, BACK=True, GIVEN=True)
    return _affine(g, x, mean, W, weight, total, H, x.shape[1] / x.numel(), BACK=True, GIVEN=False)


class _Launch(NamedTuple):
    positions: int
    chunk: int
    parts: int
    by_chunk: tuple[int, int, int]
    by_row: tuple[int, int, int]
    passing: dict[str, Any]
    """Options of kernels that pass over the features."""
    adding: dict[str, Any]
    """Options of kernels that add up what these leave."""


@lru_cache(256)
def _plan(positions: int, channels: int, groups: int, device: torch.device) -> _Launch:
    """Who does what: as many chunks as there is room for, of whole blocks."""
    size = channels // groups
    padded = max(16, 1 << (size - 1).bit_length())
    block = 8192 // max(padded, 32)
    blocks = -(-positions // block)
    room = max(1, _RESIDENT * triton_launch.multiprocessors(device) // groups)
    chunk = block * -(-blocks // room)
    parts = -(-positions // chunk)
    shape = {"SIZE": size, "D": padded}
    wide = device.type != "cuda"
    # Two stages of the largest groups would not fit into the 99 KB of smaller GPUs.
    stages = 2 if padded <= 64 else 1
    passing = {"CHANNELS": channels, **shape, "BLOCK": block, "WIDE": wide, "num_warps": 8, "num_stages": stages}
    adding = {**shape, "PARTS": 8192 // padded, "num_warps": 8}
    return _Launch(positions, chunk, parts, (parts, groups, 1), (size, groups, 1), passing, adding)


def _moments(P: Tensor, Q: Tensor, mean: Tensor | None, groups: int) -> tuple[_Launch, Tensor, Tensor]:
    """What chunks leave: (G, chunks, d) and (G, chunks, d, d); about their own means where none is given."""
    from .kernels import moments_kernel

    launch = _plan(Q.numel() // Q.shape[1], Q.shape[1], groups, Q.device)
    size = launch.passing["SIZE"]
    first = torch.empty(groups, launch.parts, size, dtype=torch.float32, device=Q.device)
    second = torch.empty(groups, launch.parts, size, size, dtype=torch.float32, device=Q.device)
    arguments = (P, Q, first if mean is None else mean, first, second, launch.positions, launch.chunk)
    triton_launch.launch(moments_kernel, launch.by_chunk, arguments, launch.passing | {"OWN": mean is None})
    return launch, first, second


def _affine(P, Q, mean, W, weight, shift, H, share: float, **kind: bool) -> Tensor:
    from .kernels import affine_kernel

    launch = _plan(Q.numel() // Q.shape[1], Q.shape[1], len(W), Q.device)
    out = torch.empty_like(Q)
    tensors = (P, Q, W, mean if weight is None else weight, shift, mean, H, out)
    options = launch.passing | kind | {"AFFINE": weight is not None}
    triton_launch.launch(affine_kernel, launch.by_chunk, (*tensors, launch.positions, launch.chunk, share), options)
    return out
