"""The script that makes the pictures of the documentation."""

import runpy
from pathlib import Path

import pytest
import torch
from PIL import Image

from matroot.style import save, stylize
from matroot.style.network import StyleNetwork

SCRIPT = runpy.run_path(str(Path(__file__).parent.parent / "tools/style_gallery.py"))


@pytest.fixture
def network():
    torch.manual_seed(0)
    return StyleNetwork((4, 5, 6))


def images(count, seed):
    return torch.rand(count, 3, 32, 32, generator=torch.Generator().manual_seed(seed))


def test_cells_are_the_transfers_they_say(network):
    contents, styles = images(2, 1), images(3, 2)
    rows = SCRIPT["gallery"](network, contents, styles)
    assert [len(row) for row in rows] == [4, 4, 4]
    torch.testing.assert_close(rows[2][3][0], stylize(contents[1], styles[2], network=network))
    rows = SCRIPT["strengths"](network, contents, styles)
    torch.testing.assert_close(rows[1][2][0], network(contents)[1])
    assert torch.equal(rows[1][1][0], styles[1])
    rows = SCRIPT["scales"](network, contents, styles)
    assert [text for _, text in rows[0][2:]] == ["--scales 1", "--scales 2", "--scales 3"]
    torch.testing.assert_close(rows[1][3][0], stylize(contents[1], styles[1], scales=2, network=network))


def test_roots_differ_by_what_the_captions_say(network):
    (row,) = SCRIPT["roots"](network, images(1, 1), images(1, 2))
    texts = [text for _, text in row]
    assert [text.partition(",")[0] for text in texts[2::2]] == ["transport", "whitening"]
    for k in (2, 4):
        difference = 255 * (row[k][0] - row[k + 1][0]).abs()
        # Degree 5 on covariances of condition 1e4 has errors of a few percent, and the network is one of noise.
        assert 0 < difference.max() < 10
        assert texts[k + 1] == f"mpa-lya: differs by {difference.mean():.1f}, at most {difference.max():.0f}"


def test_pictures_are_placed_and_rows_without_text_are_close():
    red = torch.tensor([1.0, 0, 0])[:, None, None].expand(3, 40, 40)
    page = SCRIPT["drawn"]([[(None, ""), (red, "")], [(red, "text"), (red, "")]])
    gap, line = SCRIPT["GAP"], SCRIPT["LINE"]
    assert page.size == (2 * 40 + 3 * gap, 2 * 40 + 3 * gap + line)
    assert page.getpixel((gap, gap)) == (255, 255, 255)
    assert page.getpixel((gap + 40 + gap, gap)) == (255, 0, 0)
    assert page.getpixel((gap, gap + 40 + gap)) == (255, 0, 0)
    below = page.crop((gap, 2 * 40 + 2 * gap, gap + 40, page.height))
    assert below.convert("L").getextrema()[0] < 128


def test_the_command(network, tmp_path, capsys):
    save(network, tmp_path / "weights.safetensors")
    for name, image in zip(("content", "style"), images(2, 3), strict=True):
        pixels = (255 * image).byte().permute(1, 2, 0).numpy()
        Image.fromarray(pixels).save(tmp_path / f"{name}.png")
    arguments = ["--contents", str(tmp_path / "content.png"), "--styles", str(tmp_path / "style.png")]
    arguments += ["--weights", str(tmp_path / "weights.safetensors"), "--out", str(tmp_path / "out"), "--size", "32"]
    assert SCRIPT["main"](arguments) == 0
    written = sorted(path.stem for path in (tmp_path / "out").iterdir())
    assert written == ["gallery", "roots", "scales", "strengths"]
    arguments[1] = str(tmp_path / "missing.png")
    assert SCRIPT["main"](arguments) == 2
    assert "there is no " in capsys.readouterr().err
