"""Files of weights, read whole, and written in the same bytes each time."""

import json
from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from ._terminal import CommandError


class WeightsError(CommandError):
    """What is wrong with a file of weights, or with a network that is to be saved."""


def read(path: Path | str, expected: str) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Metadata and tensors of a safetensors file.

    WeightsError if it cannot be read; ``expected`` says what should be there.
    """
    try:
        with safe_open(path, framework="pt") as file:
            return file.metadata() or {}, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError as error:
        raise WeightsError(f"there is no file {path}; expected {expected}") from error
    except OSError as error:
        raise WeightsError(f"cannot read {path}: {error.strerror or error}") from error
    except SafetensorError as error:
        raise WeightsError(f"{path} is no whole safetensors file: {error}") from error


def to_bytes(tensors: dict[str, Tensor], metadata: Mapping[str, str]) -> bytes:
    """A safetensors file. Equal tensors and metadata give the same bytes, unlike those of safetensors.

    That writes the metadata in an order of chance. A file is the length of its header in 8 bytes, the header as JSON,
    padded to a multiple of 8, and the tensors, whose places the header counts from there.
    """
    data = save(tensors, dict(metadata))
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end]) | {"__metadata__": dict(sorted(metadata.items()))}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + data[end:]
