"""torch.compile: values and gradients, one case for each code path of methods and of derivative rules."""

import pytest
import torch
from torch import func

import matroot
from matroot import (
    EigenClip,
    EigenPade,
    EigenPower,
    EigenTaylor,
    Implicit,
    Krylov,
    Lyapunov,
    Minimax,
    NewtonSchulz,
    Pade,
    Taylor,
)

from ..matrices import FUNCTIONS, wishart
from .losses import A, W, close, gradient_of, loss_of, root_of


def compile(function, **options):
    torch._dynamo.reset()
    return torch.compile(function, fullgraph=True, backend=options.pop("backend", "aot_eager"), **options)


def with_pair(name, method, gradient):
    return lambda X: FUNCTIONS[name](X, method, gradient=gradient)


BASELINES = (EigenClip(), EigenTaylor(2), EigenPade(), EigenPower(2))


def baselines(X):
    return sum(matroot.invsqrtm(X, "eigen", gradient=gradient) for gradient in BASELINES)


# Few iterations: a compiled call is compared with the same call, not with the truth.
ROOTS = {
    "decomposition": with_pair("roots", matroot.Eigen(), matroot.Exact()),
    "solve, sign iteration": with_pair("invsqrtm", Pade(degree=2), Lyapunov(iterations=2, tolerance=1e-12)),
    "polynomial, unrolled": with_pair("roots", Taylor(degree=2), matroot.Unrolled()),
    "coupled iteration, conjugate gradients": with_pair("sqrtm", NewtonSchulz(iterations=2), Implicit(iterations=2)),
    "minimax, preconditioned": with_pair("invsqrtm", Minimax(tolerance=1e-2), Krylov(iterations=2)),
    "baselines": baselines,
    "power iteration": with_pair("sqrtm", matroot.PowerIteration(iterations=2), matroot.Unrolled()),
}


@pytest.mark.parametrize("root", ROOTS)
def test_compile(root):
    function = ROOTS[root]
    compiled = compile(function)
    close(compiled(A), function(A))
    close(gradient_of(compiled), gradient_of(function))


def test_compile_dynamic():
    root = with_pair("invsqrtm", Taylor(degree=2), Lyapunov(iterations=2))
    compiled = compile(root, dynamic=True)
    for batch, n in ((2, 3), (5, 6)):
        X, w = wishart(batch, n), wishart(batch, n, seed=3)
        close(compiled(X), root(X))
        close(gradient_of(compiled, X, w), gradient_of(root, X, w))


@pytest.mark.parametrize("root", ["minimax, preconditioned", "polynomial, unrolled"])
def test_compile_of_no_matrices(root):
    """Also after a call with some."""
    for batches in ((A[:0],), (A, A[:0])):
        compiled = compile(ROOTS[root])
        for X in batches:
            close(compiled(X), ROOTS[root](X))


# Each way in which roots are expanded there: both with a spectrum, the inverse alone, a solver that is not linear in
# its right-hand side and gives way to the exact one, couplings of eigenvectors, and no rule at all.
@pytest.mark.parametrize(
    ("pair", "name"),
    [
        ("eigen-exact", "roots"),
        ("taylor-lyapunov", "invsqrtm"),
        ("minimax-krylov", "sqrtm"),
        ("eigen/eigen-pade", "invsqrtm"),
        ("taylor-unrolled", "sqrtm"),
    ],
)
def test_compile_of_grad(pair, name):
    """PyTorch would drop a custom backward here in silence."""
    close(compile(func.grad(loss_of(pair, name)))(A), gradient_of(root_of(pair, name)))


@pytest.mark.parametrize(("pair", "name"), [("eigen-exact", "roots"), ("taylor-exact", "invsqrtm")])
def test_compile_of_hessian(pair, name):
    """With and without a spectrum; the root alone is a part of both."""

    def loss(X):
        return loss_of(pair, name)(X, W[0])

    close(compile(func.hessian(loss))(A[0]), func.hessian(loss)(A[0]))


@pytest.mark.parametrize(
    ("gradient", "transform", "message"),
    [
        ("eigen-clip", func.hessian, "first derivative only"),
        ("exact", lambda f: func.jacrev(func.jacrev(func.jacrev(f))), "third derivatives inside torch.compile"),
    ],
)
def test_compile_refuses_what_would_be_wrong(gradient, transform, message):
    with pytest.raises(Exception, match=message):
        compile(transform(lambda X: matroot.sqrtm(X, gradient=gradient)[0, 0]))(A[0])


def test_compile_of_vmap():
    compiled = compile(func.vmap(root_of("taylor-lyapunov", "sqrtm")))
    close(compiled(A), root_of("taylor-lyapunov", "sqrtm")(A))


def test_inductor():
    """Generated code around the operator that "auto" calls, and of ordinary operations."""

    def function(X):
        return matroot.invsqrtm(X) + 2 * matroot.sqrtm(X, Taylor(degree=3), gradient=Lyapunov(iterations=2))

    compiled = compile(function, backend="inductor")
    X = A.clone().requires_grad_()
    value = compiled(X)
    close(value, function(A))
    close(torch.autograd.grad(value, X, W)[0], gradient_of(function))


def test_compile_under_autocast():
    X = A.float()
    compiled = compile(lambda X: matroot.sqrtm(X, Taylor(degree=4)))
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(compiled(X), matroot.sqrtm(X, Taylor(degree=4)))


def test_compile_sees_a_changed_parameter():
    """Coefficients are constants of a trace: another degree must not reuse them."""
    torch._dynamo.reset()
    compiled = torch.compile(matroot.sqrtm, backend="eager", fullgraph=True, dynamic=True)
    for method in (Taylor(3), Taylor(4), Pade(2)):
        close(compiled(A, method), matroot.sqrtm(A, method))
