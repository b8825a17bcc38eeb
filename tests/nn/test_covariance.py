"""Covariances of feature maps, and triangles of symmetric matrices."""

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given, settings

import matroot.nn
from matroot.nn import covariance, triangle, untriangle

from ..operations import Largest

# --- covariance ----------------------------------------------------------------------------------

shapes = st.tuples(
    st.integers(1, 3), st.integers(1, 7), st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple)
).map(lambda s: (*s[:2], *s[2]))


def random(shape, dtype=torch.float64, seed=0):
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).to(dtype)


@settings(max_examples=50, deadline=None)
@given(shapes, st.sampled_from([torch.float32, torch.float64]), st.integers(0, 1), st.floats(0, 0.5))
def test_is_numpys(shape, dtype, correction, eps):
    x = random(shape, dtype) + 3
    positions = x[0, 0].numel()
    correction = min(correction, positions - 1)
    maps = x.double().flatten(2).numpy()
    expected = [np.cov(m, ddof=correction).reshape(shape[1], shape[1]) + eps * np.eye(shape[1]) for m in maps]
    found = covariance(x, correction=correction, eps=eps)
    assert found.shape == (shape[0], shape[1], shape[1])
    assert found.dtype == dtype
    # deviations of numbers below 8 have errors of 8 eps each, and are themselves below 8
    torch.testing.assert_close(found.double(), torch.from_numpy(np.stack(expected)), rtol=0, atol=200 * _eps(dtype))


def _eps(dtype):
    return torch.finfo(dtype).eps


def test_a_large_mean_does_not_cancel():
    """E[x^2] - E[x]^2 would be wrong by 1e6 eps = 0.1 of the variance; centred first, by 1e3 eps."""
    x = random((1, 4, 500)) + 1000
    found = covariance(x.float()).double()
    torch.testing.assert_close(found, covariance(x.float().double()), rtol=0, atol=1e3 * _eps(torch.float32))


def test_nothing_larger_than_the_map_is_made():
    x = random((2, 3, 20, 20)).requires_grad_()
    with Largest() as recorded:
        covariance(x).square().sum().backward()
    assert recorded.size == x.numel()


@pytest.mark.parametrize(("shape", "layout"), [((2, 5, 4, 3), "channels_last"), ((2, 5, 2, 4, 3), "channels_last_3d")])
def test_channels_last_is_not_copied(shape, layout):
    x = random(shape).contiguous(memory_format=getattr(torch, layout))
    with Largest() as recorded:
        found = covariance(x)
    assert not recorded.names & {"clone", "copy_", "_to_copy", "_reshape_copy"}
    torch.testing.assert_close(found, covariance(x.contiguous()), rtol=0, atol=1e-14)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_summed_in_float32(dtype):
    """Up to the order of 30 terms of order one; half precision would cost 1e-3."""
    x = random((2, 5, 30), dtype)
    expected = covariance(x.double()).float()
    for autocast in (False, True):
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            found = covariance(x)
        assert found.dtype == torch.float32
        torch.testing.assert_close(found, expected, rtol=0, atol=30 * _eps(torch.float32))


@pytest.mark.parametrize("correction", [0, 1])
def test_one_position_has_no_variance(correction):
    x = random((2, 5, 1, 1)).requires_grad_()
    found = covariance(x, correction=correction)
    assert torch.equal(found, torch.zeros(2, 5, 5).double())
    assert torch.equal(torch.autograd.grad(found.sum(), x)[0], torch.zeros_like(x))


def test_covariance_gradcheck():
    assert torch.autograd.gradcheck(lambda x: covariance(x, correction=1, eps=0.1), random((2, 3, 4)).requires_grad_())


def test_covariance_refuses():
    with pytest.raises(ValueError, match=r"3 dimensions or more; got 2, shape \(4, 5\)"):
        covariance(random((4, 5)))
    with pytest.raises(TypeError, match="int64"):
        covariance(torch.ones(2, 3, 4, dtype=torch.int64))
    with pytest.raises(TypeError, match="complex64"):
        covariance(torch.ones(2, 3, 4, dtype=torch.complex64))


# --- triangle ------------------------------------------------------------------------------------

batches = st.lists(st.integers(1, 3), max_size=2).map(tuple)
sizes = st.integers(1, 12)


def symmetric(batch, n):
    M = random((*batch, n, n))
    return M + M.mT


@settings(max_examples=50, deadline=None)
@given(batches, sizes, st.booleans())
def test_round_trip(batch, n, keep_norm):
    M = symmetric(batch, n)
    v = triangle(M, keep_norm)
    assert v.shape == (*batch, n * (n + 1) // 2)
    # times sqrt(2) and divided by it: one rounding each
    torch.testing.assert_close(untriangle(v, keep_norm), M, rtol=4 * _eps(M.dtype) if keep_norm else 0, atol=0)
    torch.testing.assert_close(triangle(untriangle(v, keep_norm), keep_norm), v, rtol=4 * _eps(M.dtype), atol=0)


@settings(max_examples=50, deadline=None)
@given(batches, sizes)
def test_norm_is_kept(batch, n):
    """So are all inner products, which makes the vector a coordinate system of symmetric matrices."""
    M = symmetric(batch, n)
    K = M @ M
    products = (triangle(M, keep_norm=True) * triangle(K, keep_norm=True)).sum(-1)
    torch.testing.assert_close(products, (M * K).sum((-2, -1)), rtol=1e-12, atol=1e-12 * n**3)
    torch.testing.assert_close(triangle(M, keep_norm=True).norm(dim=-1), torch.linalg.matrix_norm(M))


def test_row_by_row():
    M = torch.arange(9).reshape(3, 3)
    assert triangle(M).tolist() == [0, 1, 2, 4, 5, 8]
    assert untriangle(triangle(M)).tolist() == [[0, 1, 2], [1, 4, 5], [2, 5, 8]]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.complex128])
def test_dtype_is_kept(dtype):
    v = triangle(symmetric((2,), 4).to(dtype), keep_norm=True)
    assert v.dtype == untriangle(v, keep_norm=True).dtype == dtype


@pytest.mark.parametrize("keep_norm", [False, True])
def test_triangle_gradcheck(keep_norm):
    assert torch.autograd.gradcheck(lambda M: triangle(M, keep_norm), random((2, 3, 3)).requires_grad_())
    assert torch.autograd.gradcheck(lambda v: untriangle(v, keep_norm), random((2, 6)).requires_grad_())


@pytest.mark.parametrize("shape", [(3,), (2, 3), (4, 3, 2)])
def test_triangle_refuses(shape):
    with pytest.raises(ValueError, match=rf"\(\*, n, n\), got \({', '.join(map(str, shape))}"):
        triangle(torch.ones(shape))


@pytest.mark.parametrize("length", [2, 4, 5, 7, 32_895])
def test_untriangle_refuses(length):
    with pytest.raises(ValueError, match=rf"got \(2, {length}\)"):
        untriangle(torch.ones(2, length))


def test_functions_are_what_the_package_exports():
    """Their files have the same names."""
    assert callable(matroot.nn.covariance)
    assert callable(matroot.nn.triangle)
