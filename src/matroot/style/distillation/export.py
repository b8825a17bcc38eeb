"""The weights that pictures are made with, as one small file that says where they come from."""

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import torch
from safetensors.torch import save as to_bytes

from ..._files import write_whole
from ..network import StyleNetwork
from .recipe import Recipe

FORMAT = "matroot-style 1"


@dataclass(frozen=True)
class Origin:
    """Where weights come from, in words: all of it is written into their file."""

    training_data: str
    licence: str
    command: str
    recipe: Recipe


def export(network: StyleNetwork, path: Path, origin: Origin, steps: int) -> None:
    """Write the weights in half precision, whole or not at all; OSError if they cannot be.

    The metadata are strings: ``format``, ``channels`` and ``eps`` of the network, ``steps``, ``date``, and the fields
    of the origin; lists and the recipe as JSON.
    """
    tensors = {
        name: torch.empty(tensor.shape, dtype=torch.float16).copy_(tensor)
        for name, tensor in network.state_dict().items()
    }
    write_whole(path, to_bytes(tensors, _metadata(network, origin, steps)))


def _metadata(network: StyleNetwork, origin: Origin, steps: int) -> dict[str, str]:
    return {
        "format": FORMAT,
        "channels": json.dumps(network.channels),
        "eps": repr(network.eps),
        "training_data": origin.training_data,
        "licence": origin.licence,
        "steps": str(steps),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": origin.command,
        "recipe": json.dumps(asdict(origin.recipe)),
    }
