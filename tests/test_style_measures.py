"""The script that measures transforms of styles."""

import json
import runpy
import sys
from pathlib import Path

import pytest
import torch
from PIL import Image

TOOLS = Path(__file__).parent.parent / "tools"


@pytest.fixture(scope="module")
def script():
    sys.path.insert(0, str(TOOLS))
    try:
        return runpy.run_path(str(TOOLS / "style_measures.py"))
    finally:
        sys.path.remove(str(TOOLS))


@pytest.fixture
def photo():
    """(3, 128, 128): a bright bar in an area without any variation."""
    x = torch.full((3, 128, 128), 0.3)
    x[:, :, 60:68] = 0.9
    return x


def test_a_photo_has_no_grain_no_halo_and_its_own_palette_and_content(script, photo):
    found = script["measures"](photo, photo, photo)
    assert found["grain"] == pytest.approx(0, abs=1e-3)
    assert found["halo"] == pytest.approx(0, abs=1e-3)
    assert found["palette"] == pytest.approx(0, abs=1e-6)
    assert found["content"] == pytest.approx(1, abs=1e-5)


def test_grain_is_the_deviation_of_noise(script, photo):
    noisy = photo + 6 / 255 * torch.randn(1, 128, 128, generator=torch.Generator().manual_seed(0))
    # But for the mean of 81 values, which is taken away.
    assert script["measures"](photo, noisy, photo)["grain"] == pytest.approx(6, rel=0.05)


def test_halo_is_the_difference_next_to_an_edge(script, photo):
    picture = photo.clone()
    picture[:, :, 40:88] += 10 / 255
    found = script["measures"](photo, picture, photo)
    assert found["halo"] == pytest.approx(10, rel=0.2)
    assert found["grain"] < 1


def test_the_command(script, tmp_path, capsys):
    for name in ("photo", "painting"):
        Image.effect_noise((48, 48), 60).convert("RGB").save(tmp_path / f"{name}.png")
    files = [f"--{key}={tmp_path / name}" for key, name in (("contents", "photo.png"), ("styles", "painting.png"))]
    assert script["main"]([*files, "--out", str(tmp_path / "result.json"), "--size", "48"]) == 0
    report = json.loads((tmp_path / "result.json").read_text())
    assert report["contents"] == ["photo.png"]
    assert [found["way"] for found in report["results"]] == list(script["WAYS"])
    # Noise has no flat area.
    assert report["results"][0].keys() == {"way", "palette", "content"}
    assert script["main"]([*files, "--out", str(tmp_path), "--size", "48"]) == 2
