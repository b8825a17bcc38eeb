"""A folder for every class: images, frames of clips, or video files."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ....models import _torchvision as _torchvision

# isort: split
from torchvision.datasets import ImageFolder

from ..errors import DataError
from ..split import SHORT_SIDE, DataSet, Files, Resize, require_classes
from .clips import VIDEO_SUFFIXES, read_clip
from .images import read_image

Examples = tuple[list[str], list[tuple[Path, int]]]
"""Names of the classes, and every example with the number of its class."""


@dataclass(frozen=True)
class ImageFolders:
    """``train/<class>/<image>`` and ``<test>/<class>/<image>``, as torchvision reads them."""

    test: str
    classes: int | None = None
    """None for a data set of one's own."""
    fine_grained: Resize = SHORT_SIDE

    def __call__(self, folder: Path) -> DataSet:
        return _read(folder, self.test, _images, self.classes, fine_grained=self.fine_grained)


@dataclass(frozen=True)
class ClipFolders:
    """``train/<class>/<clip>`` and ``<test>/<class>/<clip>``; a clip is a folder of frames or a video file."""

    test: str
    videos: bool

    def __call__(self, folder: Path) -> DataSet:
        return _read(folder, self.test, _videos if self.videos else _frame_folders, None, clips=True)


def _read(
    folder: Path,
    test: str,
    examples: Callable[[Path], Examples],
    classes: int | None,
    clips: bool = False,
    fine_grained: Resize = SHORT_SIDE,
) -> DataSet:
    names, training = examples(folder / "train")
    test_names, testing = examples(folder / test)
    if names != test_names:
        odd = sorted(set(names) ^ set(test_names))[0]
        missing = test if odd in names else "train"
        raise DataError(f"{folder / missing}: no folder {odd}; train and {test} need the same classes")
    require_classes(len(names), classes, folder / "train")
    reader = read_clip if clips else read_image
    return DataSet(
        train=Files(training, reader),
        test=Files(testing, reader),
        num_classes=len(names),
        clips=clips,
        stand_in=None if classes else f"{folder.resolve().name} is none of the paper's data sets.",
        fine_grained=fine_grained,
    )


def _images(folder: Path) -> Examples:
    try:
        found = ImageFolder(folder)
    except OSError as error:
        raise DataError(f"{folder}: expected a folder of images for every class: {error}") from error
    return found.classes, [(Path(path), label) for path, label in found.samples]


def _frame_folders(folder: Path) -> Examples:
    return _class_folders(folder, Path.is_dir, "folders of frames")


def _videos(folder: Path) -> Examples:
    return _class_folders(folder, _is_video, f"video files ({', '.join(VIDEO_SUFFIXES)})")


def _is_video(path: Path) -> bool:
    return path.suffix.lower() in VIDEO_SUFFIXES


def _class_folders(folder: Path, accept: Callable[[Path], bool], expected: str) -> Examples:
    if not folder.is_dir():
        raise DataError(f"{folder}: is a file, expected a folder for every class")
    names = sorted(path.name for path in folder.iterdir() if path.is_dir())
    if not names:
        raise DataError(f"{folder}: expected a folder for every class, found none")
    found = []
    for label, name in enumerate(names):
        own = sorted(path for path in (folder / name).iterdir() if accept(path))
        if not own:
            raise DataError(f"{folder / name}: expected {expected}, found none")
        found += [(path, label) for path in own]
    return names, found
