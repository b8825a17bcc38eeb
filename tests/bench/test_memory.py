"""What the backward pass keeps alive."""

import pytest
import torch

import matroot
from matroot import Lyapunov, NewtonSchulz, Pade
from matroot.bench.memory import PeakMemory

from ..matrices import wishart


def peak(method, gradient, A):
    with PeakMemory() as memory:
        X = A.clone().requires_grad_()
        matroot.sqrtm(X, method, gradient=gradient).sum().backward()
    return memory.peak / (A.numel() * A.element_size())


@pytest.fixture(scope="module")
def covariances():
    return wishart(64, 64, dtype=torch.float32)


def test_the_meter_works(covariances):
    """Unrolled differentiation does grow, by the several matrices an iteration keeps."""
    few, many = (peak(NewtonSchulz(iterations=k), "unrolled", covariances) for k in (5, 10))
    assert many > few + 10


def test_lyapunov_keeps_nothing_per_iteration(covariances):
    few, many = (peak(Pade(), Lyapunov(iterations=k), covariances) for k in (4, 40))
    assert many <= few
    assert many < 14  # batches alive at the worst moment, inputs and outputs included


def test_only_the_root_is_saved(covariances):
    X = covariances.clone().requires_grad_()
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t) or t, lambda t: t):
        matroot.sqrtm(X, "pade")
    large = {t.untyped_storage().data_ptr() for t in saved if t.numel() >= X.numel()}
    assert len(large) <= 2  # the root, and the input that carries NaN on to refused matrices
