"""Reduction of the number of channels before a covariance."""

from torch import nn

from ._validation import require_positive

CONVOLUTIONS = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
NORMS = {1: nn.BatchNorm1d, 2: nn.BatchNorm2d, 3: nn.BatchNorm3d}


def channel_reduction(in_channels: int, out_channels: int, dims: int) -> nn.Sequential:
    """1x1 convolution without bias, batch normalisation, ReLU: (B, in, *spatial) -> (B, out, *spatial)."""
    require_positive(in_channels=in_channels, reduce_to=out_channels)
    if dims not in CONVOLUTIONS:
        raise ValueError(f"dims must be one of {', '.join(map(str, CONVOLUTIONS))}; got {dims!r}")
    convolution = CONVOLUTIONS[dims](in_channels, out_channels, kernel_size=1, bias=False)
    return nn.Sequential(convolution, NORMS[dims](out_channels), nn.ReLU(inplace=True))
