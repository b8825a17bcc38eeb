"""Files of weights, read whole."""

from pathlib import Path

from safetensors import SafetensorError, safe_open
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
