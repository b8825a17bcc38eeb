"""Layers over the matrix roots."""

from .covariance import covariance as covariance
from .covariance_pool import CovariancePool as CovariancePool
from .second_order_head import SecondOrderHead as SecondOrderHead
from .temporal import TemporalAttention as TemporalAttention
from .temporal import TemporalCovariancePool as TemporalCovariancePool
from .triangle import triangle as triangle
from .triangle import untriangle as untriangle
from .whiten_color import WhitenColor as WhitenColor
from .whiten_color import whiten_color as whiten_color
