"""The pictures of the documentation, in one call.

    python tools/style_gallery.py --contents PHOTO... --styles PAINTING... --out docs/style

writes ``gallery.jpg`` (contents by styles), ``strengths.jpg`` (from reproduced to full transfer), ``scales.jpg`` (from
fine to broad strokes) and ``roots.jpg`` (exact roots beside the paper's approximation, for both transforms). A picture
is a file, or one of a zip file: ``FILE.zip:NAME``.
"""

import argparse
import io
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

import matroot
from matroot._files import write_whole
from matroot._terminal import CommandError, exit_status
from matroot.style import StyleNetwork, load, stylize
from matroot.style.distillation.pictures import Pictures, read_pictures
from matroot.style.distillation.sheet import middles
from matroot.style.transforms import NAMES

STRENGTHS = (0.0, 0.25, 0.5, 0.75, 1.0)
SCALES = (1, 2, 3)
APPROXIMATION = "mpa-lya"
GAP, LINE = 6, 22
"""Pixels between pictures, and of a line of text."""
QUALITY = 90

Cell = tuple[Tensor | None, str]
"""A picture (3, H, W) in [0, 1] or an empty place, and the text below it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the pictures; returns the exit status, 2 for files that cannot be read or written."""
    return exit_status(partial(_run, arguments))


def _run(arguments: Sequence[str] | None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--contents", nargs="+", required=True, metavar="PHOTO")
    parser.add_argument("--styles", nargs="+", required=True, metavar="PAINTING")
    parser.add_argument("--weights", type=Path, help="a safetensors file; the package's own unless given")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--size", type=int, default=320, help="pixels of a side of a picture; default %(default)s")
    given = parser.parse_args(arguments)
    contents, styles = (squares(sources, given.size) for sources in (given.contents, given.styles))
    network = load(given.weights)
    try:
        given.out.mkdir(parents=True, exist_ok=True)
        for figure in (gallery, strengths, scales, roots):
            path = given.out / f"{figure.__name__}.jpg"
            write_whole(path, jpeg(drawn(figure(network, contents, styles))))
            print(path)
    except OSError as error:
        raise CommandError(f"cannot write to {given.out}: {error.strerror}") from error
    return 0


def squares(sources: Sequence[str], size: int) -> Tensor:
    """The middles of pictures, (B, 3, size, size) in [0, 1]; CommandError for those that cannot be read."""
    pictures = Pictures.of(read_pictures(sources, size))
    return middles(pictures, torch.arange(len(pictures)), size)


def gallery(network: StyleNetwork, contents: Tensor, styles: Tensor) -> list[list[Cell]]:
    """Contents on the left, styles above, and each content in each style."""
    columns = [stylize(contents, style, network=network) for style in styles]
    rows: list[list[Cell]] = [[(None, ""), *((style, "style") for style in styles)]]
    for k, content in enumerate(contents):
        rows.append([(content, "content"), *((column[k], "") for column in columns)])
    return rows


def strengths(network: StyleNetwork, contents: Tensor, styles: Tensor) -> list[list[Cell]]:
    """A row for each content, with the styles in turn."""
    return _rows(network, contents, styles, {f"strength {x:g}": {"strength": x} for x in STRENGTHS})


def scales(network: StyleNetwork, contents: Tensor, styles: Tensor) -> list[list[Cell]]:
    """The same for the number of scales."""
    return _rows(network, contents, styles, {f"--scales {x}": {"scales": x} for x in SCALES})


def _rows(network: StyleNetwork, contents: Tensor, styles: Tensor, ways: dict[str, dict[str, Any]]) -> list[list[Cell]]:
    """A row for each content, with the styles in turn: transfers with these options of ``stylize``, by title."""
    rows: list[list[Cell]] = []
    for k, content in enumerate(contents):
        style = styles[k % len(styles)]
        transfers = [(stylize(content, style, network=network, **way), title) for title, way in ways.items()]
        rows.append([(content, "content"), (style, "style"), *transfers])
    return rows


def roots(network: StyleNetwork, contents: Tensor, styles: Tensor) -> list[list[Cell]]:
    """A row for each content, with the styles in turn: with both transforms, by exact and by approximate roots."""
    rows: list[list[Cell]] = []
    for k, content in enumerate(contents):
        style = styles[k % len(styles)]
        row: list[Cell] = [(content, "content"), (style, "style")]
        for transform in NAMES:
            exact, approximate = (
                stylize(content, style, transform=transform, method=method, network=network)
                for method in ("eigen", matroot.preset(APPROXIMATION)["method"])
            )
            difference = 255 * (exact - approximate).abs()
            levels = f"differs by {difference.mean():.1f}, at most {difference.max():.0f}"
            row += [(exact, f"{transform}, exact roots"), (approximate, f"{APPROXIMATION}: {levels}")]
        rows.append(row)
    return rows


def drawn(rows: Sequence[Sequence[Cell]]) -> Image.Image:
    """Pictures of one size in rows, each with its text below; no room is left below a row without any."""
    size = next(picture.shape[-1] for row in rows for picture, _ in row if picture is not None)
    heights = [size + GAP + (LINE if any(text for _, text in row) else 0) for row in rows]
    page = Image.new("RGB", (len(rows[0]) * (size + GAP) + GAP, sum(heights) + GAP), "white")
    write = ImageDraw.Draw(page)
    font = ImageFont.load_default(max(8, min(15, size // 18)))
    top = GAP
    for row, height in zip(rows, heights, strict=True):
        for k, (picture, text) in enumerate(row):
            left = GAP + k * (size + GAP)
            if picture is not None:
                pixels = (255 * picture).round().byte().permute(1, 2, 0).cpu().numpy()
                page.paste(Image.fromarray(pixels), (left, top))
            write.text((left + size // 2, top + size + LINE // 2), text, fill="black", font=font, anchor="mm")
        top += height
    return page


def jpeg(page: Image.Image) -> bytes:
    """The page as a file."""
    file = io.BytesIO()
    page.save(file, "jpeg", quality=QUALITY)
    return file.getvalue()


if __name__ == "__main__":
    sys.exit(main())
