"""Forward approximations, one frozen description per file."""

from ._base import Method as Method
from .eigen import Eigen as Eigen
from .minimax import Minimax as Minimax
from .newton_schulz import NewtonSchulz as NewtonSchulz
from .pade import Pade as Pade
from .power_iteration import PowerIteration as PowerIteration
from .taylor import Taylor as Taylor
