"""Every layer around a covariance, with input to try it on."""

import torch

from matroot.nn import CovariancePool, SecondOrderHead, TemporalAttention, TemporalCovariancePool, WhitenColor

MAPS = {1: (2, 6, 9), 2: (2, 6, 4, 3), 3: (2, 6, 3, 2, 3)}

WITH_ROOT = {
    **{f"pool-{d}d": (lambda d=d, **kw: CovariancePool(6, 4, dims=d, **kw), [MAPS[d]]) for d in MAPS},
    "pool-plain": (lambda **kw: CovariancePool(6, None, **kw), [MAPS[2]]),
    "pool-gram": (lambda **kw: CovariancePool(6, None, **kw), [(2, 6, 2, 2)]),
    "pool-matrix": (lambda **kw: CovariancePool(6, 4, triangle=False, **kw), [MAPS[2]]),
    "temporal": (lambda **kw: TemporalCovariancePool(**kw), [MAPS[3]]),
    "temporal-frames": (lambda **kw: TemporalCovariancePool(5, per_frame=True, **kw), [MAPS[3]]),
    "whiten-color": (lambda **kw: WhitenColor(**kw), [MAPS[2], (2, 6, 3, 3)]),
    "whiten-color-groups": (lambda **kw: WhitenColor(0.9, learnable=False, groups=2, **kw), [MAPS[1], (1, 6, 7)]),
    "head": (lambda **kw: SecondOrderHead(6, 5, reduce_to=4, **kw), [(2, 10, 6)]),
}
"""name -> constructor that takes method and gradient, shapes of the input."""

MODULES = {**WITH_ROOT, "attention": (lambda: TemporalAttention(6), [MAPS[3]])}
ONE_OF_A_KIND = ("pool-2d", "pool-gram", "temporal-frames", "whiten-color-groups", "head", "attention")
"""Names of modules whose graphs differ."""


def build(name, dtype=torch.float32, **kwargs):
    """The layer with all parameters random, so that none hides another by being zero, and its input."""
    torch.manual_seed(0)
    constructor, shapes = MODULES[name]
    module = constructor(**kwargs).to(dtype)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_()
    return module, [torch.randn(shape, dtype=dtype) for shape in shapes]


def value_and_gradients(module, inputs):
    """The output, and the gradients of a weighted sum of it with respect to inputs and parameters."""
    inputs = [x.detach().clone(memory_format=torch.preserve_format).requires_grad_() for x in inputs]
    value = module(*inputs)
    weights = torch.cos(torch.arange(value.numel(), dtype=value.dtype)).reshape(value.shape)
    gradients = torch.autograd.grad((weights * value).sum(), [*inputs, *module.parameters()])
    return value.detach(), *gradients
