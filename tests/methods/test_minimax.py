"""Minimax schedules are what they claim, and the method built on them reaches the dtype's floor."""

import importlib.util
import json
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
import torch

import matroot
from matroot import Krylov, Minimax, NewtonSchulz
from matroot.bench.memory import extra_memory
from matroot.methods import minimax

from ..installation import needs_compiled_code
from ..matrices import (
    SPECTRA,
    error,
    exact_gradient,
    exact_inverse_root,
    exact_root,
    orthogonal,
    spectrum,
    wishart,
    with_eigenvalues,
)

ROOT = Path(__file__).parents[2]
SCHEDULES = json.loads((ROOT / "src/matroot/methods/minimax_schedules.json").read_text())
every_schedule = pytest.mark.parametrize(
    "schedule", SCHEDULES, ids=lambda s: f"{s['condition']:.0e}-{s['tolerance']:.0e}"
)


def step(q, s):
    return s * sum(c * s ** (2 * k) for k, c in enumerate(q))


@every_schedule
def test_composition_reaches_its_tolerance(schedule):
    s = torch.logspace(-0.5 * torch.tensor(schedule["condition"]).log10().item(), 0, 20001, dtype=torch.float64)
    for q in schedule["steps"]:
        s = step(q, s)
    # float32 loses as much to rounding.
    allowance = 2e-11 * schedule["condition"] if schedule["tolerance"] == 1e-7 else 0
    assert schedule["error"] <= max(schedule["tolerance"], allowance)
    assert (s - 1).abs().max() <= schedule["error"] * 1.001 + 1e-13


@every_schedule
def test_steps_equioscillate(schedule):
    """A best step of degree d touches its error, with alternating sign, at least d + 2 times."""
    low, high = schedule["condition"] ** -0.5 / 1.01, 1.0
    for q in schedule["steps"]:
        if high - low < 1e-3:
            break  # a Taylor step
        # Dense at both ends, where the extrema lie close together.
        t = torch.linspace(0, 1, 40001, dtype=torch.float64)
        s = torch.cat([low * (high / low) ** t, low + (high - low) * t]).sort().values
        ripple = 1 - step(q, s)
        level = ripple.abs().max()
        if level < 1e-12:
            break  # below what float64 evaluates
        touching = ripple[ripple.abs() > 0.999 * level].sign()
        assert (touching[1:] != touching[:-1]).sum() + 1 == len(q) + 1
        low, high = 1 - level.item(), 1 + level.item()


def test_the_table_is_what_the_script_writes():
    spec = importlib.util.spec_from_file_location("minimax_schedules", ROOT / "tools/minimax_schedules.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert [(s["tolerance"], s["condition"]) for s in SCHEDULES] == [
        (tolerance, condition) for tolerance, conditions in script.LADDER.items() for condition in conditions
    ]
    for schedule in SCHEDULES[:3] + SCHEDULES[14:17]:
        assert script.cheapest(schedule["condition"], schedule["tolerance"]) == schedule


def ill_conditioned(kappa, dtype, n=64):
    kinds = [kind for kind in SPECTRA if kind != "low-rank"]
    return torch.stack([with_eigenvalues(spectrum(kind, n, kappa), i, dtype) for i, kind in enumerate(kinds)])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64, torch.complex128])
@pytest.mark.parametrize("kappa", [1.0, 10.0, 1e2, 1e3, 1e4, 1e5, 1e6])
@pytest.mark.parametrize("known", [False, True])
def test_error_is_a_multiple_of_eps(kappa, dtype, known):
    """The coupled iteration's floor: eps kappa in the inverse root, less in the root."""
    A = ill_conditioned(kappa, dtype)
    S, R = matroot.roots(A, Minimax(condition=kappa if known else None))
    eps = torch.finfo(dtype).eps
    assert error(S, exact_root(A)) < 10 * eps * kappa**0.75 + 10 * eps
    if eps * kappa < 0.05:
        assert error(R, exact_inverse_root(A)) < 10 * eps * kappa + 10 * eps


@pytest.mark.parametrize("kappa", [10.0, 1e2, 1e4, 1e6])
def test_gradient_error_is_a_multiple_of_eps(kappa):
    A = ill_conditioned(kappa, torch.float32)
    X = A.clone().requires_grad_()
    G = wishart(4, 64, seed=3, dtype=torch.float32)
    (gradient,) = torch.autograd.grad(matroot.sqrtm(X, "minimax"), X, G)
    assert error(gradient, exact_gradient(A, G)) < 10 * torch.finfo(torch.float32).eps * kappa


def products(function, A, method):
    with matroot.count_operations(matrices=len(A)) as counts:
        function(A, method)
    return counts.products


@needs_compiled_code
def test_well_conditioned_matrices_stop_early():
    """Covariances of twice as many samples: both roots in 13 products, the gradient by conjugate gradients in 9."""
    A = wishart(16, 64, dtype=torch.float32)
    assert products(matroot.roots, A, "minimax") <= 13
    X = A.clone().requires_grad_()
    S = matroot.sqrtm(X, "minimax", gradient="krylov")
    G = wishart(16, 64, seed=1, dtype=torch.float32)
    with matroot.count_operations(matrices=16) as counts:
        (gradient,) = torch.autograd.grad(S, X, G)
    assert counts.products <= 9
    assert error(S.detach(), exact_root(A)) < 2e-6
    assert error(gradient, exact_gradient(A, G)) < 2e-6


def test_ill_conditioned_matrices_do_not_slow_the_others():
    typical = wishart(15, 64, dtype=torch.float32)
    difficult = with_eigenvalues(spectrum("log", 64, 1e6), dtype=torch.float32)[None]
    together, first, second = (
        products(matroot.roots, A, "minimax") for A in (torch.cat([typical, difficult]), typical, difficult)
    )
    assert together <= (15 * first + second) / 16


@needs_compiled_code
def test_fewer_products_than_newton_schulz():
    """Newton-Schulz to the same accuracy at condition 1e4 takes more than twice the products."""
    A = with_eigenvalues(spectrum("log", 64, 1e4), dtype=torch.float64).expand(2, 64, 64)
    ours = products(matroot.sqrtm, A.float(), Minimax())
    for steps in range(5, 30):
        if error(matroot.sqrtm(A, NewtonSchulz(steps)), exact_root(A)) < 1e-6:
            assert products(matroot.sqrtm, A, NewtonSchulz(steps)) > 2 * ours
            return
    pytest.fail("Newton-Schulz did not converge")


@pytest.mark.parametrize("tolerance", [1e-2, 1e-4])
def test_tolerance_buys_products(tolerance):
    A = wishart(4, 32, dtype=torch.float64)
    loose = Minimax(tolerance=tolerance, condition=50.0)
    assert error(matroot.sqrtm(A, loose), exact_root(A)) < tolerance
    assert products(matroot.sqrtm, A, loose) < products(matroot.sqrtm, A, Minimax(condition=50.0))


@pytest.mark.parametrize(("n", "rank"), [(16, 3), (64, 48), (256, 48)])
@pytest.mark.parametrize("inverse", [False, True])
def test_rank_deficient(n, rank, inverse):
    """The root is right, the inverse root is right on the range and bounded off it, gradients are finite."""
    A = wishart(4, n, samples=rank, dtype=torch.float32)
    X = A.clone().requires_grad_()
    S, R = matroot.roots(X, "minimax")
    (gradient,) = torch.autograd.grad((R if inverse else S).sum(), X)
    assert torch.isfinite(gradient).all()
    assert error(S.detach(), exact_root(A)) < 5e-3  # sqrt(n eps): the root of rounding in A
    scale = torch.linalg.eigvalsh(A)[:, -1].sqrt()
    assert (torch.linalg.matrix_norm(R.detach(), 2) * scale).max() < 1e5
    # S R = I on the range of A.
    assert error((S @ R @ A).detach(), A.double()) < 0.02


@pytest.mark.parametrize(("n", "rank"), [(16, 4), (64, 10), (64, 60), (256, 40)])
def test_the_shift_does_not_show_in_the_root(n, rank):
    """What is left is the root of rounding in A, about sqrt(eps) = 3e-4: the shift alone would be 2 sqrt(eps) and more
    for every eigenvalue that is zero."""
    A = wishart(4, n, samples=rank, dtype=torch.float32)
    S = matroot.sqrtm(A, "minimax", backend="torch")
    assert error(S, exact_root(A)) < 1.3 * torch.finfo(torch.float32).eps ** 0.5


def test_a_shifted_eigenvalue_has_its_formula():
    """lambda/sqrt(lambda + sigma), which is below sqrt(lambda) by at most 0.3 sqrt(sigma); others are not touched."""
    eps = torch.finfo(torch.float64).eps
    values = torch.tensor([1.0, 0.5, 0.0, 3 * eps], dtype=torch.float64)
    A = torch.diag(values)
    theta = minimax._scale(A, A @ A)[0, 0]
    sigma = 4 * eps * theta
    S = matroot.sqrtm(A, "minimax", backend="torch").diagonal()
    torch.testing.assert_close(S, values / (values + sigma).sqrt(), rtol=0, atol=0.01 * eps**0.5)
    assert (values.sqrt() - S).max() < 0.3 * sigma**0.5
    regular = torch.diag(torch.tensor([1.0, 0.5, 0.25, 0.1], dtype=torch.float64))
    torch.testing.assert_close(
        matroot.sqrtm(regular, "minimax", backend="torch"), regular.sqrt(), rtol=0, atol=20 * eps
    )


def memory_of_gradients():
    """Batches of matrices beyond input, value, what is saved, and gradient: root, then inverse root."""
    A = wishart(16, 32, dtype=torch.float32)

    def extra(function, gradient):
        return extra_memory(lambda X: function(X, "minimax", gradient=gradient, backend="torch"), A, torch.ones_like(A))

    functions = (matroot.sqrtm, matroot.invsqrtm)
    gradients = ("krylov", "smith", "exact", "implicit", "lyapunov")
    return {g: [extra(function, g) / A.nbytes for function in functions] for g in gradients}


def test_memory():
    """In a process of its own: a compilation that failed before makes PyTorch keep tensors of later calls longer."""
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        found = process.submit(memory_of_gradients).result()
    # Numbers per matrix, and identities, are small beside.
    assert max(max(extra) for extra in found.values()) < 8.3
    assert max(found["smith"]) < 6.3


@pytest.mark.parametrize(("m", "n"), [(40, 20), (12, 12)])
def test_polar_factor(m, n):
    """Singular values above 1e-8 become one; eps over the smallest is what rounding K may turn."""
    generator = torch.Generator().manual_seed(0)
    U = torch.linalg.qr(torch.randn(m, n, dtype=torch.float64, generator=generator))[0]
    V, s = orthogonal(n, 1), torch.logspace(0, -6, n, dtype=torch.float64)
    eps = torch.finfo(torch.float64).eps
    torch.testing.assert_close(minimax.polar_factor((U * s) @ V.mT), U @ V.mT, rtol=0, atol=10 * eps * 1e6)
    assert not minimax.polar_factor(torch.zeros(m, n, dtype=torch.float64)).any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kappa", [1.0, 10.0, 1e2, 1e4, 1e6])
def test_where_values_cannot_be_read(kappa, dtype):
    """Under a transform every matrix takes the same number of steps, with coefficients of its own."""
    A = torch.cat([ill_conditioned(kappa, dtype), wishart(2, 64, dtype=dtype)])
    S, R = torch.func.vmap(lambda X: matroot.roots(X, "minimax"))(A)
    eps = torch.finfo(dtype).eps
    assert error(S[:-2], exact_root(A[:-2])) < 10 * eps * kappa**0.75 + 20 * eps
    assert error(S[-2:], exact_root(A[-2:])) < 20 * eps
    if eps * kappa < 0.05:
        assert error(R[:-2], exact_inverse_root(A[:-2])) < 10 * eps * kappa + 20 * eps


def test_krylov_needs_few_iterations():
    """The preconditioned equation has condition kappa^(1/4)/2."""
    A = with_eigenvalues(spectrum("log", 32, 1e6))[None]
    X = A.clone().requires_grad_()
    G = wishart(1, 32, seed=2)
    for gradient, limit in ((Krylov(tolerance=1e-6), 25), (matroot.Implicit(iterations=200, tolerance=1e-6), 200)):
        S = matroot.sqrtm(X, "eigen", gradient=gradient)
        with matroot.count_operations() as counts:
            (found,) = torch.autograd.grad(S, X, G)
        assert counts.products < limit
        assert error(found, exact_gradient(A, G)) < 1e-4
    assert counts.products > 60  # without the preconditioner


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Minimax(tolerance=0.0), "Minimax: tolerance must be a positive number"),
        (lambda: Minimax(condition=-1.0), "Minimax: condition must be a positive number"),
        (lambda: Krylov(tolerance=-1.0), "Krylov: tolerance must be a positive number"),
        (lambda: Krylov(iterations=0), "Krylov: iterations must be a positive integer"),
    ],
)
def test_bad_parameters(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_taylor_step_is_a_root_near_one():
    s = torch.linspace(0.9, 1.1, 11, dtype=torch.float64)
    assert (step(minimax._TAYLOR, s) - 1).abs().max() < 1e-3
    assert step(minimax._TAYLOR, torch.tensor(1.0)) == 1
    assert (step(minimax._TAYLOR, torch.tensor([1e-6])) / 1e-6).item() == pytest.approx(2.46, rel=1e-3)


def test_condition_beyond_the_table_uses_the_longest_schedule():
    schedules_for = minimax.schedules_for(torch.float32)
    assert minimax._first_for(schedules_for, 1e30) == schedules_for[-1].steps
