"""The paper's networks."""

# ruff: noqa: E402, since what is missing is said first
from importlib.util import find_spec as _find_spec

from .._extras import require as _require

_require("training", "torchvision", "safetensors")

from . import _torchvision as _torchvision  # before all that imports torchvision
from ._presets import preset_names as preset_names
from ._presets import set_preset as set_preset
from ._registry import create as create
from ._registry import list_models as list_models
from .resnet_dbn import resnet18_dbn as resnet18_dbn
from .resnet_dbn import resnet50_dbn as resnet50_dbn
from .resnet_gcp import resnet18_gcp as resnet18_gcp
from .resnet_gcp import resnet50_gcp as resnet50_gcp
from .so_vit import so_vit_7 as so_vit_7
from .so_vit import so_vit_10 as so_vit_10
from .so_vit import so_vit_14 as so_vit_14
from .so_vit import so_vit_19 as so_vit_19
from .style_exchange import StyleExchange as StyleExchange
from .style_exchange import style_exchange as style_exchange
from .tea import tea50_tcp as tea50_tcp
from .weights import WeightsError as WeightsError
from .weights import load as load
from .weights import load_weights as load_weights
from .weights import save as save

if _find_spec("timm") is not None:
    from . import _timm as _timm
