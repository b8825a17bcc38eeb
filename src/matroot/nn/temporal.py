"""Covariance pooling of video over a sliding window of frames, and attention to precede it."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from .._symbolic import one_node
from ..gradients import Gradient
from ..methods import Method
from ._printing import constructor_arguments
from ._second_order_pool import SecondOrderPool
from ._validation import require_feature_maps, require_positive
from .covariance import covariance


class TemporalCovariancePool(SecondOrderPool):
    """Square root of the temporal covariance: of the channels within frames and between neighbouring frames.

    For every frame l, with X_i the centred features (C, N) of frame i and i, j over the window around l, ::

        Temp.Cov.(X_l) = 1/N sum_i sum_j X_i X_j^T = 1/N (sum_i X_i) (sum_j X_j)^T,

    i = j being the covariances inside frames and the rest those between them: the covariance of a sum of frames. At
    both ends of the video the border frame is repeated.

    Video (B, C, T, H, W) gives (B, C (C + 1)/2) or (B, C, C), with a dimension T after B if ``per_frame``, in the
    video's dtype.

    Args:
        window: number of frames, odd; 1 gives the covariances inside frames alone.
        per_frame: True returns the root of every frame's matrix, False one root, of their mean over the video.
        root: False returns the covariance itself.
        triangle: flatten to the upper triangle, row by row; False returns matrices.
        method: how the root is taken, see :func:`matroot.sqrtm`.
        gradient: how its derivative is computed, see :func:`matroot.sqrtm`.

    Raises:
        TypeError: when called with integers or complex numbers.
        ValueError: for an even window and an unknown method or gradient; when called with another number of dimensions.

    Example:
        >>> pool = matroot.nn.TemporalCovariancePool(window=3)
        >>> pool(torch.randn(2, 8, 5, 4, 4)).shape
        torch.Size([2, 36])
    """

    def __init__(
        self,
        window: int = 3,
        per_frame: bool = False,
        root: bool = True,
        triangle: bool = True,
        method: str | Method = "auto",
        gradient: str | Gradient | None = None,
    ) -> None:
        super().__init__(root, triangle, method, gradient)
        _require_odd(window)
        self.window, self.per_frame = window, per_frame

    @one_node
    def forward(self, video: Tensor) -> Tensor:
        require_feature_maps(video, "video", dims=3)
        wide = video.to(torch.promote_types(video.dtype, torch.float32))
        half_window = self.window // 2
        total = torch.stack([_shifted(wide, offset) for offset in range(-half_window, half_window + 1)]).sum(0)
        frames = total.transpose(1, 2)
        matrices = covariance(frames.flatten(0, 1)).unflatten(0, frames.shape[:2])
        return self.pool_covariance(matrices if self.per_frame else matrices.mean(1), video.dtype)


class TemporalAttention(nn.Module):
    """Weighs the features of a video in space, in channels and in time: (B, C, T, H, W) -> (B, C, T, H, W).

    In space, x_t + norm(phi0(x_t) S^T) with S = softmax(phi1(x_{t-1})^T phi2(x_{t-2})/sqrt(C)) over the positions of a
    frame, the first frame standing for those before it. In channels, times the mean of two gates, computed from the
    differences of x_t to x_{t-1} and to x_{t-2}, circular in time. In time, ReLU(y + convolution(y)) over ``window``
    frames, circular. Norm and convolution start at zero.

    A covariance per video follows: ``nn.Sequential(TemporalAttention(128), CovariancePool(128, None, dims=3))``.

    Args:
        channels: C.
        window: frames in the temporal convolution, odd.
        expansion: width of the gates' hidden layer, in units of C.

    Raises:
        TypeError: when called with integers or complex numbers.
        ValueError: for an even window and sizes below 1; when called with another number of channels or dimensions.

    Example:
        >>> attention = matroot.nn.TemporalAttention(channels=8, window=3)
        >>> attention(torch.randn(2, 8, 5, 4, 4)).shape
        torch.Size([2, 8, 5, 4, 4])
    """

    def __init__(self, channels: int = 128, window: int = 5, expansion: int = 4) -> None:
        super().__init__()
        require_positive(channels=channels, expansion=expansion)
        _require_odd(window)
        self.channels, self.window, self.expansion = channels, window, expansion
        self.value, self.query, self.key = (nn.Conv3d(channels, channels, 1) for _ in range(3))
        self.norm = nn.BatchNorm3d(channels)
        self.gate = nn.Sequential(
            nn.Conv1d(channels, expansion * channels, 1),
            nn.ReLU(inplace=True),
            nn.Conv1d(expansion * channels, channels, 1),
            nn.Sigmoid(),
        )
        self.temporal = nn.Conv3d(channels, channels, (window, 1, 1))
        self._zero_residuals()

    def reset_parameters(self) -> None:
        """Initialise again, as the constructor does; of use after ``to_empty``."""
        for layer in self.modules():
            if isinstance(layer, nn.Conv1d | nn.Conv3d | nn.BatchNorm3d):
                layer.reset_parameters()
        self._zero_residuals()

    def _zero_residuals(self) -> None:
        for parameter in (self.norm.weight, *self.temporal.parameters()):
            nn.init.zeros_(parameter)

    @one_node
    def forward(self, video: Tensor) -> Tensor:
        require_feature_maps(video, "video", dims=3, channels=self.channels)
        attended = (video + self.norm(self._in_space(video))) * self._in_channels(video)
        half_window = self.window // 2
        frames = torch.arange(-half_window, video.shape[2] + half_window, device=video.device) % video.shape[2]
        return functional.relu(attended + self.temporal(attended.index_select(2, frames)))

    def _in_space(self, video: Tensor) -> Tensor:
        shape = video.transpose(1, 2).shape
        # Every frame is a sequence of N positions, (B, T, N, C).
        value, query, key = (
            layer(_shifted(video, offset)).permute(0, 2, 3, 4, 1).flatten(2, 3)
            for layer, offset in ((self.value, 0), (self.query, -1), (self.key, -2))
        )
        return functional.scaled_dot_product_attention(query, key, value).mT.reshape(shape).transpose(1, 2)

    def _in_channels(self, video: Tensor) -> Tensor:
        mean = video.mean((-2, -1))
        near, far = mean - mean.roll(1, -1), (mean - mean.roll(2, -1)) / 2
        return (0.5 * (self.gate(near) + self.gate(far)))[..., None, None]

    def extra_repr(self) -> str:
        return constructor_arguments(self)


def _require_odd(window: int) -> None:
    if window < 1 or window % 2 == 0:
        raise ValueError(f"window must be odd and positive, got {window!r}")


def _shifted(video: Tensor, offset: int) -> Tensor:
    """Frame t + offset in the place of frame t, the border frame repeated; (B, C, T, H, W)."""
    length = video.shape[2]
    return video.index_select(2, (torch.arange(length, device=video.device) + offset).clamp(0, length - 1))
