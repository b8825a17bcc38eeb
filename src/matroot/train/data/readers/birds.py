"""Caltech-UCSD Birds 200-2011 in its official layout."""

from dataclasses import dataclass
from pathlib import Path

from ..errors import DataError
from ..split import DataSet, Files, require_classes
from .images import read_image
from .tables import read_table, require_files


@dataclass(frozen=True)
class Birds:
    """``images.txt``, ``image_class_labels.txt`` and ``train_test_split.txt`` speak of the same images."""

    classes: int

    def __call__(self, folder: Path) -> DataSet:
        names = _column(folder / "images.txt", "number and file")
        labels = _column(folder / "image_class_labels.txt", "number and class")
        training = _column(folder / "train_test_split.txt", "number and 0 or 1")
        for other, file in ((labels, "image_class_labels.txt"), (training, "train_test_split.txt")):
            if odd := sorted(names.keys() ^ other.keys()):
                raise DataError(f"{folder / file}: image {odd[0]} is not both here and in images.txt")
        for number, part in training.items():
            if part not in ("0", "1"):
                raise DataError(f"{folder / 'train_test_split.txt'}: image {number} has {part}, expected 0 or 1")
        classes = sorted(set(labels.values()), key=lambda name: (len(name), name))
        require_classes(len(classes), self.classes, folder / "image_class_labels.txt")
        examples = {
            part: [
                (folder / "images" / name, classes.index(labels[number]))
                for number, name in names.items()
                if training[number] == part
            ]
            for part in ("1", "0")
        }
        for own in examples.values():
            require_files(own, folder / "images.txt")
        return DataSet(Files(examples["1"], read_image), Files(examples["0"], read_image), len(classes))


def _column(path: Path, expected: str) -> dict[str, str]:
    return {row[0]: row[1] for row in read_table(path, 2, expected)}
