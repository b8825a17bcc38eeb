"""HMDB51 and UCF101 with their official split files (split 1)."""

from dataclasses import dataclass
from pathlib import Path

from ..errors import DataError
from ..split import DataSet, Files, require_classes
from .clips import read_clip
from .tables import read_table

CLIPS = ("videos", "frames", ".")
"""Folders that may hold those of the classes, beside the one a data set comes with."""


@dataclass(frozen=True)
class Ucf101:
    """``classInd.txt``, ``trainlist01.txt`` and ``testlist01.txt`` in ``splits``."""

    splits: str
    classes: int

    def __call__(self, folder: Path) -> DataSet:
        splits = folder / self.splits
        names = [name for _, name in read_table(splits / "classInd.txt", 2, "number and class")]
        require_classes(len(names), self.classes, splits / "classInd.txt")
        base = _base(folder, ("UCF-101", *CLIPS), names)
        train, test = (self._split(splits / file, base, names) for file in ("trainlist01.txt", "testlist01.txt"))
        return DataSet(train, test, num_classes=len(names), clips=True)

    def _split(self, path: Path, base: Path, names: list[str]) -> Files:
        clips = []
        for (row,) in read_table(path, 1, "class/clip"):
            name, _, clip = row.split()[0].partition("/")
            if name not in names:
                raise DataError(f"{path}: {name!r} is not in classInd.txt")
            clips.append((name, clip))
        return _clips(path, base, clips, names)


@dataclass(frozen=True)
class Hmdb51:
    """``<class>_test_split1.txt`` in ``splits``: clip, and 1 for training, 2 for test, 0 for neither."""

    splits: str
    classes: int

    def __call__(self, folder: Path) -> DataSet:
        splits = folder / self.splits
        ending = "_test_split1.txt"
        names = sorted(path.name.removesuffix(ending) for path in splits.glob(f"*{ending}"))
        require_classes(len(names), self.classes, splits)
        base = _base(folder, ("hmdb51", "hmdb51_org", *CLIPS), names)
        parts: dict[str, list[tuple[str, str]]] = {"0": [], "1": [], "2": []}
        for name in names:
            path = splits / f"{name}{ending}"
            for clip, part in read_table(path, 2, "clip and 0, 1 or 2"):
                if part not in parts:
                    raise DataError(f"{path}: {clip} {part}, expected 0, 1 or 2")
                parts[part].append((name, clip))
        train, test = (_clips(splits, base, parts[part], names) for part in ("1", "2"))
        return DataSet(train, test, num_classes=len(names), clips=True)


def _base(folder: Path, candidates: tuple[str, ...], names: list[str]) -> Path:
    for candidate in candidates:
        if all((folder / candidate / name).is_dir() for name in names):
            return folder / candidate
    places = ", ".join(str(folder / candidate) for candidate in candidates)
    raise DataError(f"expected a folder for every class ({names[0]}, ...) in one of {places}")


def _clips(listed: Path, base: Path, clips: list[tuple[str, str]], names: list[str]) -> Files:
    """Each clip as a video file of its listed name, or as a folder of frames of that name without its suffix."""
    examples, missing = [], []
    for name, clip in clips:
        video = base / name / clip
        path = video if video.exists() else video.with_suffix("")
        if not path.exists():
            missing.append(video)
        examples.append((path, names.index(name)))
    if missing or not examples:
        first = f", first {missing[0]} (or a folder of its frames)" if missing else ""
        raise DataError(f"{listed}: {len(missing)} of {len(examples)} clips are missing{first}")
    return Files(examples, read_clip)
