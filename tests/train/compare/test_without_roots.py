"""Networks whose roots are left out, and the clock for steps."""

import time
from itertools import groupby

import pytest
import torch

import matroot
from matroot.train.compare.clock import milliseconds_in_turns
from matroot.train.compare.without_roots import roots_left_out


def test_roots_are_the_matrices_with_the_identitys_gradient():
    A = torch.randn(3, 5, 5, dtype=torch.float64)
    A = (A @ A.mT).requires_grad_()
    G = torch.randn_like(A)
    with roots_left_out():
        for root in (matroot.sqrtm(A), matroot.invsqrtm(A, "pade"), *matroot.roots(A)):
            assert torch.equal(root, A)
            (gradient,) = torch.autograd.grad(root, A, G)
            assert torch.equal(gradient, G)
    S = matroot.sqrtm(A)
    assert torch.allclose(S @ S, A)


def test_layers_run_with_everything_but_the_root():
    x = torch.randn(6, 4, 3, 3, dtype=torch.float64)
    pool = matroot.nn.CovariancePool(4, None)
    whiten = matroot.nn.DecorrelatedBatchNorm2d(4, eps=0.1, dtype=torch.float64)
    with roots_left_out():
        pooled, y = pool(x), whiten(x)
    assert torch.allclose(pooled, matroot.nn.CovariancePool(4, None, root=False)(x))
    rows = x.transpose(0, 1).flatten(1)
    centred = rows - rows.mean(1, keepdim=True)
    W = centred @ centred.mT / rows.shape[1] + 0.1 * torch.eye(4, dtype=x.dtype)
    assert torch.allclose(y.transpose(0, 1).flatten(1), W @ centred)
    assert not torch.allclose(pool(x), pooled)


def test_roots_are_back_after_an_error():
    with pytest.raises(ZeroDivisionError), roots_left_out():
        1 / 0  # noqa: B018
    assert matroot.sqrtm(4 * torch.eye(2))[0, 0].item() == pytest.approx(2)


def test_entries_take_turns_and_failures_are_told():
    calls = []

    def fails():
        raise RuntimeError("no  such\nkernel")

    def entry(name, seconds):
        def work():
            calls.append(name)
            time.sleep(seconds)

        return work

    entries = {"first": entry("first", 0.06), "second": entry("second", 0.06), "none": fails}
    times, failures = milliseconds_in_turns(entries, torch.device("cpu"), time_budget=0.01)
    assert failures == {"none": "RuntimeError: no such kernel"}
    assert times.keys() == {"first", "second"}
    for median, low, high in times.values():
        # A sleep is never shorter than asked for, and on a busy machine longer.
        assert 60 <= low <= median <= high
    # A call each to warm up, a round that does not count, and two that do, in reverse order after every round.
    assert [name for name, _ in groupby(calls)] == ["first", "second"] * 3
