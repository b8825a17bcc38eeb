"""Sheets of samples: a few photographs in a few styles, as one picture."""

import torch
from torch import Tensor

from ..network import StyleNetwork
from .batches import cut
from .pictures import Pictures

STRENGTHS = (0.5, 1.0)


def evenly_chosen(first: int, last: int, count: int) -> Tensor:
    """``count`` numbers from first to last - 1, far apart; all of them if there are no more."""
    count = min(count, last - first)
    return first + ((torch.arange(count) + 0.5) * (last - first) / count).long()


def middles(pictures: Pictures, chosen: Tensor, size: int) -> Tensor:
    """The middles of the chosen pictures, (B, 3, size, size) in [0, 1]."""
    sizes = pictures.sizes[chosen]
    side = sizes.amin(1, keepdim=True)
    windows = torch.cat([(sizes - side) / 2, side], dim=1)
    return cut(pictures, chosen, windows, torch.zeros(len(chosen), dtype=torch.bool), size)


@torch.no_grad()
def sheet(network: StyleNetwork, contents: Tensor, styles: Tensor) -> Tensor:
    """(3, H, W) in [0, 1]: above the styles, on the left the contents and what the network reproduces.

    contents, styles: (N, 3, size, size) and (M, 3, size, size). Below each style the contents at ``STRENGTHS``.
    """
    blank = torch.ones_like(contents[0])
    columns = [[blank, *contents], [blank, *network(contents)]]
    for style in styles:
        statistics = network.statistics(style[None])
        for strength in STRENGTHS:
            pictures = network.stylize(contents, statistics, strength)
            columns.append([style if strength == STRENGTHS[-1] else blank, *pictures])
    return torch.cat([torch.cat(column, dim=1) for column in columns], dim=2)
