"""Decorrelated layers of every kind, and the definition to compare them with."""

import functools

import pytest
import torch

from matroot.nn import DecorrelatedBatchNorm, DecorrelatedBatchNorm1d, DecorrelatedBatchNorm2d, DecorrelatedBatchNorm3d

from .correlated import correlated

LAYERS = {
    "1d": (DecorrelatedBatchNorm1d, (40, 6)),
    "1d-sequence": (DecorrelatedBatchNorm1d, (5, 6, 8)),
    "2d": (DecorrelatedBatchNorm2d, (4, 6, 3, 5)),
    "3d": (DecorrelatedBatchNorm3d, (3, 6, 2, 3, 4)),
    "any": (DecorrelatedBatchNorm, (4, 6, 3, 5)),
}
every_layer = pytest.mark.parametrize("kind", LAYERS)
every_track = pytest.mark.parametrize("track", ["whitening", "covariance"])

# Two orders of the same float64 arithmetic, on covariances of condition 10.
close = functools.partial(torch.testing.assert_close, rtol=1e-10, atol=1e-10)
SINGLE = {"rtol": 1e-5, "atol": 1e-5}  # the same of float32


def make(kind="2d", groups=2, dtype=torch.float64, **options):
    """A layer whose weight and bias differ from 1 and 0."""
    cls, _ = LAYERS[kind]
    layer = cls(6, groups=groups, dtype=dtype, **options)
    if layer.affine:
        with torch.no_grad():
            layer.weight.copy_(torch.linspace(0.5, 2, 6))
            layer.bias.copy_(torch.linspace(-1, 1, 6))
    return layer


def features(kind="2d", **options):
    return correlated(*LAYERS[kind][1], **options)


def by_definition(x, layer):
    """Group by group, with an eigendecomposition and autograd through it."""
    outputs = []
    for rows in x.transpose(0, 1).flatten(1).chunk(layer.groups):
        centred = rows - rows.mean(1, keepdim=True)
        values, U = torch.linalg.eigh(centred @ centred.T / rows.shape[1])
        outputs.append(U @ torch.diag((values + layer.eps).rsqrt()) @ U.T @ centred)
    y = torch.cat(outputs)
    if layer.affine:
        y = layer.weight[:, None] * y + layer.bias[:, None]
    return y.reshape(x.shape[1], x.shape[0], *x.shape[2:]).transpose(0, 1)


def value_and_gradients(function, x, parameters):
    x = x.detach().clone().requires_grad_()
    y = function(x)
    cotangent = torch.linspace(-1, 1, y.numel(), dtype=y.dtype).reshape(y.shape).cos()
    return y.detach(), *torch.autograd.grad(y, (x, *parameters), cotangent)
