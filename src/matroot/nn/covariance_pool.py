"""Global covariance pooling."""

from torch import Tensor, nn

from .._symbolic import one_node
from ..gradients import Gradient
from ..methods import Method
from ._channel_reduction import channel_reduction
from ._gram import sqrtm_from_gram
from ._second_order_pool import SecondOrderPool
from ._validation import require_feature_maps, require_positive
from .covariance import covariance_of_deviations, deviations


class CovariancePool(SecondOrderPool):
    """Square root of the covariance of a feature map's channels, in the place of average pooling.

    Feature maps (B, in_channels, *spatial) give (B, n (n + 1)/2) or (B, n, n) with n channels after the reduction.
    Statistics and root are in float32 at least, the result has the dtype of the (reduced) features. Maps with fewer
    positions than channels have singular covariances, the usual case here, and a map of one position a zero one: values
    and gradients stay finite. In training the batch normalisation needs two values per channel.

    Args:
        in_channels: channels of the feature maps.
        reduce_to: a 1x1 convolution, batch normalisation and ReLU first make this many channels; None: none of them.
        dims: number of spatial dimensions, 1, 2 or 3.
        root: False returns the covariance itself.
        triangle: flatten to the upper triangle, row by row; False returns matrices.
        method: how the root is taken, see :func:`matroot.sqrtm`. By default maps with fewer positions than channels
            take it from the smaller Gram matrix of positions, exact and cheaper.
        gradient: how its derivative is computed, see :func:`matroot.sqrtm`.

    Raises:
        TypeError: when called with integers or complex numbers.
        ValueError: for sizes below 1 and an unknown method or gradient; when called with another number of channels or
            dimensions, or without positions.

    Example:
        >>> pool = matroot.nn.CovariancePool(64, reduce_to=16)
        >>> pool(torch.randn(2, 64, 7, 7)).shape
        torch.Size([2, 136])
        >>> pool.out_features
        136
    """

    def __init__(
        self,
        in_channels: int,
        reduce_to: int | None = 256,
        dims: int = 2,
        root: bool = True,
        triangle: bool = True,
        method: str | Method = "auto",
        gradient: str | Gradient | None = None,
    ) -> None:
        super().__init__(root, triangle, method, gradient)
        require_positive(in_channels=in_channels)
        self.in_channels, self.reduce_to, self.dims = in_channels, reduce_to, dims
        self.reduce = nn.Identity() if reduce_to is None else channel_reduction(in_channels, reduce_to, dims)

    @property
    def out_features(self) -> int:
        """Number of features that one feature map gives."""
        n = self.in_channels if self.reduce_to is None else self.reduce_to
        return n * (n + 1) // 2 if self.triangle else n * n

    @one_node
    def forward(self, x: Tensor) -> Tensor:
        require_feature_maps(x, dims=self.dims, channels=self.in_channels)
        features = self.reduce(x)
        X, _ = deviations(features.flatten(2))
        if self.root and self.method == "auto" and self.gradient is None and X.shape[-1] < X.shape[-2]:
            return self.flatten(sqrtm_from_gram(X), features.dtype)
        return self.pool_covariance(covariance_of_deviations(X, correction=0, eps=0.0), features.dtype)
