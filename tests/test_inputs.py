"""The table of inputs and results, row by row, for every method, gradient and function."""

import math

import numpy as np
import pytest
import torch

import matroot

from .matrices import FUNCTIONS, error, exact_inverse_root, exact_root, spectrum, wishart, with_eigenvalues
from .pairs import CASES, NAMED, PLAIN_EIGH

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128)
every_case = pytest.mark.parametrize(("pair", "name"), CASES)


def evaluate(pair, name, A, **kwargs):
    method, gradient = NAMED[pair]
    return FUNCTIONS[name](A, method, gradient=gradient, **kwargs)


def value_and_gradient(pair, name, A):
    A = A.detach().clone().requires_grad_()
    value = evaluate(pair, name, A)
    n = A.shape[-1]
    weights = torch.cos(torch.arange(n * n, dtype=torch.float64)).reshape(n, n).to(A.dtype)
    (gradient,) = torch.autograd.grad((weights * value).sum().real, A)
    return value.detach(), gradient


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


@pytest.mark.parametrize("ridge", [-1e-9, math.inf, math.nan])
def test_wrong_ridge(ridge):
    with pytest.raises(ValueError, match="ridge must be a finite number >= 0"):
        matroot.sqrtm(torch.eye(2), ridge=ridge)


# --- shapes and layouts --------------------------------------------------------------------------


@every_case
@pytest.mark.parametrize("shape", [(0, 3), (2, 0, 3), (3, 0), (0,), (0, 0), (1,), (2, 1), (2, 3, 1, 2, 4)])
def test_every_shape(pair, name, shape):
    A = wishart(*shape, samples=5)
    value, gradient = value_and_gradient(pair, name, A)
    assert value.shape == gradient.shape == A.shape
    assert torch.isfinite(value).all()
    assert torch.isfinite(gradient).all()
    if len(shape) > 3:
        flat_value, flat_gradient = value_and_gradient(pair, name, A.reshape(-1, *A.shape[-2:]))
        torch.testing.assert_close(value.reshape(flat_value.shape), flat_value)
        torch.testing.assert_close(gradient.reshape(flat_value.shape), flat_gradient)


@every_case
@pytest.mark.parametrize("layout", ["strided", "transposed", "expanded", "conjugate"])
def test_every_layout(pair, name, layout):
    if layout == "strided":
        base = torch.zeros(3, 8, 10, dtype=torch.float64)
        view = base[:, ::2, 1::2][..., :4, :4]
        view.copy_(wishart(3, 4))
    elif layout == "transposed":
        view = wishart(3, 4).permute(2, 0, 1).contiguous().permute(1, 2, 0)
    elif layout == "expanded":
        view = wishart(4).expand(3, 4, 4)
    else:
        view = wishart(3, 4, dtype=torch.complex128).conj()
        assert view.is_conj()
    A = view.clone(memory_format=torch.contiguous_format).resolve_conj()
    view = view.detach().requires_grad_()
    value = evaluate(pair, name, view)
    torch.testing.assert_close(value, evaluate(pair, name, A), rtol=1e-12, atol=1e-12)
    G = wishart(3, 4, seed=5).to(A.dtype)
    (gradient,) = torch.autograd.grad(value, view, G)
    A.requires_grad_()
    (expected,) = torch.autograd.grad(evaluate(pair, name, A), A, G)
    torch.testing.assert_close(gradient.resolve_conj(), expected, rtol=1e-10, atol=1e-10)


# --- one bad matrix in a batch -------------------------------------------------------------------


def spoil(kind, A, index):
    A = A.clone()
    if kind in ("nan", "inf", "-inf"):
        A[index, 0, 1] = float(kind)
    elif kind == "indefinite":
        A[index] = A[index] - 1.01 * torch.linalg.eigvalsh(A[index])[-1] * torch.eye(A.shape[-1], dtype=A.dtype)
    else:
        values = spectrum("log", A.shape[-1], 10.0)
        values[-1] = -0.01
        A[index] = with_eigenvalues(values, dtype=A.dtype)
    return A


@every_case
@pytest.mark.parametrize("kind", ["nan", "inf", "-inf", "indefinite", "slightly-indefinite"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64])
def test_one_bad_matrix_harms_no_other(pair, name, kind, dtype):
    A = wishart(4, 6, dtype=dtype)
    good = [0, 1, 3]
    expected = value_and_gradient(pair, name, A)
    removed = value_and_gradient(pair, name, A[good])
    found = value_and_gradient(pair, name, spoil(kind, A, 2))
    for whole, part, with_bad in zip(expected, removed, found, strict=True):
        assert torch.equal(with_bad[good], whole[good])
        assert torch.equal(with_bad[good], part)
        assert torch.isnan(with_bad[2]).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize(("n", "rank"), [(2, 1), (16, 3), (64, 48), (256, 48)])
def test_rounding_is_not_indefinite(n, rank, dtype):
    """Rank-deficient covariances have eigenvalues of either sign at the level of rounding."""
    X = torch.randn(20, n, rank, generator=torch.Generator().manual_seed(n), dtype=torch.float64)
    A = (X @ X.mT / rank).to(dtype)
    for method in ("eigen", "pade"):
        assert torch.isfinite(matroot.sqrtm(A, method)).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("n", [3, 8, 64, 256])
@pytest.mark.parametrize("kind", ["one-small", "log"])
def test_clearly_indefinite_at_any_size(n, dtype, kind):
    """One eigenvalue at -5 % of the largest is no rounding, whatever the others are."""
    values = spectrum(kind, n, 10.0)
    values[-1] = -0.05
    assert torch.isnan(matroot.sqrtm(with_eigenvalues(values).to(dtype))).all()


@pytest.mark.parametrize("method", [matroot.Pade(20), matroot.NewtonSchulz(15), matroot.Taylor(40)], ids=str)
def test_rounding_to_half_is_not_amplified(method):
    """A rank-one matrix rounded to bfloat16 has a negative eigenvalue that methods must not extrapolate to."""
    A = torch.tensor([[3.875, 3.4375], [3.4375, 3.03125]]).bfloat16()
    assert torch.linalg.eigvalsh(A.double())[0] < 0
    S, R = matroot.roots(A, method)
    assert error(S, exact_root(A)) < 0.3
    assert R.abs().max() < 5  # about 1/sqrt(eps lambda_max) for the shifted zero


def test_a_diverged_root_harms_no_other():
    """Forty steps on a singular matrix overflow; the gradient of its neighbour is untouched."""
    X = torch.randn(16, 3, generator=torch.Generator().manual_seed(0))
    A = torch.stack([X @ X.mT, torch.eye(16)]).requires_grad_()
    S = matroot.sqrtm(A, matroot.NewtonSchulz(60), gradient="exact")
    (gradient,) = torch.autograd.grad(S.sum(), A)
    assert not torch.isfinite(S[0]).all()
    torch.testing.assert_close(gradient[1], 0.5 * torch.ones(16, 16))


# --- scale ---------------------------------------------------------------------------------------


# The two outputs of ``roots`` scale differently; each is tested alone.
@pytest.mark.parametrize(("pair", "name"), [case for case in CASES if case[1] != "roots"])
@pytest.mark.parametrize("scale", [1e-30, 1e-20, 1e20, 1e30])
def test_scale_equivariance(pair, name, scale):
    """sqrtm(cA) = sqrt(c) sqrtm(A), invsqrtm(cA) = invsqrtm(A)/sqrt(c); gradients likewise."""
    power = 0.5 if name == "sqrtm" else -0.5
    A = wishart(2, 5, dtype=torch.float32)
    value, gradient = value_and_gradient(pair, name, A)
    scaled_value, scaled_gradient = value_and_gradient(pair, name, A * scale)
    assert error(scaled_value.double(), scale**power * value.double()) < 1e-5
    if "clip" not in pair and 1e-37 < scale ** (power - 1) < 1e37:
        assert error(scaled_gradient.double(), scale ** (power - 1) * gradient.double()) < 1e-4


@pytest.mark.parametrize("method", ["taylor", "pade", "newton-schulz", "eigen"])
def test_powers_of_four_are_exact(method):
    A = wishart(3, 6, dtype=torch.float32)
    S, R = matroot.roots(A, method)
    for k in (-40, -3, 1, 50):
        scaled_S, scaled_R = matroot.roots(A * 4.0**k, method)
        assert torch.equal(scaled_S, S * 2.0**k)
        assert torch.equal(scaled_R, R * 2.0**-k)


def test_the_ends_of_the_float32_range():
    for value in (torch.finfo(torch.float32).max, torch.finfo(torch.float32).tiny, 1e-42):
        A = value * torch.eye(3)
        torch.testing.assert_close(matroot.sqrtm(A), A.double().sqrt().float())


# --- degenerate matrices -------------------------------------------------------------------------

DEGENERATE = {
    "zero": torch.zeros(4, 4),
    "identity": torch.eye(4),
    "repeated": torch.diag(torch.tensor([2.0, 2.0, 1.0, 1.0])),
    "rank-one": torch.ones(4, 4),
    "rank-two": with_eigenvalues(torch.tensor([1.0, 0.3, 0.0, 0.0])).float(),
    "nearly-repeated": torch.diag(torch.tensor([1.0, 1.0 + 1.2e-7, 1.0, 0.5])),
}


@every_case
@pytest.mark.parametrize("kind", DEGENERATE)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64])
def test_degenerate_matrices_are_finite(pair, name, kind, dtype):
    A = DEGENERATE[kind].to(dtype).requires_grad_()
    value = evaluate(pair, name, A)
    assert torch.isfinite(value).all()
    if pair == PLAIN_EIGH:
        return
    (gradient,) = torch.autograd.grad((value * torch.ones_like(value)).sum().real, A, create_graph=True)
    assert torch.isfinite(gradient).all()
    if "eigen-" not in pair:
        (second,) = torch.autograd.grad(gradient.abs().square().sum(), A)
        assert torch.isfinite(second).all()


@every_case
def test_zero_symmetric_part_is_zero(pair, name):
    value, _ = value_and_gradient(pair, name, torch.tensor([[0.0, 1.0], [-1.0, 0.0]]))
    assert not value.any()


@every_case
def test_zero_matrix_is_zero(pair, name):
    value, gradient = value_and_gradient(pair, name, torch.zeros(2, 3, 3))
    assert not value.any()
    assert not gradient.any()


@pytest.mark.parametrize("function", [matroot.sqrtm, matroot.invsqrtm])
def test_plain_eigh_fails_where_the_default_does_not(function):
    """The reason for rules of our own."""
    A = torch.eye(3).requires_grad_()
    (plain,) = torch.autograd.grad(function(A, "eigen", gradient="unrolled")[0, 1], A)
    (ours,) = torch.autograd.grad(function(A)[0, 1], A)
    assert not torch.isfinite(plain).all()
    assert torch.isfinite(ours).all()
    assert ours[0, 1] != 0


# --- dtypes --------------------------------------------------------------------------------------


@every_case
@pytest.mark.parametrize("dtype", DTYPES)
def test_dtype_is_kept(pair, name, dtype):
    A = wishart(2, 5, dtype=torch.complex128 if dtype.is_complex else torch.float64).to(dtype)
    value, gradient = value_and_gradient(pair, name, A)
    assert value.dtype == gradient.dtype == dtype
    wide = {torch.complex64: torch.complex128, torch.complex128: torch.complex128}.get(dtype, torch.float64)
    true_value, _ = value_and_gradient(pair, name, A.to(wide))
    # Computed in float32 at least: the only loss in half precision is the final rounding.
    assert error(value, true_value) < max(2e-5, torch.finfo(dtype).eps)


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


@pytest.mark.parametrize("ridge", [True, None, "0.1", 1j, torch.tensor(0.1)])
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
    A = spoil(kind, wishart(4, 6), 2)
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
