"""What a method is: a frozen description of a forward approximation."""

from abc import ABC, abstractmethod
from numbers import Integral
from typing import ClassVar, Literal

from torch import Tensor

Output = Literal["sqrt", "invsqrt", "both"]
_INVERSES: dict[Output, tuple[bool, ...]] = {"sqrt": (False,), "invsqrt": (True,), "both": (False, True)}


class Method(ABC):
    """A way to evaluate roots of a clean matrix.

    ``evaluate`` sees finite, Hermitian, nonzero, positive semidefinite matrices with largest entry near one, and is
    written in differentiable operations.
    """

    name: ClassVar[str]
    """What ``method=`` calls it, with its defaults."""
    gradient_names: ClassVar[tuple[str, ...]]
    """The gradient used when the caller chooses none: the first that a fused backend supports, else the last."""
    has_inverse: ClassVar[bool] = True
    """Whether the method knows an inverse root."""
    is_root: ClassVar[bool] = True
    """Whether the result approximates a matrix S with S S = A, so that implicit rules apply."""
    unrolls: ClassVar[bool] = True
    """Whether differentiating the arithmetic of ``evaluate`` gives a sensible derivative."""
    spectral: ClassVar[bool] = False
    """Whether ``evaluate`` also returns eigenvalues and eigenvectors after the roots."""

    @abstractmethod
    def evaluate(self, A: Tensor, output: Output) -> tuple[Tensor, ...]:
        """The roots of clean matrices.

        Args:
            A: (*, n, n), clean; real or complex, single or double precision.
            output: ``"sqrt"``, ``"invsqrt"`` or ``"both"``.

        Returns:
            The roots in the order (sqrt, invsqrt), (*, n, n) each; then, if ``spectral``, eigenvalues (*, n) and
            eigenvectors (*, n, n).
        """


def require_count(owner: object, field: str) -> None:
    """Raise unless a field of a frozen description is a positive integer."""
    value = getattr(owner, field)
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{type(owner).__name__}: {field} must be a positive integer, got {value!r}")


def require_positive(owner: object, field: str) -> None:
    """Raise unless a field of a frozen description is a positive number."""
    value = getattr(owner, field)
    if not isinstance(value, int | float) or isinstance(value, bool) or not value > 0:
        raise ValueError(f"{type(owner).__name__}: {field} must be a positive number, got {value!r}")


def require_choice(owner: object, field: str, choices: tuple[str, ...]) -> None:
    """Raise unless a field of a frozen description is one of ``choices``."""
    value = getattr(owner, field)
    if value not in choices:
        raise ValueError(f"{type(owner).__name__}: {field} must be one of {', '.join(choices)}; got {value!r}")


def is_inverse(output: Output) -> tuple[bool, ...]:
    """For each output root in order: is it the inverse one?"""
    return _INVERSES[output]


def select(output: Output, sqrt: Tensor, invsqrt: Tensor) -> tuple[Tensor, ...]:
    """Keep the output ones of two roots that were both computed."""
    return tuple(invsqrt if inverse else sqrt for inverse in is_inverse(output))
