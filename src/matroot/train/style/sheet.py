"""Sample sheets: what the generators make of pictures they were not trained with."""

import torch
from torch import Tensor

from ..._png import png
from ...models.style_exchange import StyleExchange
from .losses import exchange
from .pictures import Pictures, as_network_input, as_unit_range

ROWS = 4
GAP = 4
"""White pixels between pictures."""


@torch.no_grad()
def sample_sheet(network: StyleExchange, pictures: Pictures) -> bytes:
    """A PNG file with a row for each of the first test pairs.

    In a row: photo, painting, the photo painted, the painting as a photo, the photo reconstructed, the photo back
    from being painted.
    """
    rows = []
    for k in range(min(ROWS, len(pictures.photos.test), len(pictures.paintings.test))):
        photo, painting = (as_network_input(domain.test[k : k + 1]) for domain in (pictures.photos, pictures.paintings))
        made = exchange(network, photo, painting)
        row = (photo, painting, made.as_paintings, made.as_photos, made.photos_again, made.photos_back)
        rows.append(torch.cat([as_unit_range(image) for image in row]))
    return png(mosaic(torch.stack(rows)))


def mosaic(images: Tensor) -> Tensor:
    """Images (rows, columns, 3, H, W) in [0, 1] as one (3, ., .), white between them."""
    rows, columns, _, height, width = images.shape
    sheet = torch.ones(3, rows * (height + GAP) - GAP, columns * (width + GAP) - GAP)
    for i in range(rows):
        for j in range(columns):
            top, left = i * (height + GAP), j * (width + GAP)
            sheet[:, top : top + height, left : left + width] = images[i, j].cpu()
    return sheet
