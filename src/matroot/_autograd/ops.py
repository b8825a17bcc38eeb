"""Fused backends as opaque operators: ``torch.compile`` does not look inside, and vmap joins its batch to theirs.

Eager code calls the backends themselves, which is faster. Derivatives are in ``_autograd.fused``.
"""

import torch
from torch import Tensor

from ..backends._base import FusedBackend
from ..backends.cpu.compiled import Compiled
from ..backends.triton.backend import Triton
from ..gradients import Smith
from ..methods import Minimax

_library = torch.library.Library("matroot", "DEF")
_library.define("minimax_roots(Tensor A, float ridge) -> (Tensor, Tensor)")
_library.define("smith_solve(Tensor S, Tensor R, Tensor? GS, Tensor? GR, float ridge) -> Tensor")


def _implement(backend: FusedBackend, device: str) -> None:
    method, gradient = Minimax(), Smith()

    def roots(A: Tensor, ridge: float) -> tuple[Tensor, ...]:
        """Roots and inverse roots of ``A`` (k, n, n); float32 of half types."""
        return backend.roots(A, ridge, method, "both").roots

    def solve(S: Tensor, R: Tensor, GS: Tensor | None, GR: Tensor | None, ridge: float) -> Tensor:
        """X with S X + X S = GS - R GR R, and the ridge's term."""
        return backend.solve((S, R), (GS, GR), ridge, gradient, "both")

    _library.impl("minimax_roots", roots, device)
    _library.impl("smith_solve", solve, device)


_implement(Compiled(), "CPU")
_implement(Triton(), "CUDA")
minimax_roots, smith_solve = torch.ops.matroot.minimax_roots, torch.ops.matroot.smith_solve


@torch.library.register_fake("matroot::minimax_roots")
def _(A, ridge):
    dtype = torch.float64 if A.dtype == torch.float64 else torch.float32
    return torch.empty(A.shape, dtype=dtype, device=A.device), torch.empty(A.shape, dtype=dtype, device=A.device)


@torch.library.register_fake("matroot::smith_solve")
def _(S, R, GS, GR, ridge):
    return torch.empty(S.shape, dtype=S.dtype, device=S.device)


def _join_batch(tensor: Tensor | None, dim: int | None, size: int) -> Tensor | None:
    """(k, n, n) with a batch dimension at ``dim``, or none, as (size k, n, n)."""
    if tensor is None:
        return None
    moved = tensor.expand(size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
    return moved.flatten(0, 1).contiguous()


@torch.library.register_vmap("matroot::minimax_roots")  # pyright: ignore[reportOptionalCall]
def _(info, dims, A, ridge):
    roots = minimax_roots(_join_batch(A, dims[0], info.batch_size), ridge)
    return tuple(root.unflatten(0, (info.batch_size, -1)) for root in roots), (0, 0)


@torch.library.register_vmap("matroot::smith_solve")  # pyright: ignore[reportOptionalCall]
def _(info, dims, S, R, GS, GR, ridge):
    tensors = (_join_batch(T, dim, info.batch_size) for T, dim in zip((S, R, GS, GR), dims, strict=False))
    return smith_solve(*tensors, ridge).unflatten(0, (info.batch_size, -1)), 0
