"""DTensors: batch-sharded input stays sharded, values and gradients as on one rank."""

import os
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

import matroot

from .matrices import wishart


def _on_each_rank(rank: int, world: int, path: Path) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=world)
    try:
        mesh = init_device_mesh("cpu", (world,))
        for batch in (4, 3):  # evenly and unevenly divided
            A, G = wishart(batch, 5), wishart(batch, 5, seed=1)
            for choice in ({}, matroot.preset("mpa-lya"), matroot.preset("ns"), matroot.preset("svd-taylor")):
                for placement in (Shard(0), Replicate()):
                    _check(A, G, mesh, placement, choice)
        with pytest.raises(ValueError, match="must not be split over ranks"):
            matroot.sqrtm(distribute_tensor(wishart(4, 4), mesh, [Shard(1)]))
    finally:
        dist.destroy_process_group()
    os._exit(0)  # in an orderly exit a thread that PyTorch leaves behind may abort the process


def _check(A, G, mesh, placement, choice) -> None:
    plain = A.clone().requires_grad_()
    expected = matroot.roots(plain, **choice)
    (expected_gradient,) = torch.autograd.grad(expected, plain, (G, G))
    sharded = distribute_tensor(A, mesh, [placement]).requires_grad_()
    upstream = distribute_tensor(G, mesh, [placement])
    found = matroot.roots(sharded, **choice)
    (gradient,) = torch.autograd.grad(found, sharded, (upstream, upstream))
    for tensor, true in zip((*found, gradient), (*expected, expected_gradient), strict=True):
        assert tensor.placements == (placement,)
        assert tensor.shape == true.shape
        torch.testing.assert_close(tensor.full_tensor(), true)


@pytest.mark.parametrize("world", [2])
def test_sharded_batches(world, tmp_path):
    mp.spawn(_on_each_rank, (world, tmp_path / "rendezvous"), nprocs=world)
