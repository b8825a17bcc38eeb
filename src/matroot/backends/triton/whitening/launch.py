"""Launching the kernels that whiten features: (N, C, *) in half precision, channels last in memory."""

from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..launch import launch, multiprocessors
from ..minimax import unavailable_reason

LARGEST = 128
"""Kernels are for groups of up to this many channels."""

_MOST_POSITIONS = 1 << 30
_MOST_GROUPS = (1 << 16) - 1
"""Programs along the second dimension of a grid."""
_RESIDENT = 2
"""Programs on a multiprocessor; each writes a matrix to be added up."""


def available(device: torch.device) -> bool:
    """Whether there is a GPU, and Triton for it."""
    return device.type == "cuda" and unavailable_reason(device) is None


def fits(x: Tensor, groups: int) -> bool:
    """Whether the kernels take features like ``x``."""
    return (
        x.dtype in (torch.float16, torch.bfloat16)
        and x.shape[1] <= LARGEST * groups
        and groups <= _MOST_GROUPS
        and 0 < x.numel() < _MOST_POSITIONS * x.shape[1]
        and channels_last(x)
        and available(x.device)
    )


def channels_last(x: Tensor) -> bool:
    return x.movedim(1, -1).is_contiguous()


def statistics(x: Tensor, groups: int, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """Mean (C,), covariance (G, d, d) and covariance + eps I over the positions of ``x``, in float32."""
    from .kernels import statistics_kernel

    plan, means, scatters = _moments(x, x, None, groups)
    mean = torch.empty(x.shape[1], dtype=torch.float32, device=x.device)
    covariance = torch.empty_like(scatters[:, 0])
    shifted = torch.empty_like(covariance)
    arguments = (means, scatters, mean, covariance, shifted, plan.positions, plan.chunk, plan.parts, eps)
    launch(statistics_kernel, plan.row_grid, arguments, plan.sum_options)
    return mean, covariance, shifted


def transform(x: Tensor, mean: Tensor, W: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """weight * W (x - mean) + bias, for ``W`` (G, d, d)."""
    shift = _vector(bias, mean)
    return _affine(x, x, mean, W, weight, shift, W, 0.0, BACKWARD=False, HAS_CONSTANT=False)


def gradients(g: Tensor, x: Tensor, mean: Tensor, W: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """From the gradient with respect to the result of ``transform``, those with respect to bias (C,), weight (C,) and
    W, in float32. Without a weight the second is not set.
    """
    from .kernels import gradients_kernel

    plan, sums, products = _moments(g, x, mean, len(W))
    grad_bias, grad_weight, grad_W = torch.empty_like(mean), torch.empty_like(mean), torch.empty_like(W)
    arguments = (sums, products, W, _vector(weight, mean), grad_bias, grad_W, grad_weight, plan.parts)
    launch(gradients_kernel, plan.row_grid, arguments, plan.sum_options | {"AFFINE": weight is not None})
    return grad_bias, grad_weight, grad_W


def vjp(
    g: Tensor,
    x: Tensor,
    mean: Tensor,
    W: Tensor,
    weight: Tensor | None,
    H: Tensor,
    grad_bias: Tensor | None,
    grad_mean: Tensor | None,
) -> Tensor:
    """The gradient with respect to ``x`` of the result of ``transform``, through its statistics too.

    g, H: the gradients with respect to that result and to the covariance.
    grad_bias: (C,), when these are the statistics of ``x`` alone;
    grad_mean: (C,) otherwise, divided by the number of positions, as H must be then.
    """
    if grad_mean is not None:
        return _affine(g, x, mean, W, weight, grad_mean, H, 1.0, BACKWARD=True, HAS_CONSTANT=True)
    return _affine(g, x, mean, W, weight, grad_bias, H, x.shape[1] / x.numel(), BACKWARD=True, HAS_CONSTANT=False)


class _Plan(NamedTuple):
    positions: int
    chunk: int
    parts: int
    chunk_grid: tuple[int, int, int]
    row_grid: tuple[int, int, int]
    pass_options: dict[str, Any]
    """Of kernels that pass over the features."""
    sum_options: dict[str, Any]
    """Of kernels that add up the sums of chunks."""


@lru_cache(256)
def _plan(positions: int, channels: int, groups: int, device: torch.device) -> _Plan:
    """Grids and options: as many chunks of whole blocks as programs run at once."""
    size = channels // groups
    padded = max(16, 1 << (size - 1).bit_length())
    block = 8192 // max(padded, 32)
    blocks = -(-positions // block)
    programs = max(1, _RESIDENT * multiprocessors(device) // groups)
    chunk = block * -(-blocks // programs)
    parts = -(-positions // chunk)
    shape = {"SIZE": size, "D": padded}
    # Two stages of the largest groups would not fit into the 99 KB of smaller GPUs.
    stages = 2 if padded <= 64 and not _in_one_stage(device) else 1
    pass_options = {"CHANNELS": channels, **shape, "BLOCK": block, "FLOAT32_FACTORS": device.type != "cuda"}
    pass_options |= {"num_warps": 8, "num_stages": stages}
    sum_options = {**shape, "PARTS": 8192 // padded, "num_warps": 8}
    return _Plan(positions, chunk, parts, (parts, groups, 1), (size, groups, 1), pass_options, sum_options)


def _in_one_stage(device: torch.device) -> bool:
    """Whether Triton up to 3.6 fails to compile some kernels in two stages: for compute capability 10."""
    return device.type == "cuda" and torch.cuda.get_device_capability(device)[0] == 10


def _vector(parameter: Tensor | None, unused: Tensor) -> Tensor:
    """A parameter (C,) as kernels read it, which may be a part of another; without one, what they do not read."""
    return unused if parameter is None else parameter.contiguous().resolve_neg()


def _moments(P: Tensor, Q: Tensor, mean: Tensor | None, groups: int) -> tuple[_Plan, Tensor, Tensor]:
    """Sums of chunks: (G, chunks, d) and (G, chunks, d, d); about their own means without ``mean``."""
    from .kernels import moments_kernel

    plan = _plan(Q.numel() // Q.shape[1], Q.shape[1], groups, Q.device)
    size = plan.pass_options["SIZE"]
    first = torch.empty(groups, plan.parts, size, dtype=torch.float32, device=Q.device)
    second = torch.empty(groups, plan.parts, size, size, dtype=torch.float32, device=Q.device)
    arguments = (P, Q, first if mean is None else mean, first, second, plan.positions, plan.chunk)
    launch(moments_kernel, plan.chunk_grid, arguments, plan.pass_options | {"OWN_MEAN": mean is None})
    return plan, first, second


def _affine(P, Q, mean, W, weight, shift, H, share: float, **kind: bool) -> Tensor:
    from .kernels import affine_kernel

    plan = _plan(Q.numel() // Q.shape[1], Q.shape[1], len(W), Q.device)
    out = torch.empty_like(Q)
    tensors = (P, Q, W, _vector(weight, mean), shift, mean, H, out)
    options = plan.pass_options | kind | {"AFFINE": weight is not None}
    launch(affine_kernel, plan.chunk_grid, (*tensors, plan.positions, plan.chunk, share), options)
    return out
