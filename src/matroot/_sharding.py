"""Batch-sharded DTensors: every rank works on the matrices it holds."""

import sys
from collections.abc import Iterable

import torch
from torch import Tensor


def is_sharded(A: Tensor) -> bool:
    """Whether ``A`` is a DTensor, without importing the distributed machinery."""
    module = sys.modules.get("torch.distributed.tensor")
    return module is not None and isinstance(A, module.DTensor)


def local_matrices(A: Tensor) -> Tensor:
    """The matrices of a DTensor that this rank holds; ValueError if a matrix is split over ranks."""
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
    return A.to_local(grad_placements=A.placements)


def sharded_like(A: Tensor, local: Iterable[Tensor]) -> tuple[Tensor, ...]:
    """Results for the local matrices of a DTensor as DTensors with its placements."""
    from torch.distributed.tensor import DTensor

    assert isinstance(A, DTensor)
    stride = torch.empty(A.shape, device="meta").stride()  # of a contiguous result, not of A
    return tuple(
        DTensor.from_local(
            result.contiguous(), A.device_mesh, A.placements, run_check=False, shape=A.shape, stride=stride
        )
        for result in local
    )
