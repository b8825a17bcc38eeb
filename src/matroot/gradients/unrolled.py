"""Reverse-mode differentiation of the forward arithmetic."""

from dataclasses import dataclass

from ._base import Gradient


@dataclass(frozen=True)
class Unrolled(Gradient):
    """No rule of our own: autograd walks back through every operation of the method.

    The only gradient that is consistent with a truncated method, and the one that keeps every
    intermediate matrix. With ``Eigen`` it is plain differentiation through
    ``torch.linalg.eigh``, whose gradient is not finite at repeated eigenvalues.
    """

    name = "unrolled"
