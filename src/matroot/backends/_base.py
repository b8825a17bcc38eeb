"""What a backend is: a place where roots of a batch of matrices, and their gradients, are computed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import torch
from torch import Tensor

if TYPE_CHECKING:
    from ..gradients import Gradient
    from ..methods import Method
    from ..methods._base import Output

Tensors = tuple[Tensor, ...]
Cotangents = tuple[Tensor | None, ...]
"""One for each root of the output; None where the result did not use it."""


class CallContext(NamedTuple):
    """All that the choice of a backend depends on besides the caller's words; never the values of the matrices."""

    device: torch.device
    dtype: torch.dtype
    shape: torch.Size
    restriction: str | None = None
    """Why only ordinary operations can run, in words."""
    traced: bool = False
    """Whether ``torch.compile`` traces the call."""
    reduced_precision: bool = False
    """Whether products on the CPU may lose digits by the process-wide settings."""
    captured: bool = False
    """Whether a CUDA graph records the call, so that values cannot be read."""

    @property
    def n(self) -> int:
        return self.shape[-1]

    @property
    def few(self) -> bool:
        """Fewer than four matrices. Not to be asked under a ``restriction``: exported graphs take any batch."""
        return self.shape[:-2].numel() < 4


class Evaluation(NamedTuple):
    """What a fused backend computes of a batch (k, n, n)."""

    roots: tuple[Tensor, ...]
    """Those asked for, in the order (sqrt, invsqrt), contiguous, float32 at least."""
    spectrum: tuple[Tensor, ...] = ()
    """Eigenvalues (k, n) and eigenvectors (k, n, n) where the method computes them: the gradient uses them."""
    deferred: Tensor | None = None
    """Which matrices, (k,) of bool, must be evaluated by ordinary operations instead; None: none."""


class Backend(ABC):
    """``why_unsupported`` decides alone which calls a backend takes."""

    name: ClassVar[str]

    @abstractmethod
    def why_unsupported(self, context: CallContext, method: Method, gradient: Gradient) -> str | None:
        """Why this call cannot run here, in words; None if it can."""


class FusedBackend(Backend):
    """Cleans, evaluates and restores whole batches by code of its own; no matrix affects another."""

    device_type: ClassVar[str | None] = None
    """Where its matrices lie; None: on any device."""

    def why_unsupported(self, context: CallContext, method: Method, gradient: Gradient) -> str | None:
        if context.restriction is not None:
            return context.restriction
        if 0 in context.shape:
            return "there are no matrices"
        if self.device_type not in (None, context.device.type):
            return f"the matrices are on {context.device.type}, not {self.device_type}"
        return self.why_unsupported_here(context, method, gradient)

    @abstractmethod
    def why_unsupported_here(self, context: CallContext, method: Method, gradient: Gradient) -> str | None:
        """The same on a device of the right type, for ordinary tensors that are not empty."""

    def solves(self, gradient: Gradient) -> bool:
        """Whether ``solve`` knows the gradient; if not, ordinary operations follow this backend's roots."""
        return True

    def prepare(self, A: Tensor, ridge: float, method: Method, output: Output, differentiable: bool) -> None:
        """Compile what ``roots`` of such matrices needs, and if ``differentiable`` what ``solve`` does after it.

        Called before the first call of ``roots`` for a shape; ``output`` is what the caller asks for.
        """

    @abstractmethod
    def roots(self, A: Tensor, ridge: float, method: Method, output: Output) -> Evaluation:
        """Roots of the symmetric parts of ``A`` (k, n, n) + ridge trace/n I, any strides.

        NaN for matrices that hold NaN or Inf or have a clearly negative eigenvalue, zero for zero matrices.
        """

    def for_deferred(self, method: Method) -> Method:
        """What ordinary operations evaluate for matrices that ``roots`` defers."""
        return method

    @abstractmethod
    def solve(self, saved: Tensors, cotangents: Cotangents, ridge: float, gradient: Gradient, output: Output) -> Tensor:
        """Gradient with respect to A, given the roots and the spectrum of ``roots`` and the cotangents of the roots.

        Not all cotangents are None; of each the symmetric part counts. Float32 at least.
        """


def readable(T: Tensor, dtype: torch.dtype) -> Tensor:
    """``T`` as code that reads its memory expects it: contiguous, of this dtype, without a lazy negation.

    Hooks on saved tensors, and callers of an operator, may bring something else.
    """
    if T.dtype == dtype and T.is_contiguous() and not T.is_neg():
        return T
    return T.resolve_neg().to(dtype).contiguous()


def by_kind(values: Cotangents, output: Output) -> tuple[Tensor | None, Tensor | None]:
    """What belongs to the root, and what to the inverse root; None for one that is not in the output."""
    if output == "both":
        return values[0], values[1]
    return (values[0], None) if output == "sqrt" else (None, values[0])


def unsupported_pair(method: Method, gradient: Gradient) -> str:
    return f"'{method.name}' with '{gradient.name}' and these settings"
