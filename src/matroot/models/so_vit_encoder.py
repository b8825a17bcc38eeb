"""The encoder of second-order transformers: attention between tokens, then a network for each token."""

from torch import Tensor, nn
from torch.nn import functional

from . import _torchvision as _torchvision  # before torchvision itself

from torchvision.ops import StochasticDepth  # isort: skip

HEAD_WIDTH = 64


class Attention(nn.Module):
    """Attention between all tokens, with heads of ``head_width`` features: (B, N, width) -> (B, N, width).

    Queries, keys and values have no bias. ValueError if the heads do not make up the width.
    """

    def __init__(self, width: int, head_width: int = HEAD_WIDTH) -> None:
        super().__init__()
        if width % head_width:
            raise ValueError(f"width must be a multiple of {head_width}, the width of a head; got {width}")
        self.head_width = head_width
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.projection = nn.Linear(width, width)

    def forward(self, tokens: Tensor) -> Tensor:
        heads = self.qkv(tokens).unflatten(-1, (3, -1, self.head_width))  # (B, N, 3, heads, head_width)
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(query, key, value)
        return self.projection(attended.transpose(1, 2).flatten(2))


class EncoderBlock(nn.Module):
    """x + drop(attention(norm(x))), then x + drop(mlp(norm(x))): (B, N, width) -> (B, N, width).

    Args:
        width: features of a token.
        mlp_ratio: width of the hidden layer, in units of ``width``.
        drop_path: probability that an image skips a branch in training; branches that are taken weigh
            1/(1 - drop_path).
        head_width: features of a head of attention.

    Raises:
        ValueError: if the heads do not make up the width.
    """

    def __init__(self, width: int, mlp_ratio: int, drop_path: float, head_width: int = HEAD_WIDTH) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, head_width)
        self.mlp = nn.Sequential(nn.Linear(width, mlp_ratio * width), nn.GELU(), nn.Linear(mlp_ratio * width, width))
        self.drop_path = StochasticDepth(drop_path, "row")

    def forward(self, tokens: Tensor) -> Tensor:
        tokens = tokens + self.drop_path(self.attention(self.norm1(tokens)))
        return tokens + self.drop_path(self.mlp(self.norm2(tokens)))
