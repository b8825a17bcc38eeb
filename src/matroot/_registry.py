"""Names for methods, gradients and the paper's combinations of them."""

from typing import TypedDict, TypeVar

from ._names import valid_names
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
    """Names of the paper's combinations of method and gradient, for :func:`preset`.

    Returns:
        The names, such as ``"mpa-lya"``.

    Example:
        >>> "svd-taylor" in matroot.presets()
        True
    """
    return tuple(PRESETS)


def preset(name: str) -> Preset:
    """One of the paper's combinations of method and gradient.

    Args:
        name: one of :func:`presets`.

    Returns:
        Keyword arguments of ``sqrtm``, ``invsqrtm``, ``roots`` and the layers, a new dictionary.

    Raises:
        ValueError: if the name is unknown, naming the nearest and all valid ones.

    Example:
        >>> S = matroot.sqrtm(torch.eye(3), **matroot.preset("mpa-lya"))
        >>> matroot.preset("mpa-lya")["method"]
        Pade(degree=5, form=None)
    """
    return _look_up("preset", name, PRESETS).copy()


def choose_method(method: str | Method) -> Method:
    """The method a caller means."""
    return method if isinstance(method, Method) else _look_up("method", method, METHODS, "auto")()


def choose_gradient(gradient: str | Gradient) -> Gradient:
    """The gradient a caller means."""
    return gradient if isinstance(gradient, Gradient) else _look_up("gradient", gradient, GRADIENTS)()


def require_output(method: Method, output: Output) -> None:
    """Raise if the method does not compute the output."""
    if output != "sqrt" and not method.has_inverse:
        raise ValueError(f"method '{method.name}' has no inverse root; use another method")


def validate(method: str | Method, gradient: str | Gradient | None, output: Output) -> None:
    """Raise what a call with these arguments would raise, without computing anything."""
    rule = None if gradient is None else choose_gradient(gradient)
    if method != "auto":
        chosen = choose_method(method)
        require_output(chosen, output)
        if rule is not None:
            rule.require(chosen)


_T = TypeVar("_T")


def _look_up(kind: str, name: object, table: dict[str, _T], *others: str) -> _T:
    if isinstance(name, type):
        raise ValueError(f"{kind} must be a name or an object, got the class; write {name.__name__}(...)")
    if not isinstance(name, str) or name not in table:
        raise ValueError(f"unknown {kind} {name!r}; {valid_names(name, (*others, *table))}")
    return table[name]
