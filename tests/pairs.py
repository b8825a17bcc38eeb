"""Every method with every gradient that can follow it."""

from matroot import preset, presets
from matroot._registry import GRADIENTS, METHODS
from matroot.gradients import Gradient
from matroot.methods import Method


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
