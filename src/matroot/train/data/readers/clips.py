"""Clips: folders of frames, and video files."""

import re
from pathlib import Path
from typing import Any

from PIL import Image

from ..errors import DataError
from ..split import Choose
from .images import read_image

FRAME_SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".bmp")
VIDEO_SUFFIXES = (".mp4", ".avi", ".webm", ".mkv")


def read_clip(path: Path, choose: Choose) -> list[Image.Image]:
    """The chosen frames of a folder or of a video file; DataError naming it if they cannot be read."""
    return _read_folder(path, choose) if path.is_dir() else _read_video(path, choose)


def _read_folder(path: Path, choose: Choose) -> list[Image.Image]:
    frames = [file for file in path.iterdir() if file.suffix.lower() in FRAME_SUFFIXES]
    if not frames:
        raise DataError(f"{path}: expected frames ({', '.join(FRAME_SUFFIXES)}), found none")
    # frame_10 comes after frame_9.
    frames.sort(key=lambda file: [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", file.name)])
    return [image for frame in choose(len(frames)) for image in read_image(frames[frame], choose)]


def _read_video(path: Path, choose: Choose) -> list[Image.Image]:
    try:
        import av
    except ImportError as error:
        raise DataError(f'{path}: video files need PyAV: pip install "matroot[video]"') from error
    try:
        with av.open(str(path)) as container:
            wanted = choose(_count_frames(container, path))
            container.seek(0)
            decoded = _decode(container, set(wanted))
    except (av.FFmpegError, OSError) as error:
        raise DataError(f"{path}: cannot be read as a video: {error}") from error
    if not decoded:
        raise DataError(f"{path}: no frame can be decoded")
    # A header may promise more frames than there are: the last one stands for those.
    return [decoded[min(frame, max(decoded))] for frame in wanted]


def _count_frames(container: Any, path: Path) -> int:
    if not container.streams.video:
        raise DataError(f"{path}: has no video stream")
    stream = container.streams.video[0]
    count = stream.frames or sum(packet.size > 0 for packet in container.demux(stream))
    if not count:
        raise DataError(f"{path}: has no frames")
    return count


def _decode(container: Any, wanted: set[int]) -> dict[int, Image.Image]:
    """Wanted frames by number, and the last one if some are beyond it."""
    found, frame, number = {}, None, -1
    for number, frame in enumerate(container.decode(video=0)):
        if number in wanted:
            found[number] = frame.to_image()
            if len(found) == len(wanted):
                return found
    if frame is not None:
        found[number] = frame.to_image()
    return found
