"""Where data sets are looked for."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import torch

from .errors import DataError

_Data = TypeVar("_Data")


@dataclass(frozen=True)
class Layout(Generic[_Data]):
    """One of the forms in which a data set is kept."""

    markers: tuple[str, ...]
    """Files and folders that it consists of."""
    read: Callable[[Path], _Data]
    """From the folder that holds the markers."""
    folders: tuple[str, ...] = ()
    """Names the folder has where several data sets stand side by side."""

    def expected(self) -> str:
        names = ", ".join(self.markers)
        return f"{' or '.join(f'{folder}/' for folder in self.folders)} with {names}" if self.folders else names


@dataclass(frozen=True)
class Place:
    """A folder to look in."""

    path: Path
    origin: str
    """What names it."""


def places(data: Path | None) -> list[Place]:
    """``data`` alone where it is given, else ``MATROOT_DATA``, then ``data`` here and in torch's cache.

    DataError if ``data`` does not exist.
    """
    if data is not None:
        if not data.exists():
            raise DataError(f"--data {data}: no such folder")
        return [Place(data, "--data")]
    found = []
    if named := os.environ.get("MATROOT_DATA"):
        found.append(Place(Path(named), "MATROOT_DATA"))
    found.append(Place(Path("data"), "working folder"))
    found.append(Place(Path(torch.hub.get_dir()).parent / "data", "torch's cache"))
    return found


def find(
    name: str, layouts: Sequence[Layout[_Data]], looked_in: Sequence[Place], origin: str
) -> tuple[Layout[_Data], Path]:
    """The first layout found and its folder; DataError says what was expected, what each place has, and ``origin``."""
    for place in looked_in:
        for layout in layouts:
            for folder in _candidates(place.path, layout):
                if not _missing(folder, layout):
                    return layout, folder
    expected = [f"  {layout.expected()}" for layout in layouts]
    found = [f"  {place.path} ({place.origin}): {_state(place.path, layouts)}" for place in looked_in]
    title = f"{name} was not found. Expected{' one of' if len(layouts) > 1 else ''}"
    raise DataError("\n".join([title, *expected, "Looked in", *found, origin]))


def _candidates(place: Path, layout: Layout) -> list[Path]:
    """The place may hold the data set, be it, or be one of its files."""
    if place.is_file():
        return [place.parent] if place.name in layout.markers else []
    return [*(place / folder for folder in layout.folders), place]


def _missing(folder: Path, layout: Layout) -> list[str]:
    return [marker for marker in layout.markers if not (folder / marker).exists()]


def _state(place: Path, layouts: Sequence[Layout]) -> str:
    """What is wrong with a place that has no whole data set."""
    if not place.exists():
        return "no such folder"
    for layout in layouts:
        for folder in _candidates(place, layout):
            missing = _missing(folder, layout)
            if len(missing) < len(layout.markers):
                return f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing in {folder}"
    return "nothing of it"
