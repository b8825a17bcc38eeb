"""Names for methods, gradients and the paper's combinations of them."""

from typing import TypedDict, TypeVar

from .gradients import (
    EigenClip,
    EigenPade,
    EigenPower,
    EigenTaylor,
    Exact,
    Gradient,
    Implicit,
    Krylov,
    Lyapunov,
    Smith,
    Unrolled,
)
from .methods import Eigen, Method, Minimax, NewtonSchulz, Pade, PowerIteration, Taylor
from .methods._base import Output

METHODS: dict[str, type[Method]] = {m.name: m for m in (Taylor, Pade, NewtonSchulz, Minimax, Eigen, PowerIteration)}
GRADIENTS: dict[str, type[Gradient]] = {
    g.name: g
    for g in (Lyapunov, Exact, Implicit, Krylov, Smith, Unrolled, EigenClip, EigenTaylor, EigenPade, EigenPower)
}


class Preset(TypedDict):
    """Keyword arguments for ``sqrtm``, ``invsqrtm`` and ``roots``."""

    method: Method
    gradient: Gradient


PRESETS: dict[str, Preset] = {
    "mpa-lya": Preset(method=Pade(), gradient=Lyapunov()),
    "mtp-lya": Preset(method=Taylor(), gradient=Lyapunov()),
    "ns": Preset(method=NewtonSchulz(), gradient=Unrolled()),
    "ns-lya": Preset(method=NewtonSchulz(form="single"), gradient=Lyapunov()),
    "svd": Preset(method=Eigen(), gradient=Unrolled()),
    "svd-lya": Preset(method=Eigen(), gradient=Lyapunov()),
    "svd-clip": Preset(method=Eigen(), gradient=EigenClip()),
    "svd-pi": Preset(method=Eigen(), gradient=EigenPower()),
    "svd-taylor": Preset(method=Eigen(), gradient=EigenTaylor()),
    "svd-pade": Preset(method=Eigen(), gradient=EigenPade()),
    "pi": Preset(method=PowerIteration(), gradient=Unrolled()),
}


def presets() -> tuple[str, ...]:
    """Names of the paper's combinations of method and gradient."""
    return tuple(PRESETS)


def preset(name: str) -> Preset:
    """Keyword arguments of one of the paper's combinations: ``sqrtm(A, **preset("mpa-lya"))``."""
    return _look_up("preset", name, PRESETS).copy()


def choose_method(method: str | Method) -> Method:
    """The method a caller means."""
    return method if isinstance(method, Method) else _look_up("method", method, METHODS, "auto")()


def choose_gradient(gradient: str | Gradient) -> Gradient:
    """The gradient a caller means."""
    return gradient if isinstance(gradient, Gradient) else _look_up("gradient", gradient, GRADIENTS)()


def require_output(method: Method, output: Output) -> None:
    """Raise if the method does not know what is output."""
    if output != "sqrt" and not method.has_inverse:
        raise ValueError(f"method '{method.name}' has no inverse root; use another method")


def validate(method: str | Method, gradient: str | Gradient | None, output: Output) -> None:
    """Raise what computing ``output`` with this method and gradient would raise, without computing anything."""
    if method == "auto":  # finds a method for every gradient
        if gradient is not None:
            choose_gradient(gradient)
        return
    chosen = choose_method(method)
    choose_gradient(chosen.gradient_name if gradient is None else gradient).require(chosen)
    require_output(chosen, output)


_T = TypeVar("_T")


def _look_up(kind: str, name: object, table: dict[str, _T], *others: str) -> _T:
    if isinstance(name, type):
        raise ValueError(f"{kind} must be a name or an object, got the class; write {name.__name__}(...)")
    if not isinstance(name, str) or name not in table:
        raise ValueError(f"unknown {kind} {name!r}; valid names are {', '.join((*others, *table))}")
    return table[name]
