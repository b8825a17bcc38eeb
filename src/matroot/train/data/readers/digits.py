"""Handwritten digits, from scikit-learn's own files."""

import torch

from ..augment import resize
from ..errors import DataError
from ..split import DataSet, InMemory, stratified_split

STAND_IN = (
    "scikit-learn's 1,797 handwritten digits (8x8 pixels) stand in for CIFAR-10; "
    "their accuracy is not comparable with the paper's."
)


def read_digits(image_size: int) -> DataSet:
    """Grey images of ``image_size`` pixels, four fifths of every class for training."""
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise DataError('digits are part of scikit-learn: pip install "matroot[training]"') from error
    flat, targets = load_digits(return_X_y=True)
    images = resize(torch.from_numpy(flat).float().view(-1, 1, 8, 8) * (255 / 16), image_size)
    pixels = images.round().to(torch.uint8).movedim(1, -1).contiguous()
    labels = torch.from_numpy(targets).long()
    train, test = stratified_split(labels, 0.2)
    return DataSet(
        train=InMemory(pixels[train], labels[train]),
        test=InMemory(pixels[test], labels[test]),
        num_classes=10,
        channels=1,
        mean=(0.305,),
        std=(0.376,),
        stand_in=STAND_IN,
    )
