"""The compiled code at the ends of float32 and float64: right wherever the answer is a number of the dtype."""

from itertools import product

import pytest
import torch

import matroot

from ...installation import needs_compiled_code
from ...matrices import exact_gradient, exact_root, random_like

pytestmark = needs_compiled_code

DTYPES = [torch.float32, torch.float64]
LAST = {torch.float32: 127, torch.float64: 1023}
"""The largest exponent of a power of two."""
LEAST = {torch.float32: -149, torch.float64: -1074}
"""The smallest, of a subnormal one."""
FUNCTIONS = {"sqrtm": (matroot.sqrtm, 1), "invsqrtm": (matroot.invsqrtm, -1)}
"""Each function, and the sign of the power of A."""


def times(T, exponent):
    """T 2^exponent in float64, for exponents of any size."""
    T = T.double()
    while exponent:
        step = max(-1000, min(exponent, 1000))
        T, exponent = T * 2.0**step, exponent - step
    return T


def is_exact(T, exponent):
    """Whether T 2^exponent can be written in the dtype of T."""
    return torch.equal(times(times(T, exponent).to(T.dtype), -exponent), T.double())


def whole_numbers(n, dtype):
    """A positive definite matrix of small integers: they stay exact far into the subnormal numbers."""
    M = torch.randint(-2, 3, (n, 2 * n), generator=torch.Generator().manual_seed(n)).double()
    return (M @ M.mT + torch.eye(n)).to(dtype)


def value_and_gradient(function, A, G, ridge=0.0):
    A = A.detach().clone().requires_grad_()
    value = function(A, backend="compiled", ridge=ridge)
    return value.detach(), torch.autograd.grad(value, A, G)[0]


def equal_if_normal(found, true):
    """Equal to the last bit where ``true``, in float64, is zero or normal in the dtype; NaN nowhere."""
    limits = torch.finfo(found.dtype)
    normal = (true == 0) | ((true.abs() >= limits.tiny) & (true.abs() <= limits.max))
    return not found.isnan().any() and torch.equal(found.double()[normal], true[normal])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ridge", [0.0, 0.1])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_powers_of_four_are_exact(name, ridge, dtype):
    """(4^k A)^(1/2) = 2^k A^(1/2) bit for bit, and the gradient for a cotangent of any size.

    Every product is of matrices that were scaled by powers of two, which is exact, so nothing may differ unless it
    leaves the normal numbers. Subnormal input is as exact, as long as its entries are.
    """
    function, sign = FUNCTIONS[name]
    last, least = LAST[dtype], LEAST[dtype]
    sizes = [-last - 1, -last + 3, -last // 2, -1, 0, last // 2, last - 1]
    for n in (1, 4, 33):
        A = whole_numbers(n, dtype)
        G = random_like(A).clamp(-1.9, 1.9)
        value, gradient = value_and_gradient(function, A[None], G[None], ridge)
        powers = [k for k in range(least // 2, last // 2) if is_exact(A, 2 * k)]
        assert min(powers) < least // 2 + 8
        assert max(powers) > last // 2 - 8
        powers = sorted({*powers[:12], *powers[12:-6:16], 0, *powers[-6:]})
        cases = list(product(powers, sizes))
        found = value_and_gradient(
            function,
            torch.stack([times(A, 2 * k) for k, _ in cases]).to(dtype),
            torch.stack([times(G, size) for _, size in cases]).to(dtype),
            ridge,
        )
        for (k, size), root, X in zip(cases, *found, strict=True):
            assert equal_if_normal(root, times(value[0], sign * k)), (n, k)
            # The derivative of A^(+-1/2) scales by 4^(k (+-1/2 - 1)).
            if is_exact(G, size):
                assert equal_if_normal(X, times(gradient[0], size + (sign - 2) * k)), (n, k, size)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_both_cotangents(ridge, dtype):
    """Cotangents of both roots, of any sizes: the error is rounding of the larger part, times the condition number."""
    last, eps = LAST[dtype], torch.finfo(dtype).eps
    ends = [-last + 8, -last // 2, 0, last // 2, last - 8]
    for n in (1, 4, 33):
        A = whole_numbers(n, dtype)
        G, H = random_like(A).clamp(-1.9, 1.9), random_like(A, 2).clamp(-1.9, 1.9)
        regular = with_ridge(A.double(), ridge)
        kappa = torch.linalg.cond(regular).item()
        parts = [with_ridge(exact_gradient(regular, T, inverse), ridge) for inverse, T in enumerate((G, H))]
        cases = list(product([power // 2 for power in ends], ends, ends))
        X = torch.stack([times(A, 2 * k) for k, _, _ in cases]).to(dtype).requires_grad_()
        cotangents = [torch.stack([times(T, case[1 + i]) for case in cases]).to(dtype) for i, T in enumerate((G, H))]
        (found,) = torch.autograd.grad(matroot.roots(X, backend="compiled", ridge=ridge), X, cotangents)
        inside = 0
        for (k, g, h), gradient in zip(cases, found, strict=True):
            exponents = (g - k, h - 3 * k)
            common = max(exponents)
            true = sum(times(part, e - common) for part, e in zip(parts, exponents, strict=True))
            assert not gradient.isnan().any()
            if abs(common + true.abs().max().log2()) < last - 10:
                inside += 1
                size = sum(times(part, e - common).norm() for part, e in zip(parts, exponents, strict=True))
                assert (times(gradient, -common) - true).norm() < 10 * eps * kappa * size
        assert inside > len(cases) // 4


def with_ridge(A, ridge):
    """A + ridge (trace(A)/n) I, a self-adjoint map: of gradients too."""
    return A + ridge * A.diagonal().mean() * torch.eye(A.shape[-1], dtype=A.dtype)


def test_where_gradients_were_not_finite():
    """Half of a cotangent at the end of the range, a third power of an inverse root, a root near the end."""
    for function, a, g, true in (
        (matroot.invsqrtm, 2e-39, 1e-36, -0.5 * 1e-36 * 2e-39**-1.5),
        (matroot.sqrtm, 2e32, 3e38, 0.5 * 3e38 * 2e32**-0.5),
        (matroot.sqrtm, 3e38, 1.0, 0.5 * 3e38**-0.5),
        (matroot.sqrtm, 1.0, 3.4e38, 0.5 * 3.4e38),
    ):
        for n in (1, 4, 33, 80):
            _, X = value_and_gradient(function, a * torch.eye(n)[None], g * torch.eye(n)[None])
            torch.testing.assert_close(X[0].double(), true * torch.eye(n).double(), rtol=1e-5, atol=0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_rounding_to_subnormal_numbers_made_indefinite(dtype):
    """Counts as zero: rounding moves no eigenvalue by more than n/2 of the smallest number, and roots by its root."""
    least = 2.0 ** LEAST[dtype]
    for n in (4, 33):
        v = torch.randn(n, dtype=torch.float64, generator=torch.Generator().manual_seed(n))
        units = (20 * torch.outer(v, v)).round()
        low = torch.linalg.eigvalsh(units).min()
        assert -n / 2 < low < -1e-2 * n
        root = matroot.sqrtm((units * least).to(dtype)[None], backend="compiled")[0]
        half, odd = divmod(LEAST[dtype], 2)  # the root is 2^half that of 2^odd units
        difference = times(root, -half) - exact_root(2**odd * units)
        assert torch.linalg.matrix_norm(difference, 2) < 2 * (2**odd * n / 2) ** 0.5


@pytest.mark.parametrize("dtype", DTYPES)
def test_negative_subnormal_matrices_have_no_root(dtype):
    for n in (1, 2, 8, 33):
        for size in (1, 3, 100):
            A = -size * 2.0 ** LEAST[dtype] * torch.eye(n, dtype=dtype)[None]
            assert (A != 0).any()
            assert matroot.sqrtm(A, backend="compiled").isnan().all()


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_cotangents_that_are_not_finite(bad):
    """One matrix loses its gradient, the other one keeps it to the last bit."""
    A = whole_numbers(5, torch.float32).repeat(2, 1, 1)
    G = random_like(A)
    _, right = value_and_gradient(matroot.sqrtm, A, G)
    G[0, 1, 2] = bad
    _, X = value_and_gradient(matroot.sqrtm, A, G)
    assert not X[0].isfinite().any()
    assert torch.equal(X[1], right[1])
