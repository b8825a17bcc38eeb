"""Power iteration from a learned vector, in the place of a root."""

import torch

import matroot
from matroot.models.so_vit_head import LearnedPowerPool


def features():
    """(3, 6, 20), one direction of which dominates the mean eigenvalue."""
    x = torch.randn(3, 6, 20, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    x[:, 0] *= 5
    return x


def power_pool(iterations=1):
    torch.manual_seed(0)
    return LearnedPowerPool(6, None, iterations=iterations).double()


def test_power_step_is_its_published_form():
    """The root of the pair it finds, and the rest divided by it."""
    pool, x = power_pool(), features()
    found = matroot.nn.untriangle(pool(x))
    for one, X in zip(found, x, strict=True):
        A = torch.cov(X, correction=0)
        u = A @ pool.start / (A @ pool.start).norm()
        s = u @ A @ u
        expected = s.sqrt() * u.outer(u) + (A - s * u.outer(u)) / s.sqrt()
        torch.testing.assert_close(one, expected, rtol=1e-12, atol=1e-12)


def test_power_steps_converge_to_the_dominant_eigenvalue():
    pool, x = power_pool(iterations=100), features()
    A = matroot.nn.covariance(x)
    expected = A / torch.linalg.eigvalsh(A)[:, -1:, None].sqrt()
    torch.testing.assert_close(matroot.nn.untriangle(pool(x)), expected, rtol=1e-10, atol=1e-10)


def test_power_step_has_gradients_in_its_vector_too():
    pool, x = power_pool(), features()

    def pooled(x, start):
        return torch.func.functional_call(pool, {"start": start}, x)

    assert torch.autograd.gradcheck(pooled, (x.requires_grad_(), pool.start))
    assert torch.autograd.grad(pooled(x, pool.start).sum(), pool.start)[0].abs().max() > 1e-6


def test_power_step_of_a_zero_covariance():
    pool, x = power_pool(), torch.ones(2, 6, 20, dtype=torch.float64, requires_grad=True)
    found = pool(x)
    found.sum().backward()
    assert not found.any()
    assert not x.grad.any()
    assert not pool.start.grad.any()


def test_power_step_is_float32_inside_autocast():
    pool, x = power_pool().float(), features().float()
    with torch.autocast("cpu", torch.bfloat16):
        found = pool(x)
    assert torch.equal(found, pool(x))
