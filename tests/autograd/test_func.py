"""torch.func, forward mode, checkpointing and inference: values, not only that it runs."""

import itertools

import pytest
import torch
from torch import func

import matroot
from matroot import Implicit, Lyapunov

from ..matrices import FUNCTIONS, random_like, wishart
from ..pairs import CASES, NAMED, evaluate
from .losses import PAIRS, A, W, backward, close, loss_of, root_of

every_case = pytest.mark.parametrize(("pair", "name"), CASES)
every_pair = pytest.mark.parametrize("pair", PAIRS)
every_function = pytest.mark.parametrize("name", FUNCTIONS)


@every_case
def test_grad(pair, name):
    close(func.grad(loss_of(pair, name))(A), backward(pair, name))


@every_case
def test_vmap(pair, name):
    root = root_of(pair, name)
    close(func.vmap(root)(A), root(A))
    close(func.vmap(root, in_dims=2, out_dims=1)(A.permute(1, 2, 0)), root(A).movedim(0, 1))


@every_case
def test_vmap_of_grad(pair, name):
    close(func.vmap(func.grad(loss_of(pair, name)))(A, W), backward(pair, name))


@every_case
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


@pytest.mark.parametrize("name", NAMED)
def test_batched_gradients_of_complex_matrices(name):
    X = wishart(2, 3, dtype=torch.complex128).requires_grad_()
    root = evaluate(name, "sqrtm", X)
    upstream = torch.stack([random_like(X, seed) for seed in range(3)])
    (together,) = torch.autograd.grad(root, X, upstream, is_grads_batched=True, retain_graph=True)
    close(together, torch.stack([torch.autograd.grad(root, X, G, retain_graph=True)[0] for G in upstream]))


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
# Every nesting up to second order; at third order of one reverse and one forward mode.
ORDERS = ["".join(c) for modes, k in (("rfj", 1), ("rfj", 2), ("rf", 3)) for c in itertools.product(modes, repeat=k)]


# An iterative solver up to second order: beyond, derivatives are more of the same solves.
@pytest.mark.parametrize(
    ("pair", "order"),
    [("eigen-exact", order) for order in ORDERS] + [("eigen-lyapunov", order) for order in ORDERS if len(order) < 3],
)
def test_any_mixture_of_modes(pair, order):
    """Scalar derivatives of x^(1/2), x^(-1/2) and their sum."""
    x = torch.tensor(2.0, dtype=torch.float64)
    for name, true in (
        ("sqrtm", lambda x: x**0.5),
        ("invsqrtm", lambda x: x**-0.5),
        ("roots", lambda x: x**0.5 + x**-0.5),
    ):
        found = lambda x, name=name: root_of(pair, name)(x[None, None])[0, 0]  # noqa: E731
        for letter in order:
            found, true = TRANSFORMS[letter](found), TRANSFORMS[letter](true)
        close(found(x), true(x))


def test_matrix_derivatives_in_forward_mode():
    def loss(X):
        return loss_of("eigen-exact", "roots")(X, W[0])

    close(func.jacfwd(func.jacfwd(loss))(A[0]), func.jacrev(func.jacrev(loss))(A[0]))
    close(func.vmap(func.jacfwd(func.jacfwd(loss)))(A)[0], func.jacrev(func.jacrev(loss))(A[0]))


@pytest.mark.filterwarnings("ignore:Attempted to insert a get_attr Node:UserWarning")  # torch.func.linearize's own
@pytest.mark.parametrize("gradient", [Implicit(), Lyapunov(tolerance=1e-8)], ids=str)
def test_tracing_sees_no_early_exit(gradient):
    """Iterations that stop early on the CPU must not do so while they are recorded."""
    _, pushed = func.linearize(lambda X: matroot.sqrtm(X, gradient=gradient), A)
    close(pushed(W), func.jvp(lambda X: matroot.sqrtm(X, gradient=gradient), (A,), (W,))[1], rtol=1e-6)


def test_meta_tensors():
    S, R = matroot.roots(torch.empty(2, 3, 3, device="meta"), "pade")
    assert S.shape == R.shape == (2, 3, 3)


def test_second_derivative_of_a_baseline_fails_aloud():
    with pytest.raises(RuntimeError, match="first derivative only"):
        func.hessian(lambda X: loss_of("eigen/eigen-pade", "sqrtm")(X, W[0]))(A[0])


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
