"""Layers over the matrix roots."""

from .convert import convert_decorrelated_batchnorm as convert_decorrelated_batchnorm
from .covariance import covariance as covariance
from .covariance_pool import CovariancePool as CovariancePool
from .decorrelated import DecorrelatedBatchNorm as DecorrelatedBatchNorm
from .decorrelated import DecorrelatedBatchNorm1d as DecorrelatedBatchNorm1d
from .decorrelated import DecorrelatedBatchNorm2d as DecorrelatedBatchNorm2d
from .decorrelated import DecorrelatedBatchNorm3d as DecorrelatedBatchNorm3d
from .fold import fold as fold
from .second_order_head import SecondOrderHead as SecondOrderHead
from .statistics import update_statistics as update_statistics
from .temporal import TemporalAttention as TemporalAttention
from .temporal import TemporalCovariancePool as TemporalCovariancePool
from .triangle import triangle as triangle
from .triangle import untriangle as untriangle
from .whiten_color import Coloring as Coloring
from .whiten_color import WhitenColor as WhitenColor
from .whiten_color import coloring as coloring
from .whiten_color import whiten_color as whiten_color
from .zca import ZCAWhitening as ZCAWhitening
