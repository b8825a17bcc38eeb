"""The layouts that kernels are compiled for: one for a size, whatever the caller's tensors look like.

Triton compiles again for every combination of strides that are one, that 16 divides or that need 64 bits, and of
pointers that 16 divides. Compiling takes seconds, a copy microseconds.
"""

import torch
from torch import Tensor


def aligned(A: Tensor) -> Tensor:
    """``A``, or a copy if it does not begin at a multiple of 16 bytes; contiguous, as ``A`` must be."""
    return A if A.data_ptr() % 16 == 0 else A.clone()


def as_compiled(A: Tensor) -> Tensor:
    """Matrices (k, n, n) with the symmetric parts of those in ``A``, any strides, that need no other code than
    contiguous ones: ``A`` or a view of it where they do not, otherwise a copy.
    """
    n = A.shape[-1]
    contiguous = (n * n, n, 1)
    if A.stride() != contiguous:
        if A.stride(1) < A.stride(2):
            A = A.mT  # has the same symmetric part
        if len(A) == 1:
            A = A[0][None]  # the stride of a single matrix may be anything
        if [*map(_class, A.stride())] != [*map(_class, contiguous)]:
            return A.clone(memory_format=torch.contiguous_format)
    return aligned(A)


def _class(stride: int) -> tuple[bool, bool, bool]:
    """What code depends on."""
    return stride == 1, stride % 16 == 0, stride >= 1 << 31
