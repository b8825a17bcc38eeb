"""Complex matrices as real ones: the exact results, derivatives and bad input."""

from functools import partial

import pytest
import torch

import matroot
from matroot import Minimax, Smith
from matroot.backends.composite.embedded import Embedded, _complex, _embed
from matroot.backends.composite.refined import Refined
from matroot.backends.cpu.compiled import Compiled

from ...installation import needs_compiled_code
from ...matrices import (
    error,
    exact_gradient,
    exact_inverse_root,
    exact_root,
    random_like,
    spectrum,
    wishart,
    with_eigenvalues,
)

pytestmark = needs_compiled_code
BACKENDS = {
    "complex64": (torch.complex64, Embedded(Compiled())),
    "complex128": (torch.complex128, Embedded(Compiled())),
    "complex128-refined": (torch.complex128, Embedded(Refined(Compiled()))),
}
every_backend = pytest.mark.parametrize(("dtype", "backend"), BACKENDS.values(), ids=list(BACKENDS))


def embedded(function, A, **options):
    return function(A, Minimax(), gradient=Smith(), backend="embedded", **options)


def test_the_embedding_keeps_products_and_adjoints():
    A, B = random_like(wishart(2, 5, dtype=torch.complex128)), random_like(wishart(2, 5, dtype=torch.complex128), 2)
    torch.testing.assert_close(_embed(A @ B.mH), _embed(A) @ _embed(B).mT)
    assert torch.equal(_complex(_embed(A)), A)
    assert torch.equal(_embed(A.conj()), _embed(A.conj().resolve_conj()))


@every_backend
@pytest.mark.parametrize("kappa", [1.0, 1e2, 1e4])
def test_errors(dtype, backend, kappa):
    """Those of the real matrix, whose eigenvalues are A's, each twice."""
    A = torch.stack([with_eigenvalues(spectrum(kind, 12, kappa), 3, dtype) for kind in ("log", "one-small")])
    found = backend.roots(A, 0.0, Minimax(), "both").roots
    eps = torch.finfo(dtype).eps
    assert error(found[0], exact_root(A)) < 20 * eps * kappa**0.75
    assert error(found[1], exact_inverse_root(A)) < 20 * eps * kappa
    G = random_like(A)
    for inverse, cotangents in ((False, (G, None)), (True, (None, G))):
        X = backend.solve(found, cotangents, 0.0, Smith(), "both")
        assert X.dtype == dtype
        assert error(X, exact_gradient(A, G, inverse)) < 20 * eps * kappa


@pytest.mark.parametrize("ridge", [0.0, 0.1])
@pytest.mark.parametrize("function", [matroot.sqrtm, matroot.invsqrtm])
def test_first_and_second_derivatives(function, ridge):
    A = wishart(2, 3, dtype=torch.complex128)
    A = (A + 0.1 * random_like(A)).requires_grad_()
    call = partial(embedded, function, ridge=ridge)
    assert torch.autograd.gradcheck(call, A)
    assert torch.autograd.gradgradcheck(call, A, fast_mode=True)


@every_backend
def test_bad_matrices(dtype, backend):
    """NaN where there is no root, zero for zero; a refined backend defers them to ordinary operations."""
    A = wishart(4, 8, dtype=dtype)
    A[1, 0, 2], A[2], A[3] = torch.nan, 0, -A[3]
    found = backend.roots(A, 0.0, Minimax(), "sqrt")
    if found.deferred is not None:
        assert found.deferred.tolist() == [False, True, True, True]
    S = embedded(matroot.sqrtm, A)
    assert torch.isnan(S[[1, 3]]).all()
    assert not S[2].any()
    assert error(S[:1], exact_root(A[:1])) < 100 * torch.finfo(dtype).eps


def test_real_matrices_are_not_for_it():
    with pytest.raises(ValueError, match="backend 'embedded' cannot do this: it is for complex matrices"):
        matroot.sqrtm(torch.eye(3), backend="embedded")
