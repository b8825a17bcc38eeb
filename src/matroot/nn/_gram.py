"""Roots of covariances of fewer positions than channels, from the smaller Gram matrix."""

from torch import Tensor

from .._api import invsqrtm
from .._tracing import autocast_disabled
from ._products import congruence, scatter
from .covariance import flush_subnormal


def sqrtm_from_gram(X: Tensor) -> Tensor:
    """(X X^T/N)^(1/2) for centred X (*, C, N), shape (*, C, C).

    With Y = X/sqrt(N) and the Gram matrix K = Y^T Y the root is Y K^(-1/2) Y^T: exact where Y Y^T is singular, and
    cheaper for N < C. K has the null vector 1, since rows of Y sum to zero; raising that eigenvalue to the mean of the
    others changes nothing but the condition number.
    """
    with autocast_disabled(X):
        Y = X / X.shape[-1] ** 0.5
        K = scatter(Y.mT)
        mean = K.detach().diagonal(dim1=-2, dim2=-1).mean(-1)[..., None, None]
        R = invsqrtm(flush_subnormal(K + mean / X.shape[-1]))
        return congruence(Y, R)
