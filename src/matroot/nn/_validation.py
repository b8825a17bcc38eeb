"""Checks of arguments that several layers share."""

import math

from torch import Tensor

from .._inputs import require_tensor
from .._tracing import compiling


def require_real_floats(x: Tensor, name: str = "x") -> None:
    """Raise unless ``x`` is a tensor, real floating point."""
    require_tensor(x, name)
    if not x.is_floating_point():
        raise TypeError(f"{name} must be real floating point, got {x.dtype}")


def require_feature_maps(x: Tensor, name: str = "x", dims: int | None = None, channels: int | None = None) -> None:
    """Raise unless ``x`` is real floating point, (B, C, *spatial) with ``dims`` spatial dimensions (None: one or
    more), at least one position, and C = ``channels`` (None: any)."""
    require_real_floats(x, name)
    shape = tuple(x.shape)
    if dims is None and x.ndim < 3:
        raise ValueError(f"{name} must be (B, C, *spatial), 3 dimensions or more; got {x.ndim}, shape {shape}")
    if dims is not None and x.ndim != dims + 2:
        raise ValueError(f"{name} must have {dims + 2} dimensions (B, C and {dims} more); got {x.ndim}, shape {shape}")
    if channels is not None and x.shape[1] != channels:
        raise ValueError(f"{name} must have {channels} channels; got {x.shape[1]}, shape {shape}")
    if not compiling() and 0 in shape[2:]:  # a graph may have sizes that depend on data
        raise ValueError(f"{name} must have at least one position; got none, shape {shape}")


def require_positive(**sizes: int) -> None:
    """Raise unless all sizes are at least 1, by the name of the first that is not."""
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name} must be at least 1, got {size!r}")


def require_eps(eps: float) -> None:
    """Raise unless ``eps`` is a finite nonnegative number."""
    if not 0 <= eps < math.inf:
        raise ValueError(f"eps must be a finite number >= 0, got {eps!r}")
