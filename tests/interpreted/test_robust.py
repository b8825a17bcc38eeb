"""The robust path under Triton's interpreter, which does not truncate sums as tensor cores do."""
# pyright: reportGeneralTypeIssues=false, reportArgumentType=false
# Triton declares that calls of kernel functions never return, and that constants are objects of its own.

import pytest
import torch
import triton
import triton.language as tl

from matroot.backends.torch_ops import rounding_tolerance
from matroot.backends.triton.robust import launch, roots_input
from matroot.backends.triton.robust.tiles import tile_index
from matroot.backends.triton.tiled.launch import all_deferred
from matroot.bench.problems import inverse_unit, root_unit, symmetric, with_spectrum

from ..matrices import error, exact_gradient, exact_inverse_root, exact_root, orthogonal, wishart

EPS = torch.finfo(torch.float32).eps
# Diverging iterations of indefinite matrices overflow on purpose.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.fixture(autouse=True)
def used_memory(monkeypatch):
    """Scratch holds NaN before a launch: results depend on no initial content."""
    allocate = launch._memory
    monkeypatch.setattr(launch, "_memory", lambda *given: tuple([T.fill_(float("nan")) for T in allocate(*given)]))


@pytest.fixture
def one_tile(monkeypatch):
    """For properties of the numbers, not of the tiles, in a third of the time."""
    monkeypatch.setattr(launch, "_options", lambda n, device: {"side": 128, "TILE": 128, "DEPTH": 64})


def roots(A, ridge=0.0):
    S, R = torch.empty(2, *A.shape)
    launch.roots(A, S, R, all_deferred(A), ridge, rounding_tolerance(A.shape[-1], A.dtype), A.shape)
    return S, R


def solve(S, R, GS, GR, ridge=0.0):
    out = torch.empty_like(S)
    cotangents = [S if G is None else G for G in (GS, GR)]
    launch.solve((S, R, *cotangents), out, all_deferred(S), ridge, GS is not None, GR is not None, S.shape)
    return out


@triton.jit
def indices_kernel(rows, columns, lower, tile_rows, count, COUNT: tl.constexpr):
    t = tl.arange(0, COUNT)
    i, j = tile_index(t, lower != 0, tile_rows)
    tl.store(rows + t, i, t < count)
    tl.store(columns + t, j, t < count)


@pytest.mark.parametrize("tile_rows", [1, 2, 7, 8, 9, 16, 21])
@pytest.mark.parametrize("lower", [True, False])
def test_every_tile_is_computed_once(tile_rows, lower):
    pairs = {(i, j) for i in range(tile_rows) for j in range(i + 1 if lower else tile_rows)}
    rows, columns = torch.zeros(2, len(pairs), dtype=torch.int32)
    indices_kernel[1, 1, 1](rows, columns, int(lower), tile_rows, len(pairs), COUNT=512)
    assert set(zip(rows.tolist(), columns.tolist(), strict=True)) == pairs


def test_roots_and_gradients_in_four_tiles():
    """To a few roundings: these matrices are well-conditioned."""
    n = 65
    A, GS, GR = wishart(1, n, samples=2 * n + 4).float(), symmetric(1, n).float(), symmetric(1, n, seed=2).float()
    S, R = roots(A)
    assert error(S, exact_root(A)) < 4 * EPS
    assert error(R, exact_inverse_root(A)) < 6 * EPS
    true = exact_gradient(A, GS) + exact_gradient(A, GR, inverse=True)
    assert error(solve(S, R, GS, GR), true) < 16 * EPS


@pytest.mark.parametrize(("kind", "condition"), [("log", 1e6), ("one-small", 1e4), ("one-large", 1e6)])
def test_any_condition(kind, condition, one_tile):
    """In units of what rounding alone costs."""
    n = 100
    A, G = with_spectrum(kind, 1, n, condition).float(), symmetric(1, n).float()
    S, R = roots(A)
    assert error(S, exact_root(A)) < 2 * root_unit(n, condition, EPS)
    assert error(R, exact_inverse_root(A)) < 2 * inverse_unit(n, condition, EPS)
    cotangents = (G, None) if kind == "log" else (None, G)
    true = exact_gradient(A, G, inverse=kind != "log")
    assert error(solve(S, R, *cotangents), true) < 4 * inverse_unit(n, condition, EPS)


def test_a_singular_matrix_is_not_shifted(one_tile):
    """Rounding the entries moves eigenvalues of zero to eps at most; the roots of these are the error."""
    A = with_spectrum("low-rank", 1, 90, 1e3).float()
    assert error(roots(A)[0], exact_root(A)) < 0.5 * EPS**0.5


@pytest.mark.parametrize("least", [-5e-8, -2e-7, -3e-7, -6e-7, -4e-6])
def test_gradients_of_singular_matrices_are_finite(least, one_tile):
    """As in covariances with channels that are always zero: rounding made some eigenvalues negative. Inverse roots have
    none that are, so that the equation of the gradient has a solution.
    """
    n, rank = 90, 30
    U, values = orthogonal(rank, 0), torch.logspace(0, -3, rank, dtype=torch.float64)
    A = torch.zeros(1, n, n)
    A[0, :rank, :rank] = ((U * values) @ U.mT).float()
    A[0, [40, 41], [40, 41]] = torch.tensor([least, least / 5])
    S, R = roots(A)
    assert torch.linalg.eigvalsh(R[0]).min() > 0
    assert error(S, exact_root(A)) < abs(least) ** 0.5
    X = solve(S, R, symmetric(1, n).float(), None)
    # The largest factor in the exact gradient at eigenvalues of zero is that of the inverse root.
    assert X.abs().max() < n * R.max()


def test_negative_by_rounding(one_tile):
    """Eigenvalues down to -4 n eps of the largest are zero, others have no root."""
    n = 90
    U = orthogonal(n, 0)
    values = torch.logspace(0, -2, n, dtype=torch.float64).repeat(2, 1)
    least = torch.tensor([-2e-5, -1e-3], dtype=torch.float64)
    values[:, -1] = least
    A = ((U * values[:, None, :]) @ U.mT).float()
    S, R = roots(A)
    assert torch.isfinite(R[0]).all()
    assert error(S[0], exact_root(A[0])) < 0.5 * abs(least[0]) ** 0.5
    assert torch.isnan(S[1]).all()
    assert torch.isnan(R[1]).all()


def test_any_input(one_tile):
    """In one batch: asymmetric and very large, very small, zero, NaN, infinite, negative; strided, with a ridge."""
    n = 65
    eye = torch.eye(n)
    A = wishart(1, n).float().repeat(6, 1, 1)
    skew = torch.randn(n, n, generator=torch.Generator().manual_seed(0))
    A[0] = (A[0] + skew - skew.mT) * 4.0**60
    A[1] *= 4.0**-60
    A[2], A[3, 0, n - 1], A[4, 1, 1], A[5] = 0, float("nan"), float("inf"), -A[5]
    mean = A.diagonal(dim1=-2, dim2=-1).mean(-1)[:, None, None]
    full = A[:2] + 0.25 * mean[:2] * eye
    S, R = roots(A.permute(1, 2, 0).contiguous().permute(2, 0, 1), 0.25)
    assert error(S[:2], exact_root(full)) < 4 * EPS
    assert error(R[:2], exact_inverse_root(full)) < 6 * EPS
    for root, alone in zip((S, R), roots(A[1:2], 0.25), strict=True):
        assert torch.equal(root[:2], root[:2].mT)
        assert torch.equal(root[1:2], alone)  # other matrices change nothing
        assert not root[2].any()
        assert torch.isnan(root[3:]).all()
    G = symmetric(1, n).float()
    true = exact_gradient(full[1:], G)
    true = true + 0.25 * true.diagonal(dim1=-2, dim2=-1).mean(-1)[:, None, None] * eye
    X = solve(S[1:4], R[1:4], G.repeat(3, 1, 1), None, 0.25)
    assert error(X[:1], true) < 16 * EPS
    assert torch.equal(X[0], X[0].mT)
    assert not X[1].any()
    assert torch.isnan(X[2]).all()


def scaled_to(largest, A):
    return (A * (largest / A.abs().amax((-2, -1), keepdim=True))).float()


def test_the_ends_of_the_range(one_tile):
    """Roots are far from the ends themselves; gradients are as accurate as anywhere if they are representable."""
    W, G = wishart(1, 65), symmetric(1, 65)
    A = torch.cat([scaled_to(size, W) for size in (3.4e38, 1e-37)])
    GS, GR = (torch.cat([scaled_to(size, G) for size in sizes]) for sizes in ((1e36, 1e-38), (3.4e38, 1e-36)))
    S, R = roots(A)
    assert error(S, exact_root(A)) < 4 * EPS
    assert error(R, exact_inverse_root(A)) < 6 * EPS
    true = exact_gradient(A, GS) + exact_gradient(A, GR, inverse=True)
    for found, expected in zip(solve(S, R, GS, GR), true, strict=True):
        assert error(found, expected) < 16 * EPS


@triton.jit
def measure_kernel(A, sums, n, stride_row, stride_column, row, TILE: tl.constexpr):
    roots_input.measure_tile(A, sums, row, tl.program_id(0), n, stride_row, stride_column, 2, TILE)


def test_offsets_above_32_bits():
    """Rows, then columns, 2^31/64 elements apart. Of the two gigabytes only the pages of the entries are touched."""
    n, stride = 65, 2**25 + 1
    A = torch.empty(n * stride, dtype=torch.int8).as_strided((1, n, n), (0, stride, 1))
    A.copy_((16 * wishart(1, n)).round())
    found = []
    for layout in (A.contiguous(), A, A.mT):
        sums = torch.empty(4, 4)
        measure_kernel[3, 1, 1](layout, sums, n, *layout.stride()[1:], 4, TILE=64)
        found.append(sums[:, :3].clone())
    assert torch.isfinite(found[0]).all()
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])
