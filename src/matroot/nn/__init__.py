"""Layers over the functional core."""

from .convert import convert_decorrelated_batchnorm as convert_decorrelated_batchnorm
from .decorrelated import DecorrelatedBatchNorm1d as DecorrelatedBatchNorm1d
from .decorrelated import DecorrelatedBatchNorm2d as DecorrelatedBatchNorm2d
from .decorrelated import DecorrelatedBatchNorm3d as DecorrelatedBatchNorm3d
from .fold import fold as fold
from .zca import ZCAWhitening as ZCAWhitening
