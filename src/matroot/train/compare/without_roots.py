"""Networks without their roots, to see what the roots cost."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor

from ... import _api
from ...methods._base import Output, is_inverse


@contextmanager
def roots_left_out() -> Iterator[None]:
    """Inside, every root and inverse root is the matrix itself, with the gradient of the identity.

    Layers run as ever. A method that returns its input would be no measure of them: it still has its input cleaned,
    by scaling, symmetrising and factorising, which is part of what a root costs and in fused kernels cannot be
    told from it. Captured graphs keep what was true while they were captured.
    """
    evaluate = _api._evaluate

    def identity(A: Tensor, output: Output, *_: Any) -> tuple[Tensor, ...]:
        return tuple(A for _ in is_inverse(output))

    _api._evaluate = identity
    try:
        yield
    finally:
        _api._evaluate = evaluate
