"""Statistics over ranks: as if one process had the concatenated batch."""

import copy

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from matroot.nn import DecorrelatedBatchNorm1d, DecorrelatedBatchNorm2d

from .correlated import correlated

# Sums in another order, on covariances of condition 10; float64 is the sharp one.
TOLERANCES = {torch.float32: 1e-5, torch.float64: 1e-12}


def close(found, expected):
    torch.testing.assert_close(found, expected, rtol=0, atol=TOLERANCES.get(expected.dtype, 0))


SIZES = {
    2: [(4, 4), (1, 7), (0, 5)],
    4: [(3, 3, 3, 3), (1, 5, 2, 8), (4, 0, 1, 2)],
}


def network(process_group, track, dtype):
    torch.manual_seed(0)
    norm = DecorrelatedBatchNorm2d(6, groups=2, track=track, process_group=process_group)
    model = nn.Sequential(nn.Conv2d(6, 6, 1), norm, nn.Conv2d(6, 3, 1)).to(dtype)
    nn.init.orthogonal_(model[0].weight.view(6, 6))  # keeps the condition
    return model


def cotangents(y):
    """Of a loss that is a mean over the rows of all ranks."""
    return torch.linspace(-1, 1, y.numel(), dtype=y.dtype).reshape(y.shape).cos() / len(y)


def _train(rank, world, process_group, track, dtype):
    """Several batches, unevenly divided, through DDP on all ranks and through a plain model on their concatenation."""
    alone = network(None, track, dtype)
    together = network(process_group, track, dtype)
    model = DistributedDataParallel(together)
    for seed, sizes in enumerate(SIZES[world]):
        whole = correlated(sum(sizes), 6, 3, 4, mean=2.0, dtype=dtype, seed=seed)
        part = whole.split(sizes)[rank].clone().requires_grad_()
        whole.requires_grad_()
        alone.zero_grad()
        model.zero_grad()

        expected = alone(whole)
        expected.backward(cotangents(expected))
        y = model(part)
        y.backward(cotangents(expected).split(sizes)[rank])

        close(y, expected.split(sizes)[rank])
        close(part.grad, whole.grad.split(sizes)[rank])
        for ours, true in zip(together.parameters(), alone.parameters(), strict=True):
            close(ours.grad * world, true.grad)  # DDP averages
        for ours, true in zip(together.buffers(), alone.buffers(), strict=True):
            close(ours, true)
    assert together[1].num_batches_tracked == len(SIZES[world])
    x = correlated(5, 6, 3, 4, dtype=dtype, seed=9 + rank)  # evaluation is everybody's own
    close(together.eval()(x), alone.eval()(x))


def _compiled(rank, world):
    sizes = (3, 7)
    alone, together = (
        DecorrelatedBatchNorm1d(4, process_group=group, dtype=torch.float64) for group in (None, "world")
    )
    whole = correlated(10, 4, 3, mean=1.0).requires_grad_()
    part = whole.detach().split(sizes)[rank].clone().requires_grad_()
    expected = alone(whole)
    expected.backward(cotangents(expected))
    y = torch.compile(together, fullgraph=True, backend="aot_eager")(part)
    y.backward(cotangents(expected).split(sizes)[rank])
    close(y, expected.split(sizes)[rank])
    close(part.grad, whole.grad.split(sizes)[rank])
    close(together.running_whitening, alone.running_whitening)


def _a_bad_rank(rank, world):
    """NaN on one rank is seen by all, and remembered by none."""
    layer = DecorrelatedBatchNorm1d(4, process_group="world")
    x = torch.randn(5, 4)
    if rank == 1:
        x[0, 0] = torch.nan
    assert torch.isnan(layer(x)).all()
    assert layer.num_batches_tracked == 0
    assert not layer.running_mean.any()


def _subgroups(rank, world):
    """Halves of the world do not see each other, and a copy of a layer keeps its group."""
    halves = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    layer = DecorrelatedBatchNorm1d(4, process_group=halves[rank // 2], dtype=torch.float64)
    parts = [correlated(6 + r, 4, seed=r) for r in range(4)]
    pair = parts[:2] if rank < 2 else parts[2:]
    expected = DecorrelatedBatchNorm1d(4, dtype=torch.float64)(torch.cat(pair)).split([len(p) for p in pair])[rank % 2]
    close(layer(parts[rank]), expected)
    other = copy.deepcopy(layer)
    assert other.process_group is layer.process_group
    assert other.running_mean is not layer.running_mean
    close(other(parts[rank]), expected)


def _by_itself(rank, world):
    """Without a process group a layer looks at its own rank only."""
    x = correlated(9, 4, seed=rank)
    y = DecorrelatedBatchNorm1d(4, dtype=torch.float64, eps=0.0)(x)
    close(torch.cov(y.T, correction=0), torch.eye(4, dtype=torch.float64))


def _on_each_rank(rank, world, path):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=world)
    try:
        _train(rank, world, "world", "whitening", torch.float32)
        _train(rank, world, dist.group.WORLD, "covariance", torch.float64)
        _a_bad_rank(rank, world)
        _by_itself(rank, world)
        if world == 2:
            _compiled(rank, world)
        else:
            _subgroups(rank, world)
    finally:
        dist.destroy_process_group()


@pytest.mark.parametrize("world", SIZES)
def test_ranks_together_are_one_process(world, tmp_path):
    mp.spawn(_on_each_rank, (world, tmp_path / "rendezvous"), nprocs=world)
