"""Where the code changes from one path to another, nothing changes for the caller.

Sizes on both sides of what fits on chip, in one tile and in kernels; condition numbers on both sides of every line
between schedules; batches in which all kinds of matrices meet.
"""

import pytest
import torch

import matroot
from matroot.bench.problems import inverse_unit, root_unit
from matroot.bench.random_search.batches import Batch, matrices_of
from matroot.bench.random_search.check import PARTS, check, compute
from matroot.bench.random_search.reference import answer_of, singular_root

from ..matrices import error, exact_gradient, exact_inverse_root, exact_root, random_like, spectrum, with_eigenvalues

DEVICE = "cuda"
EPS = torch.finfo(torch.float32).eps
SIZES = (63, 64, 65, 66, 127, 128, 129, 130, 1023, 1024, 1025, 1026)
ON_CHIP = 64
KINDS = ("log", "uniform", "clustered", "one-small", "one-large")
# In units of u (sqrt(n) + sqrt(kappa)) for roots, u (sqrt(n) + kappa) for inverse roots and gradients: constants of a
# few products, each of which rounds once. The gradient of an inverse root has three factors with the error of that: of
# matrices in tiles, above n = 64, it may have twice the constant. For singular matrices in units of sqrt(eps): rounding
# the entries moves eigenvalues of zero to eps at most, and their roots to the root of that.
MOST = {"root": 4.0, "inverse": 6.0, "gradient": 6.0}
MOST_IN_TILES = MOST | {"gradient": 12.0}
MOST_SINGULAR = 1.5


def most(n: int) -> dict[str, float]:
    return MOST if n <= ON_CHIP else MOST_IN_TILES


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", SIZES)
def test_errors_are_those_of_rounding_at_every_condition(n, kind):
    """A fine sweep of one batch, so that matrices lie on both sides of every line, wherever it is."""
    count = 73 if n < 256 else 10
    conditions = tuple(10 ** (6 * k / (count - 1)) for k in range(count))
    report = check(Batch(0, n, kind, "float32", 0, conditions, {}, (True, True)), DEVICE)
    assert not report.failures
    for name, (units, _) in report.errors.items():
        worst = max(range(count), key=units.__getitem__)
        assert units[worst] <= most(n)[name], f"{name} at condition {conditions[worst]:.3g}"


def condition_of_flatness(flatness: float, n: int) -> float:
    """Of a log spectrum whose squared mean eigenvalue is this share of their mean square: what kernels look at."""
    low, high = 1.0, 1e12
    for _ in range(60):
        middle = (low * high) ** 0.5
        values = spectrum("log", n, middle)
        low, high = (middle, high) if values.mean() ** 2 / values.square().mean() > flatness else (low, middle)
    return low


@pytest.mark.parametrize("n", [16, 32, 33, 64, 65, 128, 129, 256])
@pytest.mark.parametrize("flatness", [0.6, 0.55, 0.5, 0.35])
def test_both_sides_of_a_line_are_alike(n, flatness):
    """Just below and above the shares at which kernels choose another path or schedule."""
    line = condition_of_flatness(flatness, n)
    conditions = [line * (1 + side) for side in (-1e-2, -1e-4, -1e-6, 1e-6, 1e-4, 1e-2)]
    A = torch.stack([with_eigenvalues(spectrum("log", n, k), seed, torch.float32) for seed, k in enumerate(conditions)])
    G = random_like(A)
    G = G + G.mT
    found = compute(A.to(DEVICE), (G.to(DEVICE), G.to(DEVICE)), matroot.roots)
    parts = exact_gradient(A, G), exact_gradient(A, G, inverse=True)
    true = {"root": exact_root(A), "inverse": exact_inverse_root(A), "gradient": parts[0] + parts[1]}
    for name, T in found.items():
        unit = (root_unit if name == "root" else inverse_unit)(n, line, EPS)
        assert error(T.cpu(), true[name]) <= most(n)[name] * unit, name


GOOD = (2.0, 100.0, 1e4, 1e6)
BAD = {1: "nan", 3: "zero", 4: "indefinite", 6: "inf"}


def mixed(n: int):
    """Easy, hard and singular matrices with a zero one and some without a root, and cotangents; what is known of them.

    Returns A, GS and GR of ten matrices: the first eight are the first made, the last two are singular.
    """
    made = matrices_of(Batch(0, n, "log", "float32", 0, GOOD, BAD, (True, True)), DEVICE)
    singular = matrices_of(Batch(1, n, "singular", "float32", 0, (10.0, 1e3), {}, (True, True)), DEVICE)
    pairs = ((made.A, singular.A), (made.GS, singular.GS), (made.GR, singular.GR))
    A, GS, GR = (torch.cat(pair) for pair in pairs)  # pyright: ignore[reportCallIssue, reportArgumentType]
    return A, (GS, GR), made, singular


@pytest.mark.parametrize("n", SIZES)
def test_a_matrix_among_others_has_the_result_it_has_alone(n):
    A, (GS, GR), made, _ = mixed(n)
    true = answer_of(made)
    together = compute(A, (GS, GR), matroot.roots)
    for i in range(len(A)):
        alone = compute(A[i : i + 1], (GS[i : i + 1], GR[i : i + 1]), matroot.roots)
        for name in PARTS:
            found, expected = together[name][i].double(), alone[name][0].double()
            assert torch.equal(torch.isnan(found), torch.isnan(expected)), (name, i)
            if i in BAD:
                assert BAD[i] == "zero" or torch.isnan(found).all()
                assert BAD[i] != "zero" or not found.any()
            elif i in made.good.tolist():
                place = made.good.tolist().index(i)
                unit = (root_unit if name == "root" else inverse_unit)(n, true.condition[place].item(), EPS)
                distance = torch.linalg.matrix_norm(found - expected) / getattr(true, name).size[place]
                assert distance <= 2 * most(n)[name] * unit, (name, i)  # either has an error
            else:
                assert torch.isfinite(found).all(), (name, i)


@pytest.mark.parametrize("n", SIZES)
def test_matrices_among_others_have_errors_of_rounding(n):
    A, cotangents, made, _ = mixed(n)
    true = answer_of(made)
    found = compute(A, cotangents, matroot.roots)
    for name, T in found.items():
        unit = (root_unit if name == "root" else inverse_unit)(n, true.condition, EPS)
        exact = getattr(true, name)
        distance = torch.linalg.matrix_norm(T[made.good].double() - exact.value) / exact.size
        assert (distance <= most(n)[name] * unit).all(), (name, (distance / unit).tolist())


@pytest.mark.parametrize("n", SIZES)
def test_singular_matrices_among_others_have_roots(n):
    A, _, _, singular = mixed(n)
    distance = error(matroot.sqrtm(A)[-2:], singular_root(singular))
    assert distance <= MOST_SINGULAR * EPS**0.5


@pytest.mark.parametrize("n", [n for n in SIZES if n < 256])
def test_large_mixed_batches_repeat_bit_for_bit(n):
    """Enough for paths that only large batches take; every copy of a matrix has the same bits."""
    A, cotangents, _, _ = mixed(n)
    copies = 60
    found = compute(A.repeat(copies, 1, 1), tuple(G.repeat(copies, 1, 1) for G in cotangents), matroot.roots)
    for T in found.values():
        bits = T.view(torch.int32)
        nan = torch.isnan(T)
        assert torch.equal(nan[len(A) :], nan[: -len(A)])
        assert torch.equal(bits[len(A) :][~nan[len(A) :]], bits[: -len(A)][~nan[: -len(A)]])
