"""Names -> networks."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import nn

from .._names import valid_names
from ..gradients import Gradient
from ..methods import Method
from .resnet_dbn import resnet18_dbn, resnet50_dbn
from .resnet_gcp import resnet18_gcp, resnet50_gcp
from .so_vit import so_vit_7, so_vit_10, so_vit_14, so_vit_19
from .tea import tea50_tcp


@dataclass(frozen=True)
class Images:
    """What a network's images are in the published runs: their size, and the mean and deviation of its channels."""

    size: int
    mean: tuple[float, float, float]
    std: tuple[float, float, float]


CIFAR = Images(32, (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010))
IMAGENET = Images(224, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


@dataclass(frozen=True)
class Network:
    """A builder, and what is known of its networks before they are built."""

    build: Callable[..., nn.Module]
    images: Images
    classifier: tuple[str, ...] = ("fc",)
    """Names of the layers that ``reset_classifier`` replaces."""
    first_conv: str = "conv1"

    @property
    def name(self) -> str:
        return self.build.__name__

    @property
    def num_classes(self) -> int:
        """Of the published run: the builder's default."""
        return inspect.signature(self.build).parameters["num_classes"].default

    @property
    def options(self) -> tuple[str, ...]:
        """Its keywords, those of :func:`create` first."""
        return tuple(inspect.signature(self.build).parameters)


NETWORKS: dict[str, Network] = {
    network.name: network
    for network in (
        Network(resnet18_dbn, CIFAR),
        Network(resnet50_dbn, CIFAR),
        Network(resnet50_gcp, IMAGENET),
        Network(resnet18_gcp, CIFAR),
        Network(tea50_tcp, IMAGENET, classifier=("classifier",), first_conv="stem.0"),
        *(
            Network(build, IMAGENET, ("head.first_order", "head.second_order"), first_conv="tokens.convolution")
            for build in (so_vit_7, so_vit_10, so_vit_14, so_vit_19)
        ),
    )
}


def list_models() -> list[str]:
    """Names of all networks, for :func:`create`; timm has them with ``matroot_`` before.

    Returns:
        The names.

    Example:
        >>> from matroot.models import list_models
        >>> "resnet18_dbn" in list_models()
        True
    """
    return list(NETWORKS)


def find(name: str) -> Network:
    """The network of a name.

    Args:
        name: one of :func:`list_models`.

    Returns:
        The builder, and what is known of its networks.

    Raises:
        ValueError: for an unknown name, naming the nearest, if one is near, and all.
    """
    if name not in NETWORKS:
        raise ValueError(f"unknown network {name!r}; {valid_names(name, NETWORKS)}")
    return NETWORKS[name]


def create(
    name: str,
    num_classes: int | None = None,
    preset: str = "default",
    method: str | Method | None = None,
    gradient: str | Gradient | None = None,
    **options: Any,
) -> nn.Module:
    """One of the paper's networks, with new weights.

    The attribute ``arguments`` of the network has all arguments, as JSON can hold them.

    Args:
        name: one of :func:`list_models`.
        num_classes: number of logits; None: as published.
        preset: how its roots are computed: ``default`` is matroot's own choice, exact up to rounding; one of
            :func:`matroot.presets`; or ``baseline``: the same network without the root.
        method: for roots, in the place of the preset's, see :func:`matroot.sqrtm`.
        gradient: for their derivatives, in the place of the preset's, see :func:`matroot.sqrtm`.
        **options: of the network's own function, such as ``in_channels=1``.

    Returns:
        The network, in training mode.

    Raises:
        TypeError: for an option the network does not have.
        ValueError: for an unknown name or preset and for values that do not fit.

    Example:
        >>> from matroot.models import create
        >>> model = create("resnet18_dbn", num_classes=10, preset="mpa-lya", width=8)
        >>> model(torch.randn(4, 3, 32, 32)).shape
        torch.Size([4, 10])
    """
    network = find(name)
    for option in options:
        if option not in network.options:
            raise TypeError(f"{name} has no option {option!r}; {valid_names(option, network.options)}")
    if num_classes is not None:
        options["num_classes"] = num_classes
    return network.build(preset=preset, method=method, gradient=gradient, **options)
