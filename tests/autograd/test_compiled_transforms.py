"""``torch.compile`` of ``torch.func`` transforms, with and without a batch."""

import pytest
import torch

import matroot

from ..matrices import exact_gradient, wishart

PAIRS = [("minimax", None), ("minimax", "smith"), ("minimax", "krylov"), ("eigen", "exact")]


@pytest.mark.parametrize(("method", "gradient"), PAIRS)
def test_batched_gradients(method, gradient):
    A = wishart(3, 6)

    def total(X):
        return matroot.sqrtm(X, method, gradient=gradient).sum()

    compiled = torch.compile(torch.func.vmap(torch.func.grad(total)), backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(A), exact_gradient(A, torch.ones_like(A)))
