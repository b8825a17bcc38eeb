"""Every gradient against the exact one, or against the formula it claims to be."""

import pytest
import torch

import matroot
from matroot import (
    Eigen,
    EigenClip,
    EigenPade,
    EigenPower,
    EigenTaylor,
    Exact,
    Implicit,
    Krylov,
    Lyapunov,
    Minimax,
    NewtonSchulz,
    Pade,
    Taylor,
    Unrolled,
)

from ..agreement import assert_same, condition
from ..matrices import error, exact_gradient, random_like, spectrum, wishart, with_eigenvalues

CONVERGED = NewtonSchulz(iterations=30)


def vjp(function, A, G, **choice):
    A = A.clone().requires_grad_()
    return torch.autograd.grad(function(A, **choice), A, G)[0]


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("gradient", [Exact(), Lyapunov(iterations=40), Implicit(iterations=400), Krylov()], ids=str)
@pytest.mark.parametrize("method", [Eigen(), CONVERGED, Minimax()], ids=str)
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_implicit_rules_agree_with_the_truth(method, gradient, inverse, dtype):
    kinds = ("log", "clustered", "one-small", "one-large")
    function = matroot.invsqrtm if inverse else matroot.sqrtm
    for kappa in (1.0, 1e2, 1e4):
        A = torch.stack([with_eigenvalues(spectrum(kind, 12, kappa), i, dtype) for i, kind in enumerate(kinds)])
        G = random_like(A)
        found = vjp(function, A, G, method=method, gradient=gradient)
        # An error eps in A moves the gradient by eps kappa^(1/2), of the inverse root by eps kappa^(3/2).
        assert error(found, exact_gradient(A, G, inverse)) < 1e-13 * kappa ** (1.5 if inverse else 0.5), kappa
        torch.testing.assert_close(found, found.mH, rtol=0, atol=0)


@pytest.mark.parametrize("gradient", [Exact(), Lyapunov(iterations=40), Implicit(iterations=200), Krylov()], ids=str)
def test_both_roots_share_one_solve(gradient):
    A = wishart(3, 9)
    G, H = random_like(A, 1), random_like(A, 2)
    X = A.clone().requires_grad_()
    S, R = matroot.roots(X, "eigen", gradient=gradient)
    true = exact_gradient(A, G) + exact_gradient(A, H, inverse=True)
    assert error(torch.autograd.grad((S, R), X, (G, H), retain_graph=True)[0], true) < 1e-11
    # Using one output only must not need a gradient of the other.
    assert error(torch.autograd.grad(S, X, G, retain_graph=True)[0], exact_gradient(A, G)) < 1e-11
    assert error(torch.autograd.grad(R, X, H)[0], exact_gradient(A, H, inverse=True)) < 1e-11


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("inverse", [False, True])
def test_eigen_exact_at_repeated_eigenvalues(inverse, dtype):
    A = 2 * torch.eye(5, dtype=dtype).expand(2, 5, 5).clone()
    G = random_like(A)
    function = matroot.invsqrtm if inverse else matroot.sqrtm
    found = vjp(function, A, G)
    assert error(found, exact_gradient(A, G, inverse)) < 10 * torch.finfo(dtype).eps


# Mean of ||B_k - I||_F after 5, 6, 7 and 8 iterations on Pade roots of 64 x 64 covariances, float32.
RESIDUALS = [
    (200, "input", (0.28, 0.038, 1.0e-3, 1.3e-6)),
    (256, "input", (0.19, 0.017, 2.3e-4, 2.5e-7)),
    (200, "root", (2.5, 1.3, 0.49, 0.10)),
]


@pytest.mark.parametrize(("samples", "norm", "expected"), RESIDUALS)
def test_lyapunov_residuals_as_measured(samples, norm, expected):
    """With C = 2B the iteration keeps C = 2B, so that ``solve`` returns B_k itself."""
    S = matroot.sqrtm(wishart(200, 64, samples=samples, dtype=torch.float32), "pade")
    eye = torch.eye(64)
    for iterations, residual in zip((5, 6, 7, 8), expected, strict=True):
        B = Lyapunov(iterations=iterations, norm=norm).solve(S, 2 * S, ())
        found = torch.linalg.matrix_norm(B - eye).mean().item()
        if residual > 1e-5:
            assert found == pytest.approx(residual, rel=0.35)
        else:  # the level of float32 rounding, where only the magnitude is reproducible
            assert residual / 3 < found < 3 * residual


def test_lyapunov_tolerance_freezes_each_matrix_alone():
    A = torch.stack([torch.eye(6, dtype=torch.float64), with_eigenvalues(spectrum("log", 6, 1e4))])
    A[0, 0, 0] = 1.1
    G = random_like(A)
    stopping = Lyapunov(iterations=30, tolerance=1e-2)
    found = vjp(matroot.sqrtm, A, G, gradient=stopping)
    for i in range(2):
        alone = vjp(matroot.sqrtm, A[i : i + 1], G[i : i + 1], gradient=stopping)
        assert_same(alone, found[i : i + 1], "torch", condition(A[i]))
    true = exact_gradient(A, G)
    # Stopped at ||B - I|| < 1e-2, one quadratic step before: close, but visibly not converged.
    assert 1e-9 < error(found[:1], true[:1]) < 1e-2
    assert 1e-9 < error(found[1:], true[1:]) < 1e-2


def plain_root(A, method, inverse):
    """The printed formulas on an unscaled matrix, for autograd to walk through."""
    eye = torch.eye(A.shape[-1], dtype=A.dtype)
    norm = torch.linalg.matrix_norm(A, keepdim=True)
    if isinstance(method, NewtonSchulz):
        if method.norm == "trace":
            norm = A.diagonal(dim1=-2, dim2=-1).sum(-1)[..., None, None]
        Y, Z = A / norm, eye.expand_as(A)
        for _ in range(method.iterations):
            T = 0.5 * (3 * eye - Z @ Y)
            Y, Z = Y @ T, T @ Z
        return Z / norm.sqrt() if inverse else Y * norm.sqrt()
    z = eye - A / norm

    def polynomial(coefficients):
        total, power = torch.zeros_like(A), eye
        for c in coefficients:
            total = total + float(c) * power
            power = power @ z
        return total

    if isinstance(method, Taylor):
        value = polynomial(matroot.coefficients.taylor(method.degree, inverse))
    else:
        P, Q = (polynomial(c) for c in matroot.coefficients.pade(method.degree))
        value = torch.linalg.solve(P, Q) if inverse else torch.linalg.solve(Q, P)
    return value / norm.sqrt() if inverse else value * norm.sqrt()


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize(
    "method", [Taylor(), Pade(), Pade(degree=7), NewtonSchulz(), NewtonSchulz(form="single", norm="trace")], ids=str
)
def test_unrolled_is_autograd_of_the_formula(method, inverse):
    A, G = 3 * wishart(2, 8), random_like(wishart(2, 8))
    function = matroot.invsqrtm if inverse else matroot.sqrtm
    found = vjp(function, A, G, method=method, gradient=Unrolled())
    X = A.clone().requires_grad_()
    plain = torch.autograd.grad(plain_root(X, method, inverse), X, 0.5 * (G + G.mT))[0]
    assert error(found, 0.5 * (plain + plain.mT)) < 1e-9


@pytest.mark.parametrize("norm", ["frobenius", "trace"])
def test_unrolled_newton_schulz_is_its_closed_form(norm):
    """The adjoint recursion of the coupled iteration, written out by hand."""
    A, G = wishart(2, 7), random_like(wishart(2, 7))
    G = 0.5 * (G + G.mT)
    eye = torch.eye(7, dtype=A.dtype)
    if norm == "trace":
        theta, slope = A.diagonal(dim1=-2, dim2=-1).sum(-1)[..., None, None], eye
    else:
        theta = torch.linalg.matrix_norm(A, keepdim=True)
        slope = A / theta
    X = A / theta
    history, Y, Z = [], X, eye.expand_as(X)
    for _ in range(5):
        history.append((Y, Z))
        T = 0.5 * (3 * eye - Z @ Y)
        Y, Z = Y @ T, T @ Z
    dY, dZ = theta.sqrt() * G, torch.zeros_like(G)
    for Yk, Zk in reversed(history):
        T = 0.5 * (3 * eye - Zk @ Yk)
        dT = Yk.mT @ dY + dZ @ Zk.mT
        dY, dZ = dY @ T.mT - 0.5 * Zk.mT @ dT, T.mT @ dZ - 0.5 * dT @ Yk.mT
    inner = ((G * Y).sum((-2, -1)) / 2)[..., None, None] / theta.sqrt()
    true = dY / theta + (inner - (dY * X).sum((-2, -1))[..., None, None] / theta) * slope
    found = vjp(matroot.sqrtm, A, G, method=NewtonSchulz(norm=norm))
    assert error(found, 0.5 * (true + true.mT)) < 1e-11


def textbook_spectral_gradient(A, G, inverse, inverse_gaps):
    """dA = U (K^T o (U^T dU) + diag dlambda) U^T, as printed."""
    values, U = torch.linalg.eigh(A)
    f = values**-0.5 if inverse else values**0.5
    slope = -0.5 * values**-1.5 if inverse else 0.5 * values**-0.5
    dU = (G + G.mT) @ (U * f[..., None, :])
    K = inverse_gaps(values[..., :, None], values[..., None, :])
    K = K.masked_fill(torch.eye(A.shape[-1], dtype=torch.bool), 0)
    inner = K.mT * (U.mT @ dU) + torch.diag_embed(slope * (U.mT @ G @ U).diagonal(dim1=-2, dim2=-1))
    dA = U @ inner @ U.mT
    return 0.5 * (dA + dA.mT)


def taylor_gaps(terms):
    def gaps(a, b):
        large, small = torch.maximum(a, b), torch.minimum(a, b)
        return torch.sign(a - b) / large * sum((small / large) ** k for k in range(terms))

    return gaps


def clipped_gaps(a, b):
    return torch.sign(a - b) / (a - b).abs().clamp_min(0.01)


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("scale", [1.0, 37.0])
@pytest.mark.parametrize(
    ("gradient", "gaps"),
    [
        (EigenClip(), clipped_gaps),
        (EigenTaylor(), taylor_gaps(21)),
        (EigenTaylor(degree=100), taylor_gaps(101)),
        (EigenPade(degree=10**6), lambda a, b: 1 / (a - b)),
    ],
    ids=["clip", "taylor-20", "taylor-100", "pade"],
)
def test_spectral_gradients_are_the_textbook_formula(gradient, gaps, scale, inverse):
    """Some pairs of eigenvalues closer than the clip, and a scale that is no power of two."""
    values = torch.tensor([0.2, 0.2004, 0.5, 0.508, 0.9, 1.7], dtype=torch.float64)
    A = scale * with_eigenvalues(values)
    G = random_like(A)
    G = 0.5 * (G + G.mT)
    function = matroot.invsqrtm if inverse else matroot.sqrtm
    found = vjp(function, A, G, method="eigen", gradient=gradient)
    assert error(found, textbook_spectral_gradient(A, G, inverse, gaps)) < 1e-10


def test_eigen_clip_floors_eigenvalues():
    A = torch.diag(torch.tensor([1.0, 1e-9], dtype=torch.float64))
    found = vjp(matroot.sqrtm, A, torch.eye(2, dtype=torch.float64), gradient=EigenClip())
    torch.testing.assert_close(found.diagonal(), torch.tensor([0.5, 0.5 * 1e-5**-0.5], dtype=torch.float64))


def test_eigen_pade_limits_ties():
    """K is limited to (2N+1)/lambda_max; far pairs are exact."""
    values = torch.tensor([0.1, 1.0, 1.0 + 1e-9], dtype=torch.float64)
    A, G = with_eigenvalues(values), random_like(torch.empty(3, 3, dtype=torch.float64))
    found = vjp(matroot.sqrtm, A, G, gradient=EigenPade(degree=10))

    def gaps(a, b):
        return torch.sign(a - b) / torch.maximum((a - b).abs(), torch.maximum(a, b) / 21)

    true = textbook_spectral_gradient(A, 0.5 * (G + G.mT), False, gaps)
    assert error(found, true) < 1e-7


class PowerStep(torch.autograd.Function):
    """An eigenvector whose gradient is that of T power steps."""

    @staticmethod
    def forward(ctx, M, v, steps):
        ctx.save_for_backward(M, v)
        ctx.steps = steps
        return v.clone()

    @staticmethod
    def backward(ctx, dv):
        M, v = ctx.saved_tensors
        size = (M @ v).norm()
        term = (dv - v * (v @ dv)) / size
        total = torch.zeros_like(term)
        for _ in range(ctx.steps):
            total = total + term
            term = M.T @ term / size
        return torch.outer(total, v), None, None


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("steps", [1, 3, 20])
def test_eigen_power_is_power_iteration_with_deflation(steps, inverse):
    A = with_eigenvalues(torch.tensor([0.3, 0.5, 0.8, 1.3, 2.0], dtype=torch.float64))
    G = random_like(A)
    G = 0.5 * (G + G.mT)
    X = A.clone().requires_grad_()
    vectors = torch.linalg.eigh(A)[1].flip(-1)
    M, root = X, torch.zeros_like(A)
    for i in range(5):
        v = PowerStep.apply(M, vectors[:, i], steps)
        value = v @ M @ v
        root = root + value ** (-0.5 if inverse else 0.5) * torch.outer(v, v)
        M = M - M @ torch.outer(v, v)
    true = torch.autograd.grad(root, X, G)[0]
    function = matroot.invsqrtm if inverse else matroot.sqrtm
    found = vjp(function, A, G, method="eigen", gradient=EigenPower(iterations=steps))
    assert error(found, 0.5 * (true + true.mT)) < 1e-10


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("gradient", [EigenTaylor(degree=400), EigenPower(iterations=400), EigenClip(), EigenPade()])
def test_spectral_gradients_tend_to_the_exact_one(gradient, inverse):
    A = with_eigenvalues(torch.tensor([0.3, 0.5, 0.8, 1.3, 2.0], dtype=torch.float64))
    G = random_like(A)
    function = matroot.invsqrtm if inverse else matroot.sqrtm
    assert error(vjp(function, A, G, gradient=gradient), exact_gradient(A, G, inverse)) < 1e-10


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Lyapunov(iterations=0), "Lyapunov: iterations must be a positive integer"),
        (lambda: Lyapunov(tolerance=-1.0), "Lyapunov: tolerance must be a positive number"),
        (lambda: Lyapunov(norm="trace"), "Lyapunov: norm must be one of input, root"),  # type: ignore
        (lambda: Implicit(tolerance=float("nan")), "Implicit: tolerance must be a positive number"),
        (lambda: EigenClip(gap=0.0), "EigenClip: gap must be a positive number"),
        (lambda: EigenTaylor(degree=0), "EigenTaylor: degree must be a positive integer"),
        (lambda: EigenPade(degree=0), "EigenPade: degree must be a positive integer"),
        (lambda: EigenPower(iterations=0), "EigenPower: iterations must be a positive integer"),
    ],
)
def test_bad_parameters(make, message):
    with pytest.raises(ValueError, match=message):
        make()
