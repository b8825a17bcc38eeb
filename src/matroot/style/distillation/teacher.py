"""The teacher: VGG-19 up to relu4_1, whose features judge pictures, and the decoder that inverts it."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..._terminal import CommandError
from ..._tracing import autocast_disabled
from ...backends.triton.cache_folder import keep_cache_folder
from ...nn.whiten_color import whiten_color

SCALES = (("2",), ("5", "9"), ("12", "16"), ("19", "22", "25", "29"))
"""Convolutions that end in relu1_1, relu2_1, relu3_1 and relu4_1. The last of a scale is preceded by pooling."""
ENCODER = ("0", *(name for scale in SCALES for name in scale))
"""The first is 1x1: from RGB in [0, 1] to the colours VGG was trained on."""
DECODER = ("1", "5", "8", "11", "14", "18", "21", "25", "28")
UPSAMPLED = ("1", "14", "21")
"""Convolutions of the decoder after which the picture is twice as large."""
SMALLEST_IMAGE = 16
"""Pixels of a side that leave two for the reflection at relu4_1."""


class TeacherError(CommandError):
    """What is wrong with the teacher's file."""


class Teacher(nn.Module):
    """Frozen encoder and decoder; gradients reach the images only.

    state: ``{"encoder": {"0.weight": ..., ...}, "decoder": {...}}`` as published, in any floating-point type.

    Computes in float32, or in the type of autocast. TeacherError if a tensor is missing, unexpected, or does not fit
    its neighbours.
    """

    def __init__(self, state: Mapping[str, Any]) -> None:
        super().__init__()
        self.encoder = _convolutions(state, "encoder", ENCODER)
        self.decoder = _convolutions(state, "decoder", DECODER)
        ends = self.encoder["0"].in_channels, self.decoder[DECODER[-1]].out_channels
        if ends != (3, 3):
            raise TeacherError(f"the teacher must map RGB to RGB; it reads {ends[0]} channels and gives {ends[1]}")
        features, read = self.encoder[ENCODER[-1]].out_channels, self.decoder[DECODER[0]].in_channels
        if features != read:
            raise TeacherError(f"the teacher's encoder gives {features} channels and its decoder reads {read}")
        self.requires_grad_(False)
        nn.utils.convert_conv2d_weight_memory_format(self, torch.channels_last)
        self._encode: Callable[[Tensor], tuple[Tensor, ...]] = self._encode_eagerly

    def compile_encoder(self) -> None:
        """Let ``torch.compile`` have the encoder: padding then keeps the memory format, and activations are fused."""
        keep_cache_folder()
        self._encode = torch.compile(self._encode_eagerly, dynamic=False)

    def encode(self, images: Tensor) -> tuple[Tensor, ...]:
        """relu1_1, relu2_1, relu3_1, relu4_1 of images (B, 3, H, W) in [0, 1]; at strides 1, 2, 4, 8, sizes rounded up.

        ValueError for images below ``SMALLEST_IMAGE`` pixels.
        """
        if min(images.shape[-2:]) < SMALLEST_IMAGE:
            raise ValueError(f"the teacher needs {SMALLEST_IMAGE} pixels a side, got {tuple(images.shape[-2:])}")
        return self._encode(images)

    def _encode_eagerly(self, images: Tensor) -> tuple[Tensor, ...]:
        # bfloat16 would round pixels to half a grey level and subtract the mean colour from that.
        with autocast_disabled(images):
            x = self.encoder["0"](images.float())
            x = functional.relu(self._filter(self.encoder["2"], x))
        features = [x]
        for scale in SCALES[1:]:
            for name in scale:
                if name == scale[-1]:
                    x = functional.max_pool2d(x, 2, ceil_mode=True)
                x = functional.relu(self._filter(self.encoder[name], x))
            features.append(x)
        return tuple(features)

    def decode(self, features: Tensor) -> Tensor:
        """Images (B, 3, 8h, 8w), about in [0, 1], from features (B, C, h, w) like relu4_1."""
        x = features
        for name in DECODER[:-1]:
            x = functional.relu(self._filter(self.decoder[name], x))
            if name in UPSAMPLED:
                x = functional.interpolate(x, scale_factor=2, mode="nearest")
        return self._filter(self.decoder[DECODER[-1]], x)

    @torch.no_grad()
    def transfer(self, content: Tensor, style: Tensor, strength: float) -> Tensor:
        """The teacher's own picture, in [0, 1]: relu4_1 of content whitened and coloured as that of style, decoded."""
        return self.decode(whiten_color(content, style, alpha=strength)).clamp(0, 1)

    @staticmethod
    def _filter(convolution: nn.Module, x: Tensor) -> Tensor:
        return convolution(functional.pad(x, (1, 1, 1, 1), mode="reflect"))


def load_teacher(path: Path) -> Teacher:
    """The teacher of a file; TeacherError if there is none, it cannot be read, or holds something else."""
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError as error:
        raise TeacherError(f"there is no file {path}; expected the teacher's weights") from error
    except Exception as error:  # torch's errors for foreign files are of every kind
        raise TeacherError(f"{path} is no file of weights: {str(error).partition(chr(10))[0]}") from error
    try:
        return Teacher(state)
    except TeacherError as error:
        raise TeacherError(f"{path}: {error}") from error


def _convolutions(state: Mapping[str, Any], part: str, names: Sequence[str]) -> nn.ModuleDict:
    """The named convolutions, each of which reads what the one before gives."""
    tensors = state.get(part) if isinstance(state, Mapping) else None
    if not isinstance(tensors, Mapping):
        raise TeacherError(f"expected the weights of {part!r} in a table of 'encoder' and 'decoder'")
    expected = {f"{name}.{kind}" for name in names for kind in ("weight", "bias")}
    if tensors.keys() != expected:
        wrong = sorted(map(str, expected ^ tensors.keys()))
        raise TeacherError(f"the {part} must have the tensors {', '.join(sorted(expected))}; wrong: {', '.join(wrong)}")
    layers, channels = nn.ModuleDict(), None
    for name in names:
        weight, bias = tensors[f"{name}.weight"], tensors[f"{name}.bias"]
        side = 1 if name == "0" else 3
        read = weight.shape[1] if channels is None and weight.ndim == 4 else channels
        shape = (*weight.shape[:1], read, side, side)
        if tuple(weight.shape) != shape or bias.shape != weight.shape[:1]:
            raise TeacherError(
                f"{part} {name} must have a weight {shape} and a bias of as many channels as that gives; "
                f"got {tuple(weight.shape)} and {tuple(bias.shape)}"
            )
        layer = nn.utils.skip_init(nn.Conv2d, read, weight.shape[0], side)
        layer.load_state_dict({"weight": weight.float(), "bias": bias.float()})
        layers[name], channels = layer, weight.shape[0]
    return layers
