"""FGVC-Aircraft 2013b in its official layout.

torchvision's reader of it does not say which file is missing.
"""

from dataclasses import dataclass
from pathlib import Path

from ..errors import DataError
from ..split import DataSet, Files, Resize, require_classes
from .images import read_image
from .tables import read_table, require_files


@dataclass(frozen=True)
class Aircraft:
    """Variants as classes; training and validation images together are trained on."""

    classes: int

    def __call__(self, folder: Path) -> DataSet:
        data = folder / "data"
        variants = [row[0] for row in read_table(data / "variants.txt", 1, "a variant")]
        require_classes(len(variants), self.classes, data / "variants.txt")
        splits = [_split(data, split, variants) for split in ("trainval", "test")]
        # The published recipe resizes to 512 pixels and cuts 448.
        return DataSet(*splits, num_classes=len(variants), fine_grained=Resize(ratio=512 / 448))


def _split(data: Path, split: str, variants: list[str]) -> Files:
    path = data / f"images_variant_{split}.txt"
    examples = []
    for number, variant in read_table(path, 2, "number and variant"):
        if variant not in variants:
            raise DataError(f"{path}: {variant!r} is not in variants.txt")
        examples.append((data / "images" / f"{number}.jpg", variants.index(variant)))
    require_files(examples, path)
    return Files(examples, read_image)
