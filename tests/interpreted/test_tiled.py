"""Kernels for matrices above 64 under Triton's interpreter; ``test_triton.py`` runs this file in its own process."""

import pytest
import torch

from matroot.backends.triton import minimax as triton_roots
from matroot.backends.triton.launch import Row
from matroot.backends.triton.tiled import fast_gradient as triton_solve_phases
from matroot.backends.triton.tiled import fast_kernels as triton_phase_kernels
from matroot.backends.triton.tiled import fast_launch as triton_phases
from matroot.backends.triton.tiled import fast_roots as triton_root_phases
from matroot.backends.triton.tiled import launch as triton_large
from matroot.bench.problems import symmetric, with_spectrum

from ..matrices import error, exact_gradient, exact_inverse_root, exact_root, wishart
from .test_on_chip import EPS, roots

pytestmark = pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")  # of NaN and Inf, on purpose


@pytest.fixture(params=[False, True])
def at_once(request, monkeypatch):
    """Easy matrices with a launch for every phase, or on chip, and with one launch for all phases."""
    if request.param:
        monkeypatch.setattr(triton_phases, "members", lambda A: 1)
    return request.param


@pytest.fixture(autouse=True)
def used_memory(monkeypatch):
    """Scratch as others may have left it."""
    fresh = triton_phases._memory

    def used(*arguments):
        (scratch, sums), facts, options = fresh(*arguments)
        return (scratch.fill_(float("nan")), sums.fill_(float("nan"))), facts.fill_(1e30), options

    monkeypatch.setattr(triton_phases, "_memory", used)


@pytest.mark.parametrize("n", [65, 130])
def test_roots_and_gradients_in_tiles(n, at_once):
    A, GS, GR = wishart(1, n, samples=2 * n + 4).float(), symmetric(1, n).float(), symmetric(1, n, seed=2).float()
    S, R = roots(A)
    assert error(S, exact_root(A)) < 8 * EPS
    assert error(R, exact_inverse_root(A)) < 16 * EPS
    root, inverse = exact_gradient(A, GS), exact_gradient(A, GR, inverse=True)
    if at_once:
        assert error(triton_roots.solve(S, R, GS, None, 0.0), root) < 32 * EPS
    assert error(triton_roots.solve(S, R, GS, GR, 0.0), root + inverse) < 64 * EPS


@pytest.mark.parametrize(("n", "samples", "at_once"), [(100, 170, True), (130, 214, False)], indirect=["at_once"])
def test_the_last_step_takes_as_many_powers_as_it_needs(n, samples, at_once):
    """Few samples: what the first steps leave is small enough for the last one, but its third power would show."""
    A = wishart(1, n, samples=samples).float()
    S, R = roots(A)
    assert error(S, exact_root(A)) < 8 * EPS
    assert error(R, exact_inverse_root(A)) < 16 * EPS


@pytest.mark.parametrize(
    ("kind", "condition", "n", "at_once"),
    [("log", 1e6, 65, True), ("one-small", 1e4, 65, False), ("log", 1e4, 130, False)],
    indirect=["at_once"],
)
def test_any_condition_in_tiles(kind, condition, n, at_once):
    """Matrices that do not look easy, and one that only looks so and is done again with care."""
    A = with_spectrum(kind, 1, n, condition).float()
    S, R = roots(A)
    assert error(S, exact_root(A)) < EPS * condition**0.5
    assert error(R, exact_inverse_root(A)) < EPS * condition
    if kind == "log":
        G = symmetric(1, n).float()
        assert error(triton_roots.solve(S, R, G, None, 0.0), exact_gradient(A, G)) < EPS * condition


def test_no_launch_both_asks_and_says_whether_a_matrix_is_left(monkeypatch):
    """Its programs, and threads of one of them, would be told different things. Of these matrices one does not look
    easy, the other turns out not to be in the last phase, and neither in its gradient."""
    asked, said = [], []

    def watch(module, name, launches):
        watched = getattr(module, name)

        def told(*arguments):
            launches[-1] = True
            return watched(*arguments)

        monkeypatch.setattr(module, name, told)

    def launch(row, *arguments, plain=Row.launch, **options):
        asked.append(False)
        said.append(False)
        plain(row, *arguments, **options)

    watch(triton_phase_kernels, "here", asked)
    watch(triton_root_phases, "leave", said)
    watch(triton_solve_phases, "leave", said)
    monkeypatch.setattr(Row, "launch", launch)
    monkeypatch.setattr(triton_large, "launch_known", lambda *_: None)  # for what is left
    n = 130
    A = torch.cat([with_spectrum("log", 1, n, 1e4), with_spectrum("one-small", 1, n, 1e4)]).float()
    roots(A)
    triton_roots.solve(exact_root(A).float(), exact_inverse_root(A).float(), symmetric(2, n).float(), None, 0.0)
    assert sum(said) == 5  # scale, start, the last correction; prepare, begin
    assert any(asked)
    assert not any(a and s for a, s in zip(asked, said, strict=True))


@pytest.mark.parametrize(("n", "at_once"), [(65, False), (65, True), (130, False)], indirect=["at_once"])
def test_tiles_take_any_input(n, at_once):
    """In one batch: asymmetric and very large, very small, zero, NaN, infinite; strided, with a ridge."""
    eye = torch.eye(n)
    A = wishart(1, n).float().repeat(5, 1, 1)
    skew = torch.randn(n, n, generator=torch.Generator().manual_seed(0))
    A[0] = (A[0] + skew - skew.mT) * 4.0**60
    A[1] *= 4.0**-60
    A[2], A[3, 0, n - 1], A[4, 1, 1] = 0, float("nan"), float("inf")
    mean = A.diagonal(dim1=-2, dim2=-1).mean(-1)[:, None, None]
    full = A[:2] + 0.25 * mean[:2] * eye
    S, R = roots(A.permute(1, 2, 0).contiguous().permute(2, 0, 1), 0.25)
    assert error(S[:2], exact_root(full)) < 8 * EPS
    assert error(R[:2], exact_inverse_root(full)) < 8 * EPS
    for root in (S, R):
        assert torch.equal(root[:2], root[:2].mT)
        assert not root[2].any()
        assert torch.isnan(root[3:]).all()
    G = symmetric(1, n).float()
    true = exact_gradient(full[1:], G)
    true = true + 0.25 * true.diagonal(dim1=-2, dim2=-1).mean(-1)[:, None, None] * eye
    X = triton_roots.solve(S[1:4], R[1:4], G.repeat(3, 1, 1), None, 0.25)
    assert error(X[:1], true) < 32 * EPS
    assert not X[1].any()
    assert torch.isnan(X[2]).all()
