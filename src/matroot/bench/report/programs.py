"""Result files of the programs beside ``matroot bench``, told in its words: suites, cases, contestants.

``python -m matroot.bench.gpu``, ``matroot.bench.solver`` and ``matroot.bench.layer_cost`` each write a list of results
of their own form; a suite for each takes them to the page.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ..format import TIMES, ResultError, WrongFieldError, check_case, require_plain
from .case import Case

Result = Mapping[str, Any]
CasesOf = Callable[[Result], Iterator[Case]]


def is_program(document: Any) -> bool:
    """Whether a document is of one of the programs; else it is of ``matroot bench``, or of nothing known."""
    return isinstance(document, dict) and "format" not in document and {"command", "results"} <= document.keys()


def settings_and_cases(path: Path, document: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[Case, ...]]:
    """What ``matroot bench`` would call settings, and the cases; ResultError names file and result."""
    command = str(document["command"])
    name = next((name for name in PROGRAMS if command.startswith(name)), None)
    if name is None:
        raise ResultError(f"{path}: field command must begin with one of: {', '.join(PROGRAMS)}")
    environment, results = document.get("surroundings"), document["results"]
    if not isinstance(environment, dict) or not {"date", "processor", "torch", "matroot"} <= environment.keys():
        raise ResultError(f"{path}: field surroundings must name date, processor, torch and matroot")
    versions = document.get("versions") or {}
    if not isinstance(versions, dict):
        raise ResultError(f"{path}: field versions must be an object")
    if not isinstance(results, list):
        raise ResultError(f"{path}: field results must be a list")
    device, dtype, cases_of = PROGRAMS[name]
    cases: list[Case] = []
    try:
        require_plain(environment, "surroundings")
        require_plain(versions, "versions")
        for k, result in enumerate(results):
            cases += _checked_cases(cases_of, result, f"results[{k}]", name)
    except WrongFieldError as wrong:
        raise ResultError(f"{path}: {wrong}") from None
    return {"device": device, "dtype": dtype, "quick": "--quick" in command.split()}, tuple(cases)


def _checked_cases(cases_of: CasesOf, result: Any, at: str, program: str) -> list[Case]:
    try:
        cases = list(cases_of(result))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        what = f"has no {error}" if isinstance(error, KeyError) else f"is not as {program} writes it: {error}"
        raise WrongFieldError(at, what) from None
    for case in cases:
        check_case(vars(case), at)
    return cases


def _gpu(result: Result) -> Iterator[Case]:
    """Single calls are the time; calls in a row, and those inside a CUDA graph, are values beside it."""
    shape = {"batch": _count(result["batch"]), "n": _count(result["n"])}
    notes, errors = result.get("notes", {}), result["errors"]
    # An entry whose errors could not be measured has the reason in their place.
    notes = {name: found["note"] for name, found in errors.items() if "note" in found} | notes
    graph = _times(result.get("graph_milliseconds", {}).get("root"))
    for name in dict.fromkeys([*result["milliseconds"], *notes]):
        times = result["milliseconds"].get(name, {})
        values = {"in a row": _median(times.get("back_to_back"))}
        if name == "auto" and graph:
            values["in a CUDA graph"] = graph["median"]
        yield _case(
            "gpu",
            name,
            shape,
            milliseconds=_times(times.get("single")),
            errors={kind: _number(e) for kind, e in errors.get(name, {}).items() if "note" not in errors[name]},
            values=values,
            note=notes.get(name),
        )


def _compared(suite: str) -> CasesOf:
    def cases(result: Result) -> Iterator[Case]:
        problem = {"case": str(result["case"]), "batch": _count(result["batch"]), "n": _count(result["n"])}
        problem |= {"dtype": str(result["dtype"])} if "dtype" in result else {}
        errors, notes = result.get("errors", {}), result.get("notes", {})
        for name in dict.fromkeys([*result["milliseconds"], *errors, *notes]):
            times = result["milliseconds"].get(name, {})
            values = {"in a row": _median(times.get("back_to_back"))}
            if graph := result.get("graph_milliseconds", {}).get(name):
                values["in a CUDA graph"] = _median(graph)
            yield _case(
                suite,
                name,
                problem,
                milliseconds=_times(times.get("single")),
                errors={kind: _number(e) for kind, e in errors.get(name, {}).items()},
                values=values,
                note=notes.get(name),
            )

    return cases


def _first_use(result: Result) -> Iterator[Case]:
    names = {"empty": "first call", "filled": "first call, kernels on disk"}
    for cache, name in names.items():
        found = result["seconds"].get(cache, {})
        values = {"seconds": _number(found.get("first"))}
        yield _case("first-use", name, {"case": str(result["case"])}, values=values, note=result["notes"].get(cache))


def _steps(result: Result) -> Iterator[Case]:
    n = _count(result["n"])
    for size, time in result["milliseconds"].items():
        offset = f"n {int(size) - n:+d}" if int(size) != n else "n"
        yield _case(
            "steps", offset, {"case": str(result["case"]), "n": int(size)}, values={"milliseconds": _number(time)}
        )


def _accuracy(result: Result) -> Iterator[Case]:
    kinds = ("root", "inverse", "root_gradient", "inverse_gradient")
    parameters = {key: result[key] for key in ("dtype", "spectrum", "condition")}
    products = {f"{way}_products": _number(result[way]["products"]) for way in ("forward", "backward")}
    errors = {kind: _number(result[f"{kind}_error"]) for kind in kinds}
    yield _case("precision", str(result["solver"]), parameters, errors=errors, values=products)


def _timed_shape(suite: str) -> CasesOf:
    def cases(result: Result) -> Iterator[Case]:
        shape = {"batch": _count(result["batch"]), "n": _count(result["n"])}
        if "dtype" in result:
            shape = {"dtype": str(result["dtype"]), "condition": _number(result["condition"])} | shape
        own = {"root": "root_error", "gradient": "root_gradient_error"}
        errors = {kind: _number(result[key]) for kind, key in own.items() if key in result}
        for name, times in result["milliseconds"].items():
            yield _case(suite, name, shape, milliseconds=_times(times), errors=errors if name == "auto" else {})

    return cases


def _memory(result: Result) -> Iterator[Case]:
    shape = {"batch": _count(result["batch"]), "n": _count(result["n"])}
    values = {"megabytes": _finite(result["bytes"]) / 2**20, "batches": _number(result["batches"])}
    yield _case("memory", str(result["solver"]), shape, values=values)


def _layers(result: Result) -> Iterator[Case]:
    for name, times in result["milliseconds"].items():
        graph = _median(result.get("graph_milliseconds", {}).get(name))
        parameters = {"network": str(result["case"])}
        yield _case("layers", name, parameters, milliseconds=_times(times["single"]), values={"in a CUDA graph": graph})


PROGRAMS: dict[str, tuple[str, str, CasesOf]] = {
    **{
        f"python -m matroot.bench.gpu --suites {suite}": ("cuda", dtype, _compared(suite))
        for suite, dtype in (
            *((suite, "float32") for suite in ("hard", "large", "singular", "overhead")),
            ("float64", "float64"),
        )
    },
    "python -m matroot.bench.gpu --suites first-use": ("cuda", "float32", _first_use),
    "python -m matroot.bench.gpu --suites steps": ("cuda", "float32", _steps),
    "python -m matroot.bench.gpu": ("cuda", "float32", _gpu),
    "python -m matroot.bench.solver accuracy": ("cpu", "float32 and float64", _accuracy),
    "python -m matroot.bench.solver speed": ("cpu", "float32", _timed_shape("default")),
    "python -m matroot.bench.solver crossover": ("cpu", "all dtypes", _timed_shape("crossover")),
    "python -m matroot.bench.solver memory": ("cpu", "float32", _memory),
    "python -m matroot.bench.layer_cost": ("cuda", "bfloat16", _layers),
}
"""How a command begins -> device, dtype, and the cases of one of its results; the first that fits counts."""


def _case(suite: str, contestant: str, parameters: dict[str, Any], **measured: Any) -> Case:
    name = " ".join([contestant, *(f"{key}={value}" for key, value in parameters.items())])
    empty: dict[str, Any] = {"milliseconds": None, "errors": {}, "values": {}, "note": None}
    return Case(suite, name, contestant, parameters, **(empty | measured))


def _times(found: Any) -> dict[str, float | None] | None:
    return None if found is None else {key: _finite(found[key]) for key in TIMES}


def _median(found: Any) -> float | None:
    return None if found is None else _finite(found["median"])


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{value!r} is no size")
    return value


def _number(value: Any) -> float | None:
    return None if value is None else _finite(value)


def _finite(value: Any) -> float:
    # Neither are integers beyond the range of floats.
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < 1e200:
        raise ValueError(f"{value!r} is no measurement")
    return value


def read_json(path: Path) -> tuple[bytes, Any]:
    """The bytes of a file and its JSON; None if it cannot be read, which the reader of the format explains."""
    try:
        raw = path.read_bytes()
        return raw, json.loads(raw)
    except (OSError, ValueError, RecursionError):
        return b"", None
