"""Recipes from files: some fields of a recipe, in TOML or JSON; the others stay those of a variant."""

import json
import tomllib
import types
from collections.abc import Collection
from dataclasses import MISSING, asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, TypeVar, get_args, get_origin, get_type_hints

from .._names import nearest
from .._terminal import CommandError
from .recipe import RUN_FORMAT


class DataclassInstance(Protocol):
    """What ``dataclasses`` makes."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


AnyRecipe = TypeVar("AnyRecipe", bound=DataclassInstance)


class ConfigError(CommandError):
    """A file that does not describe a recipe."""


@dataclass(frozen=True)
class Difference:
    """A field that two recipes do not share."""

    field: str
    before: Any
    after: Any

    def __str__(self) -> str:
        return f"{self.field} {shown(self.after)} (was {shown(self.before)})"


def load_config(path: Path, base: AnyRecipe) -> AnyRecipe:
    """``base`` with the fields that the file has.

    A ``.toml`` or ``.json`` file with recipe fields at its top, or the ``run.json`` of a run folder, which has all of
    them: one that it lacks is younger, and had its default. Where a field may be None the text "none" stands for it, as
    TOML has no null. ConfigError for a file that cannot be read, fields that recipes do not have and values of another
    type.
    """
    annotations = get_type_hints(type(base))
    changes = {}
    for name, value in _read(path, defaults(base)).items():
        if name not in annotations:
            raise ConfigError(f"{path}: {unknown('field', name, annotations)}")
        try:
            changes[name] = _converted(value, annotations[name])
        except TypeError:
            raise ConfigError(f"{path}: {name} must be {_wording(annotations[name])}, got {value!r}") from None
    return replace(base, **changes)


def is_run(path: Path) -> bool:
    """Whether a file that :func:`load_config` reads is the ``run.json`` of a run."""
    content = _content(path)
    return isinstance(content, dict) and content.get("format") == RUN_FORMAT


def differences(before: AnyRecipe, after: AnyRecipe) -> list[Difference]:
    """What changes from one recipe to another, in the order of the fields."""
    pairs = ((field.name, getattr(before, field.name), getattr(after, field.name)) for field in fields(before))
    return [Difference(name, old, new) for name, old, new in pairs if old != new]


def as_json(recipe: DataclassInstance) -> dict[str, Any]:
    """The fields of a recipe as they come back from a JSON file: tuples are lists."""
    return json.loads(json.dumps(asdict(recipe)))


def defaults(recipe: DataclassInstance | type[DataclassInstance]) -> dict[str, Any]:
    """Fields that have a default, as JSON has them: what a file means that is older than a field."""
    values = {field.name: field.default for field in fields(recipe) if field.default is not MISSING}
    return json.loads(json.dumps(values))


def unknown(kind: str, name: str, valid: Collection[str]) -> str:
    """The message for a name that is none of the valid ones: the nearest if there is one, else all of them."""
    meant = nearest(name, valid)
    advice = f"valid names are {', '.join(valid)}" if meant is None else f"did you mean {meant!r}?"
    return f"unknown {kind} {name!r}; {advice}"


def counted(number: int, noun: str) -> str:
    """``1 epoch``, ``2 epochs``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def shown(value: Any) -> str:
    """A field's value as it is written on the command line."""
    return " ".join(map(str, value)) or "none" if isinstance(value, tuple) else str(value)


def _content(path: Path) -> Any:
    if path.suffix not in (".toml", ".json"):
        raise ConfigError(f"{path}: a config file ends in .toml or .json")
    try:
        text = path.read_text(encoding="utf-8")
        return tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:  # of the decoder, of TOML and of JSON
        raise ConfigError(f"{path} is not {path.suffix[1:].upper()}: {error}") from error


def _read(path: Path, of_older_runs: dict[str, Any]) -> dict[str, Any]:
    content = _content(path)
    if isinstance(content, dict) and content.get("format") == RUN_FORMAT:
        content = content.get("recipe")
        content = of_older_runs | content if isinstance(content, dict) else None
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: expected fields of a recipe with their values")
    return content


def _converted(value: Any, annotation: Any) -> Any:
    """The value as the annotated type; TypeError if it is of another."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is types.UnionType:
        wanted = next(kind for kind in arguments if kind is not types.NoneType)
        return None if value is None or str(value).lower() == "none" else _converted(value, wanted)
    if origin is Literal:
        if value in arguments:
            return value
    elif origin is tuple:
        if isinstance(value, list):
            return tuple(_converted(entry, arguments[0]) for entry in value)
    elif type(value) is annotation:
        return value
    elif annotation is float and type(value) is int:
        return float(value)
    raise TypeError


def _wording(annotation: Any) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is types.UnionType:
        return " or ".join("none" if kind is types.NoneType else _wording(kind) for kind in arguments)
    if origin is Literal:
        return f"one of {', '.join(arguments)}"
    if origin is tuple:
        return "a list of whole numbers"
    return {int: "a whole number", float: "a number", bool: "true or false", str: "text"}[annotation]
