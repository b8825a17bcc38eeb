"""What the way back keeps alive."""

import weakref

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import matroot
from matroot import Lyapunov, NewtonSchulz, Pade

from .matrices import wishart


class PeakMemory(TorchDispatchMode):
    """Bytes of live storages created inside the block, and their maximum."""

    def __init__(self):
        super().__init__()
        self.live = self.peak = 0
        self.seen = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                self.track(tensor.untyped_storage())
        return result

    def track(self, storage):
        key, size = storage._cdata, storage.nbytes()
        if key in self.seen:
            return
        self.seen.add(key)
        self.live += size
        self.peak = max(self.peak, self.live)

        def release():
            self.seen.discard(key)
            self.live -= size

        weakref.finalize(storage, release)


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
