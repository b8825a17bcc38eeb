"""Roots as functions of one matrix, with losses and gradients of them, for tests of transforms and compilers."""

import functools

import torch
from torch import Tensor

from matroot import Eigen, Exact, Implicit, Krylov, Lyapunov, Minimax, NewtonSchulz, Pade, Taylor, Unrolled

from ..matrices import FUNCTIONS, wishart
from ..pairs import NAMED

A = wishart(3, 4)
W = wishart(3, 4, seed=8) + torch.arange(16.0, dtype=torch.float64).reshape(4, 4)

close = functools.partial(torch.testing.assert_close, rtol=1e-9, atol=1e-11)

PAIRS = {
    "eigen-exact": (Eigen(), Exact()),
    "eigen-lyapunov": (Eigen(), Lyapunov(iterations=12)),
    "schulz-implicit": (NewtonSchulz(iterations=20), Implicit(iterations=25)),
    "minimax-krylov": (Minimax(), Krylov(iterations=20)),
    "taylor-unrolled": (Taylor(degree=4), Unrolled()),
    "taylor-exact": (Taylor(degree=3), Exact()),
    "taylor-lyapunov": (Taylor(degree=3), Lyapunov(iterations=3)),
    "pade-lyapunov": (Pade(), Lyapunov(iterations=12, tolerance=1e-12)),
}
"""One pair for each way a derivative is made, converged where a test compares it with that of the root."""


def root_of(pair: str, name: str):
    method, gradient = PAIRS[pair] if pair in PAIRS else NAMED[pair]
    return lambda X: FUNCTIONS[name](X, method, gradient=gradient)


def loss_of(pair: str, name: str):
    root = root_of(pair, name)
    return lambda X, w=W: (w * root(X)).sum()


def gradient_of(root, X: Tensor = A, w: Tensor = W) -> Tensor:
    """Of the weighted sum of a root, by the backward pass."""
    X = X.clone().requires_grad_()
    return torch.autograd.grad((w * root(X)).sum(), X)[0]


def backward(pair: str, name: str) -> Tensor:
    return gradient_of(root_of(pair, name))
