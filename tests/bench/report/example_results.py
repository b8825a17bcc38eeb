"""Result files as ``matroot bench`` writes them, with made-up but plausible numbers, for every suite."""

import itertools
import json
import math
import random

from matroot.bench.report import read

SUITES = (
    "scalar forward backward batch dimension schemes residuals pade applications accuracy speed".split()  # noqa: SIM905
)
SHAPES = ("1 x 64 x 64", "64 x 48 x 48", "10 x 64 x 64", "16 x 128 x 128", "256 x 256 x 256", "4 x 256 x 256")
PRESETS = ("mpa-lya", "mtp-lya", "ns", "ns-lya", "svd", "svd-lya", "svd-clip", "svd-pi", "svd-taylor", "svd-pade", "pi")
EVERYONE = (*PRESETS, "auto", "eigh", "eigh autograd", "matrix_sqrth", "scipy")
SOLVERS = ("minimax+krylov", "minimax+smith", "eigh", "mpa-lya", "mtp-lya", "ns", "ns converged")
PACE = {"auto": 1.0, "mpa-lya": 2.6, "mtp-lya": 1.8, "ns": 4.5, "ns-lya": 3.0, "paper": 2.6, "pi": 0.9}
ERRORS = {"mpa-lya": 4e-4, "paper": 4e-4, "mtp-lya": 8e-3, "ns": 2e-3, "ns-lya": 2e-3, "pi": 0.6}


def document(device="cpu", dtype="float32", speed=1.0, seed=0, suites=SUITES, quick=False):
    """A result file; ``speed`` divides all times."""
    chance = random.Random(seed)
    cases = [case for suite in suites for case in _MAKERS[suite](chance, speed)]
    gpu = "NVIDIA Example 1" if device == "cuda" else None
    return {
        "format": "matroot-bench 1",
        "command": f"matroot bench --device {device} --dtype {dtype}",
        "surroundings": {
            "date": "2026-01-02T03:04:05+00:00",
            "processor": "Example Processor 9000",
            "cores": 8,
            "threads": 8,
            "device": gpu,
            "python": "3.12.1",
            "torch": "2.11.0",
            "matroot": "0.1.0",
        },
        "settings": {"device": device, "dtype": dtype, "quick": quick},
        "cases": cases,
    }


def program(name, results, device="NVIDIA Example 1", date="2026-01-03T00:00:00+00:00", **extra):
    """A result file of a program beside ``matroot bench``."""
    environment = {**document(suites=())["surroundings"], "device": device, "date": date}
    return {"command": f"python -m matroot.bench.{name}", "surroundings": environment, **extra, "results": results}


def gpu(*shapes, **options):
    """A result file of ``python -m matroot.bench.gpu``; shapes are batch, n, times and errors of contestants."""
    versions = {"triton": "3.6.0", "jax": "0.11.2", "cupy": None}
    return program("gpu", [_gpu_result(*shape) for shape in shapes], versions=versions, **options)


def _gpu_result(batch, n, times, errors):
    return {
        "batch": batch,
        "n": n,
        "notes": {"cupy eigh": "not installed"},
        "milliseconds": {name: {"single": times_of(t), "back_to_back": times_of(0.8 * t)} for name, t in times.items()},
        "graph_milliseconds": {"root": times_of(0.1 * times["auto"])},
        "errors": {name: {"root": e, "gradient": 2 * e} for name, e in errors.items()},
    }


def times_of(time):
    """A median with quartiles and least."""
    return {"median": round(time, 4), "low": 0.95 * time, "high": 1.1 * time, "least": 0.9 * time}


def save(path, found=None):
    path.write_text(json.dumps(document() if found is None else found))
    return path


def load(folder, found, name="file.json"):
    """A document as ``matroot report`` reads it."""
    return read(save(folder / name, found))


def case(suite, contestant, parameters, time=None, errors=None, values=None, note=None):
    name = " ".join([contestant, *(f"{k}={v}" for k, v in parameters.items())])
    if time is not None:
        time = times_of(time)
    return {
        "suite": suite,
        "case": name,
        "contestant": contestant,
        "parameters": parameters,
        "milliseconds": time,
        "errors": errors or {},
        "values": values or {},
        "note": note,
    }


def _scalar(chance, speed):
    z = [k / 50 - 0.99 for k in range(99)]
    settings = [("taylor", {"degree": 11}, 12), ("newton-schulz", {"iterations": 5}, 16)]
    settings += [("pade", {"degree": degree}, 4 * degree + 2) for degree in (3, 5)]
    for contestant, order, rate in settings:
        error = [0.1 * abs(x) ** rate + 1e-16 for x in z]
        value = [math.sqrt(1 - x) + e for x, e in zip(z, error, strict=True)]
        yield case("scalar", contestant, order, values={"z": z, "value": value, "error": error})


def _forward(chance, speed):
    settings = [("taylor", "degree", range(6, 19)), ("pade", "degree", range(3, 10))]
    settings += [("newton-schulz", "iterations", range(3, 8)), ("auto", None, [0]), ("eigh", None, [0])]
    for inverse, (contestant, key, counts) in itertools.product((False, True), settings):
        for count in counts:
            pace = {"taylor": 2, "pade": 7, "newton-schulz": 6}.get(contestant, 40)
            error = {"taylor": 0.1 / (1 + count), "pade": 0.3 * 0.3**count, "newton-schulz": 0.5 * 0.45**count}
            errors = {"mae": error.get(contestant, 3e-7), "nrmse": 2 * error.get(contestant, 3e-7)}
            errors |= {"whitening": 9 * errors["mae"]} if inverse else {}
            parameters = ({key: count} if key else {}) | {"inverse": inverse}
            time = pace * (count or 3) * chance.uniform(0.95, 1.05) / speed
            yield case("forward", contestant, parameters, time, errors)


def _backward(chance, speed):
    settings = (("lyapunov", range(3, 12)), ("newton-schulz unrolled", range(3, 8)), ("smith", range(2, 7)))
    for inverse, (contestant, counts) in itertools.product((False, True), settings):
        for count in counts:
            pace = {"lyapunov": 3.0, "smith": 2.0}.get(contestant, 7.0)
            error = max(2e-7, 0.7 ** (2 ** (count / 2)))
            parameters = {"iterations": count, "inverse": inverse}
            yield case("backward", contestant, parameters, pace * (count + inverse) / speed, {"gradient": error})
    for inverse in (False, True):
        yield case("backward", "exact", {"inverse": inverse}, 55 / speed, {"gradient": 3e-7})


def _errors(contestant):
    error = ERRORS.get(contestant, 4e-7)
    return {"root": error, "gradient": None if contestant == "scipy" else 3 * error}


def _time(contestant, batch, n, speed, chance):
    work = 0.02 + batch * n**3 * 4e-8 if contestant in PACE else 0.01 + batch * n**3 * 2e-7
    return PACE.get(contestant, 1.3) * work * chance.uniform(0.97, 1.03) / speed


def _batch(chance, speed):
    for batch, contestant in itertools.product((2**k for k in range(11)), EVERYONE):
        yield case(
            "batch", contestant, {"batch": batch}, _time(contestant, batch, 64, speed, chance), _errors(contestant)
        )


def _dimension(chance, speed):
    for n, contestant in itertools.product((8, 16, 32, 64, 128, 256, 512), EVERYONE):
        if (n, contestant) == (512, "svd-pi"):
            yield case("dimension", contestant, {"n": n}, note="RuntimeError: out of memory")
            continue
        yield case("dimension", contestant, {"n": n}, _time(contestant, 64, n, speed, chance), _errors(contestant))


def _schemes(chance, speed):
    for contestant, time, memory in (("lyapunov", 1.9, 2.0), ("unrolled", 4.4, 12.5), ("implicit", 3.1, 4.0)):
        yield case("schemes", contestant, {}, time / speed, values={"megabytes": memory})


def _residuals(chance, speed):
    for contestant, rate in (("taylor", 0.8), ("pade", 0.2), ("newton-schulz", 0.4), ("minimax", 0.02)):
        steps = list(range(1, 13))
        residual = [max(rate**k, 3e-7 * (1 + k / 9)) for k in steps]
        yield case("residuals", contestant, {}, values={"steps": steps, "residual": residual})
    steps = list(range(1, 11))
    yield case("residuals", "lyapunov", {}, values={"steps": steps, "residual": [8 * 0.99 ** (2**k) for k in steps]})


def _pade(chance, speed):
    for inverse, degree in itertools.product((False, True), range(3, 7)):
        parameters = {"degree": degree, "inverse": inverse}
        yield case("pade", "pade", parameters, (0.5 + 0.1 * degree) / speed, {"root": math.exp(-1.7 * degree)})


def _applications(chance, speed):
    for shape, output in itertools.product(SHAPES, ("root", "inverse", "both")):
        batch, n, _ = map(int, shape.split(" x "))
        for contestant in (*PRESETS, "auto", "eigh"):
            parameters = {"shape": shape, "output": output}
            yield case(
                "applications", contestant, parameters, _time(contestant, batch, n, speed, chance), _errors(contestant)
            )


def _accuracy(chance, speed):
    spectra = [("wishart", None), *itertools.product(("geometric", "one small"), (1e1, 1e3, 1e5, 1e7))]
    for (spectrum, condition), contestant in itertools.product(spectra, SOLVERS):
        error = ERRORS.get(contestant, 2e-7) * math.log10(10 * (condition or 10))
        errors = {"root": error, "inverse": 3 * error, "root_gradient": 2 * error, "inverse_gradient": None}
        values = {"forward_products": 14, "backward_products": None if contestant == "eigh" else 16}
        yield case("accuracy", contestant, {"spectrum": spectrum, "condition": condition}, None, errors, values)


def _speed(chance, speed):
    for batch, n, contestant in itertools.product((1, 64), (16, 32, 64, 128, 256), ("auto", "eigh", "paper")):
        parameters = {"batch": batch, "n": n}
        yield case("speed", contestant, parameters, _time(contestant, batch, n, speed, chance), _errors(contestant))


_MAKERS = {name: globals()[f"_{name}"] for name in SUITES}
