"""Batch normalisation that also removes the correlation of channels."""

import copy
import math
from collections.abc import Callable
from typing import ClassVar, Literal, Self

import torch
from torch import Tensor, nn

from .._api import invsqrtm
from .._tracing import autocast_disabled
from ..gradients import Gradient
from ..methods import Method
from ._batch_statistics import Group, add_to_diagonal, batch_statistics, ranks_of
from ._printing import constructor_arguments
from ._whitening_step import Recipe, fits, whiten

Track = Literal["whitening", "covariance"]


class _DecorrelatedBatchNorm(nn.Module):
    """y = weight * W (x - mean) + bias with W = (covariance + eps I)^(-1/2): ZCA whitening of the channels."""

    input_ranks: ClassVar[tuple[int, ...]]

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
        process_group: Group = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.groups = _number_of_groups(num_features, groups, group_size)
        if not 0 <= eps < math.inf:
            raise ValueError(f"eps must be a finite number >= 0, got {eps!r}")
        if track not in ("whitening", "covariance"):
            raise ValueError(f"unknown track {track!r}; valid names are whitening, covariance")
        if isinstance(process_group, str) and process_group != "world":
            raise ValueError(f"process_group must be None, 'world' or a process group, got {process_group!r}")
        # A method that is unknown or has no inverse root fails here, not in the first batch.
        invsqrtm(torch.ones(1, 1, device="cpu"), method, gradient=gradient)
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track: Track = track
        self.method = method
        self.gradient = gradient
        self.process_group: Group = process_group

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
        """Forget the statistics; weight 1 and bias 0. ``uniform`` draws the weight from U(0, 1), as was published."""
        self.reset_running_stats()
        if self.affine:
            start = nn.init.uniform_ if uniform else nn.init.ones_
            start(self.weight)
            nn.init.zeros_(self.bias)

    def whitening_matrix(self) -> Tensor:
        """The W of evaluation, (groups, d, d), from the running statistics; in float32 at least."""
        matrix = self.running_matrix
        matrix = matrix.to(torch.promote_types(matrix.dtype, torch.float32))
        return matrix if self.track == "whitening" else self._whitening(matrix)

    def scaled(self, W: Tensor) -> tuple[Tensor, Tensor | None]:
        """weight * W, and the bias as (groups, d, 1), in the dtype of ``W``; W and None without affine."""
        return _scaled(W, self.weight, self.bias)

    def forward(self, x: Tensor) -> Tensor:
        self._require_input(x)
        if self.training and fits(x, self.groups):
            ranks = ranks_of(self.process_group)
            recipe = Recipe(self.groups, self.eps, ranks, self._root, self._remember, self._ordinary)
            with autocast_disabled(x):
                return whiten(x, self.weight, self.bias, recipe)
        if self.training:
            return self._ordinary(x, self.weight, self.bias, self._remember)
        with autocast_disabled(x):
            dtype = torch.promote_types(x.dtype, torch.float32)
            centred = _rows(x) - self.running_mean.to(dtype)[:, None]
            return _transform(centred, *self.scaled(self.whitening_matrix().to(dtype)), x)

    def extra_repr(self) -> str:
        return constructor_arguments(self, group_size=None, device=None, dtype=None)

    def __deepcopy__(self, memo: dict) -> Self:
        memo[id(self.process_group)] = self.process_group  # cannot be copied, and should not be
        new = type(self).__new__(type(self))
        memo[id(self)] = new
        new.__setstate__(copy.deepcopy(self.__dict__, memo))
        return new

    def _require_input(self, x: Tensor) -> None:
        if x.ndim not in self.input_ranks:
            ranks = " or ".join(map(str, self.input_ranks))
            raise ValueError(f"expected an input of {ranks} dimensions, got {x.ndim}: shape {tuple(x.shape)}")
        if x.shape[1] != self.num_features:
            raise ValueError(
                f"expected {self.num_features} channels in dimension 1, got {x.shape[1]}: shape {tuple(x.shape)}"
            )

    def _ordinary(
        self, x: Tensor, weight: Tensor | None, bias: Tensor | None, remember: Callable | None = None
    ) -> Tensor:
        """``x`` normalised by the statistics of the batch."""
        with autocast_disabled(x):
            count, mean, covariance, centred = batch_statistics(_rows(x), self.groups, self.process_group)
            W = self._whitening(covariance)
            if remember is not None:
                remember(count, mean, covariance, W)
            return _transform(centred, *_scaled(W, weight, bias), x)

    def _whitening(self, covariance: Tensor) -> Tensor:
        return self._root(add_to_diagonal(covariance, self.eps))

    def _root(self, shifted: Tensor) -> Tensor:
        return invsqrtm(shifted, self.method, gradient=self.gradient)

    @torch.no_grad()
    def _remember(self, count: Tensor | int, mean: Tensor, covariance: Tensor, W: Tensor) -> None:
        """Move the running statistics towards the batch's, unless those say nothing."""
        moves = [(self.running_mean, mean), (self.running_matrix, W if self.track == "whitening" else covariance)]
        moves = [(running, new.to(running.dtype)) for running, new in moves]
        # The largest modulus shows Inf and NaN, in one kernel; isfinite takes five.
        sizes = [torch.linalg.vector_norm(new, math.inf) for _, new in moves]
        usable = (torch.maximum(*sizes) < math.inf) & (count > 1)
        self.num_batches_tracked.add_(usable)
        for running, new in moves:
            factor = self.momentum
            if factor is None:
                factor = 1 / self.num_batches_tracked.clamp_min(1).to(running.dtype)
            running.lerp_(torch.where(usable, new, running), factor)


def _rows(x: Tensor) -> Tensor:
    """(C, M): a view when the channel is the fastest dimension, one copy otherwise."""
    return x.transpose(0, 1).flatten(1)


def _scaled(W: Tensor, weight: Tensor | None, bias: Tensor | None) -> tuple[Tensor, Tensor | None]:
    if weight is None or bias is None:
        return W, None
    weight, bias = (p.to(W.dtype).view(len(W), -1, 1) for p in (weight, bias))
    return weight * W, bias


def _transform(centred: Tensor, A: Tensor, bias: Tensor | None, x: Tensor) -> Tensor:
    """A centred + bias for ``centred`` (C, M) and A (G, d, d), with the shape, layout and dtype of ``x``."""
    blocks = centred.unflatten(0, (len(A), -1))
    A, bias = A.to(centred.dtype), None if bias is None else bias.to(centred.dtype)
    # Products are made in the layout of x, so that channels-last stays so without a copy for one group.
    if x.stride(1) == 1:
        y = blocks.mT @ A.mT if bias is None else torch.baddbmm(bias.mT, blocks.mT, A.mT)  # G x M x d
        y = y.transpose(0, 1).reshape(x.shape[0], *x.shape[2:], x.shape[1]).movedim(-1, 1)
    else:
        y = A @ blocks if bias is None else torch.baddbmm(bias, A, blocks)  # G x d x M
        y = y.reshape(x.shape[1], x.shape[0], *x.shape[2:]).transpose(0, 1).contiguous()
    return y.to(x.dtype)


_SHARED = """

    With G groups of d = num_features/G channels, each group has its own mean and its own
    W = (covariance + eps I)^(-1/2) over all positions of the batch, and

        y = weight * W (x - mean) + bias

    has in training mode covariance I (up to eps) within each group where weight is 1. With ``group_size=1`` this is
    :class:`torch.nn.BatchNorm{d}`.

    num_features: number of channels C, dimension 1 of the input.
    groups: number of groups, or ``group_size``: channels in each; one of the two, and it must divide C. Small
        groups need few positions: a group of d channels has a full covariance from d + 1 positions on.
    eps: added to the eigenvalues of the covariance. The published runs use 1e-2.
    momentum: weight of the newest batch in the running statistics; None averages all batches equally.
    affine: whether there are ``weight`` and ``bias``, (C,), starting at 1 and 0;
        ``reset_parameters(uniform=True)`` draws the weight from U(0, 1), as was published.
    track: ``"whitening"`` averages the W of batches, as was published; ``"covariance"`` averages their covariances
        and takes the root when evaluating, which is less moved by single batches of low rank.
    method, gradient: how the inverse root and its derivative are computed, see :func:`matroot.invsqrtm`.
    process_group: None normalises each process by itself; ``"world"`` or a ``torch.distributed`` process group makes
        training statistics, and their gradients, those of the concatenated batch of all its ranks, which may
        differ in size. Like SyncBatchNorm, ``"world"`` is this process alone where nothing is initialised.
    device, dtype: of parameters and statistics; statistics are float32 at least.

    Input: {shapes}. Output: the same shape, dtype and memory format. Any other number of dimensions, or another C,
    is a ValueError naming both numbers. Statistics are computed in float32 at least, under autocast too, without
    host synchronisation; on CUDA the products with half features are made in their dtype.

    Training mode normalises by the statistics of the batch, divided by the number of positions, and moves
    ``running_mean`` (C,) and ``running_whitening`` or ``running_covariance`` (G, d, d) towards them; evaluation
    uses those. Constant channels and batches smaller than C give finite values and gradients. NaN or Inf in a batch
    makes the output of their group NaN; such a batch, and one of a single position, leaves the running statistics
    and ``num_batches_tracked`` as they are. Like BatchNorm, activation checkpointing runs the layer twice, and
    running statistics move twice.

    In evaluation mode the layer is affine: :func:`matroot.nn.fold` puts it into the layer before it. With
    ``track="covariance"`` an exported graph contains the root; ONNX needs a method made of products then.
    """


class DecorrelatedBatchNorm1d(_DecorrelatedBatchNorm):
    __doc__ = "Whitens the channels of vectors or sequences." + _SHARED.format(d="1d", shapes="(N, C) or (N, C, L)")
    input_ranks = (2, 3)


class DecorrelatedBatchNorm2d(_DecorrelatedBatchNorm):
    __doc__ = "Whitens the channels of images." + _SHARED.format(d="2d", shapes="(N, C, H, W)")
    input_ranks = (4,)


class DecorrelatedBatchNorm3d(_DecorrelatedBatchNorm):
    __doc__ = "Whitens the channels of volumes or videos." + _SHARED.format(d="3d", shapes="(N, C, D, H, W)")
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
