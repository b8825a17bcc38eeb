"""How the networks take their roots: presets by name, and what they mean for the layers."""

from typing import TypedDict

from torch import nn

from .._names import valid_names
from .._registry import preset as paper_preset
from .._registry import presets, validate
from ..gradients import Gradient
from ..methods import Method
from ..nn import DecorrelatedBatchNorm
from ._arguments import recorded_arguments


class RootOptions(TypedDict, total=False):
    """Keyword arguments of the layers of ``matroot.nn``; one that is absent has the layer's default."""

    method: str | Method
    gradient: str | Gradient


def preset_names() -> tuple[str, ...]:
    """All that ``preset=`` of a network can be: ``default``, the paper's combinations, ``baseline``.

    Returns:
        The names.

    Example:
        >>> from matroot.models import preset_names
        >>> "baseline" in preset_names()
        True
    """
    return ("default", *presets(), "baseline")


def is_baseline(preset: str) -> bool:
    """Whether a network is to be built without its root. ValueError for an unknown name, naming the valid ones."""
    _require_name(preset)
    return preset == "baseline"


def root_options(
    preset: str = "default", method: str | Method | None = None, gradient: str | Gradient | None = None
) -> RootOptions:
    """Method and gradient of a preset, each replaced by the one given; empty for matroot's own choice.

    Args:
        preset: one of :func:`preset_names`.
        method: in the place of the preset's.
        gradient: in the place of the preset's.

    Returns:
        Keyword arguments of the layers of ``matroot.nn``.

    Raises:
        ValueError: for an unknown preset; and for ``baseline``, which has no root, unless nothing else is given.
    """
    _require_name(preset)
    options = RootOptions()
    if preset not in ("default", "baseline"):
        options.update(paper_preset(preset))
    if method is not None:
        options["method"] = method
    if gradient is not None:
        options["gradient"] = gradient
    if preset == "baseline" and options:
        raise ValueError("the baseline network takes no root: method and gradient have no meaning for it")
    return options


def set_preset(model: nn.Module, preset: str) -> None:
    """Change method and gradient of every root of a network, in place; weights and statistics stay.

    A network that has other parameters for some presets says so in a method ``require_preset``.

    Args:
        model: a network of :func:`create`.
        preset: one of :func:`preset_names` but ``baseline``.

    Raises:
        TypeError: for a module that no function of ``matroot.models`` made.
        ValueError: for an unknown preset, for ``baseline``, which is another network, for a network without roots, and
            for a preset that has not the root of one of its layers. Nothing changes after an error.

    Example:
        >>> from matroot.models import create, set_preset
        >>> model = create("resnet18_dbn", width=8)
        >>> set_preset(model, "mpa-lya")
        >>> model.bn1.method
        Pade(degree=5, form=None)
    """
    if is_baseline(preset):
        raise ValueError("the baseline is a network without roots: build it with preset='baseline'")
    require = getattr(model, "require_preset", None)
    if require is not None:
        require(preset)
    options = root_options(preset)
    method, gradient = options.get("method", "auto"), options.get("gradient")
    layers = [layer for layer in model.modules() if hasattr(layer, "method") and hasattr(layer, "gradient")]
    if not layers:
        raise ValueError(f"this {type(model).__name__} has no layer that takes roots")
    for layer in layers:
        validate(method, gradient, "invsqrt" if isinstance(layer, DecorrelatedBatchNorm) else "sqrt")
    arguments = recorded_arguments(model)
    for layer in layers:
        vars(layer).update(method=method, gradient=gradient)
    arguments.update(preset=preset, method=None, gradient=None)


def _require_name(preset: str) -> None:
    if preset not in preset_names():
        raise ValueError(f"unknown preset {preset!r}; {valid_names(preset, preset_names())}")
