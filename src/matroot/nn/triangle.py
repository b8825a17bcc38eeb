"""Symmetric matrices as vectors of their upper triangle."""

from math import isqrt

import torch
from torch import Tensor

from .._symbolic import one_node


@one_node
def triangle(M: Tensor, keep_norm: bool = False) -> Tensor:
    """The upper triangle of symmetric matrices with the diagonal, row by row.

    Args:
        M: (*, n, n), symmetric; what is below the diagonal is not read.
        keep_norm: multiply what is off the diagonal by sqrt(2), so that the vector's norm is the Frobenius norm.

    Returns:
        The vectors, (*, n (n + 1)/2).

    Raises:
        ValueError: if ``M`` is not square.

    Example:
        >>> matroot.nn.triangle(torch.tensor([[1, 2], [2, 3]]))
        tensor([1, 2, 3])
    """
    if M.ndim < 2 or M.shape[-1] != M.shape[-2]:
        raise ValueError(f"M must have shape (*, n, n), got {tuple(M.shape)}")
    n = M.shape[-1]
    row, column = torch.triu_indices(n, n, device=M.device)
    v = M.flatten(-2).index_select(-1, row * n + column)
    return v * _weights(row == column, v) if keep_norm else v


@one_node
def untriangle(v: Tensor, keep_norm: bool = False) -> Tensor:
    """The symmetric matrix with this upper triangle: the inverse of :func:`triangle`.

    Args:
        v: (*, n (n + 1)/2), the triangle row by row.
        keep_norm: as it was in :func:`triangle`.

    Returns:
        The matrices, (*, n, n).

    Raises:
        ValueError: if the length is not that of a triangle.

    Example:
        >>> matroot.nn.untriangle(torch.tensor([1, 2, 3]))
        tensor([[1, 2],
                [2, 3]])
    """
    length = v.shape[-1] if v.ndim else 0
    n = (isqrt(8 * length + 1) - 1) // 2
    if v.ndim == 0 or n * (n + 1) // 2 != length:
        raise ValueError(f"v must have shape (*, n (n + 1)/2), got {tuple(v.shape)}")
    index = torch.arange(n, device=v.device)
    row, column = torch.minimum(index[:, None], index), torch.maximum(index[:, None], index)
    # Row i is preceded by rows of n, n - 1, ..., n - i + 1 entries.
    M = v.index_select(-1, (row * (2 * n - row + 1) // 2 + column - row).flatten()).unflatten(-1, (n, n))
    return M / _weights(row == column, M) if keep_norm else M


def _weights(diagonal: Tensor, like: Tensor) -> Tensor:
    """1 on the diagonal and sqrt(2) off it, in full precision of the dtype."""
    return torch.where(diagonal, torch.ones((), dtype=like.dtype, device=like.device), 2**0.5)
