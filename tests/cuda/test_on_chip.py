"""Roots and gradients up to n = 64 on a GPU: errors at every condition, bits, singular and bad matrices."""

import pytest
import torch

from matroot import roots
from matroot.bench.problems import covariances, largest_error
from matroot.bench.random_search.batches import Batch, matrices_of
from matroot.bench.random_search.check import check, compute

from ..bad_matrices import assert_harm_no_other, without_root
from ..matrices import error, exact_inverse_root, exact_root, random_like, wishart
from .graphs import assert_graph_repeats

DEVICE = "cuda"
KINDS = ("log", "uniform", "clustered", "one-small", "one-large")
# In units of u (sqrt(n) + sqrt(kappa)) for roots, u (sqrt(n) + kappa) for inverse roots and gradients: constants of a
# few products, whose sums tensor cores truncate.
MOST = {"root": 4.0, "inverse": 6.0, "gradient": 12.0}
SINGULAR = 3e-4
"""What ``torch.linalg.eigh`` in float32 reaches: rounding the entries moves eigenvalues of zero by eps or so."""


def assert_rounding(report):
    assert not report.failures
    for name, (units, _) in report.errors.items():
        worst = max(range(len(units)), key=units.__getitem__)
        assert units[worst] <= MOST[name], f"{name} at condition {report.condition[worst]:.3g}"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [2, 7, 13, 15, 16, 17, 31, 32, 33, 48, 63, 64])
def test_errors_are_those_of_rounding_at_every_condition(n, kind):
    """A fine sweep of one batch, so that matrices lie on both sides of every line, wherever it is."""
    conditions = tuple(10 ** (6 * k / 119) for k in range(120))
    assert_rounding(check(Batch(0, n, kind, "float32", 0, conditions, {}, (True, True)), DEVICE, roots))


@pytest.mark.parametrize("kind", ["log", "uniform", "one-small"])
@pytest.mark.parametrize("n", [13, 20, 27, 33])
def test_worst_of_many(n, kind):
    """Where errors have been largest: few eigenvalues, whose moments say little of them."""
    conditions = tuple(57 * 8 ** (k / 2047) for k in range(2048))
    for number in range(4):
        gradients = ((True, False), (False, True), (True, True), (True, True))[number]
        assert_rounding(check(Batch(number, n, kind, "float32", 0, conditions, {}, gradients), DEVICE, roots))


@pytest.mark.parametrize("exponent", [-50, -25, 25, 50])
def test_any_scale(exponent):
    conditions = (3.0, 100.0, 1e4, 1e6)
    gradients = (True, abs(exponent) < 30)
    assert_rounding(check(Batch(0, 48, "log", "float32", exponent, conditions, {}, gradients), DEVICE, roots))


@pytest.mark.parametrize(("batch", "n"), [(16, 64), (64, 33), (64, 13), (64, 6), (64, 2)])
def test_singular_matrices(batch, n):
    A = covariances(batch, n, n // 2, device=DEVICE).float().requires_grad_()
    S, _ = roots(A)
    assert largest_error(S.detach(), exact_root(A.detach().cpu()).to(DEVICE)) < SINGULAR
    (gradient,) = torch.autograd.grad(S.sum(), A)
    assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("kind", ["indefinite", "slightly-indefinite"])
@pytest.mark.parametrize("n", [5, 32, 64])
def test_indefinite_matrices_have_no_root(kind, n):
    A = without_root(kind, wishart(n, seed=1)).float()[None].to(DEVICE)
    for T in roots(A):
        assert torch.isnan(T).all()


@pytest.mark.parametrize("n", [13, 64])
def test_bad_matrices_harm_no_other(n):
    def results(matrices):
        X = matrices.clone().requires_grad_()
        S, R = roots(X)
        return S.detach(), R.detach(), *torch.autograd.grad((S, R), X, (torch.ones_like(S), torch.ones_like(S)))

    assert_harm_no_other(wishart(300, n, dtype=torch.float32).to(DEVICE), (3, 50, 51, 299), results)


@pytest.mark.parametrize("n", [7, 16, 31, 33, 64])
def test_results_do_not_depend_on_the_batch(n):
    """The same bits alone, among others, and every time; easy, hard and singular matrices side by side."""
    kinds = ("log", "uniform", "one-small", "one-large", "singular")
    made = [matrices_of(Batch(0, n, kind, "float32", 0, (3.0, 300.0, 1e5), {}, (True, True)), DEVICE) for kind in kinds]
    A, GS, GR = (torch.cat([getattr(m, name) for m in made]) for name in ("A", "GS", "GR"))
    together = compute(A, (GS, GR), roots)
    copies = compute(*((A.repeat(200, 1, 1), (GS.repeat(200, 1, 1), GR.repeat(200, 1, 1)))), roots)
    for name, T in together.items():
        assert torch.equal(T, T.mT)
        assert torch.equal(copies[name].view(torch.int32), T.repeat(200, 1, 1).view(torch.int32)), name
    for i in range(len(A)):
        alone = compute(A[i : i + 1], (GS[i : i + 1], GR[i : i + 1]), roots)
        for name, T in alone.items():
            assert torch.equal(T[0].view(torch.int32), together[name][i].view(torch.int32)), (name, i)


def test_strided_and_asymmetric_input():
    A = wishart(3, 20, dtype=torch.float32)
    skew = random_like(A)
    B = (A + skew - skew.mT).to(DEVICE)
    for layout in (B, B.permute(1, 2, 0).contiguous().permute(2, 0, 1), B.mT.contiguous().mT, B[:1].expand(3, -1, -1)):
        S, R = roots(layout)
        assert error(S.cpu(), exact_root(layout.cpu())) < 3e-6
        assert error(R.cpu(), exact_inverse_root(layout.cpu())) < 3e-6


@pytest.mark.parametrize("n", [48, 63, 64])
def test_graphs_repeat_bit_for_bit(n):
    made = matrices_of(Batch(0, n, "log", "float32", 0, (3.0, 300.0, 1e4, 1e6) * 4, {}, (True, True)), DEVICE)
    A = made.A.requires_grad_()

    def step():
        S, R = roots(A)
        return torch.autograd.grad((S, R), A, (made.GS, made.GR))

    assert_graph_repeats(step, step())
