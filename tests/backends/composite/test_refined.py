"""Float64 results by refinement are as exact as others, and what float32 cannot start is deferred."""

from functools import partial

import pytest
import torch

import matroot
from matroot import Minimax, Smith, count_operations
from matroot.backends._base import CallContext, Evaluation
from matroot.backends.composite.refined import Refined
from matroot.backends.cpu.compiled import Compiled

from ...installation import needs_compiled_code
from ...matrices import error, exact_gradient, orthogonal, random_like, spectrum, wishart, with_eigenvalues

pytestmark = needs_compiled_code
EPS = torch.finfo(torch.float64).eps
N = 24


class Counted(Compiled):
    """Compiled code that counts the equations it solves."""

    def __init__(self):
        self.equations = 0

    def solve(self, *arguments):
        self.equations += 1
        return super().solve(*arguments)


class Perturbed(Compiled):
    """Exact float32 results and errors of so many units u (sqrt(n) + sqrt(kappa)), u (sqrt(n) + kappa) but for roots.

    They are v v^T, v the eigenvector of the root's smallest eigenvalue, where they do most harm; with ``across`` the
    solutions' are v w^T + w v^T, w that of the largest, where they leave the largest residual.
    """

    def __init__(self, units, across=False):
        self.units, self.across = units, across

    def roots(self, A, ridge, method, output):
        values, Q = torch.linalg.eigh(A.double())
        s = values.sqrt()
        found = (Q * s[:, None]) @ Q.mT, (Q / s[:, None]) @ Q.mT
        root_kappa = s[:, -1] / s[:, 0]
        sizes = 0.25 * s[:, -1] * self._unit(A, root_kappa), self._unit(A, root_kappa**2) / s[:, 0]
        v = Q[:, :, :1]
        pairs = zip(found, sizes, strict=True)
        return Evaluation(tuple([(T + size[:, None, None] * v @ v.mT).float() for T, size in pairs]))

    def solve(self, saved, cotangents, ridge, gradient, output):
        s, Q = torch.linalg.eigh(saved[0].double())
        G, _ = cotangents
        assert G is not None
        X = Q @ ((Q.mT @ G.double() @ Q) / (s[:, :, None] + s[:, None, :])) @ Q.mT
        size = self._unit(X, (s[:, -1] / s[:, 0]) ** 2) * torch.linalg.matrix_norm(X)
        v, w = Q[:, :, :1], Q[:, :, -1:]
        direction = (v @ w.mT + w @ v.mT) / 2**0.5 if self.across else v @ v.mT
        return (X + size[:, None, None] * direction).float()

    def _unit(self, matrix, condition):
        return self.units * 2.0**-24 * (matrix.shape[-1] ** 0.5 + condition)


def refined(function, A, **options):
    return function(A, Minimax(), gradient=Smith(), backend="refined", **options)


def known(kind, kappa, count=3, n=N):
    """Matrices with their roots, inverse roots, eigenvalues of the root and eigenvectors.

    A is the square of its root, so that the root of A is known to eps sqrt(kappa); that of a rounded A would not be.
    """
    s = spectrum(kind, n, kappa).sqrt()
    Q = torch.stack([orthogonal(n, seed) for seed in range(count)])
    S, R = ((Q * values) @ Q.mT for values in (s, 1 / s))
    S = 0.5 * (S + S.mT)
    A = S @ S
    return 0.5 * (A + A.mT), S, R, s, Q


def gradients(s, Q, G):
    """Of <G, root> and of <G, inverse root>, given the root's eigenvalues and eigenvectors."""
    row, column = s[..., :, None], s[..., None, :]
    inner = Q.mT @ (0.5 * (G + G.mT)) @ Q / (row + column)
    return Q @ inner @ Q.mT, -Q @ (inner / (row * column)) @ Q.mT


def assert_exact(backend, A, S, R, s, Q, kappa):
    """Both roots, and the gradient of each, to errors of float64."""
    found = backend.roots(A, 0.0, Minimax(), "both")
    assert found.deferred is None
    assert error(found.roots[0], S) < 10 * EPS * kappa**0.5
    assert error(found.roots[1], R) < 10 * EPS * kappa
    G = random_like(A)
    for true, cotangents in zip(gradients(s, Q, G), ((G, None), (None, G)), strict=True):
        X = backend.solve(found.roots, cotangents, 0.0, Smith(), "both")
        assert error(X, true) < 20 * EPS * kappa


@pytest.mark.parametrize("kappa", [1.0, 1e2, 1e4, 1e6])
@pytest.mark.parametrize("kind", ["log", "clustered", "one-small", "one-large"])
def test_errors_are_those_of_float64(kind, kappa):
    """Rounding A moves the root by eps sqrt(kappa), the inverse root and both gradients by eps kappa."""
    A, S, R, s, Q = known(kind, kappa)
    assert_exact(Refined(Compiled()), A, S, R, s, Q, kappa)


@pytest.mark.parametrize(
    ("n", "units", "kappa"), [(N, 6, 1e4), (64, 1, 1e4), (64, 6, 1e3), (200, 0.3, 10), (200, -0.3, 1e2)]
)
def test_errors_do_not_depend_on_where_those_of_float32_are(n, units, kappa):
    """What two rounds leave of an error in one direction is in no entry larger than rounding. A residual of 8 eps there
    is 4 eps kappa of the inverse root and 12 of its gradient, and rounding itself is some eps kappa."""
    problems = [known(kind, kappa, 1, n) for kind in ("log", "clustered", "one-small", "one-large")]
    A, S, R, Q = (torch.cat([problem[i] for problem in problems]) for i in (0, 1, 2, 4))
    s = torch.stack([problem[3] for problem in problems])
    assert_exact(Refined(Perturbed(units)), A, S, R, s, Q, kappa)


@pytest.mark.parametrize("units", [1, 10])
def test_gradients_that_float32_does_not_refine(units):
    """One whose residual the first round does not reduce converges nevertheless; for one that no round corrects
    ordinary operations solve in float64."""
    kappa = 1e5
    (_, S, R, s, Q), easy = known("one-small", kappa, 1), known("log", 1e2, 1)
    saved = torch.cat((easy[1], S)), torch.cat((easy[2], R))
    G = random_like(S)
    for i, (true, cotangents) in enumerate(zip(gradients(s, Q, G), ((G, None), (None, G)), strict=True)):
        both = tuple([None if C is None else C.expand(2, N, N) for C in cotangents])
        X = Refined(Perturbed(units, across=True)).solve(saved, both, 0.0, Smith(), "both")
        assert error(X[1:], true) < 20 * EPS * kappa
        assert error(X[:1], gradients(*easy[3:], G)[i]) < 20 * EPS * 1e2


@pytest.mark.parametrize(("kappa", "rounds"), [(1e2, 2), (1e4, 2), (1e6, 3)])
def test_rounds(kappa, rounds):
    """Each round leaves eps(float32) kappa^(1/2 to 1) of the error; no more are taken than that needs."""
    inner = Counted()
    Refined(inner).roots(known("log", kappa)[0], 0.0, Minimax(), "both")
    assert inner.equations <= rounds


@pytest.mark.parametrize(("kappa", "of_roots"), [(1e2, 5), (1e6, 9)])
def test_products(kappa, of_roots, monkeypatch):
    """In float64 a residual a round; three for the cube of what the inverse root lacks, and as many again, twice, where
    float32 lacks much."""
    monkeypatch.setattr("matroot.backends.cpu.compiled.report_products", lambda *arguments: None)
    A, backend = known("log", kappa)[0], Refined(Compiled())
    with count_operations() as counts:
        found = backend.roots(A, 0.0, Minimax(), "both")
    assert counts.products <= of_roots
    with count_operations() as counts:
        backend.solve(found.roots, (random_like(A), None), 0.0, Smith(), "both")
    assert counts.products == 2


def test_every_matrix_for_itself():
    """Hard, singular and bad matrices are deferred, and the bits of the others stay."""
    easy = wishart(3, N)
    bad = torch.stack([
        with_eigenvalues(spectrum("log", N, 1e12)),
        wishart(N, samples=3),
        torch.full((N, N), torch.nan, dtype=torch.float64),
        torch.zeros(N, N, dtype=torch.float64),
        easy[0] - 2 * torch.eye(N),
    ])  # fmt: skip
    batch = torch.cat([easy[:2], bad, easy[2:]])
    deferred = Refined(Compiled()).roots(batch, 0.0, Minimax(), "sqrt").deferred
    assert deferred is not None
    assert deferred.tolist() == [False] * 2 + [True] * 5 + [False]
    G = random_like(batch)
    for function in (matroot.sqrtm, matroot.invsqrtm):
        X, Y = batch.clone().requires_grad_(), easy.clone().requires_grad_()
        found, alone = refined(function, X), refined(function, Y)
        (gradient,) = torch.autograd.grad(found, X, G)
        (of_alone,) = torch.autograd.grad(alone, Y, G[[0, 1, 7]])
        assert torch.equal(found[[0, 1, 7]], alone)
        assert torch.equal(gradient[[0, 1, 7]], of_alone)
        Z = batch.clone().requires_grad_()
        other = function(Z, Minimax(), gradient=Smith(), backend="torch")
        (of_other,) = torch.autograd.grad(other, Z, G)
        torch.testing.assert_close(found[2:7], other[2:7], equal_nan=True)  # the same code
        torch.testing.assert_close(gradient[2:7], of_other[2:7], equal_nan=True)
        assert torch.isnan(found[[4, 6]]).all()
        assert not found[5].any()
        assert not gradient[5].any()


def test_deferred_gradients_are_right():
    """Beyond condition 1e7 float32 does not start; the gradient is that of ordinary operations, good to eps kappa."""
    A = with_eigenvalues(spectrum("log", N, 1e9))[None].requires_grad_()
    deferred = Refined(Compiled()).roots(A.detach(), 0.0, Minimax(), "sqrt").deferred
    assert deferred is not None
    assert deferred.all()
    G = random_like(A)
    (found,) = torch.autograd.grad(refined(matroot.sqrtm, A), A, G)
    assert error(found, exact_gradient(A.detach(), G)) < 10 * EPS * 1e9


@pytest.mark.parametrize("ridge", [0.0, 0.1])
@pytest.mark.parametrize("function", [matroot.sqrtm, matroot.invsqrtm, matroot.roots])
def test_first_and_second_derivatives(function, ridge):
    A = (wishart(2, 4) + 0.1 * random_like(wishart(2, 4))).requires_grad_()
    call = partial(refined, function, ridge=ridge)
    assert torch.autograd.gradcheck(call, A)
    assert torch.autograd.gradgradcheck(call, A, fast_mode=True)


@pytest.mark.parametrize("exponent", [-600, -100, 100, 600])
def test_every_scale(exponent):
    """Powers of four are exact: the same bits but for the exponent, far beyond the range of float32."""
    A, factor = wishart(2, N), 2.0**exponent
    X, Y = A.clone().requires_grad_(), (factor * A).requires_grad_()
    S, T = refined(matroot.sqrtm, X), refined(matroot.sqrtm, Y)
    assert torch.equal(factor**0.5 * S, T)
    (gX,), (gY,) = torch.autograd.grad(S, X, A), torch.autograd.grad(T, Y, A)
    assert torch.equal(gX, factor**0.5 * gY)


@pytest.mark.parametrize("exponent", [-1040, -600, 600, 900])
@pytest.mark.parametrize("function", [matroot.sqrtm, matroot.invsqrtm])
def test_every_scale_of_cotangents(function, exponent):
    """A power of two changes nothing but the exponent; subnormal numbers of 2^-1040 have 34 digits, and so has what
    comes of them."""
    A, G, factor = wishart(2, N).requires_grad_(), random_like(wishart(2, N)), 2.0**exponent
    found = refined(function, A)
    (X,), (Y,) = (torch.autograd.grad(found, A, H, retain_graph=True) for H in (G, factor * G))
    if exponent > -1000:
        assert torch.equal(factor * X, Y)
    else:
        assert torch.isfinite(Y).all()
        assert error(Y * 2.0**1000, X * factor * 2.0**1000) < 100 * 2.0**-34


def test_rotations():
    """Rotating rounds A, which moves the root by eps sqrt(kappa): tens of eps here."""
    A, Q = wishart(2, N), orthogonal(N, 5)
    rotated = refined(matroot.sqrtm, Q @ A @ Q.mT)
    assert error(rotated, Q @ refined(matroot.sqrtm, A) @ Q.mT) < 100 * EPS


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"dtype": torch.float32}, "it computes in float64"),
        ({"traced": True}, r"not inside torch\.compile"),
        ({"captured": True}, "a CUDA graph cannot ask"),
        (
            {"shape": torch.Size((2, 600, 600))},
            r"no backend takes \(2, 600, 600\) in float32: compiled: .* larger than",
        ),
    ],
)
def test_says_why_not(changes, reason):
    context = CallContext(torch.device("cpu"), torch.float64, torch.Size((2, 8, 8)))
    backend = Refined(Compiled())
    assert backend.why_unsupported(context, Minimax(), Smith()) is None
    why = backend.why_unsupported(context._replace(**changes), Minimax(), Smith())
    assert why is not None
    with pytest.raises(ValueError, match=reason):
        raise ValueError(why)
