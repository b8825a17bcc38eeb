"""The same matrix at every address modulo 64, alone and in a batch: the same result, as ``agreement`` means it."""

import contextlib

import pytest
import torch

from .agreement import assert_same, computed_by, condition, rounding
from .matrices import wishart
from .pairs import NAMED, through_eigenvectors, value_and_gradient

LINE = 64
"""Bytes of a cache line, and of the widest vector register."""
DTYPES = (torch.float32, torch.float64, torch.complex64)


def at_every_alignment(A):
    """Copies of ``A`` (n, n) as one tensor (k, n, n), one at each of the k addresses modulo ``LINE`` there are."""
    places = LINE // A.element_size()
    stride = (A.numel() // places + 1) * places + 1  # one element further into the line with every copy
    memory = torch.empty(places * stride + places, dtype=A.dtype)
    first = -memory.data_ptr() % LINE // A.element_size()
    copies = memory.as_strided((places, *A.shape), (stride, A.shape[-1], 1), first)
    return copies.copy_(A)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_alignment_is_there(dtype):
    copies = at_every_alignment(wishart(7, dtype=dtype))
    assert {X.data_ptr() % LINE for X in copies} == set(range(0, LINE, copies.element_size()))


@pytest.mark.parametrize("pair", NAMED)
@pytest.mark.parametrize("n", [7, 33])
def test_no_address_changes_a_result(pair, n):
    name = "roots" if NAMED[pair][0].has_inverse else "sqrtm"
    for dtype in DTYPES if n == 7 else DTYPES[:2]:
        A = wishart(n, dtype=dtype)
        k, backends = condition(A, through_eigenvectors(pair)), computed_by(A, *NAMED[pair])
        copies = at_every_alignment(A)
        expected = value_and_gradient(pair, name, A)
        together = value_and_gradient(pair, name, copies)
        contiguous = value_and_gradient(pair, name, copies.contiguous())
        # Each alone only once: most operations copy a single matrix to an address of their own.
        alone = [value_and_gradient(pair, name, copy) for copy in (copies if dtype == torch.float32 else ())]
        for results in (*alone, together, contiguous):
            for found, true, backend in zip(results, expected, backends, strict=True):
                assert_same(found, true.expand_as(found), backend, k)


@pytest.mark.parametrize(
    ("backend", "multiple", "same"), [("torch", 0.9, True), ("torch", 1.1, False), ("compiled", 0.1, False)]
)
def test_what_counts_as_the_same(backend, multiple, same):
    """A multiple of the rounding allowed; NaN and zero results are never the same as others."""
    A = wishart(2, 5)
    other = A * (1 + multiple * rounding(5, A.dtype, 10.0))
    with contextlib.nullcontext() if same else pytest.raises(AssertionError):
        assert_same(other, A, backend, 10.0)
    for value in (torch.nan, 0.0):
        bad = A.clone()
        bad[1] = value
        assert_same(bad, bad.clone(), backend, torch.inf)
        for found, expected in ((A, bad), (bad, A)):
            with pytest.raises(AssertionError):
                assert_same(found, expected, backend, torch.inf)
