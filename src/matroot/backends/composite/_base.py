"""What composite backends share: the backends they hand real float32 or float64 matrices to."""

from abc import abstractmethod

from torch import Tensor

from ...gradients import Gradient, Smith
from ...methods import Method, Minimax
from .._base import CallContext, FusedBackend, unsupported_pair


class CompositeBackend(FusedBackend):
    """``Minimax`` with ``Smith``, by the first of ``inner`` that takes the matrices made of the caller's."""

    def __init__(self, *inner: FusedBackend) -> None:
        self.inner = inner

    @abstractmethod
    def inner_context(self, context: CallContext) -> CallContext | str:
        """The context of the inner call, or why there is none, in words."""

    def why_unsupported_here(self, context: CallContext, method: Method, gradient: Gradient) -> str | None:
        if method != Minimax() or gradient != Smith():
            return f"only 'minimax' with 'smith', not {unsupported_pair(method, gradient)}"
        if context.traced:
            return "not inside torch.compile"
        inner = self.inner_context(context)
        if isinstance(inner, str):
            return inner
        reasons = [backend.why_unsupported(inner, method, gradient) for backend in self.inner]
        if None in reasons:
            return None
        return f"no backend takes {tuple(inner.shape)} in {str(inner.dtype).removeprefix('torch.')}: " + "; ".join(
            f"{backend.name}: {reason}" for backend, reason in zip(self.inner, reasons, strict=True)
        )

    def inner_for(self, matrices: Tensor) -> FusedBackend:
        """The backend that takes these matrices."""
        context = CallContext(matrices.device, matrices.dtype, matrices.shape)
        return next(b for b in self.inner if b.why_unsupported(context, Minimax(), Smith()) is None)
