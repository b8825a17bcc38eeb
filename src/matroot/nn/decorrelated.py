"""Batch normalisation that also removes the correlation of channels."""

import copy
from typing import ClassVar, Self

import torch
from torch import Tensor, nn

from .._names import valid_names
from .._registry import validate
from .._symbolic import one_node
from .._tracing import autocast_disabled
from ..gradients import Gradient
from ..methods import Method
from . import _whitening_fused, _whitening_traced
from ._batch_statistics import ProcessGroupLike
from ._printing import constructor_arguments
from ._validation import require_eps, require_positive, require_real_floats
from ._whitening import (
    RunningStats,
    Track,
    WhiteningSpec,
    channel_rows,
    forward_torch,
    inverse_root,
    scale_and_shift,
    transform,
)
from .covariance import add_to_diagonal

_SHARED = """

    With G groups of d = num_features/G channels, each group has its own mean and its own
    W = (covariance + eps I)^(-1/2) over all positions of the batch, and ::

        y = weight * W (x - mean) + bias

    has in training mode covariance I (up to eps) within each group where weight is 1. With ``group_size=1`` this is
    :class:`torch.nn.{equivalent}`.

    Input: {shapes}. Output: the same shape, dtype and memory format. Statistics are computed in float32 at least, under
    autocast too, without host synchronisation; on CUDA half features are multiplied in their own dtype.

    Training mode normalises by the statistics of the batch, divided by the number of positions, and moves
    ``running_mean`` (C,) and ``running_whitening`` or ``running_covariance`` (G, d, d) towards them; evaluation
    uses those. Constant channels and batches smaller than C give finite values and gradients. NaN or Inf in a batch
    makes the output of their group NaN; such a batch, and one of a single position, leaves the running statistics
    and ``num_batches_tracked`` as they are. Like BatchNorm, activation checkpointing runs the layer twice, and
    running statistics move twice.

    In evaluation mode the layer is affine: :func:`matroot.nn.fold` puts it into the layer before it. With
    ``track="covariance"`` an exported graph contains the root; ONNX needs a method made of products then.

    Args:
        num_features: number of channels C, dimension 1 of the input.
        groups: number of groups, which must divide C. Small groups need few positions: a group of d channels has a
            full covariance from d + 1 positions on.
        group_size: channels in each group, in the place of ``groups``.
        eps: added to the eigenvalues of the covariance. The published runs use 1e-2.
        momentum: weight of the newest batch in the running statistics; None averages all batches equally.
        affine: whether there are ``weight`` and ``bias``, (C,), starting at 1 and 0;
            ``reset_parameters(uniform=True)`` draws the weight from U(0, 1), as published.
        track: ``"whitening"`` averages the W of batches, as published; ``"covariance"`` averages their covariances
            and takes the root when evaluating, which single batches of low rank affect less.
        method: how the inverse root is computed, see :func:`matroot.invsqrtm`.
        gradient: how its derivative is computed, see :func:`matroot.invsqrtm`.
        process_group: None normalises each process by itself; ``"world"`` or a ``torch.distributed`` process group
            makes training statistics, and their gradients, those of the concatenated batch of all its ranks, which
            may differ in size. Like SyncBatchNorm, ``"world"`` is this process alone where nothing is initialised.
        device: of parameters and statistics.
        dtype: of parameters and statistics; statistics are float32 at least.

    Raises:
        TypeError: when called with integers or complex numbers.
        ValueError: if groups do not divide the channels, or both ways to say them are given; if ``eps``, ``track``,
            ``process_group``, ``method`` or ``gradient`` is not one of those above. When called with another number
            of dimensions or of channels, naming both numbers.

    Example:
        >>> layer = matroot.nn.{name}(4, groups=2)
        >>> layer(torch.randn({size})).shape
        torch.Size([{size}])
        >>> layer.running_whitening.shape
        torch.Size([2, 2, 2])
    """


class DecorrelatedBatchNorm(nn.Module):
    __doc__ = "Whitens the channels of features with any number of spatial dimensions." + _SHARED.format(
        equivalent="SyncBatchNorm",
        shapes="(N, C), (N, C, L), (N, C, H, W) or (N, C, D, H, W)",
        name="DecorrelatedBatchNorm",
        size="16, 4, 5, 5",
    )
    input_ranks: ClassVar[tuple[int, ...]] = (2, 3, 4, 5)

    weight: nn.Parameter  # None without affine, as is bias
    bias: nn.Parameter
    running_mean: Tensor
    running_whitening: Tensor
    running_covariance: Tensor
    num_batches_tracked: Tensor

    def __init__(
        self,
        num_features: int,
        groups: int = 1,
        group_size: int | None = None,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track: Track = "whitening",
        method: str | Method = "auto",
        gradient: str | Gradient | None = None,
        process_group: ProcessGroupLike = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        require_positive(num_features=num_features)
        self.num_features = num_features
        self.groups = _number_of_groups(num_features, groups, group_size)
        require_eps(eps)
        if track not in ("whitening", "covariance"):
            raise ValueError(f"unknown track {track!r}; {valid_names(track, ('whitening', 'covariance'))}")
        if isinstance(process_group, str) and process_group != "world":
            raise ValueError(f"process_group must be None, 'world' or a process group, got {process_group!r}")
        validate(method, gradient, "invsqrt")
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track: Track = track
        self.method = method
        self.gradient = gradient
        self.process_group: ProcessGroupLike = process_group

        dtype = torch.get_default_dtype() if dtype is None else dtype
        for name in ("weight", "bias"):
            empty = nn.Parameter(torch.empty(num_features, device=device, dtype=dtype)) if affine else None
            self.register_parameter(name, empty)
        wide = torch.promote_types(dtype, torch.float32)
        size = num_features // self.groups
        self.register_buffer("running_mean", torch.empty(num_features, device=device, dtype=wide))
        self.register_buffer(f"running_{track}", torch.empty(self.groups, size, size, device=device, dtype=wide))
        self.register_buffer("num_batches_tracked", torch.empty((), device=device, dtype=torch.long))
        self.reset_parameters()

    @property
    def running_matrix(self) -> Tensor:
        """(groups, d, d): the running matrix that ``track`` names."""
        return self.running_whitening if self.track == "whitening" else self.running_covariance

    def reset_running_stats(self) -> None:
        """Mean 0, whitening matrix or covariance I, no batches."""
        self.running_mean.zero_()
        self.running_matrix.zero_().diagonal(dim1=-2, dim2=-1).fill_(1)
        self.num_batches_tracked.zero_()

    def reset_parameters(self, uniform: bool = False) -> None:
        """Reset the statistics; weight 1 and bias 0.

        Args:
            uniform: draw the weight from U(0, 1), as published.
        """
        self.reset_running_stats()
        if self.affine:
            initialise = nn.init.uniform_ if uniform else nn.init.ones_
            initialise(self.weight)
            nn.init.zeros_(self.bias)

    def whitening_matrix(self) -> Tensor:
        """The W of evaluation, (groups, d, d), from the running statistics; in float32 at least."""
        matrix = self.running_matrix
        matrix = matrix.to(torch.promote_types(matrix.dtype, torch.float32))
        return matrix if self.track == "whitening" else inverse_root(add_to_diagonal(matrix, self.eps), self._spec())

    @one_node
    def forward(self, x: Tensor) -> Tensor:
        self._require_input(x)
        if self.training:
            spec = self._spec()
            if _whitening_fused.is_supported(x, spec.groups):
                forward = _whitening_fused.forward_fused
            elif _whitening_traced.is_supported(x, spec):
                forward = _whitening_traced.forward_traced
            else:
                forward = forward_torch
            return forward(x, self.weight, self.bias, spec)
        with autocast_disabled(x):
            dtype = torch.promote_types(x.dtype, torch.float32)
            centred = channel_rows(x) - self.running_mean.to(dtype)[:, None]
            A, bias = scale_and_shift(self.whitening_matrix().to(dtype), self.weight, self.bias)
            return transform(centred, A, bias, x)

    def extra_repr(self) -> str:
        return constructor_arguments(self, group_size=None, device=None, dtype=None)

    def __deepcopy__(self, memo: dict) -> Self:
        memo[id(self.process_group)] = self.process_group  # a handle to other processes, shared by copies
        new = type(self).__new__(type(self))
        memo[id(self)] = new
        new.__setstate__(copy.deepcopy(self.__dict__, memo))
        return new

    def _spec(self) -> WhiteningSpec:
        running = RunningStats(
            self.running_mean, self.running_matrix, self.num_batches_tracked, self.momentum, self.track
        )
        return WhiteningSpec(self.groups, self.eps, self.method, self.gradient, self.process_group, running)

    def _require_input(self, x: Tensor) -> None:
        require_real_floats(x)
        if x.ndim not in self.input_ranks:
            ranks = " or ".join(map(str, self.input_ranks))
            raise ValueError(f"expected an input of {ranks} dimensions, got {x.ndim}: shape {tuple(x.shape)}")
        if x.shape[1] != self.num_features:
            raise ValueError(
                f"expected {self.num_features} channels in dimension 1, got {x.shape[1]}: shape {tuple(x.shape)}"
            )


class DecorrelatedBatchNorm1d(DecorrelatedBatchNorm):
    __doc__ = "Whitens the channels of vectors or sequences." + _SHARED.format(
        equivalent="BatchNorm1d", shapes="(N, C) or (N, C, L)", name="DecorrelatedBatchNorm1d", size="16, 4"
    )
    input_ranks = (2, 3)


class DecorrelatedBatchNorm2d(DecorrelatedBatchNorm):
    __doc__ = "Whitens the channels of images." + _SHARED.format(
        equivalent="BatchNorm2d", shapes="(N, C, H, W)", name="DecorrelatedBatchNorm2d", size="16, 4, 5, 5"
    )
    input_ranks = (4,)


class DecorrelatedBatchNorm3d(DecorrelatedBatchNorm):
    __doc__ = "Whitens the channels of volumes or videos." + _SHARED.format(
        equivalent="BatchNorm3d", shapes="(N, C, D, H, W)", name="DecorrelatedBatchNorm3d", size="8, 4, 3, 5, 5"
    )
    input_ranks = (5,)


def _number_of_groups(num_features: int, groups: int, group_size: int | None) -> int:
    if group_size is None:
        if groups < 1 or num_features % groups:
            raise ValueError(f"groups {groups} must divide num_features {num_features}")
        return groups
    if groups != 1:
        raise ValueError(f"give groups or group_size, not both: got {groups} and {group_size}")
    if group_size < 1 or num_features % group_size:
        raise ValueError(f"group_size {group_size} must divide num_features {num_features}")
    return num_features // group_size
