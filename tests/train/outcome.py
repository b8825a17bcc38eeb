"""What a run leaves behind, for comparison with another."""

import json

import torch
from safetensors.torch import load_file


def outcome(folder):
    """All that a run leaves behind, but for times."""
    last = torch.load(folder / "last.pt", weights_only=True)
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    for row in (*rows, *last["history"]):
        for name in ("seconds", "images_per_second", "step_ms"):
            del row[name]
    assert rows == last["history"]
    result = json.loads((folder / "run.json").read_text())["result"]
    del result["seconds"], result["step_ms"]
    return last, result, load_file(folder / "best.safetensors")


def assert_same(found, expected):
    """The same dictionaries, numbers and bits of tensors."""
    if isinstance(found, dict):
        assert found.keys() == expected.keys()
        for name in found:
            assert_same(found[name], expected[name])
    elif isinstance(found, list | tuple):
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    elif isinstance(found, torch.Tensor):
        assert found.dtype == expected.dtype
        assert torch.equal(found, expected)
    else:
        assert found == expected
