"""The compiled code: every instruction set, any place in memory and layout, and what happens without it."""

import sys
from functools import cache, partial
from pathlib import Path

import pytest
import torch
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd

import matroot
from matroot import _dispatch
from matroot.backends.cpu import compiled

from ...installation import needs_compiled_code
from ...matrices import error, exact_gradient, exact_inverse_root, exact_root, random_like, spectrum, with_eigenvalues

ROOT = Path(__file__).parents[3]
FAILURE = compiled.LIBRARY.with_name("_roots_failure.txt")
INSTRUCTIONS = {"avx512": "avx512vl", "avx2": "fma", "plain": None}


def flags():
    path = Path("/proc/cpuinfo")
    return path.read_text().split() if path.exists() else []


BACKEND = compiled.Compiled()


def roots(A, ridge=0.0, output="both"):
    return BACKEND.roots(A, ridge, matroot.Minimax(), output).roots


def solve(S, R, GS, GR, ridge):
    return BACKEND.solve((S, R), (GS, GR), ridge, matroot.Smith(), "both")


@pytest.fixture
def library(monkeypatch):
    """Use another library: a function of its path."""

    def use(path):
        monkeypatch.setattr(compiled, "LIBRARY", path)
        forget()

    yield use
    forget()


def forget():
    for function in (compiled._load, compiled._function, _dispatch._cached):
        function.cache_clear()


def test_the_installation_has_it():
    """Wherever it was built: without a compiler, or with one that failed, the build leaves a message instead."""
    if FAILURE.exists():
        pytest.skip("it was built without a C compiler")
    assert compiled.unavailable_reason() is None


@pytest.fixture(scope="module")
def compiled_for(tmp_path_factory):
    """The path of the library for one instruction set, compiled when first asked for."""
    sys.path.insert(0, str(ROOT))
    try:
        from hatch_build import SOURCES, compile_library
    finally:
        sys.path.pop(0)

    @cache
    def build(name):
        path = tmp_path_factory.mktemp(name) / "library.so"
        compile_library(ROOT / SOURCES / "roots.c", path, f"-DDISPATCH(f)=f##_{name}")
        return path

    return build


@pytest.fixture(params=INSTRUCTIONS)
def instructions(request, library, compiled_for):
    """Every instruction set of this processor."""
    if FAILURE.exists():
        pytest.skip("needs a C compiler")
    needed = INSTRUCTIONS[request.param]
    if needed is not None and needed not in flags():
        pytest.skip(f"this processor has no {request.param}")
    library(compiled_for(request.param))


@pytest.mark.usefixtures("instructions")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_instruction_set(dtype):
    """Rounding times what the condition number, 30, and n products allow."""
    eps = torch.finfo(dtype).eps
    # Sizes around the tiles of all of them.
    for n in (1, 3, 4, 5, 8, 15, 16, 17, 24, 31, 33, 47, 48, 50, 64, 65, 80, 100, 128, 130):
        A = with_eigenvalues(spectrum("log", n, 30.0)).to(dtype)[None]
        G, H = random_like(A), random_like(A, 2)
        S, R = roots(A)
        assert error(S, exact_root(A)) < 20 * eps
        assert error(R, exact_inverse_root(A)) < 40 * eps
        true = exact_gradient(A, G) + exact_gradient(A, H, inverse=True)
        assert error(solve(S, R, G, H, 0.0), true) < 200 * eps


# --- the same bits everywhere --------------------------------------------------------------------


def placed(T, offset):
    """T behind ``offset`` numbers of memory that is aligned to 64 bytes."""
    view = T.new_zeros(offset + T.numel())[offset:].view(T.shape)
    assert view.data_ptr() % 64 == offset * T.itemsize % 64
    return view.copy_(T)


def two_spectra(n, dtype):
    """Matrices of the first schedule and of one that the Cholesky factor chooses."""
    return torch.stack([with_eigenvalues(spectrum("log", n, kappa)) for kappa in (10.0, 1e5)]).to(dtype)


@pytest.mark.usefixtures("instructions")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_same_bits_at_every_alignment(dtype):
    for n in (1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 48, 64, 65, 70):
        A = two_spectra(n, dtype)
        G, H = random_like(A), random_like(A, 2)
        S, R = roots(A, 0.1)
        X = solve(S, R, G, H, 0.1)
        for offset in range(64 // dtype.itemsize):
            assert all(map(torch.equal, roots(placed(A, offset), 0.1), (S, R)))
            # Every tensor at an alignment of its own.
            moved = (placed(T, offset * (2 * k + 1) + k) for k, T in enumerate((S, R, G, H)))
            assert torch.equal(solve(*moved, 0.1), X)


@needs_compiled_code
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_same_bits_in_any_batch(dtype, threads, set_threads):
    """Alone, and at any position of a batch of any size, in any number of threads."""
    for n in (1, 5, 16, 33, 70):
        A = two_spectra(n, dtype)
        G, H = random_like(A), random_like(A, 2)
        set_threads(1)
        alone = []
        for one in (slice(0, 1), slice(1, 2)):
            S, R = roots(A[one])
            alone.append((S, R, solve(S, R, G[one], H[one], 0.0)))
        set_threads(threads)
        for batch in (2, 3, 7, 32):
            order = torch.arange(batch) % 2
            S, R = roots(A[order])
            X = solve(S, R, G[order], H[order], 0.0)
            for k in range(batch):
                assert all(torch.equal(T[k], one[0]) for T, one in zip((S, R, X), alone[k % 2], strict=True))


@needs_compiled_code
def test_any_layout():
    n = 20
    A = torch.stack([with_eigenvalues(spectrum("log", n, 1e2), k) for k in range(3)]).float()
    skew = random_like(A).triu(1)
    A = A + skew - skew.mT
    S, R = roots(A)
    G = random_like(A)
    X = solve(S, R, G, None, 0.0)
    inside = partial(torch.nn.functional.pad, pad=(3, 5, 2, 4))
    for strange in (lambda T: T.permute(1, 2, 0).contiguous().permute(2, 0, 1), lambda T: inside(T)[:, 2:-4, 3:-5]):
        assert not strange(A).is_contiguous()
        assert all(torch.equal(left, right) for left, right in zip(roots(strange(A)), (S, R), strict=True))
        assert torch.equal(solve(S, R, strange(G), None, 0.0), X)
    assert torch.equal(roots(A[1].expand(3, n, n))[0], S[1].expand(3, n, n))
    ones = torch.ones(()).expand(3, n, n)
    assert torch.equal(solve(S, R, ones, None, 0.0), solve(S, R, ones.contiguous(), None, 0.0))


@needs_compiled_code
@pytest.mark.parametrize("function", [matroot.sqrtm, lambda A, **kwargs: sum(matroot.roots(A, **kwargs))])
def test_lazy_negation(function):
    """The imaginary part of a conjugate is the memory of its negative."""
    A = torch.stack([with_eigenvalues(spectrum("log", 8, 1e2), k) for k in range(3)])
    lazy = torch.complex(torch.zeros_like(A), -A).conj().imag
    assert lazy.is_neg()
    found = []
    for B in (A, lazy):
        X = B.detach().requires_grad_()
        value = function(X, backend="compiled")
        found.append((value.detach(), *torch.autograd.grad(value, X, B)))
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))
    assert torch.equal(function(lazy, backend="compiled"), found[0][0])


def test_large_matrices_take_another_way():
    A = torch.eye(compiled.LARGEST + 1)[None]
    assert matroot.choose(A, "minimax").backend == "torch"


@needs_compiled_code
def test_transposes_are_the_same():
    A = random_like(torch.empty(2, 9, 9)) + 9 * torch.eye(9)
    assert torch.equal(roots(A)[0], roots(A.mT)[0])


@needs_compiled_code
def test_one_root_alone():
    A = with_eigenvalues(spectrum("log", 12, 1e3)).float()[None]
    S, R = roots(A)
    for output, expected in (("sqrt", S), ("invsqrt", R)):
        (found,) = roots(A, output=output)
        assert torch.equal(found, expected)


@needs_compiled_code
@pytest.mark.parametrize("ridge", [0.1, 1e6, 1e30])
def test_ridge(ridge):
    """Relative to the mean eigenvalue, however large."""
    A = with_eigenvalues(spectrum("log", 10, 10.0)).float()[None]
    whole = A.double() + ridge * A.double().diagonal(dim1=-2, dim2=-1).mean() * torch.eye(10, dtype=torch.float64)
    S, R = roots(A, ridge)
    assert error(S, exact_root(whole)) < 20 * torch.finfo(A.dtype).eps
    assert error(R, exact_inverse_root(whole)) < 20 * torch.finfo(A.dtype).eps


@needs_compiled_code
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_types(dtype):
    """Computed in float32; what rounding to the half type made negative counts as zero, what is clearly so does not."""
    eps = torch.finfo(dtype).eps
    A = torch.stack([with_eigenvalues(spectrum("log", 24, 10.0)), with_eigenvalues(spectrum("low-rank", 24, 10.0))])
    A = torch.cat([A, A[:1] - A[:1].diagonal(dim1=-2, dim2=-1).sum() * torch.eye(24)]).to(dtype)
    S, R = roots(A)
    assert S.dtype == R.dtype == torch.float32
    assert error(S[:1], exact_root(A[:1].float())) < 20 * torch.finfo(torch.float32).eps
    assert torch.linalg.eigvalsh(A[1].double()).min() < -4 * 24 * torch.finfo(torch.float32).eps
    assert error(S[1:2], exact_root(A[1:2].double())) < 2 * eps**0.5
    assert torch.isnan(S[2]).all()
    found = matroot.sqrtm(A[:1])
    assert (found.dtype, matroot.choose(A).backend) == (dtype, "compiled")
    assert torch.equal(found, S[:1].to(dtype))


@needs_compiled_code
def test_products_are_counted():
    A = torch.eye(8).repeat(6, 1, 1)
    with matroot.count_operations() as once, matroot.count_operations(matrices=3) as each:
        roots(A)
    assert once.products == 7  # X^2, X Z, and five for one more step
    assert each.products == 14


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("missing.so", "has no compiled code: it was not built"),
        ("failed/_roots.so", "has no compiled code: cc cannot be run"),
        ("broken.so", "cannot be loaded: .*broken.so"),
    ],
)
def test_without_it_everything_works(path, reason, library, tmp_path):
    (tmp_path / "broken.so").write_text("not a library")
    (tmp_path / "failed").mkdir()
    (tmp_path / "failed/_roots_failure.txt").write_text("cc cannot be run\n")
    library(tmp_path / path)
    A = torch.stack([with_eigenvalues(spectrum("log", 24, 1e2), k) for k in range(40)]).float()
    plan = matroot.choose(A)
    assert plan.method == matroot.Eigen()
    eps = torch.finfo(A.dtype).eps
    for method in ("auto", "minimax"):
        assert error(matroot.sqrtm(A, method), exact_root(A)) < 100 * eps
    assert matroot.choose(A, "minimax").backend == "torch"
    with pytest.raises(ValueError, match=reason):
        matroot.sqrtm(A, backend="compiled")
    with pytest.raises(RuntimeError, match=reason):
        torch.ops.matroot.minimax_roots(A, 0.0)


# --- as operators --------------------------------------------------------------------------------


@needs_compiled_code
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_operators_are_well_behaved(dtype):
    A = torch.stack([with_eigenvalues(spectrum("log", 6, 10.0), k) for k in range(3)]).to(dtype)
    operators, tests = torch.ops.matroot, ("test_schema", "test_faketensor", "test_aot_dispatch_dynamic")
    torch.library.opcheck(operators.minimax_roots, (A, 0.1), test_utils=tests)
    S, R = operators.minimax_roots(A, 0.0)
    for G in ((S, None), (None, R), (S, R)):
        torch.library.opcheck(operators.smith_solve, (S, R, *G, 0.0), test_utils=tests)


@needs_compiled_code
def test_operators_in_vmap():
    A = torch.stack([with_eigenvalues(spectrum("log", 6, 10.0), k) for k in range(12)]).view(4, 3, 6, 6)
    S, R = torch.vmap(lambda B: torch.ops.matroot.minimax_roots(B, 0.0), in_dims=1)(A)
    torch.testing.assert_close(S, exact_root(A).movedim(1, 0))
    G = random_like(A[:, 0])
    X = torch.vmap(lambda S, R: torch.ops.matroot.smith_solve(S, R, G, None, 0.0))(S, R)
    torch.testing.assert_close(X, exact_gradient(A.movedim(1, 0), G.expand(3, 4, 6, 6)))


@needs_compiled_code
@pytest.mark.parametrize("function", [matroot.sqrtm, matroot.invsqrtm, lambda A: sum(matroot.roots(A))])
def test_compiled_code_calls_them(function):
    A = torch.stack([with_eigenvalues(spectrum("log", 20, 1e2), k) for k in range(5)]).float()
    seen = []

    def look(graph, inputs):
        seen.extend(str(node.target) for node in graph.graph.nodes)
        return make_boxed_func(graph.forward)

    found = []
    compiled = torch.compile(function, backend=aot_autograd(fw_compiler=look, bw_compiler=look), fullgraph=True)
    for f in (function, compiled):
        X = A.clone().requires_grad_()
        value = f(X)
        found += [value.detach(), *torch.autograd.grad(value, X, random_like(A))]
    # A cotangent that is not used is None or zeros, which round differently.
    eps = torch.finfo(A.dtype).eps
    assert torch.equal(found[0], found[2])
    assert error(found[3], found[1].double()) < 100 * eps  # the condition number
    assert {"matroot.minimax_roots.default", "matroot.smith_solve.default"} <= set(seen)
