"""DTensors: batch-sharded input stays sharded, values and gradients as on one rank."""

import pytest
import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

import matroot

from .matrices import wishart
from .nn.ranks import on_ranks


def _on_each_rank(rank: int, world: int) -> None:
    mesh = init_device_mesh("cpu", (world,))
    for batch in (4, 3):  # evenly and unevenly divided
        A, G = wishart(batch, 5), wishart(batch, 5, seed=1)
        for choice in ({}, matroot.preset("mpa-lya"), matroot.preset("ns"), matroot.preset("svd-taylor")):
            for placement in (Shard(0), Replicate()):
                _check(A, G, mesh, placement, choice)
    with pytest.raises(ValueError, match="must not be split over ranks"):
        matroot.sqrtm(distribute_tensor(wishart(4, 4), mesh, [Shard(1)]))


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
    on_ranks(_on_each_rank, world, tmp_path)
