"""Names, presets and the pairs that make no sense."""

import copy
import pickle

import pytest
import torch

import matroot
from matroot import _dispatch
from matroot._registry import GRADIENTS, METHODS
from matroot.backends._base import CallContext
from matroot.backends.triton import minimax

from .installation import HAS_COMPILED_CODE, needs_compiled_code
from .matrices import error, exact_gradient, spectrum, wishart, with_eigenvalues
from .pairs import NAMED

A = wishart(2, 4)


def test_names():
    assert " ".join(METHODS) == "taylor pade newton-schulz minimax eigen power-iteration"
    assert " ".join(GRADIENTS) == (
        "lyapunov exact implicit krylov smith unrolled eigen-clip eigen-taylor eigen-pade eigen-power"
    )
    assert " ".join(matroot.presets()) == (
        "mpa-lya mtp-lya ns ns-lya svd svd-lya svd-clip svd-pi svd-taylor svd-pade pi"
    )


@pytest.mark.parametrize("name", METHODS)
def test_a_name_is_the_default_object(name):
    assert torch.equal(matroot.sqrtm(A, name), matroot.sqrtm(A, METHODS[name]()))


@pytest.mark.parametrize(
    ("shape", "dtype", "plan"),
    [
        ((64, 64), torch.float32, "minimax/smith"),
        ((3, 256, 256), torch.float32, "minimax/smith"),
        ((3, 257, 257), torch.float32, "eigen/exact"),
        ((4, 257, 257), torch.float32, "minimax/smith"),
        ((100, 384, 384), torch.bfloat16, "minimax/smith"),
        ((100, 385, 385), torch.float32, "eigen/exact"),
        ((128, 128), torch.float64, "minimax/smith"),
        ((129, 129), torch.float64, "eigen/exact"),
        ((2, 50, 256, 256), torch.float64, "minimax/smith"),
        ((2, 50, 257, 257), torch.float64, "eigen/exact"),
        ((48, 48), torch.complex64, "minimax/smith"),
        ((3, 49, 49), torch.complex64, "eigen/exact"),
        ((4, 96, 96), torch.complex64, "minimax/smith"),
        ((100, 97, 97), torch.complex64, "eigen/exact"),
        ((3, 8, 8), torch.complex128, "eigen/exact"),
        ((4, 32, 32), torch.complex128, "minimax/smith"),
        ((4, 33, 33), torch.complex128, "eigen/exact"),
        ((100, 8, 8), torch.float32, "minimax/smith"),
        ((0, 64, 64), torch.float32, "eigen/exact"),
        ((3, 0, 0), torch.float32, "eigen/exact"),
    ],
)
def test_auto_follows_its_table(shape, dtype, plan):
    """Where there is no compiled code, it decomposes."""
    chosen = matroot.choose(torch.ones(()).to(dtype).expand(shape))
    assert f"{chosen.method.name}/{chosen.gradient.name}" == (plan if HAS_COMPILED_CODE else "eigen/exact")


def test_auto_elsewhere_multiplies():
    plan = matroot.choose(torch.empty(2, 8, 8, device="meta"))
    assert (plan.method, plan.gradient, plan.backend) == (matroot.Minimax(), matroot.Krylov(), "torch")


@pytest.mark.parametrize("batch", [1, 40])
def test_the_plan_is_what_happens(batch):
    many = wishart(batch, 32, dtype=torch.float32)
    plan = matroot.choose(many)
    X, Y = many.clone().requires_grad_(), many.clone().requires_grad_()
    (auto,) = torch.autograd.grad(matroot.invsqrtm(X).sum(), X)
    (named,) = torch.autograd.grad(matroot.invsqrtm(Y, plan.method, gradient=plan.gradient).sum(), Y)
    assert torch.equal(matroot.invsqrtm(many), matroot.invsqrtm(many, plan.method))
    assert torch.equal(auto, named)


@pytest.mark.parametrize("gradient", [g() for g in GRADIENTS.values()], ids=lambda g: g.name)
def test_auto_goes_with_every_gradient(gradient):
    plan = matroot.choose(torch.eye(32).expand(100, 32, 32), gradient=gradient)
    assert plan.gradient == gradient
    fused = HAS_COMPILED_CODE and gradient.name in ("krylov", "smith")
    assert plan.method.name == ("minimax" if fused else "eigen")


@needs_compiled_code
def test_a_plan_prints_as_a_sentence():
    plan = matroot.choose(torch.eye(64).expand(100, 64, 64))
    start = "Minimax(tolerance=None, condition=None) with gradient Smith(rounds=None) on backend compiled: "
    assert str(plan).startswith(start)
    assert str(matroot.choose(torch.eye(2), "pade")).endswith("on backend torch: as asked")


@pytest.mark.parametrize(
    ("backend", "device", "dtype", "arguments", "reason"),
    [
        ("triton", "cpu", torch.float32, (), "the matrices are on cpu, not cuda"),
        ("compiled", "meta", torch.float32, (), "the matrices are on meta, not cpu"),
        ("compiled", "cpu", torch.complex64, (), "compiled code is for real matrices"),
        ("compiled", "cpu", torch.float32, ("pade",), "no compiled code for 'pade' with 'lyapunov'"),
        ("compiled", "cpu", torch.float32, (matroot.Minimax(tolerance=0.1),), "no compiled code for 'minimax'"),
        ("lapack", "cpu", torch.float32, ("minimax",), "it computes 'eigen' with 'exact', not 'minimax'"),
        ("lapack", "cpu", torch.bfloat16, (), "it does not compute in half precision"),
    ],
)
def test_an_unsupported_backend_says_why(backend, device, dtype, arguments, reason):
    B = torch.empty(2, 4, 4, device=device, dtype=dtype)
    with pytest.raises(ValueError, match=f"backend '{backend}' cannot do this: {reason}"):
        matroot.sqrtm(B, *arguments, backend=backend)


def test_no_backend_but_torch_works_inside_transforms():
    with pytest.raises(ValueError, match=r"not inside torch\.func"):
        torch.vmap(lambda B: matroot.sqrtm(B, backend="compiled"))(A.expand(2, *A.shape))


@needs_compiled_code
def test_rounds_of_smith_mean_the_same_on_every_backend():
    """Compiled code takes as many rounds as a matrix needs, so it declines a number of them."""
    few = matroot.Smith(rounds=2)
    assert matroot.choose(A, "minimax", few).backend == "torch"
    with pytest.raises(ValueError, match="no compiled code for 'minimax' with 'smith' and these settings"):
        matroot.sqrtm(A, "minimax", gradient=few, backend="compiled")
    X = with_eigenvalues(spectrum("log", 24, 1e4)).requires_grad_()
    G = torch.ones_like(X)
    (rough,) = torch.autograd.grad(matroot.sqrtm(X, "minimax", gradient=few), X, G)
    (fine,) = torch.autograd.grad(matroot.sqrtm(X, "minimax", gradient="smith"), X, G)
    true = exact_gradient(X.detach(), G)
    assert error(fine, true) < 1e-8 < 1e-4 < error(rough, true)


@needs_compiled_code
def test_a_named_method_gets_the_fastest_backend():
    plan = matroot.choose(A, "minimax")
    assert (plan.gradient, plan.backend) == (matroot.Smith(), "compiled")
    plan = matroot.choose(A, "minimax", backend="torch")
    assert (plan.gradient, plan.backend) == (matroot.Krylov(), "torch")


def test_a_named_method_gets_kernels_on_a_gpu(monkeypatch):
    """The plan needs no GPU, only the word that there is one."""
    monkeypatch.setattr(minimax, "unavailable_reason", lambda device: None)
    for shape, dtype, expected in (
        ((3, 64, 64), torch.float32, (matroot.Smith(), "triton")),
        ((3, 64, 64), torch.float64, (matroot.Smith(), "refined")),
        ((3, 64, 64), torch.complex64, (matroot.Smith(), "embedded")),
        ((3, 64, 64), torch.complex128, (matroot.Smith(), "embedded")),
        ((3, 2000, 2000), torch.complex128, (matroot.Smith(), "embedded")),
        ((3, 9000, 9000), torch.complex128, (matroot.Krylov(), "torch")),
    ):
        context = CallContext(torch.device("cuda", 0), dtype, torch.Size(shape))
        for method in ("minimax", "auto"):
            plan = _dispatch._plan(context, method, None, "auto")
            assert (plan.method, plan.gradient, plan.backend) == (matroot.Minimax(), *expected)


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_a_cuda_graph_asks_nothing(dtype, monkeypatch):
    """Float64 takes ordinary operations where the host cannot be asked whether refinement converged."""
    monkeypatch.setattr(minimax, "unavailable_reason", lambda device: None)
    context = CallContext(torch.device("cuda", 0), dtype, torch.Size((3, 64, 64)), captured=True)
    plan = _dispatch._plan(context, "auto", None, "auto")
    assert (plan.gradient, plan.backend) == (matroot.Krylov(), "torch")


def test_calls_alike_are_planned_once(monkeypatch):
    """By shape, dtype, arguments and output; what is refused is refused each time."""
    planned = []
    plan = _dispatch._plan
    monkeypatch.setattr(_dispatch, "_plan", lambda *arguments: planned.append(arguments) or plan(*arguments))
    _dispatch._cached.cache_clear()
    for _ in range(3):
        matroot.sqrtm(A, "pade")
        matroot.sqrtm(A, "pade", ridge=0.5)
        matroot.sqrtm(A.float(), "pade")
        matroot.sqrtm(A, "power-iteration")
        with pytest.raises(ValueError, match="has no inverse root"):
            matroot.invsqrtm(A, "power-iteration")
        with pytest.raises(ValueError, match="unknown method"):
            matroot.sqrtm(A, ["pade"])  # type: ignore
        with pytest.raises(TypeError, match="ridge must be a number"):
            matroot.sqrtm(A, "pade", ridge=True)
    accepted = 3
    assert len(planned) == accepted + 3 * 2


def test_unknown_backend():
    with pytest.raises(ValueError, match="valid names are auto, triton, compiled, lapack, refined, embedded, torch"):
        matroot.sqrtm(A, backend="cuda")


@pytest.mark.parametrize(
    ("backend", "name"),
    [("torch", "eigen"), ("lapack", "eigen"), pytest.param("compiled", "minimax", marks=needs_compiled_code)],
)
def test_backends_by_name(backend, name):
    plan = matroot.choose(A, backend=backend)
    assert (plan.method.name, plan.backend) == (name, backend)
    torch.testing.assert_close(matroot.sqrtm(A, backend=backend), matroot.sqrtm(A))


@pytest.mark.parametrize("name", matroot.presets())
def test_presets_run(name):
    X = A.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(matroot.sqrtm(X, **matroot.preset(name)).sum(), X)
    assert torch.isfinite(gradient).all()


def test_a_preset_is_the_callers_to_change():
    matroot.preset("ns")["method"] = matroot.Eigen()
    assert matroot.preset("ns")["method"] == matroot.NewtonSchulz()


@pytest.mark.parametrize("bad", ["cubic", "", None, 3])
def test_unknown_method(bad):
    with pytest.raises(ValueError, match=r"unknown method .*; valid names are auto, taylor, pade, newton-schulz"):
        matroot.sqrtm(A, bad)


def test_a_class_is_not_an_object():
    with pytest.raises(ValueError, match=r"method must be a name or an object, got the class; write Pade\(...\)"):
        matroot.sqrtm(A, matroot.Pade)  # type: ignore


@pytest.mark.parametrize("bad", ["lya", matroot.Pade(), 0])
def test_unknown_gradient(bad):
    with pytest.raises(ValueError, match=r"unknown gradient .*; valid names are lyapunov, exact, implicit"):
        matroot.sqrtm(A, gradient=bad)


def test_unknown_preset():
    with pytest.raises(ValueError, match=r"unknown preset 'x'; valid names are mpa-lya, mtp-lya"):
        matroot.preset("x")


@pytest.mark.parametrize(
    ("argument", "name", "nearest"),
    [
        ("method", "newtonschulz", "newton-schulz"),
        ("method", "Pade", "pade"),
        ("gradient", "lyapanov", "lyapunov"),
        ("backend", "compile", "compiled"),
    ],
)
def test_the_nearest_name_is_asked_for(argument, name, nearest):
    with pytest.raises(ValueError, match=rf"unknown {argument} '{name}'; did you mean '{nearest}'\? Valid names are "):
        matroot.sqrtm(A, **{argument: name})


def test_the_nearest_preset_is_asked_for():
    with pytest.raises(ValueError, match=r"'mpa-lia'; did you mean 'mpa-lya'\? Valid names are mpa-lya, mtp-lya"):
        matroot.preset("mpa-lia")


@pytest.mark.parametrize("gradient", ["eigen-clip", "eigen-taylor", "eigen-pade", "eigen-power"])
@pytest.mark.parametrize("method", ["taylor", "pade", "newton-schulz", "power-iteration"])
def test_spectral_gradients_need_a_decomposition(method, gradient):
    with pytest.raises(ValueError, match=f"'{gradient}' works on an eigendecomposition, which method '{method}'"):
        matroot.sqrtm(A, method, gradient=gradient)


@pytest.mark.parametrize("gradient", ["lyapunov", "exact", "implicit", "krylov"])
def test_implicit_gradients_need_a_root(gradient):
    with pytest.raises(ValueError, match="'power-iteration' does not satisfy it"):
        matroot.sqrtm(A, "power-iteration", gradient=gradient)


def test_minimax_is_not_unrolled():
    with pytest.raises(ValueError, match="would differentiate the approximation error of method 'minimax'"):
        matroot.sqrtm(A, "minimax", gradient="unrolled")


@pytest.mark.parametrize("function", [matroot.invsqrtm, matroot.roots])
def test_power_iteration_has_no_inverse(function):
    with pytest.raises(ValueError, match="'power-iteration' has no inverse root"):
        function(A, "power-iteration")


@pytest.mark.parametrize("pair", NAMED)
def test_descriptions_are_values(pair):
    for description in NAMED[pair]:
        assert pickle.loads(pickle.dumps(description)) == description
        assert copy.deepcopy(description) == description
        assert hash(copy.copy(description)) == hash(description)
        assert eval(repr(description), {name: getattr(matroot, name) for name in dir(matroot)}) == description


def test_roots_is_a_named_tuple():
    both = matroot.roots(A)
    assert isinstance(both, matroot.Roots)
    assert torch.equal(both.sqrt, both[0])
    assert torch.equal(both.invsqrt, both[1])


@needs_compiled_code
def test_a_method_named_alone_takes_the_gradient_of_the_backend_named():
    A = torch.eye(3, dtype=torch.float64)
    for backend in ("compiled", "refined"):
        assert matroot.choose(A, "minimax", backend=backend).gradient == matroot.Smith()
    assert matroot.choose(A, "minimax", backend="torch").gradient == matroot.Krylov()
