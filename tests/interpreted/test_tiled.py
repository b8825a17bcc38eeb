"""Kernels for matrices above 64 under Triton's interpreter."""

import pytest
import torch

from matroot.backends.triton import minimax
from matroot.backends.triton.launch import LaunchSequence
from matroot.backends.triton.on_chip import launch as on_chip
from matroot.backends.triton.robust import launch as robust_launch
from matroot.backends.triton.tiled import fast_gradient, fast_kernels, fast_launch, fast_roots
from matroot.backends.triton.tiled import launch as tiled_launch
from matroot.bench.problems import symmetric, with_spectrum

from ..matrices import error, exact_gradient, exact_inverse_root, exact_root, wishart
from .test_on_chip import EPS, roots

pytestmark = pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")  # of NaN and Inf, on purpose


@pytest.fixture(autouse=True)
def used_memory(monkeypatch):
    """Scratch holds NaN and large numbers before a launch: results depend on no initial content."""
    allocate = fast_launch._memory

    def used(*arguments):
        scratch, sums, matrix_stats = allocate(*arguments)
        return scratch.fill_(float("nan")), sums.fill_(float("nan")), matrix_stats.fill_(1e30)

    monkeypatch.setattr(fast_launch, "_memory", used)


@pytest.fixture
def fast_path(request, monkeypatch):
    """How the fast path is launched: by "phases", or "cooperative", in "one tile" to take less time."""
    if request.param in ("cooperative", "one tile"):
        monkeypatch.setattr(fast_launch, "programs_per_matrix", lambda *_: 1)
    if request.param == "one tile":
        monkeypatch.setattr(fast_launch, "_cooperative_tile", lambda n: 128)
    if request.param == "phases":
        monkeypatch.setattr(on_chip, "can_take", lambda n, device: False)
    return request.param


@pytest.fixture
def one_robust_tile(monkeypatch):
    """The robust path in one tile: for properties of the numbers, not of the tiles, in a fifth of the time."""
    monkeypatch.setattr(robust_launch, "_options", lambda n, device: {"side": 128, "TILE": 128, "DEPTH": 64})


def gradients(A, GS, GR):
    """Of <GS, S> + <GR, R> for either cotangent that is there, in double precision."""
    terms = [exact_gradient(A, GS)] if GS is not None else []
    return sum(terms + ([exact_gradient(A, GR, inverse=True)] if GR is not None else []))


@pytest.mark.parametrize(("n", "fast_path"), [(65, "cooperative"), (100, "phases")], indirect=["fast_path"])
def test_roots_and_gradients(n, fast_path):
    """To a few roundings: these matrices are well-conditioned."""
    A, GS, GR = wishart(1, n, samples=2 * n + 4).float(), symmetric(1, n).float(), symmetric(1, n, seed=2).float()
    S, R = roots(A)
    assert error(S, exact_root(A)) < 8 * EPS
    assert error(R, exact_inverse_root(A)) < 16 * EPS
    assert error(minimax.solve(S, R, GS, GR, 0.0), gradients(A, GS, GR)) < 64 * EPS


@pytest.mark.parametrize("fast_path", ["one tile", "phases"], indirect=True)
def test_the_last_step_takes_as_many_powers_as_it_needs(fast_path):
    """Few samples: the residual is small enough for the last step, but its third power is not negligible."""
    A = wishart(1, 100, samples=170).float()
    S, R = roots(A)
    assert error(S, exact_root(A)) < 8 * EPS
    assert error(R, exact_inverse_root(A)) < 16 * EPS


@pytest.fixture
def deferred(monkeypatch):
    """Flags of the matrices that the fast path defers, of one call after the other."""
    found = []

    def record(module, name):
        original = getattr(module, name)

        def recorded(*arguments):
            flags = original(*arguments)
            found.append(flags[:, 0].bool().tolist())
            return flags

        monkeypatch.setattr(module, name, recorded)

    record(fast_launch, "roots")
    record(fast_launch, "solve")
    return found


@pytest.mark.parametrize("fast_path", ["one tile", "phases"], indirect=True)
def test_covariances_of_few_samples_take_the_longer_fast_path(fast_path, deferred):
    """A step more for the first matrix, of condition number 146, but none for the second."""
    n, condition = 100, 146
    A = torch.cat([wishart(1, n, samples=130), wishart(1, n, samples=250)]).float()
    G = symmetric(1, n).float().expand_as(A)
    S, R = roots(A)
    X = minimax.solve(S, R, G, None, 0.0)
    assert error(S[:1], exact_root(A[:1])) < 2 * EPS * (n**0.5 + condition**0.5)
    assert error(R[:1], exact_inverse_root(A[:1])) < 3 * EPS * (n**0.5 + condition)
    assert error(X[:1], exact_gradient(A, G)[:1]) < 3 * EPS * (n**0.5 + condition)
    assert error(S[1:], exact_root(A[1:])) < 8 * EPS
    assert error(R[1:], exact_inverse_root(A[1:])) < 16 * EPS
    assert deferred == [[False, False], [False, False]]


@pytest.mark.parametrize("fast_path", ["one tile"], indirect=True)
def test_the_longer_fast_path_defers_what_is_not_symmetric_enough(fast_path, deferred, monkeypatch):
    monkeypatch.setattr(fast_roots, "ASYMMETRY", 1e-12)
    monkeypatch.setattr(robust_launch, "launch_cached", lambda *_: None)
    roots(torch.cat([wishart(1, 100, samples=122), wishart(1, 100, samples=250)]).float())
    assert deferred == [[True, False]]


def assert_accurate_at_condition(kind, condition, n=65):
    """The limits of the coupled iteration in float32: eps sqrt(condition) and eps condition."""
    A, G = with_spectrum(kind, 1, n, condition).float(), symmetric(1, n).float()
    S, R = roots(A)
    assert error(S, exact_root(A)) < EPS * condition**0.5
    assert error(R, exact_inverse_root(A)) < EPS * condition
    assert error(minimax.solve(S, R, G, None, 0.0), exact_gradient(A, G)) < EPS * condition


@pytest.mark.parametrize("fast_path", ["one tile"], indirect=True)
def test_ill_conditioned_matrices_take_the_robust_path(fast_path, monkeypatch):
    """In the tiles of matrices above 128, two by two."""
    monkeypatch.setattr(robust_launch, "_options", lambda n, device: {"side": 128, "TILE": 64, "DEPTH": 32})
    assert_accurate_at_condition("log", 1e4)


def test_the_robust_path_at_any_condition(one_robust_tile):
    """Also for a matrix that only seems to suit the fast path and is deferred at its end."""
    assert_accurate_at_condition("log", 1e6)
    assert_accurate_at_condition("one-small", 1e4)


@pytest.mark.parametrize("fast_path", ["phases"], indirect=True)
def test_no_launch_both_reads_and_writes_whether_a_matrix_is_deferred(fast_path, monkeypatch):
    """Its programs, and threads of one of them, could read different values. The first matrix is deferred at the first
    step, the second one after the last, and both in the gradient."""
    read, written = [], []

    def watch(module, name, launches):
        watched = getattr(module, name)

        def recorded(*arguments):
            launches[-1] = True
            return watched(*arguments)

        monkeypatch.setattr(module, name, recorded)

    def launch(row, *arguments, original=LaunchSequence.launch, **options):
        read.append(False)
        written.append(False)
        original(row, *arguments, **options)

    watch(fast_kernels, "is_deferred", read)
    watch(fast_roots, "defer", written)
    watch(fast_gradient, "defer", written)
    monkeypatch.setattr(LaunchSequence, "launch", launch)
    monkeypatch.setattr(robust_launch, "launch_cached", lambda *_: None)
    n = 65
    A = torch.cat([with_spectrum("log", 1, n, 1e4), with_spectrum("one-small", 1, n, 1e4)]).float()
    roots(A)
    minimax.solve(exact_root(A).float(), exact_inverse_root(A).float(), symmetric(2, n).float(), None, 0.0)
    assert sum(written) == 5  # scale_input, product_tile twice; precondition, start_iteration
    assert any(read)
    assert not any(r and w for r, w in zip(read, written, strict=True))


@pytest.mark.parametrize("fast_path", ["one tile", "phases"], indirect=True)
def test_any_input(fast_path, one_robust_tile):
    """In one batch: asymmetric and very large, very small, zero, NaN, infinite; strided, with a ridge."""
    n = 65
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
    X = minimax.solve(S[1:4], R[1:4], G.repeat(3, 1, 1), None, 0.25)
    assert error(X[:1], true) < 32 * EPS
    assert not X[1].any()
    assert torch.isnan(X[2]).all()


LARGEST = 3.4e38
"""Next to the largest float32."""


def scaled_to(largest, A):
    """A symmetric matrix, scaled to this largest modulus."""
    return (A * (largest / A.abs().amax((-2, -1), keepdim=True))).float()


@pytest.mark.parametrize("fast_path", ["one tile"], indirect=True)
def test_roots_at_the_ends_of_the_range(fast_path, one_robust_tile):
    """As accurate as anywhere: both roots are far from the ends themselves."""
    W = wishart(1, 65)
    A = torch.cat([scaled_to(size, W) for size in (LARGEST, 2e32, 1e-37)])
    S, R = roots(A)
    assert error(S, exact_root(A)) < 8 * EPS
    assert error(R, exact_inverse_root(A)) < 16 * EPS


@pytest.fixture
def robust_path(request, monkeypatch):
    """Whether all gradients are deferred to the robust path."""
    if request.param:
        monkeypatch.setattr(fast_launch, "solve", lambda inputs, out, *_: tiled_launch.all_deferred(out))


@pytest.mark.parametrize("robust_path", [False, True], indirect=True, ids=["fast", "robust"])
@pytest.mark.parametrize("fast_path", ["one tile"], indirect=True)
@pytest.mark.parametrize(
    ("root", "inverse"),
    [
        ([LARGEST, 1.0, 1e-38, 1e-36], None),
        (None, [LARGEST, LARGEST, 1e-38, 1e-36]),
        ([1e36, 1e3, 1e19, 1e-38], [LARGEST, LARGEST, 1e-19, 1e-36]),
    ],
    ids=["root", "inverse root", "both"],
)
def test_gradients_at_the_ends_of_the_range(root, inverse, fast_path, robust_path, one_robust_tile):
    """As accurate as anywhere, if the gradient is representable: matrices and cotangents of these sizes."""
    W, G = wishart(1, 65), symmetric(1, 65)
    A = torch.cat([scaled_to(size, W) for size in (1e6, 1e36, 2e-36, 1e-37)])
    GS, GR = (None if sizes is None else torch.cat([scaled_to(size, G) for size in sizes]) for sizes in (root, inverse))
    true = gradients(A, GS, GR)
    assert true.abs().amax((-2, -1)).max() < LARGEST  # representable
    X = minimax.solve(exact_root(A).float(), exact_inverse_root(A).float(), GS, GR, 0.0)
    for found, expected in zip(X, true, strict=True):
        assert error(found, expected) < 64 * EPS


def test_offsets_above_32_bits():
    """Rows, then columns, 2^31/64 elements apart. Of the two gigabytes only the pages of the entries are touched."""
    n, stride = 65, 2**25 + 1
    A = torch.empty(n * stride, dtype=torch.int8).as_strided((1, n, n), (0, stride, 1))
    A.copy_((16 * wishart(1, n)).round())
    found = []
    for layout in (A.contiguous(), A, A.mT):
        scratch, _, matrix_stats = fast_launch._memory(layout, fast_roots.ROOTS_STATS.value)
        deferred = tiled_launch.all_deferred(layout)
        numbers = (n, *layout.stride(), 0.0)
        fast_kernels.fast_scale_kernel[3, 1, 1](layout, scratch, matrix_stats, deferred, *numbers, side=128, TILE=64)
        found.append(scratch[:, 0].clone())
    assert torch.isfinite(found[0]).all()
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])
