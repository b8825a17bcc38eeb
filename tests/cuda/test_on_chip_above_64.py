"""Large batches of matrices between n = 64 and n = 128, on a GPU."""

import pytest
import torch

from matroot import roots
from matroot.bench.problems import covariances, largest_error
from matroot.bench.random_search.batches import Batch, matrices_of
from matroot.bench.random_search.check import check, compute

from ..bad_matrices import assert_harm_no_other, without_root
from ..matrices import error, exact_inverse_root, exact_root, random_like, wishart
from .graphs import assert_graph_repeats
from .test_on_chip import DEVICE, KINDS, MOST, SINGULAR

pytest.importorskip("triton")
from matroot.backends.triton.on_chip import launch as on_chip
from matroot.backends.triton.tiled import fast_launch
from matroot.backends.triton.tiled import launch as tiled


@pytest.fixture(autouse=True)
def large_batch(monkeypatch):
    """Whatever the batch; and there is no robust path."""
    if not on_chip.can_take(128, torch.device(DEVICE)):
        pytest.skip("the GPU has too little shared memory")
    monkeypatch.setattr(fast_launch, "programs_per_matrix", lambda *_: 0)
    monkeypatch.setattr(tiled, "robust", None)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [65, 80, 96, 97, 127, 128])
def test_errors_are_those_of_rounding_at_every_condition(n, kind):
    conditions = tuple(10 ** (6 * k / 119) for k in range(120))
    report = check(Batch(0, n, kind, "float32", 0, conditions, {}, (True, True)), DEVICE, roots)
    assert not report.failures
    for name, (units, _) in report.errors.items():
        worst = max(range(len(units)), key=units.__getitem__)
        assert units[worst] <= MOST[name], f"{name} at condition {conditions[worst]:.3g}"


@pytest.mark.parametrize(
    ("exponent", "gradients"), [(-50, (True, False)), (-25, (False, True)), (25, (True, True)), (50, (True, False))]
)
def test_any_scale(exponent, gradients):
    conditions = (3.0, 100.0, 1e4, 1e6)
    report = check(Batch(0, 72, "log", "float32", exponent, conditions, {}, gradients), DEVICE, roots)
    assert not report.failures
    assert all(max(units) <= MOST[name] for name, (units, _) in report.errors.items())


@pytest.mark.parametrize("n", [65, 96, 128])
def test_singular_matrices(n):
    A = covariances(16, n, n // 2, device=DEVICE).float().requires_grad_()
    S, _ = roots(A)
    assert largest_error(S.detach(), exact_root(A.detach().cpu()).to(DEVICE)) < SINGULAR
    (gradient,) = torch.autograd.grad(S.sum(), A)
    assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("kind", ["indefinite", "slightly-indefinite"])
@pytest.mark.parametrize("n", [65, 128])
def test_indefinite_matrices_have_no_root(kind, n):
    A = without_root(kind, wishart(n, seed=1)).float()[None].to(DEVICE)
    for T in roots(A):
        assert torch.isnan(T).all()


def test_bad_matrices_harm_no_other():
    def results(matrices):
        X = matrices.clone().requires_grad_()
        S, R = roots(X)
        return S.detach(), R.detach(), *torch.autograd.grad((S, R), X, (torch.ones_like(S), torch.ones_like(S)))

    assert_harm_no_other(wishart(300, 67, dtype=torch.float32).to(DEVICE), (3, 50, 51, 299), results)


@pytest.mark.parametrize("n", [65, 96, 128])
def test_results_do_not_depend_on_the_batch(n):
    """The same bits alone, among others, and every time; easy, hard and singular matrices side by side."""
    kinds = ("log", "uniform", "one-small", "one-large", "singular")
    made = [matrices_of(Batch(0, n, kind, "float32", 0, (3.0, 300.0, 1e5), {}, (True, True)), DEVICE) for kind in kinds]
    A, GS, GR = (torch.cat([getattr(m, name) for m in made]) for name in ("A", "GS", "GR"))
    together = compute(A, (GS, GR), roots)
    copies = compute(A.repeat(50, 1, 1), (GS.repeat(50, 1, 1), GR.repeat(50, 1, 1)), roots)
    for name, T in together.items():
        assert torch.equal(T, T.mT)
        assert torch.equal(copies[name].view(torch.int32), T.repeat(50, 1, 1).view(torch.int32)), name
    for i in range(len(A)):
        alone = compute(A[i : i + 1], (GS[i : i + 1], GR[i : i + 1]), roots)
        for name, T in alone.items():
            assert torch.equal(T[0].view(torch.int32), together[name][i].view(torch.int32)), (name, i)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_strided_and_asymmetric_input(dtype):
    A = wishart(3, 81, dtype=torch.float32)
    skew = random_like(A)
    B = (A + skew - skew.mT).to(DEVICE, dtype)
    for layout in (B, B.permute(1, 2, 0).contiguous().permute(2, 0, 1), B.mT.contiguous().mT, B[:1].expand(3, -1, -1)):
        exact = layout.cpu().float()
        S, R = roots(layout)
        tolerance = 4 * torch.finfo(dtype).eps + 3e-6
        assert error(S.cpu(), exact_root(exact)) < tolerance
        assert error(R.cpu(), exact_inverse_root(exact)) < tolerance


@pytest.mark.parametrize("n", [65, 128])
def test_graphs_repeat_bit_for_bit(n):
    made = matrices_of(Batch(0, n, "log", "float32", 0, (3.0, 300.0, 1e4, 1e6) * 4, {}, (True, True)), DEVICE)
    A = made.A.requires_grad_()

    def step():
        S, R = roots(A)
        return torch.autograd.grad((S, R), A, (made.GS, made.GR))

    assert_graph_repeats(step, step())
