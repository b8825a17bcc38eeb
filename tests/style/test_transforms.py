"""Maps between covariances, against eigendecompositions and closed forms in float64."""

import math

import pytest
import torch

from matroot.style.transforms import NAMES, OptimalTransport, Whitening, transform_of


def covariance(seed: int, n: int = 6, condition: float = 1e3) -> torch.Tensor:
    """(1, n, n) with eigenvalues from 1/condition to 1 in random directions, in float64."""
    generator = torch.Generator().manual_seed(seed)
    Q = torch.linalg.qr(torch.randn(n, n, generator=generator, dtype=torch.float64))[0]
    return (Q * torch.logspace(-math.log10(condition), 0, n, dtype=torch.float64)) @ Q.mT[None]


def root(A: torch.Tensor) -> torch.Tensor:
    values, vectors = torch.linalg.eigh(A)
    return (vectors * values.clamp(min=0).sqrt()[:, None]) @ vectors.mT


def matrix(transform, content, style):
    return transform.matrix(content, root(style), "auto", None)


def moved(M: torch.Tensor, C: torch.Tensor) -> torch.Tensor:
    """The mean of |M x - x|^2 over features with covariance C."""
    D = M - torch.eye(M.shape[-1], dtype=M.dtype)
    return (D @ C @ D.mT).diagonal(dim1=-2, dim2=-1).sum(-1)


@pytest.mark.parametrize("transform", [Whitening(), OptimalTransport(max_gain=math.inf)], ids=repr)
def test_the_covariance_is_that_of_the_style(transform):
    C, S = covariance(0), covariance(1)
    M = matrix(transform, C, S)
    # Both condition numbers are 1e3; their product leaves ten digits.
    torch.testing.assert_close(M @ C @ M.mT, S, rtol=0, atol=1e-10)


def test_whitening_is_its_formula():
    C, S = covariance(0), covariance(1)
    torch.testing.assert_close(matrix(Whitening(), C, S), root(S) @ torch.linalg.inv(root(C)), rtol=0, atol=1e-9)


def test_transport_is_symmetric_and_positive_definite():
    M = matrix(OptimalTransport(max_gain=math.inf), covariance(0), covariance(1))
    torch.testing.assert_close(M, M.mT, rtol=0, atol=1e-12)
    assert torch.linalg.eigvalsh(M).min() > 0


def test_transport_of_variances_of_channels_is_their_ratio():
    c, s = (torch.tensor(values, dtype=torch.float64) for values in ([1.0, 4.0, 9.0], [4.0, 1.0, 9.0]))
    M = matrix(OptimalTransport(), torch.diag(c)[None], torch.diag(s)[None])
    torch.testing.assert_close(M[0], torch.diag((s / c).sqrt()), rtol=0, atol=1e-13)


@pytest.mark.parametrize("seed", range(4))
def test_transport_moves_features_less_than_whitening(seed):
    C, S = covariance(seed), covariance(seed + 10)
    nearest = moved(matrix(OptimalTransport(max_gain=math.inf), C, S), C)
    assert nearest < 0.99 * moved(matrix(Whitening(), C, S), C)
    # The squared distance of Bures and Wasserstein.
    expected = (C + S - 2 * root(root(C) @ S @ root(C))).diagonal(dim1=-2, dim2=-1).sum(-1)
    torch.testing.assert_close(nearest, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("limit", [1.0, 2.0, 3.5])
def test_gains_are_limited_and_no_others_changed(limit):
    C, S = covariance(0), covariance(1)
    values, vectors = torch.linalg.eigh(matrix(OptimalTransport(max_gain=math.inf), C, S))
    assert values.min() < limit < values.max()
    expected = (vectors * values.clamp(max=limit)[:, None]) @ vectors.mT
    # Next to the limit the squared difference has a root of 1e-8.
    torch.testing.assert_close(matrix(OptimalTransport(max_gain=limit), C, S), expected, rtol=0, atol=1e-7)


@pytest.mark.parametrize("limit", [1e4, 1e16, 1e300])
def test_a_limit_above_all_gains_is_none(limit):
    C, S = covariance(0), covariance(1)
    expected = matrix(OptimalTransport(max_gain=math.inf), C, S)
    torch.testing.assert_close(matrix(OptimalTransport(max_gain=limit), C, S), expected, rtol=0, atol=1e-11)


def test_ill_conditioned_covariances_in_float32():
    """Of conditions 1e6, as features have them: their product is beyond float32."""
    C, S = covariance(0, condition=1e6), covariance(1, condition=1e6)
    exact = matrix(OptimalTransport(), C, S)
    found = OptimalTransport().matrix(C.float(), root(S).float(), "auto", None)
    assert found.dtype == torch.float32
    # What is left is the rounding of C and of the root themselves, 1e-7 of variances of 1e-6.
    assert (found - exact).abs().max() < 0.1


@pytest.mark.parametrize("gain", [0.5, -1.0, math.nan])
def test_gains_that_would_change_a_picture_in_its_own_style(gain):
    with pytest.raises(ValueError, match="max_gain must be at least 1"):
        OptimalTransport(max_gain=gain)


def test_names():
    assert [transform_of(name) for name in NAMES] == [OptimalTransport(), Whitening()]
    assert transform_of(OptimalTransport(max_gain=3)) == OptimalTransport(3)
    with pytest.raises(ValueError, match="unknown transform 'nonsense'; expected one of 'transport', 'whitening'"):
        transform_of("nonsense")
