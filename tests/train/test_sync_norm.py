"""Batch normalisation over processes: as if one process had the concatenated batch."""

import copy

import pytest
import torch
import torch.distributed as dist
from torch import nn

from matroot.nn import CovariancePool, DecorrelatedBatchNorm2d
from matroot.train.sync_norm import SyncedBatchNorm, synchronise_norms

from .ranks import on_ranks

CPU = torch.device("cpu")
SIZES = [(4, 4), (1, 5), (3, 0)]
"""Rows of each of two processes, in three batches."""
MEAN = 3.0
"""Of features with deviation 1."""
LAYERS = [
    (nn.BatchNorm1d, {}, (), torch.float64),
    (nn.BatchNorm1d, {"momentum": None}, (5,), torch.float64),
    (nn.BatchNorm2d, {"eps": 1e-3, "momentum": 0.01}, (3, 4), torch.float32),
    (nn.BatchNorm3d, {"affine": False}, (2, 3, 2), torch.float64),
    (nn.BatchNorm2d, {"track_running_stats": False}, (3, 4), torch.float64),
]


def assert_same(found, expected, positions):
    """Equal up to the rounding of sums over N positions in another order: sqrt(N) eps of features of size 1 + MEAN.

    The variance is about the mean, so nothing cancels; its root, and gradients that are made of such sums, multiply
    this by small numbers.
    """
    tolerance = 4 * (1 + MEAN) * positions**0.5 * torch.finfo(expected.dtype).eps
    size = max(1.0, expected.abs().max().item()) if expected.numel() else 1.0
    torch.testing.assert_close(found, expected, rtol=0, atol=tolerance * size)


def _equals_the_concatenation(ranks, kind, options, spatial, dtype):
    torch.manual_seed(0)
    alone = kind(3, dtype=dtype, **options)
    if alone.affine:
        nn.init.uniform_(alone.weight, 0.5, 1.5)
        nn.init.uniform_(alone.bias)
    together = synchronise_norms(nn.Sequential(copy.deepcopy(alone)), CPU)[0]
    assert type(together) is SyncedBatchNorm
    for sizes in SIZES:
        whole = torch.randn(sum(sizes), 3, *spatial, dtype=dtype) + MEAN
        cotangent = torch.randn_like(whole)
        part = whole.split(sizes)[ranks.rank].clone().requires_grad_()
        whole.requires_grad_()
        alone.zero_grad()
        together.zero_grad()
        expected, y = alone(whole), together(part)
        expected.backward(cotangent)
        y.backward(cotangent.split(sizes)[ranks.rank])

        positions = whole.numel() // 3
        assert_same(y, expected.split(sizes)[ranks.rank], positions)
        assert_same(part.grad, whole.grad.split(sizes)[ranks.rank], positions)
        for own, other in zip(together.parameters(), alone.parameters(), strict=True):
            dist.all_reduce(own.grad)
            assert_same(own.grad, other.grad, positions)
        for own, other in zip(together.buffers(), alone.buffers(), strict=True):
            assert_same(own.to(dtype), other.to(dtype), positions)
    x = torch.randn(2 + ranks.rank, 3, *spatial, dtype=dtype)
    assert torch.equal(together.eval()(x), _evaluated(together, kind, options, dtype)(x))


def _evaluated(layer, kind, options, dtype):
    """A plain layer with the state of another; the two differ in training alone."""
    plain = kind(3, dtype=dtype, **options).eval()
    plain.load_state_dict(layer.state_dict())
    return plain


def _half_features_and_layout(ranks):
    """bfloat16 features, also under autocast, give bfloat16 with float32 statistics and keep their layout."""
    layer = SyncedBatchNorm(3)
    x = torch.randn(8, 3, 4, 4).to(torch.bfloat16).to(memory_format=torch.channels_last)
    with torch.autocast("cpu", torch.bfloat16):
        y = layer(x)
    assert y.dtype == torch.bfloat16
    assert y.is_contiguous(memory_format=torch.channels_last)
    # Every value of y is rounded to 8 bits, and so is their mean square only by the average of such errors.
    total = torch.stack([y.float().square().sum((0, 2, 3)), y.float().sum((0, 2, 3))])
    dist.all_reduce(total)
    square, mean = total / (ranks.world * 128)
    torch.testing.assert_close(square, torch.ones(3), rtol=0, atol=2**-8)
    torch.testing.assert_close(mean, torch.zeros(3), rtol=0, atol=2**-8)


def _every_property(ranks):
    for kind, options, spatial, dtype in LAYERS:
        _equals_the_concatenation(ranks, kind, options, spatial, dtype)
    _half_features_and_layout(ranks)


def test_processes_together_are_one():
    on_ranks(_every_property, 2)


def network():
    shared = nn.BatchNorm2d(4)
    return nn.Sequential(
        nn.Conv2d(3, 4, 1), shared, nn.Conv2d(4, 4, 1), shared, DecorrelatedBatchNorm2d(4), CovariancePool(4, 2)
    )


@pytest.mark.parametrize(("device", "kind"), [("cpu", SyncedBatchNorm), ("cuda", nn.SyncBatchNorm)])
def test_every_layer_is_converted_once(device, kind):
    model = network().eval()
    tensors = {name: id(tensor) for name, tensor in model.state_dict(keep_vars=True).items()}
    names = list(model.state_dict())
    assert synchronise_norms(model, torch.device(device)) is model
    assert [type(model[k]) for k in (1, 3)] == [kind, kind]
    assert model[1] is model[3]
    assert type(model[5].reduce[1]) is kind
    assert model[4].process_group == "world"
    assert {name: id(tensor) for name, tensor in model.state_dict(keep_vars=True).items()} == tensors
    assert list(model.state_dict()) == names
    assert not any(module.training for module in model.modules())
    before = list(model.modules())
    synchronise_norms(model, torch.device(device))
    assert list(model.modules()) == before


def test_one_process_alone_is_batch_norm():
    x = torch.randn(8, 4, 5, 5, dtype=torch.float64) + MEAN
    plain = nn.BatchNorm2d(4, dtype=torch.float64)
    layer = SyncedBatchNorm.of(copy.deepcopy(plain))
    assert_same(layer(x), plain(x), 200)
    assert_same(layer.running_var, plain.running_var, 200)
    with pytest.raises(ValueError, match="at least 2 dimensions, got 1"):
        layer(x[0, 0, 0])


def test_other_norms_are_named_and_nothing_changes():
    class Unusual(nn.BatchNorm2d):
        pass

    model = nn.Sequential(nn.BatchNorm2d(4), nn.ModuleDict({"odd": Unusual(4)}))
    with pytest.raises(TypeError, match=r"layer '1.odd' is a Unusual"):
        synchronise_norms(model, CPU)
    assert type(model[0]) is nn.BatchNorm2d
