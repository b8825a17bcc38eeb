"""Clips of surveillance cameras, each a mosaic of eight frames, in one zip file."""

import csv
import io
from pathlib import Path

import numpy as np
import torch

from ..errors import DataError
from ..split import DataSet, InMemory, stratified_split
from .archive import Archive

FILE = "video_fight_surv_8x112x112.zip"
FRAMES = 8
SIDE = 112
STAND_IN = (
    "300 surveillance clips (fight or not) stand in for HMDB51 and UCF101; "
    "their accuracy is not comparable with the paper's."
)


def read_fight(folder: Path) -> DataSet:
    """Two classes, two thirds of each for training."""
    archive = Archive([folder / FILE])
    rows = _rows(archive)
    names = sorted({label for _, label in rows})
    if len(names) != 2:
        raise DataError(f"{archive.label}: labels.csv has the labels {', '.join(names)}, expected two")
    pixels = torch.from_numpy(np.stack([_clip(archive, file) for file, _ in rows]))
    labels = torch.tensor([names.index(label) for _, label in rows])
    train, test = stratified_split(labels, 1 / 3)
    return DataSet(
        train=InMemory(pixels[train], labels[train]),
        test=InMemory(pixels[test], labels[test]),
        num_classes=2,
        clips=True,
        stand_in=STAND_IN,
    )


def _rows(archive: Archive) -> list[tuple[str, str]]:
    """File and label of every clip."""
    rows = list(csv.DictReader(io.StringIO(archive.read("labels.csv").decode(errors="replace"))))
    if not rows or not all(row.get("file") and row.get("label") for row in rows):
        raise DataError(f"{archive.label}: labels.csv needs the columns file and label in every row")
    return [(row["file"], row["label"]) for row in rows]


def _clip(archive: Archive, file: str) -> np.ndarray:
    frames = archive.tiles(f"clips/{file}", SIDE, SIDE)
    if len(frames) != FRAMES:
        raise DataError(f"{archive.label}: clips/{file} has {len(frames)} frames, expected {FRAMES}")
    return frames
