"""What callers may pass, and what comes back: types, shapes, layouts, dtypes, ridge, check."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch

import matroot

from .bad_matrices import without_root
from .matrices import error, exact_inverse_root, exact_root, wishart
from .pairs import CASES, evaluate, value_and_gradient

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128)
every_case = pytest.mark.parametrize(("pair", "name"), CASES)


# --- refused -------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [matroot.sqrtm, matroot.invsqrtm, matroot.roots])
@pytest.mark.parametrize("bad", [np.eye(2), [[1.0]], None, 3.0])
def test_not_a_tensor(function, bad):
    with pytest.raises(TypeError, match=f"must be a torch.Tensor, got {type(bad).__name__}"):
        function(bad)


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.bool, torch.float8_e4m3fn])
def test_wrong_dtype(dtype):
    with pytest.raises(TypeError, match=rf"dtype {str(dtype)[6:]}; accepted are float16, bfloat16, float32"):
        matroot.sqrtm(torch.eye(2).to(dtype))


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (4, 3, 2), (0, 2, 1)])
def test_wrong_shape(shape):
    with pytest.raises(ValueError, match=r"shape \(\*, n, n\), got \(" + ", ".join(map(str, shape))):
        matroot.sqrtm(torch.ones(shape))


@pytest.mark.parametrize("ridge", [-1e-9, math.inf, math.nan, 1e31, 10**400])
def test_wrong_ridge(ridge):
    with pytest.raises(ValueError, match="ridge must be from 0 to 1e30"):
        matroot.sqrtm(torch.eye(2), ridge=ridge)


@pytest.mark.parametrize("backend", ["cuda", ["torch"], None])
def test_unknown_backend(backend):
    with pytest.raises(ValueError, match=r"unknown backend .*; valid names are auto, "):
        matroot.sqrtm(torch.eye(2), backend=backend)


# --- shapes and layouts --------------------------------------------------------------------------


@every_case
def test_no_matrices_without_values(pair, name):
    assert evaluate(pair, name, torch.empty(2, 0, 3, 3, device="meta")).shape == (2, 0, 3, 3)


@every_case
def test_every_shape(pair, name):
    for shape in ((0, 3), (2, 0, 3), (3, 0), (0,), (0, 0), (1,), (2, 1), (2, 3, 1, 2, 4)):
        A = wishart(*shape, samples=5)
        value, gradient = value_and_gradient(pair, name, A)
        assert value.shape == gradient.shape == A.shape
        assert torch.isfinite(value).all()
        assert torch.isfinite(gradient).all()
        if len(shape) > 3:
            flat_value, flat_gradient = value_and_gradient(pair, name, A.reshape(-1, *A.shape[-2:]))
            torch.testing.assert_close(value.reshape(flat_value.shape), flat_value)
            torch.testing.assert_close(gradient.reshape(flat_value.shape), flat_gradient)


def strided():
    base = torch.zeros(3, 8, 10, dtype=torch.float64)
    view = base[:, ::2, 1::2][..., :4, :4]
    return view.copy_(wishart(3, 4))


LAYOUTS = {
    "strided": strided(),
    "transposed": wishart(3, 4).permute(2, 0, 1).contiguous().permute(1, 2, 0),
    "expanded": wishart(4).expand(3, 4, 4),
    "conjugate": wishart(3, 4, dtype=torch.complex128).conj(),
}


def test_layouts_are_what_they_are_called():
    assert not any(view.is_contiguous() for name, view in LAYOUTS.items() if name != "conjugate")
    assert LAYOUTS["conjugate"].is_conj()


@every_case
def test_every_layout(pair, name):
    """To the rounding of well-conditioned matrices."""
    for view in LAYOUTS.values():
        A = view.clone(memory_format=torch.contiguous_format).resolve_conj().requires_grad_()
        view = view.detach().requires_grad_()
        value, expected = evaluate(pair, name, view), evaluate(pair, name, A)
        torch.testing.assert_close(value, expected, rtol=1e-12, atol=1e-12)
        G = wishart(3, 4, seed=5).to(A.dtype)
        (gradient,) = torch.autograd.grad(value, view, G)
        (expected,) = torch.autograd.grad(expected, A, G)
        torch.testing.assert_close(gradient.resolve_conj(), expected, rtol=1e-10, atol=1e-10)


# --- dtypes --------------------------------------------------------------------------------------


@every_case
def test_dtype_is_kept(pair, name):
    """Computed in float32 at least: the only loss in half precision is the final rounding."""
    for dtype in DTYPES:
        wide = torch.complex128 if dtype.is_complex else torch.float64
        A = wishart(2, 5, dtype=wide).to(dtype)
        value, gradient = value_and_gradient(pair, name, A)
        assert value.dtype == gradient.dtype == dtype
        true_value = evaluate(pair, name, A.to(wide))
        assert error(value, true_value) < max(2e-5, torch.finfo(dtype).eps), dtype


# --- meaning -------------------------------------------------------------------------------------


@every_case
def test_only_the_symmetric_part_matters(pair, name):
    A = wishart(2, 5)
    skew = torch.triu(torch.ones(5, 5, dtype=A.dtype), 1)
    value, gradient = value_and_gradient(pair, name, A)
    skewed_value, skewed_gradient = value_and_gradient(pair, name, A + skew - skew.mT)
    torch.testing.assert_close(skewed_value, value, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(skewed_gradient, gradient, rtol=1e-9, atol=1e-11)
    assert torch.equal(value, value.mT)
    assert torch.equal(gradient, gradient.mT)


@pytest.mark.parametrize("ridge", [np.float32(0.5), np.float16(0.5), np.int64(2), Fraction(1, 2)])
def test_ridge_of_any_real_type(ridge):
    expected = matroot.sqrtm(wishart(3, 6), ridge=float(ridge))
    torch.testing.assert_close(matroot.sqrtm(wishart(3, 6), ridge=ridge), expected, rtol=0, atol=0)


@pytest.mark.parametrize("ridge", [True, np.bool_(True), None, "0.1", 1j, torch.tensor(0.1)])
def test_ridge_of_the_wrong_type(ridge):
    with pytest.raises(TypeError, match=f"ridge must be a number, got {type(ridge).__name__}"):
        matroot.sqrtm(torch.eye(2), ridge=ridge)


def test_large_ridge():
    torch.testing.assert_close(matroot.sqrtm(torch.eye(3), ridge=1e30), 1e15 * torch.eye(3))


def test_check_knows_the_ridge():
    A = torch.diag(torch.tensor([1.0, -0.01]))
    matroot.sqrtm(A, ridge=0.1, check=True)
    with pytest.raises(ValueError, match="indefinite"):
        matroot.sqrtm(A, ridge=0.001, check=True)


@pytest.mark.parametrize("ridge", [0.03, 0.5])
@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e30])
def test_ridge(scale, ridge):
    A = (scale * wishart(3, 6, samples=4)).float()
    mean = A.double().diagonal(dim1=-2, dim2=-1).mean(-1)[..., None, None]
    regularised = A.double() + ridge * mean * torch.eye(6, dtype=torch.float64)
    S, R = matroot.roots(A, ridge=ridge)
    assert error(S, exact_root(regularised)) < 1e-5
    assert error(R, exact_inverse_root(regularised)) < 1e-5


@every_case
def test_ridge_gradient(pair, name):
    """The same as adding the ridge by hand and differentiating through the trace."""
    A = wishart(2, 4).requires_grad_()
    G = wishart(2, 4, seed=9)
    by_hand = A + 0.1 * A.diagonal(dim1=-2, dim2=-1).mean(-1)[..., None, None] * torch.eye(4, dtype=A.dtype)
    (expected,) = torch.autograd.grad(evaluate(pair, name, by_hand), A, G)
    (found,) = torch.autograd.grad(evaluate(pair, name, A, ridge=0.1), A, G)
    torch.testing.assert_close(found, expected, rtol=1e-8, atol=1e-10)


# --- check=True ----------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [matroot.sqrtm, matroot.invsqrtm, matroot.roots])
@pytest.mark.parametrize("dtype", DTYPES)
def test_check_accepts_good_matrices(function, dtype):
    A = wishart(2, 3, 4, dtype=torch.complex128 if dtype.is_complex else torch.float64).to(dtype)
    for good in (A, A[0, 0], A * 1e-3, A[:0], A[..., :0, :0], torch.zeros_like(A)):
        function(good, check=True)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("nan", "A is not finite in 1 of 4 matrices: 2"),
        ("inf", "A is not finite in 1 of 4 matrices: 2"),
        ("indefinite", "A is indefinite in 1 of 4 matrices: 2"),
        ("slightly-indefinite", "A is indefinite in 1 of 4 matrices: 2"),
    ],
)
def test_check_names_the_matrix(kind, message):
    A = wishart(4, 6)
    A[2] = without_root(kind, A[2])
    with pytest.raises(ValueError, match=message):
        matroot.sqrtm(A, check=True)


def test_check_finds_asymmetry():
    A = wishart(2, 3, 4)
    A[1, 2, 0, 1] += 1e-6
    with pytest.raises(ValueError, match=r"not symmetric \(Hermitian\) in 1 of 6 matrices: \(1, 2\)"):
        matroot.sqrtm(A, check=True)


def test_check_shortens_a_long_list():
    with pytest.raises(ValueError, match="indefinite in 40 of 40 matrices: 0, 1, 2, 3, 4 and 35 more"):
        matroot.sqrtm(-torch.eye(2).expand(40, 2, 2), check=True)


def test_check_of_a_single_matrix():
    with pytest.raises(ValueError, match=r"A is indefinite$"):
        matroot.sqrtm(-torch.eye(2), check=True)


def test_check_inside_vmap():
    def loss(A):
        return matroot.sqrtm(A, check=True).sum()

    for function in (loss, torch.func.grad(loss)):
        with pytest.raises(ValueError, match="check=True cannot be used inside vmap"):
            torch.func.vmap(function)(wishart(3, 6))
    torch.func.grad(loss)(wishart(3, 6))
