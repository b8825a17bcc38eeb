"""What is compared: matroot's default, the paper's presets, PyTorch's own ways, and SciPy."""

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

SAME_DECOMPOSITION = ("svd-clip", "svd-taylor", "svd-pade", "svd-pi")
"""Presets with different gradients after the same decomposition, which is most of the work."""

HEAVY = 1 << 30
"""Multiplications of one matrix product of a whole batch above which a CPU takes seconds."""

VALUE_ALONE = "the value alone: it has no gradient"

OUTPUTS = {"root": matroot.sqrtm, "inverse": matroot.invsqrtm, "both": matroot.roots}

SOLVERS: dict[str, Any] = {
    "minimax+krylov": {"method": matroot.Minimax(), "gradient": matroot.Krylov()},
    "minimax+smith": {"method": matroot.Minimax(), "gradient": matroot.Smith()},
    # By ordinary operations, in the dtype: on the CPU ``Eigen`` decomposes ill-conditioned float32 matrices in float64.
    "eigh": {"method": matroot.Eigen(), "gradient": matroot.Exact(), "backend": "torch"},
    "mpa-lya": matroot.preset("mpa-lya"),
    "mtp-lya": matroot.preset("mtp-lya"),
    "ns": matroot.preset("ns"),
    "ns converged": {"method": matroot.NewtonSchulz(iterations=30), "gradient": matroot.Lyapunov(iterations=30)},
}
"""Methods with gradients, by the names that results have for them."""


@dataclass(frozen=True)
class Entry:
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

    def why_left_out(self, device: str, batch: int, n: int) -> str | None:
        """Why it is not measured with this many matrices of this size; None if it is."""
        work = batch * n**3
        if self.name == "pi" and work > 1 << 26:
            return "it keeps a matrix for every eigenvector"
        if self.name in SAME_DECOMPOSITION and device == "cpu" and work > HEAVY:
            return "on the CPU it takes as long as svd: the same decomposition, another gradient"
        if self.name == "scipy":
            return why_no_scipy(device) or (
                "SciPy takes matrices one by one, and is measured on small batches" if work > 1 << 24 else None
            )
        return None


def all_solvers(output: str) -> list[Entry]:
    """The default, the presets that have this output ("root", "inverse", "both"), and ``torch.linalg``'s ways."""
    function = OUTPUTS[output]
    found = [auto(output)]
    for name in matroot.presets():
        preset = matroot.preset(name)
        if output == "root" or preset["method"].has_inverse:
            found.append(Entry(name, partial(function, **preset), preset["method"]))
    found += [eigh(output), Entry("eigh autograd", partial(_through_eigh, output), Eigen())]
    built_in = getattr(torch.linalg, "matrix_sqrth", None)  # from torch 2.14 on
    if output == "root" and built_in is not None:
        found.append(Entry("matrix_sqrth", built_in, Eigen()))
    return [*found, scipy()] if output == "root" else found


def auto(output: str) -> Entry:
    """``matroot`` without arguments; both methods that it may choose have the same bound."""
    return Entry("auto", OUTPUTS[output], Minimax(), exact=True)


def eigh(output: str) -> Entry:
    """``torch.linalg.eigh`` with the exact gradient."""
    if output == "both":
        return Entry("eigh", EighRoots.apply, Eigen(), exact=True)
    return Entry("eigh", partial(EighRoot.apply, output == "inverse"), Eigen(), exact=True)


def paper() -> Entry:
    """The paper's scheme, written plainly."""
    return Entry("paper", PaperRoot.apply, matroot.Pade())


def scipy() -> Entry:
    """``scipy.linalg.sqrtm``, the value alone."""
    return Entry("scipy", scipy_root, differentiable=False)


def scipy_root(A: Tensor) -> Tensor:
    """The root of matrices on the CPU."""
    from scipy.linalg import sqrtm

    with warnings.catch_warnings():
        # It warns of singular matrices; the measured error says how much that matters.
        warnings.simplefilter("ignore")
        return torch.real(torch.as_tensor(sqrtm(A.detach().numpy())))


def why_no_scipy(device: str) -> str | None:
    """Why SciPy is not measured; None if it is."""
    if device != "cpu":
        return "SciPy computes on the CPU"
    return None if find_spec("scipy") else "SciPy is not installed"


def _through_eigh(output: str, A: Tensor) -> Any:
    values, U = torch.linalg.eigh(A)
    powers = {"root": (0.5,), "inverse": (-0.5,), "both": (0.5, -0.5)}[output]
    roots = tuple((U * (values**power)[..., None, :]) @ U.mT for power in powers)
    return roots[0] if len(roots) == 1 else roots
