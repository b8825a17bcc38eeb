"""The networks under timm's names: ``timm.create_model("matroot_resnet18_dbn", num_classes=10)``.

timm reads ``default_cfgs`` of the module whose functions are registered.
"""

from collections.abc import Callable
from typing import Any

from timm.models import generate_default_cfgs, register_model, resolve_pretrained_cfg
from torch import nn

from ._registry import NETWORKS, Network, create

_RENAMED = {
    "in_chans": "in_channels",
    "img_size": "image_size",
    "drop_rate": "dropout",
    "drop_path_rate": "drop_path",
}
"""timm's words for options of these networks."""


def _default_cfg(network: Network) -> dict[str, Any]:
    images, classifier = network.images, network.classifier
    return {
        "input_size": (3, images.size, images.size),
        "mean": images.mean,
        "std": images.std,
        "crop_pct": 1.0 if images.size < 64 else 0.875,
        "num_classes": network.num_classes,
        "first_conv": network.first_conv,
        "classifier": classifier[0] if len(classifier) == 1 else classifier,
    }


default_cfgs = generate_default_cfgs({f"matroot_{name}": _default_cfg(net) for name, net in NETWORKS.items()})


def _entrypoint(network: Network) -> Callable[..., nn.Module]:
    def build(
        pretrained: bool = False,
        pretrained_cfg: Any = None,
        pretrained_cfg_overlay: dict[str, Any] | None = None,
        cache_dir: str | None = None,
        **options: Any,
    ) -> nn.Module:
        if pretrained:
            raise ValueError(
                f"there are no published weights of {network.name}; matroot.models.load_weights reads your own"
            )
        cfg = resolve_pretrained_cfg(build.__name__, pretrained_cfg, pretrained_cfg_overlay).to_dict()
        options = {"num_classes": cfg["num_classes"], **options}
        model = create(network.name, **_translated(options, network))
        vars(model).update(pretrained_cfg=cfg, default_cfg=cfg)
        return model

    build.__name__ = build.__qualname__ = f"matroot_{network.name}"
    build.__doc__ = network.build.__doc__
    return build


def _translated(options: dict[str, Any], network: Network) -> dict[str, Any]:
    """Options in this library's words; those that switch off what the network has not are left out."""
    translated = {}
    for option, value in options.items():
        own = _RENAMED.get(option, option)
        # timm's training script always says drop_rate=0.
        if own in network.options or not (option in _RENAMED and value == 0):
            translated[own] = value
    return translated


for _network in NETWORKS.values():
    register_model(_entrypoint(_network))
