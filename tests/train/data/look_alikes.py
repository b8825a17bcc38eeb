"""Small data sets in the layouts of real ones."""

import csv
import hashlib
import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from matroot.train.recipe import Recipe


def recipe(dataset: str, **fields: Any) -> Recipe:
    """A recipe of which the data alone matters."""
    given = {
        "model": "resnet18_dbn",
        "epochs": 1,
        "batch_size": 4,
        "image_size": 16,
        "lr": 0.1,
        "weight_decay": 0.0,
        "schedule": "steps",
    }
    return Recipe(dataset=dataset, **{**given, **fields})


def picture(seed: int, width: int = 24, height: int = 20) -> Image.Image:
    """A smooth picture: JPEG and resizing change it little."""
    corners = np.random.RandomState(seed).randint(0, 256, (3, 3, 3), dtype=np.uint8)
    return Image.fromarray(corners).resize((width, height), Image.Resampling.BICUBIC)


def encoded(image: Image.Image, kind: str = "JPEG", **options: Any) -> bytes:
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def write(path: Path, data: bytes | str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def write_zip(path: Path, members: dict[str, bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as file:
        for name, data in members.items():
            file.writestr(name, data)
    return path


def numpy_file(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def mosaic(tiles: np.ndarray, columns: int) -> bytes:
    """Tiles (N, H, W, 3) row by row, without loss."""
    count, height, width, _ = tiles.shape
    rows = tiles.reshape(count // columns, columns, height, width, 3).transpose(0, 2, 1, 3, 4)
    image = Image.fromarray(rows.reshape(count // columns * height, columns * width, 3))
    return encoded(image, "WEBP", lossless=True, exact=True)


def cifar_members(classes: int = 10, step: int = 1) -> tuple[dict[str, bytes], np.ndarray, np.ndarray]:
    """Members of the packed form with 12 + 6 images, and the pixels and labels of the training split."""
    stream = np.random.RandomState(0)
    pixels = stream.randint(0, 255 // step + 1, (18, 32, 32, 3), dtype=np.uint8)
    labels = stream.randint(0, classes, 18).astype(np.uint8)
    members = {
        "train_0.webp": mosaic(pixels[:6], 3),
        "train_1.webp": mosaic(pixels[6:12], 3),
        "test_0.webp": mosaic(pixels[12:], 3),
        "train_labels.npy": numpy_file(labels[:12]),
        "test_labels.npy": numpy_file(labels[12:]),
    }
    if step != 1:
        members["scale.json"] = f'{{"step": {step}}}'.encode()
    return members, pixels[:12], labels[:12]


def cifar10_zips(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    members, pixels, labels = cifar_members()
    second = {name: members.pop(name) for name in ("train_1.webp", "test_0.webp")}
    write_zip(folder / "cifar10_webp_lossless_A.zip", members)
    write_zip(folder / "cifar10_webp_lossless_B.zip", second)
    return pixels, labels


def cifar10_batches(folder: Path, monkeypatch: Any) -> np.ndarray:
    """torchvision's folder with two images a file, whose checksums are made the published ones; all training pixels."""
    from torchvision.datasets import CIFAR10

    stream = np.random.RandomState(0)
    lists: dict[str, list[list[str]]] = {"train_list": [], "test_list": []}
    pixels = []
    for name in [f"data_batch_{number}" for number in range(1, 6)] + ["test_batch"]:
        data = stream.randint(0, 256, (2, 3072), dtype=np.uint8)
        content = pickle.dumps({"data": data, "labels": [1, 7]})
        write(folder / "cifar-10-batches-py" / name, content)
        lists["test_list" if name == "test_batch" else "train_list"].append([name, hashlib.md5(content).hexdigest()])
        pixels.append(data.reshape(2, 3, 32, 32).transpose(0, 2, 3, 1))
    meta = pickle.dumps({"label_names": [str(number) for number in range(10)]})
    write(folder / "cifar-10-batches-py" / "batches.meta", meta)
    for name, files in lists.items():
        monkeypatch.setattr(CIFAR10, name, files)
    monkeypatch.setattr(CIFAR10, "meta", {**CIFAR10.meta, "md5": hashlib.md5(meta).hexdigest()})
    return np.concatenate(pixels[:5])


def class_members(test: str, classes: int, images: int, side: int) -> dict[str, bytes]:
    """``split/class/image`` for both splits."""
    return {
        f"{split}/class{label:02}/{number}.jpg": encoded(picture(label, side, side))
        for split in ("train", test)
        for label in range(classes)
        for number in range(images)
    }


def class_folders(folder: Path, test: str = "val", classes: int = 2, images: int = 4, side: int = 24) -> Path:
    for name, data in class_members(test, classes, images, side).items():
        write(folder / name, data)
    return folder


def fight_members(clips: int = 6) -> dict[str, bytes]:
    """Clips of two classes in turn; frame t of every clip is of grey level 30 t."""
    rows = [(f"clip{clip}.jpg", "fight" if clip % 2 else "noFight") for clip in range(clips)]
    table = io.StringIO()
    csv.writer(table).writerows([("file", "label"), *rows])
    frames = np.repeat(np.arange(8, dtype=np.uint8) * 30, 112 * 112 * 3).reshape(8, 112, 112, 3)
    return {"labels.csv": table.getvalue().encode()} | {f"clips/{file}": mosaic(frames, 4) for file, _ in rows}


def clip_folder(folder: Path, frames: int) -> Path:
    """Frame t is of grey level 10 t; the names are not padded with zeros."""
    for frame in range(frames):
        write(folder / f"frame{frame}.png", encoded(Image.new("RGB", (24, 20), (10 * frame,) * 3), "PNG"))
    return folder
