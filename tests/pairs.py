"""Every method with every gradient that can follow it."""

import torch
from torch import Tensor

from matroot import preset, presets
from matroot._registry import GRADIENTS, METHODS
from matroot.gradients import Gradient
from matroot.methods import Method

from .matrices import FUNCTIONS


def _allowed(gradient: Gradient, method: Method) -> bool:
    try:
        gradient.require(method)
    except ValueError:
        return False
    return True


NAMED = {
    f"{method.name}/{gradient.name}": (method, gradient)
    for method in (m() for m in METHODS.values())
    for gradient in (g() for g in GRADIENTS.values())
    if _allowed(gradient, method)
}
for _name in presets():
    _pair = preset(_name)
    if (_pair["method"], _pair["gradient"]) not in NAMED.values():
        NAMED[_name] = _pair["method"], _pair["gradient"]

CASES = [
    (name, function)
    for name, (method, _) in NAMED.items()
    for function in ("sqrtm", "invsqrtm", "roots")
    if function == "sqrtm" or method.has_inverse
]
"""(pair name, function name) for all that is allowed."""

PLAIN_EIGH = "eigen/unrolled"
"""The baseline whose gradient is not finite at repeated eigenvalues."""


def through_eigenvectors(pair: str) -> bool:
    """Whether the gradient depends on distances between eigenvalues."""
    return pair == PLAIN_EIGH or "eigen-" in pair


def evaluate(pair: str, name: str, A: Tensor, **kwargs) -> Tensor:
    method, gradient = NAMED[pair]
    return FUNCTIONS[name](A, method, gradient=gradient, **kwargs)


def value_and_gradient(pair: str, name: str, A: Tensor, **kwargs) -> tuple[Tensor, Tensor]:
    """The value, and the gradient of a weighted sum of it, the same weights for every matrix; ``A`` stays in place."""
    A = A.detach().requires_grad_()
    value = evaluate(pair, name, A, **kwargs)
    n = A.shape[-1]
    weights = torch.cos(torch.arange(n * n, dtype=torch.float64, device=A.device)).reshape(n, n).to(A.dtype)
    (gradient,) = torch.autograd.grad((weights * value).sum().real, A)
    return value.detach(), gradient
