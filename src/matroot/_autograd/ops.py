"""The kernels as opaque operators: ``torch.compile`` does not look inside, and vmap joins its batch to theirs.

Eager code calls the kernels themselves, which is faster. Derivatives are in ``_fused``.
"""

import torch
from torch import Tensor

from ..backends.cpu import compiled
from ..backends.triton import minimax as triton_roots
from ..methods.minimax import compiled_schedules, kernel_schedules

_library = torch.library.Library("matroot", "DEF")
_library.define("minimax_roots(Tensor A, float ridge) -> (Tensor, Tensor)")
_library.define("smith_solve(Tensor S, Tensor R, Tensor? GS, Tensor? GR, float ridge) -> Tensor")


def minimax_roots(A: Tensor, ridge: float) -> tuple[Tensor, Tensor]:
    """Roots and inverse roots of ``A`` (k, n, n); float32 of half types."""
    A = A.resolve_neg()  # kernels read memory as it is
    if A.is_cuda:
        return triton_roots.roots(A, ridge, kernel_schedules)
    return compiled.roots(A, ridge, compiled_schedules(A.dtype))


def smith_solve(S: Tensor, R: Tensor, GS: Tensor | None, GR: Tensor | None, ridge: float) -> Tensor:
    """X with S X + X S = GS - R GR R, and the ridge's share."""
    GS = None if GS is None else GS.resolve_neg()
    GR = None if GR is None else GR.resolve_neg()
    return (triton_roots if S.is_cuda else compiled).solve(S, R, GS, GR, ridge)


for _device in ("CPU", "CUDA"):
    _library.impl("minimax_roots", minimax_roots, _device)
    _library.impl("smith_solve", smith_solve, _device)


@torch.library.register_fake("matroot::minimax_roots")
def _(A, ridge):
    dtype = torch.float64 if A.dtype == torch.float64 else torch.float32
    return torch.empty(A.shape, dtype=dtype, device=A.device), torch.empty(A.shape, dtype=dtype, device=A.device)


@torch.library.register_fake("matroot::smith_solve")
def _(S, R, GS, GR, ridge):
    return torch.empty(S.shape, dtype=S.dtype, device=S.device)


def _joined(tensor: Tensor | None, place: int | None, size: int) -> Tensor | None:
    """(k, n, n) with a batch dimension at ``place``, or none, as (size k, n, n)."""
    if tensor is None:
        return None
    moved = tensor.expand(size, *tensor.shape) if place is None else tensor.movedim(place, 0)
    return moved.flatten(0, 1).contiguous()


@torch.library.register_vmap("matroot::minimax_roots")  # pyright: ignore[reportOptionalCall]
def _(info, places, A, ridge):
    roots = torch.ops.matroot.minimax_roots(_joined(A, places[0], info.batch_size), ridge)
    return tuple(root.unflatten(0, (info.batch_size, -1)) for root in roots), (0, 0)


@torch.library.register_vmap("matroot::smith_solve")  # pyright: ignore[reportOptionalCall]
def _(info, places, S, R, GS, GR, ridge):
    tensors = (_joined(T, place, info.batch_size) for T, place in zip((S, R, GS, GR), places, strict=False))
    return torch.ops.matroot.smith_solve(*tensors, ridge).unflatten(0, (info.batch_size, -1)), 0
