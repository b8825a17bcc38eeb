"""The same on a GPU: values, gradients, precision settings, no synchronisation."""

import contextlib
import copy

import pytest
import torch

import matroot
from matroot.backends import eager
from matroot.nn import CovariancePool, DecorrelatedBatchNorm2d

from .cuda_graphs import assert_graph_repeats
from .matrices import (
    FUNCTIONS,
    error,
    exact_gradient,
    exact_inverse_root,
    exact_root,
    spectrum,
    wishart,
    with_eigenvalues,
)
from .pairs import CASES, NAMED

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")

PRODUCT_ONLY = [case for case in CASES if not any(word in case[0] for word in ("eigen", "exact"))]


def value_and_gradient(pair, name, A, **kwargs):
    method, gradient = NAMED[pair]
    X = A.detach().clone().requires_grad_()
    value = FUNCTIONS[name](X, method, gradient=gradient, **kwargs)
    (found,) = torch.autograd.grad(value, X, torch.ones_like(value))
    return value.detach(), found


@contextlib.contextmanager
def tf32():
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    try:
        yield
    finally:
        torch.backends.cuda.matmul.fp32_precision = "ieee"


@pytest.mark.parametrize(("pair", "name"), CASES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_same_as_on_the_cpu(pair, name, dtype):
    A = wishart(5, 12, dtype=dtype)
    for found, expected in zip(
        value_and_gradient(pair, name, A.cuda()), value_and_gradient(pair, name, A), strict=True
    ):
        torch.testing.assert_close(found.cpu(), expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(("pair", "name"), CASES)
@pytest.mark.parametrize("kind", ["nan", "inf", "indefinite"])
def test_one_bad_matrix_harms_no_other(pair, name, kind):
    A = wishart(6, 16, dtype=torch.float32).cuda()
    expected = value_and_gradient(pair, name, A)
    bad = A.clone()
    bad[2] = -bad[2] if kind == "indefinite" else float(kind)
    good = [0, 1, 3, 4, 5]
    for found, true in zip(value_and_gradient(pair, name, bad), expected, strict=True):
        assert torch.equal(found[good], true[good])
        assert torch.isnan(found[2]).all()


@pytest.mark.parametrize(("pair", "name"), CASES)
def test_tf32_changes_nothing(pair, name):
    A = wishart(8, 64, dtype=torch.float32).cuda()
    plain = value_and_gradient(pair, name, A)
    with tf32():
        found = value_and_gradient(pair, name, A)
    tolerance = 3e-4 if "pade" in pair and name != "sqrtm" else 3e-5
    for a, b in zip(found, plain, strict=True):
        assert error(a, b.double()) < tolerance


def test_tf32_would_matter():
    """The setting is in force here: a plain product does lose digits."""
    X = torch.randn(4, 64, 64, device="cuda")
    true = X.double() @ X.double()
    with tf32():
        assert error(X @ X, true) > 1e-4
        assert error(eager.product(X, X), true) < 1e-6
        Z = torch.complex(X, X.mT)
        wide = Z.to(torch.complex128)
        assert error(eager.product(Z, Z), wide @ wide) < 1e-6


def test_compiled_code_ignores_tf32():
    torch._dynamo.reset()
    A = wishart(8, 64, dtype=torch.float32).cuda()
    compiled = torch.compile(lambda X: matroot.sqrtm(X, **matroot.preset("mtp-lya")), fullgraph=True)
    expected = value_and_gradient("taylor/lyapunov", "sqrtm", A)
    for context in (contextlib.nullcontext, tf32, contextlib.nullcontext):
        X = A.clone().requires_grad_()
        with context():
            value = compiled(X)
            (gradient,) = torch.autograd.grad(value, X, torch.ones_like(value))
        assert error(value.detach(), expected[0].double()) < 1e-5
        assert error(gradient, expected[1].double()) < 1e-5


@pytest.mark.parametrize(("pair", "name"), PRODUCT_ONLY)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_no_synchronisation(pair, name, dtype):
    A = wishart(8, 32, dtype=torch.float32).to("cuda", dtype)
    value_and_gradient(pair, name, A, ridge=1e-3)  # libraries may synchronise when first loaded
    torch.cuda.set_sync_debug_mode("error")
    try:
        value_and_gradient(pair, name, A, ridge=1e-3)
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("n", [32, 100, 256])
def test_no_synchronisation_in_kernels(n):
    A = wishart(8, n, dtype=torch.float32).cuda().requires_grad_()

    def step():
        return torch.autograd.grad(matroot.sqrtm(A, ridge=1e-3).sum(), A)

    step()
    torch.cuda.set_sync_debug_mode("error")
    try:
        step()
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_autocast(dtype):
    A = wishart(8, 32, dtype=torch.float32).cuda()
    expected = value_and_gradient("pade/lyapunov", "sqrtm", A)
    with torch.autocast("cuda", dtype):
        found = value_and_gradient("pade/lyapunov", "sqrtm", A)
    assert torch.equal(found[0], expected[0])
    assert torch.equal(found[1], expected[1])


def test_float32_default_is_accurate():
    A = wishart(64, 64, dtype=torch.float32)
    X = A.cuda().requires_grad_()
    S = matroot.sqrtm(X)
    G = wishart(64, 64, seed=1, dtype=torch.float32)
    (gradient,) = torch.autograd.grad(S, X, G.cuda())
    # cuSOLVER's float32 eigenvectors are orthogonal to 1e-5 only.
    assert error(S.detach().cpu(), exact_root(A)) < 1e-4
    assert error(gradient.cpu(), exact_gradient(A, G)) < 1e-4


@pytest.mark.parametrize("scale", [1e-30, 1e30])
@pytest.mark.parametrize("method", ["taylor", "pade", "newton-schulz", "eigen"])
def test_scales(method, scale):
    A = wishart(4, 16).cuda()
    S = matroot.sqrtm((scale * A).float(), method)
    assert error(S, scale**0.5 * matroot.sqrtm(A, method)) < 1e-5


# --- fused kernels -------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 7, 16, 17, 31, 48, 63, 64, 65, 100, 128, 200, 256, 512])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_auto_launches_kernels(n, dtype):
    """One each way, above 64 one more for what is not easy."""
    A = wishart(5, n, samples=2 * n + 4, dtype=torch.float32).to(dtype)
    assert matroot.choose(A.cuda()).backend == "triton"
    G = wishart(5, n, seed=3, dtype=torch.float32)
    X = A.cuda().requires_grad_()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        S, R = matroot.roots(X)
        (gradient,) = torch.autograd.grad(S, X, G.to(dtype).cuda())
    launched = {event.key: event.count for event in profile.key_averages()}
    if n <= 64:
        assert [launched[name] for name in ("roots_kernel", "solve_kernel")] == [1, 1]
    else:
        names = ("all_roots_phases_kernel", "all_solve_phases_kernel", "tiled_roots_kernel", "tiled_smith_kernel")
        assert [launched[name] for name in names] == [1, 1, 1, 1]
    assert S.dtype == R.dtype == gradient.dtype == dtype
    tolerance = 4 * torch.finfo(dtype).eps + 2e-6
    exact = A.float()
    assert error(S.cpu().float().detach(), exact_root(exact)) < tolerance
    assert error(gradient.cpu().float(), exact_gradient(exact, G.to(dtype).float())) < 2 * tolerance


@pytest.mark.parametrize("n", [100, 256])
def test_launches_of_large_batches(n):
    """Up to 128 one each way and one for what is not easy; larger matrices take one for every phase."""
    triton_large = pytest.importorskip("matroot.backends.triton_large")
    X = wishart(200, n, dtype=torch.float32).cuda().requires_grad_()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        torch.autograd.grad(matroot.sqrtm(X).sum(), X)
    launched = {event.key: event.count for event in profile.key_averages()}
    assert [launched[name] for name in ("tiled_roots_kernel", "tiled_smith_kernel")] == [1, 1]
    if n <= 128 and triton_large._has_room(X.device):
        assert [launched[name] for name in ("easy_roots_kernel", "easy_solve_kernel")] == [1, 1]
    else:
        assert [launched[name] for name in ("roots_phase_kernel", "solve_phase_kernel")] == [10, 11]


@pytest.mark.parametrize("n", [65, 100, 128, 200, 256, 512])
@pytest.mark.parametrize("batch", [1, 3, 16, 200])
def test_groups_of_programs(n, batch):
    """Whatever the size of the groups: exact, the same again, and the same in other company but for rounding."""
    few = wishart(min(batch, 3), n, dtype=torch.float32)
    A = few.cuda().repeat(-(-batch // 3), 1, 1)[:batch]
    G = wishart(1, n, seed=3, dtype=torch.float32).cuda().expand(batch, n, n)
    first, again = ([*matroot.roots(X := A.clone().requires_grad_()), X] for _ in range(2))
    found, repeated = (
        [S.detach(), R.detach(), torch.autograd.grad((S, R), X, (G, G))[0]] for S, R, X in (first, again)
    )
    assert all(torch.equal(a, b) for a, b in zip(found, repeated, strict=True))
    for T in found:
        assert torch.equal(T, T.mT)
        assert torch.equal(T[3:], T[:-3])
    S, R, X = (T[: len(few)].cpu() for T in found)
    H = G[: len(few)].cpu()
    assert error(S, exact_root(few)) < 3e-6
    assert error(R, exact_inverse_root(few)) < 3e-6
    assert error(X, exact_gradient(few, H) + exact_gradient(few, H, inverse=True)) < 1e-5
    alone = A[:1].clone().requires_grad_()
    S, R = matroot.roots(alone)
    (X,) = torch.autograd.grad((S, R), alone, (G[:1], G[:1]))
    for a, b in zip((S, R, X), found, strict=True):
        assert error(a.detach().cpu(), b[:1].cpu().double()) < 5e-6
        assert torch.equal(a.detach(), b[:1]) or batch > 3  # which go other ways


@pytest.mark.parametrize("n", [65, 128, 256])
def test_bad_matrices_in_groups_harm_no_other(n):
    A = wishart(300, n, dtype=torch.float32).cuda()
    bad = A.clone()
    bad[3], bad[50, 1, n - 1], bad[51], bad[299, 0, 0] = 0, float("nan"), -bad[51], float("inf")
    good = torch.ones(300, dtype=torch.bool)
    good[[3, 50, 51, 299]] = False
    found = []
    for matrices in (A, bad):
        X = matrices.clone().requires_grad_()
        S = matroot.sqrtm(X)
        (gradient,) = torch.autograd.grad(S, X, torch.ones_like(S))
        found.append((S.detach(), gradient))
    for right, other in zip(*found, strict=True):
        assert torch.equal(right[good], other[good])
        assert torch.isnan(other[[50, 51, 299]]).all()
        assert not other[3].any()


@pytest.mark.parametrize("n", [100, 196, 256])
def test_groups_take_turns_at_matrices_that_are_not_easy(n):
    few = wishart(3, n, samples=4 * n // 3, dtype=torch.float32)
    A = few.cuda().repeat(90, 1, 1).requires_grad_()
    G = wishart(1, n, seed=3, dtype=torch.float32).cuda()
    for _ in range(10):
        R = matroot.invsqrtm(A)
        (X,) = torch.autograd.grad(R, A, G.expand_as(A))
    for T in (R.detach(), X):
        assert torch.equal(T[3:], T[:-3])
    assert error(R[:3].detach().cpu(), exact_inverse_root(few)) < 1e-5
    assert error(X[:3].cpu(), exact_gradient(few, G.cpu().expand_as(few), inverse=True)) < 1e-4


def test_threads_agree_whether_a_matrix_is_left(monkeypatch):
    """Where they did not, one launch in tens of thousands was an illegal instruction."""
    from matroot.backends import triton_large, triton_roots

    A = with_eigenvalues(spectrum("log", 196, 1e4), 0, torch.float32)
    A, S, R = (T.float().cuda().repeat(256, 1, 1) for T in (A, exact_root(A), exact_inverse_root(A)))
    monkeypatch.setattr(triton_large, "launch_known", lambda *_: None)  # for what is left
    for _ in range(1500):
        matroot.sqrtm(A)
        triton_roots.solve(S, R, A, None, 0.0)
    torch.cuda.synchronize()


@pytest.mark.parametrize("kind", ["log", "clustered", "one-small", "one-large"])
@pytest.mark.parametrize("kappa", [1e2, 1e4, 1e6])
@pytest.mark.parametrize("n", [64, 128, 256])
def test_fused_accuracy_at_any_condition(kind, kappa, n):
    """Within twice what plain PyTorch reaches on the same matrices, or four times u sqrt(kappa)."""
    A = torch.stack([with_eigenvalues(spectrum(kind, n, kappa), seed, torch.float32) for seed in range(4)])
    X, Y = A.cuda().requires_grad_(), A.cuda().requires_grad_()
    S, T = matroot.sqrtm(X), matroot.sqrtm(Y, "minimax", gradient="krylov")
    true = exact_root(A)
    floor = 6e-8 * kappa**0.5
    assert error(S.detach().cpu(), true) < max(2 * error(T.detach().cpu(), true), 4 * floor)
    (gradient,) = torch.autograd.grad(S.sum(), X)
    assert error(gradient.cpu(), exact_gradient(A, torch.ones_like(A))) < 10 * 6e-8 * kappa


@pytest.mark.parametrize("n", [48, 100, 256])
def test_fused_kernels_in_a_graph_repeat_bit_for_bit(n):
    A = wishart(16, n, dtype=torch.float32).cuda().requires_grad_()

    def step():
        return torch.autograd.grad(matroot.invsqrtm(A).sum(), A)

    assert_graph_repeats(step, step())


def test_second_derivative_through_the_kernel():
    A = wishart(2, 6, dtype=torch.float32)
    for X in (A.cuda().requires_grad_(), A.double().requires_grad_()):
        (gradient,) = torch.autograd.grad(matroot.sqrtm(X).sum(), X, create_graph=True)
        (second,) = torch.autograd.grad(gradient.square().sum(), X)
        if X.is_cuda:
            found = second
    assert error(found.cpu(), second) < 1e-4


# --- fused kernels of the paper's methods --------------------------------------------------------

LYAPUNOV = matroot.Lyapunov()
PAPER = {
    "taylor_kernel": matroot.Taylor(),
    "pade_kernel": matroot.Pade(),
    "fractions_kernel": matroot.Pade(7),
    "newton_schulz_kernel": matroot.NewtonSchulz(),
}
PAPER_FORMS = [*PAPER.values(), matroot.NewtonSchulz(form="single"), matroot.NewtonSchulz(3, norm="trace")]
every_paper_form = pytest.mark.parametrize("method", PAPER_FORMS, ids=str)


def paper_tolerance(method):
    """A few roundings a product; the polynomials of Pade span 4^N, and so many digits are lost."""
    return (4**method.degree if isinstance(method, matroot.Pade) and method.by_polynomials else 32) * 1.2e-7


@pytest.mark.parametrize("n", [1, 7, 16, 31, 48, 64])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("kernel", PAPER)
def test_paper_launches_one_kernel_each_way(kernel, dtype, n):
    """Errors are against the same methods step by step on the CPU, in double precision."""
    method = PAPER[kernel]
    A = wishart(5, n, samples=2 * n + 4, dtype=torch.float32).to(dtype)
    G = wishart(5, n, seed=3, dtype=torch.float32).to(dtype)
    assert matroot.choose(A.cuda(), method, LYAPUNOV).backend == "triton"
    X = A.cuda().requires_grad_()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        S = matroot.sqrtm(X, method, gradient=LYAPUNOV)
        (gradient,) = torch.autograd.grad(S, X, G.cuda())
    launched = {event.key: event.count for event in profile.key_averages()}
    assert [launched[name] for name in (kernel, "lyapunov_kernel")] == [1, 1]
    if dtype == torch.float32:
        assert sum(count for name, count in launched.items() if "kernel" in name) == 2
    assert S.dtype == gradient.dtype == dtype
    Y = A.double().requires_grad_()
    true = matroot.sqrtm(Y, method, gradient=LYAPUNOV)
    tolerance = paper_tolerance(method) + 2 * torch.finfo(dtype).eps
    assert error(S.detach().cpu().double(), true.detach()) < tolerance
    assert error(gradient.cpu().double(), torch.autograd.grad(true, Y, G.double())[0]) < 8 * tolerance


@every_paper_form
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("n", [5, 32, 64])
def test_paper_as_on_the_cpu(method, name, n):
    """Also from strided input, with a ridge, and the first and second derivatives."""
    A = wishart(3, n, samples=4 * n + 4, dtype=torch.float32)
    strided = A.cuda().permute(1, 2, 0).contiguous().permute(2, 0, 1)
    assert matroot.choose(strided, method, LYAPUNOV).backend == "triton"
    found = []
    for X in (strided.requires_grad_(), A.double().requires_grad_()):
        value = FUNCTIONS[name](X, method, gradient=LYAPUNOV, ridge=0.1)
        (first,) = torch.autograd.grad(value.sum(), X, retain_graph=True)
        (again,) = torch.autograd.grad(value.sum(), X, create_graph=True)
        (second,) = torch.autograd.grad(again.square().sum(), X)
        found.append([T.detach().cpu().double() for T in (value, first, again, second)])
    for fused, true, factor in zip(*found, (1, 16, 16, 64), strict=True):
        assert error(fused, true) < factor * paper_tolerance(method)


@every_paper_form
@pytest.mark.parametrize("n", [9, 64])
def test_paper_bad_matrices_harm_no_other(method, n):
    A = wishart(40, n, dtype=torch.float32).cuda()
    bad = A.clone()
    bad[3], bad[5, 1, n - 1], bad[7], bad[39, 0, 0] = 0, float("nan"), -bad[7], float("inf")
    good = torch.ones(40, dtype=torch.bool)
    good[[3, 5, 7, 39]] = False
    found = []
    for matrices in (A, bad):
        X = matrices.clone().requires_grad_()
        S, R = matroot.roots(X, method, gradient=LYAPUNOV)
        found.append([S.detach(), R.detach(), torch.autograd.grad(S.sum() + R.sum(), X)[0]])
    for right, other in zip(*found, strict=True):
        assert torch.equal(right[good], other[good])
        assert torch.isnan(other[[5, 7, 39]]).all()
        assert not other[3].any()


@every_paper_form
@pytest.mark.parametrize("power", [-55, 55])
def test_paper_scale(method, power):
    """Powers of four change the exponents, and nothing else."""
    A = wishart(3, 24, dtype=torch.float32).cuda()
    small, large = (matroot.roots(X, method, gradient=LYAPUNOV) for X in (A, A * 4.0**power))
    assert torch.equal(large.sqrt * 2.0**-power, small.sqrt)
    assert torch.equal(large.invsqrt * 2.0**power, small.invsqrt)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_paper_half_input_may_be_indefinite_by_rounding(dtype):
    A = torch.stack([wishart(24, samples=8), wishart(24, samples=8) - 0.1 * torch.eye(24)]).to(dtype)
    for method in (matroot.Taylor(), matroot.Pade()):
        found, true = (matroot.sqrtm(X, method).cpu() for X in (A.cuda(), A))
        assert torch.isnan(found[1]).all()
        assert error(found[:1].double(), true[:1].double()) < 2 * torch.finfo(dtype).eps


def test_paper_kernels_in_a_graph_repeat_bit_for_bit():
    A = wishart(16, 48, dtype=torch.float32).cuda().requires_grad_()

    def step():
        return torch.autograd.grad(matroot.invsqrtm(A, "pade").sum(), A)

    assert_graph_repeats(step, step())


# --- layers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_decorrelated_batch_normalisation_of_bfloat16(groups, layout):
    """As on the CPU in float32, up to the rounding of features, weights and results."""
    x = torch.randn(16, 32, 9, 9).to(torch.bfloat16)
    G = torch.randn(16, 32, 9, 9).to(torch.bfloat16)
    layer = DecorrelatedBatchNorm2d(32, groups=groups, eps=1e-2)
    found = []
    for device, dtype in (("cpu", torch.float32), ("cuda", torch.bfloat16)):
        own = copy.deepcopy(layer).to(device)
        X = x.to(device, dtype).to(memory_format=layout).requires_grad_()
        y = own(X)
        assert y.dtype == dtype
        assert y.is_contiguous(memory_format=layout)
        (gradient,) = torch.autograd.grad(y, X, G.to(device, dtype))
        found.append([y.detach(), gradient, own.running_mean, own.running_whitening])
    for right, half, tolerance in zip(*found, (1e-2, 1e-2, 1e-3, 1e-3), strict=True):
        assert error(half.cpu().float().flatten()[None], right.double().flatten()[None]) < tolerance


def test_covariance_pool_of_few_positions():
    x = torch.randn(8, 200, 7, 7)
    pool = CovariancePool(200, reduce_to=None, triangle=False)
    X = x.cuda().requires_grad_()
    S = pool(X)
    (gradient,) = torch.autograd.grad(S, X, torch.ones_like(S))
    Y = x.double().requires_grad_()
    T = pool(Y)
    (true,) = torch.autograd.grad(T, Y, torch.ones_like(T))
    assert error(S.detach().cpu(), T.detach()) < 1e-5
    assert error(gradient.cpu().flatten(2), true.flatten(2)) < 1e-4
