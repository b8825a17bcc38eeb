"""The fused kernels of the paper's methods on a GPU."""

import pytest
import torch

import matroot

from ..bad_matrices import assert_harm_no_other
from ..matrices import FUNCTIONS, error, wishart
from .graphs import assert_graph_repeats

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
    def results(matrices):
        X = matrices.clone().requires_grad_()
        S, R = matroot.roots(X, method, gradient=LYAPUNOV)
        return S.detach(), R.detach(), *torch.autograd.grad(S.sum() + R.sum(), X)

    assert_harm_no_other(wishart(40, n, dtype=torch.float32).cuda(), (3, 5, 7, 39), results)


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
