"""Who takes part: the product, the paper's presets, and PyTorch's own ways."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

import matroot

from ...methods import Eigen, Method, Minimax
from ..peers import EighRoot, EighRoots, PaperRoot

OUTPUTS = {"root": matroot.sqrtm, "inverse": matroot.invsqrtm, "both": matroot.roots}


@dataclass(frozen=True)
class Contestant:
    """A named function of matrices, with what theory says about it.

    method: the one whose bound holds for the value; None: there is no bound.
    exact: whether the gradient is exact up to rounding.
    """

    name: str
    function: Callable[[Tensor], Any]
    method: Method | None = None
    exact: bool = False


def everyone(output: str) -> list[Contestant]:
    """The default, the presets that have this output ("root", "inverse", "both"), and ``torch.linalg``'s ways."""
    function = OUTPUTS[output]
    found = [auto(output)]
    for name in matroot.presets():
        preset = matroot.preset(name)
        if output == "root" or preset["method"].has_inverse:
            found.append(Contestant(name, partial(function, **preset), preset["method"]))
    found += [eigh(output), Contestant("eigh autograd", partial(_through_eigh, output), Eigen())]
    built_in = getattr(torch.linalg, "matrix_sqrth", None)  # of newer versions
    if output == "root" and built_in is not None:
        found.append(Contestant("matrix_sqrth", built_in, Eigen()))
    return found


def auto(output: str) -> Contestant:
    """``matroot`` without arguments; both methods that it may choose have the same bound."""
    return Contestant("auto", OUTPUTS[output], Minimax(), exact=True)


def eigh(output: str) -> Contestant:
    """``torch.linalg.eigh`` with the exact gradient."""
    if output == "both":
        return Contestant("eigh", EighRoots.apply, Eigen(), exact=True)
    return Contestant("eigh", partial(EighRoot.apply, output == "inverse"), Eigen(), exact=True)


def paper() -> Contestant:
    """The paper's scheme, written plainly."""
    return Contestant("paper", PaperRoot.apply, matroot.Pade())


def _through_eigh(output: str, A: Tensor) -> Any:
    values, U = torch.linalg.eigh(A)
    powers = {"root": (0.5,), "inverse": (-0.5,), "both": (0.5, -0.5)}[output]
    roots = tuple((U * (values**power)[..., None, :]) @ U.mT for power in powers)
    return roots[0] if len(roots) == 1 else roots
