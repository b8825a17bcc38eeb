"""What whitening, optimal transport and the smoothing of grain do to clear skies, edges and palettes.

    python tools/style_measures.py --contents PHOTO... --styles PAINTING... --out RESULT.json

stylizes all photos like all paintings in several ways and writes means over the pictures of

- grain, in levels of 255: standard deviation of the picture around means of 9 x 9, where the photo is flat and far from
  edges,
- halo, in levels: root mean square difference of flat areas next to edges from flat areas further away,
- palette: |C - S|/|S| of the covariances of colours, of the picture and of the painting,
- content: correlation of where edges are with where the photo has them, over squares of 8 x 8.

A picture is a file, or one of a zip file: ``FILE.zip:NAME``.
"""

import argparse
import math
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from style_gallery import squares
from torch import Tensor
from torch.nn import functional

from matroot._terminal import exit_status
from matroot.bench.results import save_program
from matroot.style import OptimalTransport, Whitening, load, stylize
from matroot.style.grain import GRAIN

FLAT, EDGE = 2.5, 10.0
"""Levels of deviation over 9 x 9: less is flat, more is an edge."""
NEAR, FAR = 16, 22
"""Pixels from an edge."""
WAYS: dict[str, dict[str, Any]] = {
    f"{type(transform).__name__}{getattr(transform, 'max_gain', '')}, grain {grain:g}": {
        "transform": transform,
        "grain": grain,
    }
    for transform in (Whitening(), OptimalTransport(math.inf), OptimalTransport(3.0), OptimalTransport(2.0))
    for grain in (0.0, GRAIN)
} | {f"default, scales {scales}": {"scales": scales} for scales in (2, 3)}
"""Options of ``stylize``."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the result; returns the exit status, 2 for files that cannot be read or written."""
    return exit_status(partial(_run, arguments))


def _run(arguments: Sequence[str] | None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--contents", nargs="+", required=True, metavar="PHOTO")
    parser.add_argument("--styles", nargs="+", required=True, metavar="PAINTING")
    parser.add_argument("--out", type=Path, required=True, metavar="RESULT.json")
    parser.add_argument("--size", type=int, default=256, help="pixels of a side of a picture; default %(default)s")
    given = parser.parse_args(arguments)
    contents, styles = (squares(sources, given.size) for sources in (given.contents, given.styles))
    network, results = load(), []
    for name, options in WAYS.items():
        found = []
        for style in styles:
            pictures = stylize(contents, style, network=network, **options)
            found += [measures(*pair, style) for pair in zip(contents, pictures, strict=True)]
        results.append({"way": name} | _means_where_defined(found))
        print(*(f"{key} {value:.3f}" if key != "way" else value for key, value in results[-1].items()), sep="  ")
    names = {key: [Path(name).name for name in vars(given)[key]] for key in ("contents", "styles")}
    command = "python tools/style_measures.py --contents PHOTO... --styles PAINTING..."
    save_program(given.out, f"{command} --size {given.size}", results, size=given.size, **names)
    return 0


def measures(content: Tensor, picture: Tensor, style: Tensor) -> dict[str, float]:
    """Of a picture (3, H, W); nan where the content has no flat area of that kind."""
    deviation = 255 * _deviation(_grey(content))
    flat, edge = deviation < FLAT, (deviation > EDGE).float()
    away = flat & ~_within(edge, FAR)
    near = flat & _within(edge, NEAR) & ~_within(edge, 3)
    grain = _grey(picture) - _means(_grey(picture), 4)
    smooth, share = _means(picture[None], 2), _means(away.float(), 32)
    # Of flat areas nearby that are far from edges, where there are any.
    expected = _means(smooth * away, 32) / share.clamp(min=1e-4)
    halo = (smooth - expected)[..., (near & (share > 0.02))[0, 0]]
    palette, wanted = (torch.cov(x.flatten(1)) for x in (picture, style))
    return {
        "grain": 255 * grain[away].square().mean().sqrt().item(),
        "halo": 255 * halo.square().mean().sqrt().item(),
        "palette": ((palette - wanted).norm() / wanted.norm()).item(),
        "content": torch.corrcoef(torch.stack([_edges(content), _edges(picture)]))[0, 1].item(),
    }


def _grey(x: Tensor) -> Tensor:
    return x.mean(0)[None, None]


def _means(x: Tensor, radius: int) -> Tensor:
    return functional.avg_pool2d(x, 2 * radius + 1, 1, radius, count_include_pad=False)


def _deviation(x: Tensor) -> Tensor:
    return (_means(x.square(), 4) - _means(x, 4).square()).clamp(min=0).sqrt()


def _within(mask: Tensor, radius: int) -> Tensor:
    return functional.max_pool2d(mask, 2 * radius + 1, 1, radius) > 0


def _edges(x: Tensor) -> Tensor:
    grey = x.mean(0)
    return functional.avg_pool2d((grey.diff(dim=0)[:, 1:].abs() + grey.diff(dim=1)[1:].abs())[None], 8).flatten()


def _means_where_defined(found: list[dict[str, float]]) -> dict[str, float]:
    """Of each measure over the pictures that have it; without those that none has."""
    values = {key: [each[key] for each in found if not math.isnan(each[key])] for key in found[0]}
    return {key: sum(kept) / len(kept) for key, kept in values.items() if kept}


if __name__ == "__main__":
    sys.exit(main())
