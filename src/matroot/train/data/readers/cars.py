"""Stanford Cars with the annotations of its development kit.

torchvision's reader of it does not say which file is missing.
"""

from dataclasses import dataclass
from pathlib import Path

from ..errors import DataError
from ..split import DataSet, Files, Resize, require_classes
from .images import read_image
from .tables import require_files

RESIZE = Resize(square=True)
"""The published recipe resizes both sides to 448 pixels."""


@dataclass(frozen=True)
class Cars:
    """``cars_train`` and ``cars_test`` with a MATLAB file each."""

    classes: int

    def __call__(self, folder: Path) -> DataSet:
        train, test = (
            _split(folder / annotations, folder / images)
            for annotations, images in (
                ("devkit/cars_train_annos.mat", "cars_train"),
                ("cars_test_annos_withlabels.mat", "cars_test"),
            )
        )
        classes = len(set(train.labels.tolist()) | set(test.labels.tolist()))
        require_classes(classes, self.classes, folder / "devkit/cars_train_annos.mat")
        return DataSet(train, test, num_classes=classes, fine_grained=RESIZE)


def _split(annotations: Path, images: Path) -> Files:
    try:
        from scipy.io import loadmat
    except ImportError as error:
        raise DataError(f'{annotations}: MATLAB files need SciPy: pip install "matroot[training]"') from error
    try:
        rows = loadmat(str(annotations), squeeze_me=True)["annotations"].ravel()
        examples = [(images / str(row["fname"]), int(row["class"]) - 1) for row in rows]
    except Exception as error:  # SciPy raises whatever the bytes of a corrupt file lead to
        raise DataError(f"{annotations}: expected annotations with fname and class: {error}") from error
    require_files(examples, annotations)
    return Files(examples, read_image)
