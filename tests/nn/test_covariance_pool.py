"""Global covariance pooling against the formula in float64."""

import numpy as np
import pytest
import torch

import matroot
from matroot.nn import CovariancePool, covariance, untriangle

from ..matrices import error, exact_gradient, exact_root

SPATIAL = {1: (40,), 2: (8, 5), 3: (2, 4, 5)}
FEW = {1: (5,), 2: (2, 3), 3: (1, 2, 3)}


def maps(*shape, dtype=torch.float64, seed=0):
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).to(dtype)


def reference(pool, x):
    """1x1 convolution, batch normalisation with the batch's own statistics, ReLU, covariance and root by eigh."""
    X = x.double().flatten(2)
    if pool.reduce_to is not None:
        convolution, norm, _ = pool.reduce
        X = torch.einsum("oc,bcn->bon", convolution.weight.double().flatten(1), X)
        mean, variance = X.mean((0, 2), keepdim=True), X.var((0, 2), keepdim=True, correction=0)
        X = (X - mean) / (variance + norm.eps).sqrt()
        X = (X * norm.weight.double()[:, None] + norm.bias.double()[:, None]).clamp_min(0)
    P = torch.stack([torch.cov(one, correction=0) for one in X])
    S = exact_root(P) if pool.root else P
    return S[:, *torch.triu_indices(*S.shape[1:])] if pool.triangle else S


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("reduce_to", [None, 6])
@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize(("root", "triangle"), [(True, True), (True, False), (False, True)])
def test_is_the_formula(dims, reduce_to, root, triangle, dtype):
    torch.manual_seed(dims)
    pool = CovariancePool(9, reduce_to, dims=dims, root=root, triangle=triangle).to(dtype)
    eps = torch.finfo(dtype).eps
    # a zero eigenvalue is one of size eps after rounding, sqrt(eps) in the root; 40 positions make none
    for spatial, tolerance in ((SPATIAL[dims], 300 * eps), (FEW[dims], 10 * eps**0.5)):
        x = maps(3, 9, *spatial, dtype=dtype)
        found = pool(x)
        assert found.dtype == dtype
        assert found.flatten(1).shape[1] == pool.out_features
        expected = reference(pool, x)
        assert torch.linalg.vector_norm(found - expected) < tolerance * torch.linalg.vector_norm(expected)


@pytest.mark.parametrize("method", ["auto", "eigen", "minimax"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_squares_back_to_the_covariance(method, dtype):
    x = maps(4, 24, 10, 20, dtype=dtype)
    S = untriangle(CovariancePool(24, None, method=method)(x))
    # eps for each of the products that make the root, of which there are tens
    assert matroot.residual(covariance(x), S).max() < 50 * torch.finfo(dtype).eps


@pytest.mark.parametrize("choice", ["auto", "minimax", "mpa-lya", "mtp-lya", "ns", "svd-taylor"])
def test_rank_48_of_256_is_finite(choice):
    """7 x 7 positions leave 208 eigenvalues at zero, or at rounding."""
    named = {"auto": {}, "minimax": {"method": "minimax"}}
    chosen = named[choice] if choice in named else matroot.preset(choice)
    x = maps(2, 256, 7, 7, dtype=torch.float32).relu().requires_grad_()
    value = CovariancePool(256, None, **chosen)(x)
    (gradient,) = torch.autograd.grad(value.square().sum() + value.sum(), x)
    assert torch.isfinite(value).all()
    assert torch.isfinite(gradient).all()
    if choice in named:
        assert error(untriangle(value.detach()), exact_root(covariance(x.detach().double()))) < 3e-3  # ~ sqrt(n eps)


@pytest.mark.parametrize(
    ("method", "dtype", "tolerance"),
    [
        ("eigen", torch.float64, 1e-6),
        ("eigen", torch.float32, 0.02),
        ("auto", torch.float64, 1e-13),
        ("auto", torch.float32, 1e-5),
        ("minimax", torch.float64, 0.02),
        ("minimax", torch.float32, 0.02),
    ],
)
def test_gradient_at_low_rank_is_right(method, dtype, tolerance):
    """The root of X X^T is smooth in X as long as its rank stays: the gradient is not merely finite.

    It is U diag(s) U^T for X = U diag(s) V^T, all s nonzero without the direction that centring removes.
    Zero eigenvalues are known to eps, the gradient's division by their roots to some tens of sqrt(eps). Products
    alone know their eigenvectors to less: what is divided by sqrt(eps) does not quite vanish in X. By default the
    root comes from the smaller matrix, which has no zero eigenvalues.
    """
    x = maps(2, 12, 2, 3, dtype=dtype).requires_grad_()
    G = maps(2, 12, 12)
    pool = CovariancePool(12, None, triangle=False, method=method)
    (found,) = torch.autograd.grad(pool(x), x, G.to(dtype))

    wide = x.detach().double().flatten(2).requires_grad_()
    centring = torch.eye(6).double() - 1 / 6
    complement = torch.linalg.eigh(centring)[1][:, 1:]
    U, s, _ = torch.linalg.svd(wide @ complement / 6**0.5, full_matrices=False)
    (expected,) = torch.autograd.grad((U * s[:, None]) @ U.mT, wide, G)
    assert error(found.flatten(2), expected) < tolerance


def test_gradient_in_float32():
    """Against the exact gradient in float64, at condition numbers of some tens."""
    x = maps(2, 6, 10, 10, dtype=torch.float32).requires_grad_()
    G = maps(2, 6, 6)
    pool = CovariancePool(6, None, triangle=False)
    (found,) = torch.autograd.grad(pool(x), x, G.float())
    X = x.detach().double().flatten(2)
    X = X - X.mean(-1, keepdim=True)
    expected = (2 / 100) * exact_gradient(X @ X.mT / 100, G) @ X
    assert error(found.flatten(2), expected) < 100 * torch.finfo(torch.float32).eps


def test_positions_have_no_order():
    pool, x = CovariancePool(5, None), maps(2, 5, 4, 6)
    shuffled = x.flatten(2)[..., torch.randperm(24, generator=torch.Generator().manual_seed(0))].reshape(x.shape)
    torch.testing.assert_close(pool(shuffled), pool(x), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("scale", [1e-8, 0.37, 1e8])
def test_scales_with_the_features(scale):
    """The root makes it homogeneous of degree one, where the covariance has degree two."""
    pool, x = CovariancePool(5, None), maps(2, 5, 4, 6, dtype=torch.float32)
    torch.testing.assert_close(pool(scale * x) / scale, pool(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("exponent", range(-26, -15))
@pytest.mark.parametrize(("channels", "positions"), [(6, 12), (6, 4), (32, 10)])
def test_vanishing_features(channels, positions, exponent):
    """Their covariances lose digits below 1e-38, rank and sign with them, and end as zero."""
    x = (10.0**exponent * maps(8, channels, positions, dtype=torch.float32)).requires_grad_()
    value = CovariancePool(channels, None, dims=1)(x)
    (gradient,) = torch.autograd.grad(value.sum(), x)
    assert torch.isfinite(value).all()
    assert torch.isfinite(gradient).all()
    assert value.abs().max() < 10 * 10.0**exponent


def test_evaluation_does_not_depend_on_the_batch():
    torch.manual_seed(0)
    pool, x = CovariancePool(6, 4), maps(5, 6, 4, 4, dtype=torch.float32)
    pool(x)
    pool.eval()
    # convolutions of other batch sizes may add in another order
    torch.testing.assert_close(pool(x)[2:3], pool(x[2:3]), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_bad_map_spoils_its_own_result(bad):
    x = maps(3, 5, 4, 4)
    x[1, 2, 3, 3] = bad
    x.requires_grad_()
    value = CovariancePool(5, None)(x)
    (gradient,) = torch.autograd.grad(value.sum(), x)
    for tensor in (value, gradient):
        assert tensor.isnan().flatten(1).any(1).tolist() == [False, True, False]


def test_refuses():
    pool = CovariancePool(64, 16)
    with pytest.raises(ValueError, match=r"64 channels; got 32, shape \(2, 32, 7, 7\)"):
        pool(torch.ones(2, 32, 7, 7))
    with pytest.raises(ValueError, match=r"4 dimensions \(B, C and 2 more\); got 3"):
        pool(torch.ones(2, 64, 7))
    with pytest.raises(ValueError, match="one of 1, 2, 3; got 4"):
        CovariancePool(64, 16, dims=4)
    with pytest.raises(ValueError, match=r"at least one position; got none, shape \(2, 64, 0, 7\)"):
        CovariancePool(64, None)(torch.ones(2, 64, 0, 7))
    with pytest.raises(ValueError, match="reduce_to must be at least 1, got 0"):
        CovariancePool(64, 0)
    with pytest.raises(ValueError, match="in_channels must be at least 1, got -1"):
        CovariancePool(-1, None)
    with pytest.raises(TypeError, match=r"x must be a torch\.Tensor, got ndarray"):
        pool(np.ones((2, 64, 7, 7)))
    with pytest.raises(ValueError, match="unknown method 'svd'; valid names are"):
        CovariancePool(64, None, method="svd")
    with pytest.raises(ValueError, match="gradient must be a name or an object, got the class"):
        CovariancePool(64, None, gradient=matroot.Lyapunov)
