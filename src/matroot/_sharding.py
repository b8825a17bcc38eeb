"""Batch-sharded DTensors: every rank works on the matrices it holds."""

import sys
from collections.abc import Callable

import torch
from torch import Tensor


def is_sharded(A: Tensor) -> bool:
    """Whether ``A`` is a DTensor, without importing the distributed machinery."""
    module = sys.modules.get("torch.distributed.tensor")
    return module is not None and isinstance(A, module.DTensor)


def on_local_matrices(function: Callable[[Tensor], tuple[Tensor, ...]], A: Tensor) -> tuple[Tensor, ...]:
    """Apply ``function`` to the local part of a DTensor, keeping its placements."""
    from torch.distributed.tensor import DTensor, Partial, Shard

    assert isinstance(A, DTensor)
    for placement in A.placements:
        whole = not isinstance(placement, Partial)
        if isinstance(placement, Shard):
            whole = placement.dim % A.ndim < A.ndim - 2
        if not whole:
            raise ValueError(
                f"matrices must not be split over ranks, got placements {A.placements} for shape "
                f"{tuple(A.shape)}; redistribute so that only batch dimensions are sharded"
            )
    local = A.to_local(grad_placements=A.placements)
    stride = torch.empty(A.shape, device="meta").stride()  # of a contiguous result, not of A
    return tuple(
        DTensor.from_local(
            root.contiguous(), A.device_mesh, A.placements, run_check=False, shape=A.shape, stride=stride
        )
        for root in function(local)
    )
