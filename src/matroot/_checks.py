"""The opt-in inspection behind ``check=True``: the only code that may synchronise with a device."""

from collections.abc import Iterator

import torch
from torch import Tensor

from ._inputs import clean
from .backends import torch_ops

_SHOWN = 5


def inspect(A: Tensor, ridge: float) -> None:
    """Raise ValueError naming the matrices that are not finite, not Hermitian or indefinite.

    "Not Hermitian" means by more than 4 n eps of the largest entry, "indefinite" that ``sqrtm``
    would return NaN for the regularised matrix.
    """
    if A.numel() == 0:
        return
    A = A.detach()
    _refuse("not finite", ~torch.isfinite(A).all(-1).all(-1))
    size = A.abs().amax((-2, -1))
    asymmetry = (A / 2 - torch_ops.adjoint(A) / 2).abs().amax((-2, -1))
    _refuse("not symmetric (Hermitian)", asymmetry > 2 * A.shape[-1] * torch.finfo(A.dtype).eps * size)
    _refuse("indefinite", torch.isnan(clean(A, ridge).nan_mask)[..., 0, 0])


def _refuse(what: str, bad: Tensor) -> None:
    if bad.any():
        raise ValueError(f"A is {what}{_where(bad)}")


def _where(bad: Tensor) -> str:
    if bad.ndim == 0:
        return ""
    indices = list(_indices(bad))
    shown = ", ".join(indices[:_SHOWN]) + (f" and {len(indices) - _SHOWN} more" if len(indices) > _SHOWN else "")
    return f" in {len(indices)} of {bad.numel()} matrices: {shown}"


def _indices(bad: Tensor) -> Iterator[str]:
    for index in bad.nonzero().tolist():
        yield str(index[0]) if len(index) == 1 else str(tuple(index))
