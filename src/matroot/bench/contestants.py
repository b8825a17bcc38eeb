"""Who takes part: the product, the paper's presets, PyTorch's own ways, and SciPy."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

import matroot

from ..methods import Eigen, Method, Minimax
from .baselines import EighRoot, EighRoots, PaperRoot

ALIKE = ("svd-clip", "svd-taylor", "svd-pade", "svd-pi")
"""Gradients after the same decomposition, which is most of the work."""

HEAVY = 1 << 30
"""Multiplications of one product of a whole batch from which on a CPU takes seconds."""

VALUE_ALONE = "the value alone: it has no gradient"

OUTPUTS = {"root": matroot.sqrtm, "inverse": matroot.invsqrtm, "both": matroot.roots}


@dataclass(frozen=True)
class Contestant:
    """A named function of matrices, with what theory says about it.

    method: the one whose bound holds for the value; None: there is no bound.
    exact: whether the gradient is exact up to rounding.
    differentiable: whether there is a gradient at all.
    """

    name: str
    function: Callable[[Tensor], Any]
    method: Method | None = None
    exact: bool = False
    differentiable: bool = True

    def obstacle(self, device: str, batch: int, n: int) -> str | None:
        """Why it does not take part with this many matrices of this size; None if it does."""
        work = batch * n**3
        if self.name == "pi" and work > 1 << 26:
            return "it keeps a matrix for every eigenvector"
        if self.name in ALIKE and device == "cpu" and work > HEAVY:
            return "on the CPU it takes as long as svd: the same decomposition, another gradient"
        if self.name == "scipy":
            return scipy_obstacle(device) or (
                "SciPy is for small sizes, where it has a chance" if work > 1 << 24 else None
            )
        return None


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
    return [*found, scipy()] if output == "root" else found


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


def scipy() -> Contestant:
    """``scipy.linalg.sqrtm``, the value alone."""
    return Contestant("scipy", scipy_root, differentiable=False)


def scipy_root(A: Tensor) -> Tensor:
    """The root of matrices on the CPU."""
    from scipy.linalg import sqrtm

    with warnings.catch_warnings():
        # It says so where a matrix is singular; the error says how much that matters.
        warnings.simplefilter("ignore")
        return torch.real(torch.as_tensor(sqrtm(A.detach().numpy())))


def scipy_obstacle(device: str) -> str | None:
    """Why SciPy does not take part; None if it does."""
    if device != "cpu":
        return "SciPy computes on the CPU"
    return None if find_spec("scipy") else "SciPy is not installed"


def _through_eigh(output: str, A: Tensor) -> Any:
    values, U = torch.linalg.eigh(A)
    powers = {"root": (0.5,), "inverse": (-0.5,), "both": (0.5, -0.5)}[output]
    roots = tuple((U * (values**power)[..., None, :]) @ U.mT for power in powers)
    return roots[0] if len(roots) == 1 else roots
