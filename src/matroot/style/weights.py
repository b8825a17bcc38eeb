"""Weights of the network as safetensors files, and those that come with the package."""

import json
from collections.abc import Mapping
from pathlib import Path

import torch

from .. import _safetensors
from .._files import write_whole
from .._safetensors import WeightsError as WeightsError
from .._safetensors import to_bytes
from .network import StyleNetwork

FORMAT = "matroot-style 3"
PACKAGED = Path(__file__).with_name("weights.safetensors")


def save(
    network: StyleNetwork,
    path: Path | str,
    about: Mapping[str, str] | None = None,
    *,
    dtype: torch.dtype = torch.float16,
) -> None:
    """Write the weights of a network, whole or not at all.

    Args:
        network: whose weights.
        path: of the safetensors file.
        about: what else the file says of them, such as their training data and licence.
        dtype: of the weights in the file.

    Raises:
        WeightsError: if the file cannot be written.

    Example:
        >>> from matroot.style import StyleNetwork, load, save
        >>> save(StyleNetwork(channels=(4, 4, 4)), "style.safetensors")
        >>> load("style.safetensors").channels
        (4, 4, 4)
    """
    # A copy each: safetensors takes no layout but rows.
    tensors = {
        name: torch.empty(tensor.shape, dtype=dtype, device="cpu").copy_(tensor)
        for name, tensor in network.state_dict().items()
    }
    made = {name: json.dumps(getattr(network, name)) for name in ("channels", "eps")}
    try:
        write_whole(Path(path), to_bytes(tensors, {**(about or {}), **made, "format": FORMAT}))
    except OSError as error:
        raise WeightsError(f"cannot write {path}: {error.strerror}") from error


def load(path: Path | str | None = None) -> StyleNetwork:
    """The network of a file that :func:`save` wrote, or with the packaged weights.

    Args:
        path: of the file; None: the packaged weights.

    Returns:
        The network, float32, on the CPU, in evaluation mode and frozen.

    Raises:
        WeightsError: saying what was expected, if there is no such file or it is not one of these.

    Example:
        >>> from matroot.style import StyleNetwork, load, save
        >>> save(StyleNetwork(channels=(4, 4, 4), eps=1e-3), "style.safetensors")
        >>> load("style.safetensors").eps
        0.001
    """
    if path is None and not PACKAGED.exists():
        raise WeightsError(
            "this installation comes without weights for style transfer: name a file of them, as --network does"
        )
    path = Path(PACKAGED if path is None else path)
    metadata, tensors = _safetensors.read(path, "weights for style transfer")
    if metadata.get("format") != FORMAT:
        found = repr(metadata["format"]) if "format" in metadata else "none"
        raise WeightsError(f"{path}: expected weights of format {FORMAT!r}; its format is {found}")
    try:
        with torch.device("cpu"):
            network = StyleNetwork(*map(json.loads, (metadata["channels"], metadata["eps"])))
        network.load_state_dict(tensors)
    except (KeyError, RuntimeError, TypeError, ValueError) as error:
        raise WeightsError(f"{path} is damaged: its tensors are not those of the network it names: {error}") from error
    return network.eval().requires_grad_(False)
