"""Distances between distributions."""

from functools import reduce

import torch
from torch import Tensor
from torch.autograd import Function

from ._api import sqrtm
from ._inputs import require_tensor
from ._tracing import is_plain_eager
from .backends import torch_ops
from .methods import minimax

_REGULAR = 1e-4
"""The ratio of pivots above which Cholesky's factors lose no more digits to rounding than the root."""


def frechet_distance(mu1: Tensor, cov1: Tensor, mu2: Tensor, cov2: Tensor) -> Tensor:
    """Squared Frechet (2-Wasserstein) distance of two normal distributions, the number called FID.

    That is::

        |mu1 - mu2|^2 + tr(cov1 + cov2 - 2 (cov1^(1/2) cov2 cov1^(1/2))^(1/2))

    Computed in float64, since the terms all but cancel: from Cholesky factors where all covariances are far from
    singular, else from roots by decompositions. On CUDA both synchronise with the host. Covariances may be singular,
    and eigenvalues negative by the rounding of their dtype count as zero; a clearly negative one, NaN or Inf makes that
    distance NaN. The gradient is finite everywhere, and zero where both distributions are the same regular one. Where
    the slope is infinite, at a singular covariance, it is merely large, and at a zero covariance that of the trace.

    Like ``scipy.linalg.sqrtm(cov1 @ cov2)`` in the usual formula, which is complex or NaN for singular covariances.

    Args:
        mu1: (*, d), the mean of the first distribution. Leading dimensions are batch and broadcast.
        cov1: (*, d, d), its covariance, of which the symmetric part counts.
        mu2: (*, d), the mean of the second.
        cov2: (*, d, d), its covariance.

    Returns:
        The distance, (*), never below zero; in the dtype of the input, float32 at least.

    Raises:
        TypeError: for integers and complex numbers.
        ValueError: if the shapes do not match.

    Example:
        >>> mean, covariance = torch.zeros(2), torch.eye(2)
        >>> matroot.metrics.frechet_distance(mean, covariance, mean + 1, 4 * covariance).round(decimals=4)
        tensor(4.)
    """
    given = {"mu1": mu1, "cov1": cov1, "mu2": mu2, "cov2": cov2}
    _require(given)
    mean = (mu1.double() - mu2.double()).square().sum(-1)
    spread = (torch_ops.trace(cov1.double()) + torch_ops.trace(cov2.double()))[..., 0, 0]
    return _distance(mean + spread, _factor(cov1).mT @ _factor(cov2)).to(_result_dtype(*given.values()))


def frechet_distance_of_samples(x1: Tensor, x2: Tensor) -> Tensor:
    """:func:`frechet_distance` of the normal distributions with the means and covariances of two sets of samples.

    With centred samples X the last term is that of the singular values of X1 X2^T, and where N1 N2 <= d^2 they are
    computed from it, with a gradient that is exact for any rank. For more samples they are those of F1^T F2 with
    factors F F^T of the covariances: for one that is far from singular Cholesky's, else the samples themselves for
    the smaller set up to 3d, and otherwise the root.

    Args:
        x1: (*, N1, d), real floating point; its covariance is divided by N1 - 1, as in ``torch.cov``.
        x2: (*, N2, d), the other samples.

    Returns:
        The distance, (*), as :func:`frechet_distance` returns it.

    Raises:
        TypeError: for integers and complex numbers.
        ValueError: if the shapes do not match, and for fewer than 2 samples.

    Example:
        >>> x = torch.randn(50, 8)
        >>> bool(matroot.metrics.frechet_distance_of_samples(x, x + 1) > 7.9)
        True
    """
    for name, x in (("x1", x1), ("x2", x2)):
        _require_real(name, x)
        if x.ndim < 2 or x.shape[-1] != x1.shape[-1]:
            raise ValueError(f"{name} must have shape (*, N, {x1.shape[-1]}) to go with x1, got {tuple(x.shape)}")
        if x.shape[-2] < 2:
            raise ValueError(f"{name} must hold at least 2 samples, which a covariance needs; got {x.shape[-2]}")
    d = x1.shape[-1]
    few, many = sorted((x1, x2), key=lambda x: x.shape[-2])
    (mu1, X1), (mu2, X2) = (_scaled_deviations(x.double()) for x in (few, many))
    n1, n2 = few.shape[-2], many.shape[-2]
    spread = X1.square().sum((-2, -1)) + X2.square().sum((-2, -1))
    if n1 * n2 <= d**2:
        K = X1 @ X2.mT
    elif n1 > 3 * d:
        K = _factor(X1.mT @ X1).mT @ _factor(X2.mT @ X2)
    else:
        triangle = _cholesky(X1.mT @ X1) if n1 > d else None
        K = (X1 if triangle is None else triangle.mT) @ _factor(X2.mT @ X2)
    return _distance((mu1 - mu2).square().sum(-1) + spread, K).to(_result_dtype(x1, x2))


def _distance(positive: Tensor, K: Tensor) -> Tensor:
    distance = positive - 2 * _trace_norm(K)
    # Rounding may leave it below zero; adding that back keeps the gradient.
    return distance - distance.detach().clamp_max(0)


def _scaled_deviations(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean (*, d) of samples (*, N, d), and X (*, N, d) with X^T X their covariance."""
    mean = x.mean(-2, keepdim=True)
    return mean[..., 0, :], (x - mean) / (x.shape[-2] - 1) ** 0.5


def _result_dtype(*tensors: Tensor) -> torch.dtype:
    return reduce(torch.promote_types, (tensor.dtype for tensor in tensors), torch.float32)


def _require(given: dict[str, Tensor]) -> None:
    for name, tensor in given.items():
        _require_real(name, tensor)
    d = given["mu1"].shape[-1:].numel()
    for name, tensor in given.items():
        expected = (d,) if name.startswith("mu") else (d, d)
        if tensor.ndim < len(expected) or tuple(tensor.shape[-len(expected) :]) != expected:
            want = ", ".join(map(str, ("*", *expected)))
            raise ValueError(f"{name} must have shape ({want}) to go with mu1, got {tuple(tensor.shape)}")


def _require_real(name: str, tensor: Tensor) -> None:
    require_tensor(tensor, name)
    if not tensor.is_floating_point():
        raise TypeError(f"{name} must be real floating point, got {tensor.dtype}")


def _factor(cov: Tensor) -> Tensor:
    """F (*, d, d) in float64 with F F^T the covariance. The trace norm of F1^T F2 is the same for all factors."""
    triangle = _cholesky(cov)
    return _root(cov) if triangle is None else triangle


def _cholesky(cov: Tensor) -> Tensor | None:
    """Cholesky's factors in float64, unless one of them is nearly singular, or values cannot be read here."""
    if not is_plain_eager(cov):
        return None
    if cov.shape[-1] == 0:
        return cov.double()
    triangle, info = torch.linalg.cholesky_ex(torch_ops.hermitian(cov.double()))
    pivots = triangle.diagonal(dim1=-2, dim2=-1)
    regular = (info == 0) & (pivots.amin(-1) > _REGULAR * pivots.amax(-1))
    return triangle if regular.all() else None


def _root(cov: Tensor) -> Tensor:
    """In float64. Eigenvalues negative by the rounding of a narrower dtype become zero first: ``sqrtm`` would refuse
    them."""
    wide = cov.double()
    if cov.dtype != torch.float64:
        symmetric = 0.5 * (wide + wide.mT).detach()
        values, vectors = torch.linalg.eigh(torch.where(_finite(symmetric), symmetric, 0))
        lowest = -torch_ops.rounding_tolerance(cov.shape[-1], cov.dtype) * values[..., -1:]
        negative = torch.where(values >= lowest, values.clamp_max(0), 0)
        wide = wide - (vectors * negative[..., None, :]) @ vectors.mT
    return sqrtm(wide, "eigen")


def _trace_norm(K: Tensor) -> Tensor:
    """The sum of singular values, tr (K K^T)^(1/2) without squaring: its gradient is bounded, also at K = 0."""
    finite = _finite(K)
    usable = torch.where(finite, K, 0)
    # Singular values are a long sequence of small operations, which a GPU is slow at; a polar factor is products.
    total = _PolarTraceNorm.apply(usable)[0] if K.is_cuda else torch.linalg.svdvals(usable).sum(-1)
    return torch.where(finite[..., 0, 0], total, torch.nan)


class _PolarTraceNorm(Function):
    """tr U^T K for K = U H, whose derivative with respect to K is U; and U."""

    generate_vmap_rule = True

    @staticmethod
    def forward(K):
        tall = K if K.shape[-2] >= K.shape[-1] else K.mT
        U = minimax.polar_factor(tall)
        U = U if tall is K else U.mT
        return (U * K).sum((-2, -1)), U

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(*inputs, output[1])

    @staticmethod
    def backward(ctx, upstream, _):
        K, U = ctx.saved_tensors
        if torch.is_grad_enabled():  # a second derivative may follow: that of U by its decomposition
            left, _, right = torch.linalg.svd(K, full_matrices=False)
            U = left @ right
        return upstream[..., None, None] * U


def _finite(M: Tensor) -> Tensor:
    return torch.isfinite(M).all(-1, keepdim=True).all(-2, keepdim=True)
