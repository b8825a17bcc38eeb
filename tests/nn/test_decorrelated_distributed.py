"""Statistics over ranks: as if one process had the concatenated batch."""

import copy

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from matroot.nn import DecorrelatedBatchNorm1d, DecorrelatedBatchNorm2d

from .correlated import correlated
from .ranks import on_ranks

SIZES = [(3, 3, 3), (1, 5, 2), (4, 0, 3)]
"""Rows of each of three ranks, in three batches."""
CONDITION, MEAN = 10.0, 2.0
"""Of the features: the condition number of their covariance, and the mean in units of the largest deviation."""


def features(rows, *spatial, channels=6, **options):
    return correlated(rows, channels, *spatial, condition=CONDITION, mean=MEAN, **options)


def assert_same(found, expected, positions):
    """Tensors that belong together are equal up to the rounding of statistics over N positions.

    In another order their sums differ by about sqrt(N) eps, relative to features of size 1 + MEAN. The inverse root of
    the covariance and its derivative magnify that by at most the condition number.
    """
    found, expected = (torch.cat([tensor.detach().flatten() for tensor in both]) for both in (found, expected))
    tolerance = CONDITION * (1 + MEAN) * positions**0.5 * torch.finfo(expected.dtype).eps
    assert torch.linalg.vector_norm(found - expected) <= tolerance * torch.linalg.vector_norm(expected)


def network(process_group, track, dtype):
    torch.manual_seed(0)
    norm = DecorrelatedBatchNorm2d(6, groups=2, track=track, process_group=process_group)
    model = nn.Sequential(nn.Conv2d(6, 6, 1), norm, nn.Conv2d(6, 3, 1)).to(dtype)
    nn.init.orthogonal_(model[0].weight.view(6, 6))  # keeps the condition number
    return model


def cotangents(y):
    """Of a loss that is a mean over the rows of all ranks."""
    return torch.linspace(-1, 1, y.numel(), dtype=y.dtype).reshape(y.shape).cos() / len(y)


def _train(rank, world, process_group, track, dtype):
    """Several batches, unevenly divided, through DDP on all ranks and through a plain model on their concatenation."""
    alone = network(None, track, dtype)
    together = network(process_group, track, dtype)
    model = DistributedDataParallel(together)
    for seed, sizes in enumerate(SIZES):
        whole = features(sum(sizes), 3, 4, dtype=dtype, seed=seed)
        part = whole.split(sizes)[rank].clone().requires_grad_()
        whole.requires_grad_()
        alone.zero_grad()
        model.zero_grad()

        expected = alone(whole)
        expected.backward(cotangents(expected))
        y = model(part)
        y.backward(cotangents(expected).split(sizes)[rank])

        positions = whole.numel() // 6
        assert_same([y], [expected.split(sizes)[rank]], positions)
        assert_same([part.grad], [whole.grad.split(sizes)[rank]], positions)
        # DDP averages over ranks.
        assert_same([p.grad * world for p in together.parameters()], [p.grad for p in alone.parameters()], positions)
        assert_same([together[1].running_mean], [alone[1].running_mean], positions)
        assert_same([together[1].running_matrix], [alone[1].running_matrix], positions)
        assert together[1].num_batches_tracked == alone[1].num_batches_tracked == seed + 1
    x = features(5, 3, 4, dtype=dtype, seed=9 + rank)  # each rank evaluates its own features
    assert_same([together.eval()(x)], [alone.eval()(x)], positions)


def _compiled(rank):
    sizes = (3, 6, 1)
    alone, together = (
        DecorrelatedBatchNorm1d(4, process_group=group, dtype=torch.float64) for group in (None, "world")
    )
    whole = features(10, 3, channels=4).requires_grad_()
    part = whole.detach().split(sizes)[rank].clone().requires_grad_()
    expected = alone(whole)
    expected.backward(cotangents(expected))
    y = torch.compile(together, fullgraph=True, backend="aot_eager")(part)
    y.backward(cotangents(expected).split(sizes)[rank])
    assert_same([y], [expected.split(sizes)[rank]], 30)
    assert_same([part.grad], [whole.grad.split(sizes)[rank]], 30)
    assert_same([together.running_whitening], [alone.running_whitening], 30)


def _a_bad_rank(rank):
    """NaN on one rank makes the output NaN on all, and changes the running statistics of none."""
    layer = DecorrelatedBatchNorm1d(4, process_group="world")
    x = torch.randn(5, 4)
    if rank == 1:
        x[0, 0] = torch.nan
    assert torch.isnan(layer(x)).all()
    assert layer.num_batches_tracked == 0
    assert not layer.running_mean.any()


def _subgroups(rank):
    """Process groups do not see each other, and a copy of a layer keeps its group."""
    groups = [dist.new_group([0, 2]), dist.new_group([1])]
    layer = DecorrelatedBatchNorm1d(4, process_group=groups[rank % 2], dtype=torch.float64)
    parts = [features(6 + r, channels=4, seed=r) for r in range(3)]
    own = parts[::2] if rank % 2 == 0 else parts[1:2]
    expected = DecorrelatedBatchNorm1d(4, dtype=torch.float64)(torch.cat(own)).split([len(p) for p in own])[rank // 2]
    assert_same([layer(parts[rank])], [expected], 14)
    other = copy.deepcopy(layer)
    assert other.process_group is layer.process_group
    assert other.running_mean is not layer.running_mean
    assert_same([other(parts[rank])], [expected], 14)


def _by_itself(rank):
    """Without a process group a layer uses the statistics of its own rank."""
    x = features(9, channels=4, seed=rank)
    y = DecorrelatedBatchNorm1d(4, dtype=torch.float64, eps=0.0)(x)
    assert_same([torch.cov(y.T, correction=0)], [torch.eye(4, dtype=torch.float64)], 9)


def _every_property(rank, world):
    _train(rank, world, "world", "whitening", torch.float32)
    _train(rank, world, dist.group.WORLD, "covariance", torch.float64)
    _a_bad_rank(rank)
    _by_itself(rank)
    _subgroups(rank)
    _compiled(rank)


def test_ranks_together_are_one_process(tmp_path):
    on_ranks(_every_property, 3, tmp_path)
