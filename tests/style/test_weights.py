"""Files of weights."""

import pytest
import torch
from safetensors.torch import load_file, save_file

from matroot import _safetensors
from matroot.style import StyleNetwork, WeightsError, load, save, weights


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "weights.safetensors"
    save(StyleNetwork((4, 5, 6), eps=2e-5), path, {"licence": "as stated"})
    return path


def test_round_trip(tmp_path):
    network = StyleNetwork((4, 5, 6), eps=2e-5)
    save(network, tmp_path / "w", dtype=torch.float32)
    found = load(tmp_path / "w")
    assert (found.channels, found.eps) == ((4, 5, 6), 2e-5)
    assert not found.training
    images = torch.rand(1, 3, 16, 16)
    assert torch.equal(found(images), network(images))


def test_half_precision_unless_told_otherwise(file):
    assert {tensor.dtype for tensor in load_file(file).values()} == {torch.float16}
    parameters = list(load(file).parameters())
    assert {p.dtype for p in parameters} == {torch.float32}
    assert not any(p.requires_grad for p in parameters)


def test_the_default_network_is_a_small_file(tmp_path):
    save(StyleNetwork(), tmp_path / "w")
    assert (tmp_path / "w").stat().st_size < 1e6


def test_what_the_file_says(file):
    metadata, _ = _safetensors.read(file, "weights")
    numbers = {"channels": "[4, 5, 6]", "eps": "2e-05"}
    assert metadata == {"format": "matroot-style 3", "licence": "as stated"} | numbers


def test_written_whole_or_not_at_all(file, fill_disk):
    before = file.read_bytes()
    fill_disk()
    with pytest.raises(WeightsError, match="No space left"):
        save(StyleNetwork((2, 2, 2)), file)
    assert file.read_bytes() == before
    assert list(file.parent.iterdir()) == [file]


def test_no_packaged_weights(monkeypatch, tmp_path):
    monkeypatch.setattr(weights, "PACKAGED", tmp_path / "none")
    with pytest.raises(WeightsError, match="without weights"):
        load()


def test_packaged_weights(monkeypatch, file):
    monkeypatch.setattr(weights, "PACKAGED", file)
    assert load().channels == (4, 5, 6)


def test_files_that_are_no_weights(tmp_path, file):
    path = tmp_path / "other"
    with pytest.raises(WeightsError, match=f"no file {path}"):
        load(path)
    with pytest.raises(WeightsError, match=r"cannot read|no whole safetensors"):
        load(tmp_path)
    path.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(WeightsError, match="no whole safetensors file"):
        load(path)
    save_file({"x": torch.zeros(2)}, path)
    with pytest.raises(WeightsError, match="its format is none"):
        load(path)
    save_file({"x": torch.zeros(2)}, path, {"format": "matroot-weights 1"})
    with pytest.raises(WeightsError, match="its format is 'matroot-weights 1'"):
        load(path)


@pytest.mark.parametrize(
    "metadata", [{}, {"channels": "[4, 5]"}, {"channels": "nonsense"}, {"channels": "7"}, {"channels": "[4, 5, 8]"}]
)
def test_damaged_metadata(tmp_path, file, metadata):
    path = tmp_path / "other"
    save_file(load_file(file), path, {"format": "matroot-style 3", "eps": "1e-4", **metadata})
    with pytest.raises(WeightsError, match="is damaged"):
        load(path)
