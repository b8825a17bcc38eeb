"""The fused kernels of the default method on a GPU: launches, accuracy, groups of programs, graphs."""

import pytest
import torch

import matroot

from ..bad_matrices import assert_harm_no_other
from ..matrices import error, exact_gradient, exact_inverse_root, exact_root, spectrum, wishart, with_eigenvalues
from .graphs import assert_graph_repeats

ROBUST = ("robust_roots_kernel", "robust_gradient_kernel")


@pytest.mark.parametrize("n", [1, 2, 7, 16, 17, 31, 48, 63, 64, 65, 100, 128, 200, 256, 512])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_auto_launches_kernels(n, dtype):
    """One each for roots and gradient, above 64 one more each for the robust path."""
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
        fast = ("fast_roots_cooperative_kernel", "fast_gradient_cooperative_kernel")
        assert [launched[name] for name in (*fast, *ROBUST)] == [1, 1, 1, 1]
    assert S.dtype == R.dtype == gradient.dtype == dtype
    tolerance = 4 * torch.finfo(dtype).eps + 2e-6
    exact = A.float()
    assert error(S.cpu().float().detach(), exact_root(exact)) < tolerance
    assert error(gradient.cpu().float(), exact_gradient(exact, G.to(dtype).float())) < 2 * tolerance


ON_CHIP = ("roots_kernel", "solve_kernel")
BY_PHASE = {"fast_roots_phase_kernel": 14, "fast_gradient_phase_kernel": 13, **dict.fromkeys(ROBUST, 1)}


@pytest.mark.parametrize("n", [100, 256])
def test_launches_of_large_batches(n):
    """All is on chip up to 128; above, the fast path is phase by phase and the robust path one launch each."""
    pytest.importorskip("triton")
    from matroot.backends.triton.on_chip import launch as on_chip

    X = wishart(200, n, dtype=torch.float32).cuda().requires_grad_()
    launches = dict.fromkeys(ON_CHIP, 1) if on_chip.can_take(n, X.device) else BY_PHASE
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        torch.autograd.grad(matroot.sqrtm(X).sum(), X)
    launched = {event.key: event.count for event in profile.key_averages()}
    for name in (*ON_CHIP, *BY_PHASE):
        assert launched.get(name, 0) == launches.get(name, 0), name


@pytest.mark.parametrize("n", [65, 100, 128, 200, 256, 512])
@pytest.mark.parametrize("batch", [1, 3, 16, 200])
def test_groups_of_programs(n, batch):
    """Whatever the size of the groups: accurate, repeatable, and the same in another batch but for rounding."""
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
        assert torch.equal(a.detach(), b[:1]) or batch > 3  # larger batches take other launches


@pytest.mark.parametrize("n", [65, 128, 256])
def test_bad_matrices_in_groups_affect_no_other(n):
    def results(matrices):
        X = matrices.clone().requires_grad_()
        S = matroot.sqrtm(X)
        return S.detach(), *torch.autograd.grad(S, X, torch.ones_like(S))

    assert_harm_no_other(wishart(300, n, dtype=torch.float32).cuda(), (3, 50, 51, 299), results)


@pytest.mark.parametrize("n", [100, 196, 256])
def test_groups_share_the_deferred_matrices(n):
    few = torch.stack([with_eigenvalues(spectrum("log", n, 600), seed, torch.float32) for seed in range(3)])
    A = few.cuda().repeat(90, 1, 1).requires_grad_()
    G = wishart(1, n, seed=3, dtype=torch.float32).cuda()
    for _ in range(10):
        R = matroot.invsqrtm(A)
        (X,) = torch.autograd.grad(R, A, G.expand_as(A))
    for T in (R.detach(), X):
        assert torch.equal(T[3:], T[:-3])
    assert error(R[:3].detach().cpu(), exact_inverse_root(few)) < 1e-5
    assert error(X[:3].cpu(), exact_gradient(few, G.cpu().expand_as(few), inverse=True)) < 1e-4


@pytest.mark.parametrize("n", [196, 256, 512])
@pytest.mark.parametrize("batch", [2, 200], ids=["cooperative", "phases"])
@pytest.mark.parametrize("excess", [6, 3])
def test_covariances_of_few_samples_take_the_fast_path(n, batch, excess, monkeypatch):
    """n + n/6 samples, a condition number of about 600, and n + n/3, about 200: 4 u (sqrt(n) + sqrt(condition)) for
    roots, 6 u (sqrt(n) + condition) for the inverse roots and gradients."""
    fast_launch = pytest.importorskip("matroot.backends.triton.tiled.fast_launch")
    from matroot.backends.triton.compile_together import compiling_only

    deferred = []

    def record(name):
        original = getattr(fast_launch, name)

        def recorded(*arguments):
            flags = original(*arguments)
            if not compiling_only():
                deferred.append(flags)
            return flags

        monkeypatch.setattr(fast_launch, name, recorded)

    record("roots")
    record("solve")
    few = wishart(2, n, samples=n + n // excess, dtype=torch.float32)
    G = wishart(1, n, seed=3, dtype=torch.float32).expand(2, n, n)
    A = few.cuda().repeat(batch // 2, 1, 1).requires_grad_()
    S, R = matroot.roots(A)
    cotangent = G.cuda().repeat(batch // 2, 1, 1)
    gradients = [torch.autograd.grad(T, A, cotangent, retain_graph=True)[0] for T in (S, R)]
    assert [flags[:, 0].any().item() for flags in deferred] == [False, False, False]
    condition = torch.linalg.cond(few.double()).min().item()
    unit = 6e-8 * (n**0.5 + condition)
    assert error(S[:2].detach().cpu(), exact_root(few)) < 4 * 6e-8 * (n**0.5 + condition**0.5)
    assert error(R[:2].detach().cpu(), exact_inverse_root(few)) < 6 * unit
    assert error(gradients[0][:2].cpu(), exact_gradient(few, G)) < 6 * unit
    assert error(gradients[1][:2].cpu(), exact_gradient(few, G, inverse=True)) < 6 * unit


def test_threads_agree_whether_a_matrix_is_deferred(monkeypatch):
    """If they did not, a few launches in thousands would end in an illegal instruction."""
    from matroot.backends.triton import minimax
    from matroot.backends.triton.robust import launch as robust_launch

    A = with_eigenvalues(spectrum("log", 196, 1e4), 0, torch.float32)
    A, S, R = (T.float().cuda().repeat(256, 1, 1) for T in (A, exact_root(A), exact_inverse_root(A)))
    monkeypatch.setattr(robust_launch, "launch_cached", lambda *_: None)  # the fast path alone
    for _ in range(1500):
        matroot.sqrtm(A)
        minimax.solve(S, R, A, None, 0.0)
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
