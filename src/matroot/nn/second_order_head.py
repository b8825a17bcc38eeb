"""Classification from the class token and from the covariance of all others."""

from torch import Tensor, nn

from .._symbolic import one_node
from ..gradients import Gradient
from ..methods import Method
from ._printing import constructor_arguments
from .covariance_pool import CovariancePool


class SecondOrderHead(nn.Module):
    """Logits of a second-order vision transformer: linear(class token) + linear(covariance root of the other tokens).

    Tokens (B, 1 + N, in_features), the class token first, give (B, num_classes).

    Args:
        in_features: width of the tokens.
        num_classes: number of logits.
        reduce_to: width of the tokens in the covariance, after a linear map, batch normalisation and ReLU; None: that
            of the tokens.
        method: how the root is taken, see :func:`matroot.sqrtm`.
        gradient: how its derivative is computed, see :func:`matroot.sqrtm`.

    Raises:
        ValueError: when called with another width, with tokens that are not (B, 1 + N, in_features), and for N = 0; for
            an unknown method or gradient.

    Example:
        >>> head = matroot.nn.SecondOrderHead(32, num_classes=10, reduce_to=8)
        >>> head(torch.randn(2, 1 + 49, 32)).shape
        torch.Size([2, 10])
    """

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        reduce_to: int | None = 48,
        method: str | Method = "auto",
        gradient: str | Gradient | None = None,
    ) -> None:
        super().__init__()
        self.in_features, self.num_classes, self.reduce_to = in_features, num_classes, reduce_to
        self.method, self.gradient = method, gradient
        self.pool = CovariancePool(in_features, reduce_to, dims=1, method=method, gradient=gradient)
        self.first_order = nn.Linear(in_features, num_classes)
        self.second_order = nn.Linear(self.pool.out_features, num_classes)

    @one_node
    def forward(self, tokens: Tensor) -> Tensor:
        shape = tuple(tokens.shape)
        if tokens.ndim != 3:
            raise ValueError(f"tokens must be (B, 1 + N, d), 3 dimensions; got {tokens.ndim}, shape {shape}")
        if tokens.shape[-1] != self.in_features:
            raise ValueError(f"tokens must have {self.in_features} features; got {tokens.shape[-1]}, shape {shape}")
        if tokens.shape[1] < 2:
            raise ValueError(f"a class token and at least 1 other are needed, 2 tokens; got {tokens.shape[1]}")
        return self.first_order(tokens[:, 0]) + self.second_order(self.pool(tokens[:, 1:].mT))

    def extra_repr(self) -> str:
        return constructor_arguments(self)
