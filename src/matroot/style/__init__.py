"""Pictures in the style of other pictures."""

# ruff: noqa: E402, since what is missing is said first
from .._extras import require as _require

_require("style", "safetensors")

from .network import StyleNetwork as StyleNetwork
from .statistics import StyleStatistics as StyleStatistics
from .statistics import blend as blend
from .transfer import apply_style as apply_style
from .transfer import style_statistics as style_statistics
from .transfer import stylize as stylize
from .transforms import OptimalTransport as OptimalTransport
from .transforms import Whitening as Whitening
from .weights import WeightsError as WeightsError
from .weights import load as load
from .weights import save as save
