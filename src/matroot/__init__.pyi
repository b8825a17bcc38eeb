# The public names; __init__.py reads this file and imports a name when it is first used.
from . import coefficients as coefficients
from . import gradients as gradients
from . import methods as methods
from . import metrics as metrics
from . import models as models
from . import nn as nn
from . import style as style
from ._api import Roots as Roots
from ._api import invsqrtm as invsqrtm
from ._api import roots as roots
from ._api import sqrtm as sqrtm
from ._counting import Counts as Counts
from ._counting import count_operations as count_operations
from ._dispatch import Plan as Plan
from ._dispatch import choose as choose
from ._registry import preset as preset
from ._registry import presets as presets
from ._residual import residual as residual
from .gradients import EigenClip as EigenClip
from .gradients import EigenPade as EigenPade
from .gradients import EigenPower as EigenPower
from .gradients import EigenTaylor as EigenTaylor
from .gradients import Exact as Exact
from .gradients import Implicit as Implicit
from .gradients import Krylov as Krylov
from .gradients import Lyapunov as Lyapunov
from .gradients import Smith as Smith
from .gradients import Unrolled as Unrolled
from .methods import Eigen as Eigen
from .methods import Minimax as Minimax
from .methods import NewtonSchulz as NewtonSchulz
from .methods import Pade as Pade
from .methods import PowerIteration as PowerIteration
from .methods import Taylor as Taylor

__version__: str
