"""Layers on a GPU as on the CPU."""

import copy

import pytest
import torch

from matroot.nn import CovariancePool, DecorrelatedBatchNorm2d

from ..matrices import error


@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_decorrelated_batch_normalisation_of_bfloat16(groups, layout):
    """As on the CPU in float32, up to the rounding of features, weights and results."""
    x = torch.randn(16, 32, 9, 9).to(torch.bfloat16)
    G = torch.randn(16, 32, 9, 9).to(torch.bfloat16)
    layer = DecorrelatedBatchNorm2d(32, groups=groups, eps=1e-2)
    found = []
    for device, dtype in (("cpu", torch.float32), ("cuda", torch.bfloat16)):
        own = copy.deepcopy(layer).to(device)
        X = x.to(device, dtype).to(memory_format=layout).requires_grad_()
        y = own(X)
        assert y.dtype == dtype
        assert y.is_contiguous(memory_format=layout)
        (gradient,) = torch.autograd.grad(y, X, G.to(device, dtype))
        found.append([y.detach(), gradient, own.running_mean, own.running_whitening])
    for right, half, tolerance in zip(*found, (1e-2, 1e-2, 1e-3, 1e-3), strict=True):
        assert error(half.cpu().float().flatten()[None], right.double().flatten()[None]) < tolerance


def test_covariance_pool_of_few_positions():
    x = torch.randn(8, 200, 7, 7)
    pool = CovariancePool(200, reduce_to=None, triangle=False)
    X = x.cuda().requires_grad_()
    S = pool(X)
    (gradient,) = torch.autograd.grad(S, X, torch.ones_like(S))
    Y = x.double().requires_grad_()
    T = pool(Y)
    (true,) = torch.autograd.grad(T, Y, torch.ones_like(T))
    assert error(S.detach().cpu(), T.detach()) < 1e-5
    assert error(gradient.cpu().flatten(2), true.flatten(2)) < 1e-4
