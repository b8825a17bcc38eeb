"""Entries on the same matrices: references, failures, and which are left out."""

import pytest
import torch

from matroot._timer import TimingInterrupted
from matroot.bench import compare, entries, problems
from matroot.bench.cases import Settings

pytestmark = pytest.mark.usefixtures("one_thread")

QUICK = Settings(quick=True)


def test_one_entry_that_fails_leaves_the_others():
    def broken():
        raise RuntimeError("out of memory")

    found = dict(compare.compare({"a": (broken, lambda: ({}, {})), "b": (list, lambda: ({"root": 1.0}, {}))}, QUICK))
    assert found["a"].note == "failed: RuntimeError: out of memory"
    assert found["a"].milliseconds is None
    assert found["b"].note is None
    assert set(found["b"].milliseconds) == {"median", "low", "high", "least"}


def test_an_error_that_cannot_be_computed_is_a_failure_with_a_time():
    def broken():
        raise RuntimeError("no answer")

    (found,) = compare.compare({"a": (list, broken)}, QUICK)
    assert found[1].note == "failed: RuntimeError: no answer"
    assert found[1].milliseconds is not None


def test_an_early_interrupt_yields_nothing():
    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(TimingInterrupted):
        list(compare.compare({"a": (interrupted, lambda: ({}, {}))}, QUICK))


def test_both_roots_from_one_decomposition_are_the_two_roots():
    A, G = problems.covariances(3, 6), problems.symmetric(3, 6)
    outputs, gradient = compare.step(entries.eigh("both"), A.clone().requires_grad_(), G)
    exact = compare.Reference(A, G, "both")
    for found, true in zip((*outputs, gradient), (*exact.outputs, exact.gradient), strict=True):
        torch.testing.assert_close(found, true)


def test_what_takes_long_on_a_cpu_is_left_out_with_the_reason():
    found = {entry.name: entry for entry in entries.all_solvers("root")}
    assert "as long as svd" in found["svd-pade"].why_left_out("cpu", 256, 256)
    assert found["svd-pade"].why_left_out("cuda", 256, 256) is None
    for name in ("auto", "eigh", "svd", "mpa-lya", "ns"):
        assert found[name].why_left_out("cpu", 10000, 64) is None
    assert found["scipy"].why_left_out("cpu", 64, 64) is None
    assert found["scipy"].why_left_out("cpu", 64, 128)
    assert "CPU" in found["scipy"].why_left_out("cuda", 1, 8)


def test_a_large_batch_repeats_matrices():
    A, G = problems.covariances_and_gradients(10, 4, distinct=4)
    for T in (A, G):
        assert T.shape == (10, 4, 4)
        assert torch.equal(T[:2], T[8:])
        assert not torch.equal(T[0], T[1])
