"""Folders of classes: images and clips."""

import sys

import pytest
import torch

from matroot.train.data import DataError, open_data
from matroot.train.data.readers.clips import read_clip
from matroot.train.data.readers.folders import ClipFolders, ImageFolders

from ..look_alikes import class_folders, clip_folder, recipe, write

CPU = torch.device("cpu")


@pytest.mark.parametrize("test", ["val", "test"])
def test_a_folder_of_ones_own(tmp_path, test):
    data = open_data(recipe("folder"), class_folders(tmp_path / "mine", test, classes=3), CPU, workers=0)
    assert data.num_classes == 3
    assert data.stand_in == "mine is none of the paper's data sets."
    assert data.source == str(tmp_path / "mine")


def test_imagenet_has_a_thousand_classes(tmp_path):
    class_folders(tmp_path / "imagenet")
    with pytest.raises(
        DataError, match=r"imagenet/train: 2 classes, expected 1000; folder, frames and videos take any"
    ):
        open_data(recipe("imagenet"), tmp_path, CPU)
    assert ImageFolders("val", classes=2)(tmp_path / "imagenet").stand_in is None


def test_an_empty_class(tmp_path):
    class_folders(tmp_path)
    (tmp_path / "train/class02").mkdir()
    with pytest.raises(DataError, match=r"train: expected a folder of images for every class: .*class02"):
        open_data(recipe("folder"), tmp_path, CPU)


def test_other_classes_for_test(tmp_path):
    class_folders(tmp_path, classes=3)
    (tmp_path / "val/class01").rename(tmp_path / "val/other")
    with pytest.raises(DataError, match=r"val: no folder class01; train and val need the same classes"):
        open_data(recipe("folder"), tmp_path, CPU)
    (tmp_path / "train/class01").rename(tmp_path / "train/aaa")
    with pytest.raises(DataError, match=r"val: no folder aaa"):
        open_data(recipe("folder"), tmp_path, CPU)


def clip_classes(root, names=("a", "b"), split=("train", "val")):
    for part in split:
        for name in names:
            clip_folder(root / part / name / "clip", frames=11)
    return root


def test_frames_are_ordered_by_number(tmp_path):
    """frame10 comes after frame9."""
    frames = read_clip(clip_folder(tmp_path / "clip", frames=11), lambda count: list(range(count)))
    assert [frame.getpixel((0, 0))[0] for frame in frames] == [10 * frame for frame in range(11)]


def test_folders_of_frames(tmp_path):
    read = ClipFolders("val", videos=False)(clip_classes(tmp_path))
    assert read.clips
    assert read.num_classes == 2
    assert read.train.labels.tolist() == [0, 1]


@pytest.mark.parametrize(("spoil", "message"), [
    (lambda root: (root / "train/c").mkdir(), r"train/c: expected folders of frames, found none"),
    (lambda root: (root / "train/c/clip").mkdir(parents=True), r"val: no folder c;"),
    (lambda root: [(root / "val").rename(root / "old"), write(root / "val", b"")], r"val: is a file, expected"),
    (lambda root: [(root / "val/a").rename(root / "a"), (root / "val/b").rename(root / "b")],
     r"val: expected a folder for every class, found none"),
])  # fmt: skip
def test_damaged_folders_of_frames(tmp_path, spoil, message):
    spoil(clip_classes(tmp_path))
    with pytest.raises(DataError, match=message):
        ClipFolders("val", videos=False)(tmp_path)


def test_a_clip_without_frames(tmp_path):
    with pytest.raises(DataError, match="expected frames"):
        read_clip(tmp_path, lambda count: [0])


def write_video(path, frames=12):
    """Frame t is of grey level 20 t."""
    av = pytest.importorskip("av")
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=10)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for number in range(frames):
            frame = av.VideoFrame(64, 48, "rgb24")
            frame.planes[0].update(bytes([20 * number]) * frame.planes[0].buffer_size)
            for packet in stream.encode(frame):
                container.mux(packet)
        for packet in stream.encode(None):
            container.mux(packet)
    return path


@pytest.mark.parametrize("suffix", ["mp4", "avi", "mkv"])
def test_frames_of_a_video_file(tmp_path, suffix):
    """A codec changes a uniform grey by a few levels; frames are 20 apart. mkv files do not say how many there are."""
    counts = []

    def choose(count):
        counts.append(count)
        return [0, 4, 4, 11]

    frames = read_clip(write_video(tmp_path / f"clip.{suffix}"), choose)
    assert counts == [12]
    assert frames[0].size == (64, 48)
    levels = [frame.getpixel((30, 20))[0] for frame in frames]
    assert [round(level / 20) for level in levels] == [0, 4, 4, 11]


def test_a_video_shorter_than_its_header_says_repeats_its_last_frame(tmp_path):
    frames = read_clip(write_video(tmp_path / "clip.avi", frames=5), lambda count: [1, 7])
    assert [round(frame.getpixel((30, 20))[0] / 20) for frame in frames] == [1, 4]


def test_folders_of_videos(tmp_path):
    for split in ("train", "test"):
        for name in ("a", "b"):
            write_video(tmp_path / split / name / "clip.avi")
    data = open_data(recipe("videos", frames=3, batch_size=2, augment="corner-crop-flip"), tmp_path, CPU, workers=0)
    clips, labels = next(data.train.epoch(1))
    assert clips.shape == (2, 3, 3, 16, 16)
    assert sorted(labels.tolist()) == [0, 1]


def test_a_broken_video(tmp_path):
    pytest.importorskip("av")
    broken = write(tmp_path / "clip.avi", b"RIFF no video")
    with pytest.raises(DataError, match=r"clip\.avi: cannot be read as a video"):
        read_clip(broken, lambda count: [0])


def test_without_pyav(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(DataError, match=r"clip\.avi: video files need PyAV: pip install .matroot\[video\]"):
        read_clip(write(tmp_path / "clip.avi", b""), lambda count: [0])
