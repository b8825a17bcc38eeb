"""Backward rules, one frozen description per file."""

from ._base import Gradient as Gradient
from .eigen_clip import EigenClip as EigenClip
from .eigen_pade import EigenPade as EigenPade
from .eigen_power import EigenPower as EigenPower
from .eigen_taylor import EigenTaylor as EigenTaylor
from .exact import Exact as Exact
from .implicit import Implicit as Implicit
from .krylov import Krylov as Krylov
from .lyapunov import Lyapunov as Lyapunov
from .smith import Smith as Smith
from .unrolled import Unrolled as Unrolled
