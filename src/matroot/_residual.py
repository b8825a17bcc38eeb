"""How far a root is from being one."""

import torch
from torch import Tensor

from ._inputs import COMPUTE, require_matrices
from ._tracing import autocast_disabled
from .backends import torch_ops


def residual(A: Tensor, root: Tensor, *, inverse: bool = False) -> Tensor:
    """Relative residual of a root, 0 for an exact one and 1 for a root that is zero.

    For a root S and an inverse root R of A these are ::

        ||S^2 - A||_F/||A||_F,   ||R A R - I||_F/||I||_F,

    computed in float32 at least, on the Hermitian part of A, free of overflow at any scale. A zero matrix has residual
    0 where the product it is compared with is zero too.

    Args:
        A: (*, n, n), the matrices.
        root: (*, n, n), their roots.
        inverse: whether ``root`` is the inverse root.

    Returns:
        The residual of each matrix, (*), real.

    Raises:
        TypeError: if ``A`` or ``root`` is not a strided tensor of a floating-point or complex dtype.
        ValueError: if they are not square, or differ in shape.

    Example:
        >>> matroot.residual(torch.eye(3), torch.zeros(3, 3))
        tensor(1.)
    """
    require_matrices(A)
    require_matrices(root, "root")
    if A.shape != root.shape:
        raise ValueError(f"A and root must have the same shape, got {tuple(A.shape)} and {tuple(root.shape)}")
    A, root = A.to(COMPUTE[A.dtype]), root.to(COMPUTE[root.dtype])
    if A.shape[-1] == 0:
        return torch.linalg.matrix_norm(A)
    with autocast_disabled(A):
        scale, root_scale = _size(A), _size(root)
        A, root = torch_ops.hermitian(A / scale), root / root_scale
        if inverse:
            product = root_scale * (root_scale * scale) * torch_ops.product(torch_ops.product(root, A), root)
            target = torch_ops.identity(A).expand_as(A)
        else:
            product = root_scale * (root_scale / scale) * torch_ops.product(root, root)
            target = A
        norm = torch.linalg.matrix_norm(target)
        difference = torch.linalg.matrix_norm(product - target)
    exact = difference == 0
    return torch.where(exact, 0, difference / torch.where(exact, 1, norm))


def _size(matrix: Tensor) -> Tensor:
    size = matrix.detach().abs().amax((-2, -1), keepdim=True)
    return torch.where(size > 0, size, 1)
