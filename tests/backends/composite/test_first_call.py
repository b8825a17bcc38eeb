"""Before a first call the backend within compiles all that the call needs, and nothing else."""

import pytest
import torch

from matroot import Minimax, Smith
from matroot.backends._base import by_kind
from matroot.backends.composite.embedded import Embedded
from matroot.backends.composite.refined import Refined
from matroot.backends.cpu.compiled import Compiled

from ...installation import needs_compiled_code
from ...matrices import random_like, wishart

pytestmark = needs_compiled_code


class Recorded(Compiled):
    """What kernels are compiled for: size and dtype of matrices; for gradients, which cotangents there are."""

    def __init__(self):
        self.prepared, self.used = set(), set()

    def prepare(self, A, ridge, method, output, differentiable):
        kinds = ["roots", (output != "invsqrt", output != "sqrt")][: 1 + differentiable]
        self.prepared |= {(A.shape, A.dtype, kind) for kind in kinds}

    def roots(self, A, ridge, method, output):
        self.used.add((A.shape, A.dtype, "roots"))
        return super().roots(A, ridge, method, output)

    def solve(self, saved, cotangents, ridge, gradient, output):
        S, kind = saved[0], tuple(G is not None for G in by_kind(cotangents, output))
        self.used.add((S.shape, S.dtype, kind))
        return super().solve(saved, cotangents, ridge, gradient, output)


@pytest.mark.parametrize("differentiable", [False, True])
@pytest.mark.parametrize("output", ["sqrt", "invsqrt", "both"])
@pytest.mark.parametrize(
    ("dtype", "compose"),
    [
        (torch.float64, Refined),
        (torch.complex64, Embedded),
        (torch.complex128, lambda inner: Embedded(Refined(inner))),
    ],
    ids=["float64", "complex64", "complex128"],
)
def test_what_is_compiled_is_what_is_used(dtype, compose, output, differentiable):
    inner = Recorded()
    backend, A = compose(inner), wishart(2, 5, dtype=dtype)
    backend.prepare(A, 0.1, Minimax(), output, differentiable)
    roots = backend.roots(A, 0.1, Minimax(), "both").roots
    if differentiable:
        wanted = (output != "invsqrt", output != "sqrt")
        cotangents = tuple(random_like(A) if there else None for there in wanted)
        backend.solve(roots, cotangents, 0.1, Smith(), "both")
    assert inner.prepared == inner.used
