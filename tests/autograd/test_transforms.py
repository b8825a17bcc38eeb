"""torch.func, torch.compile, export and checkpointing: values, not only that it runs."""

import functools
import itertools
import logging

import onnxruntime
import pytest
import torch
from torch import func

import matroot
from matroot import Eigen, Exact, Implicit, Krylov, Lyapunov, Minimax, NewtonSchulz, Pade, Taylor, Unrolled

from ..matrices import FUNCTIONS, error, wishart
from ..pairs import CASES, NAMED

A = wishart(3, 4)
W = wishart(3, 4, seed=8) + torch.arange(16.0, dtype=torch.float64).reshape(4, 4)

close = functools.partial(torch.testing.assert_close, rtol=1e-9, atol=1e-11)

# One pair for each way a derivative is made, converged so that derivatives are those of the root.
PAIRS = {
    "eigen-exact": (Eigen(), Exact()),
    "eigen-lyapunov": (Eigen(), Lyapunov(iterations=12)),
    "schulz-implicit": (NewtonSchulz(iterations=20), Implicit(iterations=25)),
    "minimax-krylov": (Minimax(), Krylov(iterations=20)),
    "taylor-unrolled": (Taylor(degree=4), Unrolled()),
    "taylor-exact": (Taylor(degree=3), Exact()),
    "taylor-lyapunov": (Taylor(degree=3), Lyapunov(iterations=3)),
    "pade-lyapunov": (Pade(), Lyapunov(iterations=12, tolerance=1e-12)),
}
every_pair = pytest.mark.parametrize("pair", PAIRS)
every_function = pytest.mark.parametrize("name", FUNCTIONS)


def root_of(pair, name):
    method, gradient = PAIRS[pair] if pair in PAIRS else NAMED[pair]
    return lambda X: FUNCTIONS[name](X, method, gradient=gradient)


def loss_of(pair, name):
    root = root_of(pair, name)
    return lambda X, w=W: (w * root(X)).sum()


def backward(pair, name, X=A, w=W):
    X = X.clone().requires_grad_()
    return torch.autograd.grad(loss_of(pair, name)(X, w), X)[0]


# --- torch.func ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("pair", "name"), CASES)
def test_grad(pair, name):
    close(func.grad(loss_of(pair, name))(A), backward(pair, name))


@pytest.mark.parametrize(("pair", "name"), CASES)
def test_vmap(pair, name):
    root = root_of(pair, name)
    close(func.vmap(root)(A), root(A))
    close(func.vmap(root, in_dims=2, out_dims=1)(A.permute(1, 2, 0)), root(A).movedim(0, 1))


@pytest.mark.parametrize(("pair", "name"), CASES)
def test_vmap_of_grad(pair, name):
    close(func.vmap(func.grad(loss_of(pair, name)))(A, W), backward(pair, name))


@pytest.mark.parametrize(("pair", "name"), CASES)
def test_jvp(pair, name):
    tangent = W.flip(0)
    _, pushed = func.jvp(loss_of(pair, name), (A,), (tangent,))
    close(pushed, (backward(pair, name) * tangent).sum())


@every_pair
@every_function
def test_dual_numbers(pair, name):
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(A, W)
        tangent = torch.autograd.forward_ad.unpack_dual(root_of(pair, name)(dual)).tangent
    close(tangent, func.jvp(root_of(pair, name), (A,), (W,))[1])
    assert tangent is not None
    assert tangent.abs().max() > 0.01


@every_pair
@every_function
def test_jacrev_and_jacfwd(pair, name):
    root = root_of(pair, name)
    reverse = func.jacrev(root)(A[0])
    close(func.jacfwd(root)(A[0]), reverse)
    rows = torch.stack([torch.autograd.functional.vjp(root, A[0], e)[1] for e in torch.eye(16).double().view(16, 4, 4)])
    close(reverse.reshape(16, 4, 4), rows)
    close(torch.autograd.functional.jacobian(root, A[0], vectorize=True), reverse)


@every_pair
@every_function
def test_hessian(pair, name):
    def loss(X):
        return loss_of(pair, name)(X, W[0])

    once = func.hessian(loss)(A[0])
    close(func.jacrev(func.jacrev(loss))(A[0]), once)
    close(torch.autograd.functional.hessian(loss, A[0]), once)
    close(func.vmap(func.hessian(lambda X, w: loss_of(pair, name)(X, w)))(A, W)[0], once)
    assert once.abs().max() > 0.01


TRANSFORMS = {"r": func.jacrev, "f": func.jacfwd, "j": lambda f: lambda x: func.jvp(f, (x,), (torch.ones_like(x),))[1]}


@pytest.mark.parametrize("order", ["".join(c) for k in (1, 2, 3) for c in itertools.product(TRANSFORMS, repeat=k)])
@pytest.mark.parametrize("pair", ["eigen-exact", "eigen-lyapunov"])
def test_any_mixture_of_modes(pair, order):
    """Scalar derivatives of x^(1/2), x^(-1/2) and their sum through every nesting of modes up to third order."""
    for name, true in (
        ("sqrtm", lambda x: x**0.5),
        ("invsqrtm", lambda x: x**-0.5),
        ("roots", lambda x: x**0.5 + x**-0.5),
    ):
        found = lambda x, name=name: root_of(pair, name)(x[None, None])[0, 0]  # noqa: E731
        for letter in order:
            found, true = TRANSFORMS[letter](found), TRANSFORMS[letter](true)
        close(found(torch.tensor(2.0).double()), true(torch.tensor(2.0).double()))


def test_matrix_derivatives_in_forward_mode():
    def loss(X):
        return loss_of("eigen-exact", "roots")(X, W[0])

    close(func.jacfwd(func.jacfwd(loss))(A[0]), func.jacrev(func.jacrev(loss))(A[0]))
    close(func.vmap(func.jacfwd(func.jacfwd(loss)))(A)[0], func.jacrev(func.jacrev(loss))(A[0]))


@pytest.mark.filterwarnings("ignore:Attempted to insert a get_attr Node:UserWarning")  # torch.func.linearize's own
@pytest.mark.parametrize("gradient", [Implicit(), Lyapunov(tolerance=1e-8)], ids=str)
def test_tracing_sees_no_early_exit(gradient):
    """Iterations that stop early on the CPU must not do so while somebody else records them."""
    _, pushed = func.linearize(lambda X: matroot.sqrtm(X, gradient=gradient), A)
    close(pushed(W), func.jvp(lambda X: matroot.sqrtm(X, gradient=gradient), (A,), (W,))[1], rtol=1e-6)


def test_meta_tensors():
    S, R = matroot.roots(torch.empty(2, 3, 3, device="meta"), "pade")
    assert S.shape == R.shape == (2, 3, 3)


def test_func_grad_of_a_baseline():
    close(func.grad(loss_of("eigen/eigen-pade", "sqrtm"))(A), backward("eigen/eigen-pade", "sqrtm"))
    with pytest.raises(RuntimeError, match="first derivative only"):
        func.hessian(lambda X: loss_of("eigen/eigen-pade", "sqrtm")(X, W[0]))(A[0])


# --- torch.compile -------------------------------------------------------------------------------


def compile(function, **options):
    torch._dynamo.reset()
    return torch.compile(function, fullgraph=True, backend=options.pop("backend", "aot_eager"), **options)


COMPILED = [
    ("eigen-exact", "sqrtm"),
    ("eigen-exact", "invsqrtm"),
    ("eigen-exact", "roots"),
    ("pade-lyapunov", "sqrtm"),
    ("pade-lyapunov", "invsqrtm"),
    ("taylor-unrolled", "roots"),
    ("schulz-implicit", "sqrtm"),
    ("minimax-krylov", "invsqrtm"),
    ("eigen/eigen-pade", "invsqrtm"),
    ("eigen/eigen-power", "sqrtm"),
    ("power-iteration/unrolled", "sqrtm"),
]
every_compiled = pytest.mark.parametrize(("pair", "name"), COMPILED)


@every_compiled
def test_compile(pair, name):
    compiled = compile(root_of(pair, name))
    close(compiled(A), root_of(pair, name)(A))
    X = A.clone().requires_grad_()
    close(torch.autograd.grad((W * compiled(X)).sum(), X)[0], backward(pair, name))


@pytest.mark.parametrize(
    ("pair", "name"), [("eigen-exact", "sqrtm"), ("taylor-lyapunov", "invsqrtm"), ("taylor-unrolled", "sqrtm")]
)
def test_compile_dynamic(pair, name):
    compiled = compile(root_of(pair, name), dynamic=True)
    for batch, n in ((2, 3), (5, 6), (1, 7)):
        X = wishart(batch, n).requires_grad_()
        w = wishart(batch, n, seed=3)
        value = compiled(X)
        close(value, root_of(pair, name)(X))
        close(torch.autograd.grad((w * value).sum(), X)[0], backward(pair, name, X.detach(), w))


@every_compiled
def test_compile_of_grad(pair, name):
    """PyTorch would drop a custom backward here in silence."""
    close(compile(func.grad(loss_of(pair, name)))(A), backward(pair, name))


@pytest.mark.parametrize(
    ("pair", "name"),
    [("eigen-exact", "sqrtm"), ("eigen-exact", "invsqrtm"), ("eigen-exact", "roots"), ("taylor-exact", "invsqrtm")],
)
def test_compile_of_hessian(pair, name):
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
    compiled = compile(func.vmap(root_of("pade-lyapunov", "sqrtm")))
    close(compiled(A), root_of("pade-lyapunov", "sqrtm")(A))


@pytest.mark.parametrize("choice", [{}, matroot.preset("mtp-lya")], ids=["auto", "mtp-lya"])
def test_inductor(choice):
    compiled = compile(lambda X: matroot.invsqrtm(X, **choice), backend="inductor")
    X, Y = A.clone().requires_grad_(), A.clone().requires_grad_()
    value, expected = compiled(X), matroot.invsqrtm(Y, **choice)
    close(value, expected)
    close(torch.autograd.grad(value, X, W)[0], torch.autograd.grad(expected, Y, W)[0])


def test_compile_under_autocast():
    X = A.float()
    compiled = compile(lambda X: matroot.sqrtm(X, "taylor"))
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(compiled(X), matroot.sqrtm(X, "taylor"))


# --- export --------------------------------------------------------------------------------------


class Root(torch.nn.Module):
    def __init__(self, name, method):
        super().__init__()
        self.name, self.method = name, method

    def forward(self, X):
        return FUNCTIONS[self.name](X, self.method)


BATCH = {0: torch.export.Dim("batch", min=1, max=64)}


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("method", ["eigen", "pade", "taylor", "newton-schulz"])
@every_function
def test_export(method, name, strict):
    program = torch.export.export(Root(name, method), (A,), dynamic_shapes=(BATCH,), strict=strict).module()
    for batch in (1, 3, 7):
        X = wishart(batch, 4, seed=batch)
        close(program(X), FUNCTIONS[name](X, method))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
@pytest.mark.parametrize(
    ("method", "name"),
    [
        ("taylor", "roots"),
        ("newton-schulz", "roots"),
        ("minimax", "sqrtm"),
        (NewtonSchulz(form="single"), "invsqrtm"),
        ("power-iteration", "sqrtm"),
    ],
)
def test_onnx(method, name, tmp_path):
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    program = torch.onnx.export(
        Root(name, method).eval(), (A.float(),), dynamo=True, verbose=False, dynamic_shapes=(BATCH,)
    )
    program.save(str(tmp_path / "root.onnx"))
    session = onnxruntime.InferenceSession(str(tmp_path / "root.onnx"))
    X = torch.stack([wishart(4), 1e20 * wishart(4, seed=1), 1e-20 * wishart(4, seed=2)]).float()
    for matrix in X:
        (found,) = session.run(None, {session.get_inputs()[0].name: matrix[None].numpy()})
        assert error(torch.from_numpy(found)[0], FUNCTIONS[name](matrix, method).double()) < 1e-5


# --- the rest ------------------------------------------------------------------------------------


@pytest.mark.parametrize("reentrant", [False, True])
@every_pair
@every_function
def test_activation_checkpointing(pair, name, reentrant):
    X = A.clone().requires_grad_()
    value = torch.utils.checkpoint.checkpoint(root_of(pair, name), X, use_reentrant=reentrant)
    close(
        torch.autograd.grad((W * value).sum(), X)[0] if not reentrant else _by_backward(W * value, X),
        backward(pair, name),
    )


def _by_backward(value, X):
    value.sum().backward()
    return X.grad


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
@every_pair
@every_function
def test_without_gradients(pair, name, context):
    expected = root_of(pair, name)(A)
    with context():
        found = root_of(pair, name)(A.clone().requires_grad_())
    assert not found.requires_grad
    close(found, expected)


def test_compile_sees_a_changed_parameter():
    """Coefficients are constants of a trace: another degree must not reuse them."""
    torch._dynamo.reset()
    compiled = torch.compile(matroot.sqrtm, backend="eager", fullgraph=True, dynamic=True)
    for method in (Taylor(3), Taylor(7), Taylor(11), Pade(2), Pade(3), Pade(4)):
        close(compiled(A, method), matroot.sqrtm(A, method))
