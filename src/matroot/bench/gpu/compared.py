"""One problem: times of matroot and of decompositions in turns, and errors of both against float64."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

import matroot

from ..._timer import Work, milliseconds, milliseconds_of_both, one_line, time_in_graph, time_interleaved
from ..baselines import EighRoot
from ..cases import rounded
from ..problems import Function, forward_backward, inverse_unit, largest_error, root_unit, value_and_gradient
from .baselines import library_works
from .problems import Problem

Result = dict[str, Any]

OURS, OURS_FORWARD = "matroot", "matroot forward"
PEER, PEER_FORWARD = "torch eigh", "torch eigh forward"
"""The second of each is a forward pass alone, of ``torch.linalg.eigh`` the decomposition alone."""
BRIEF = 5.0
"""Milliseconds below which a step is also measured in a CUDA graph: Python may take as long."""
FEW = 16
"""Matrices whose errors are measured, up to n = 256; one above."""


def measure_problems(problems: Sequence[Problem], device: str, quick: bool, backend: str = "auto") -> Iterator[Result]:
    """A result for each."""
    for problem in problems:
        yield measure_problem(problem.small() if quick else problem, device, quick, backend)


def measure_problem(problem: Problem, device: str, quick: bool, backend: str = "auto") -> Result:
    """Times in milliseconds, errors, and what is missing and why."""
    root, inverse = (partial(function, backend=backend) for function in (matroot.sqrtm, matroot.invsqrtm))
    A, G = problem.matrices(device)
    X = A.detach().requires_grad_()
    entries: dict[str, Work] = {
        OURS_FORWARD: partial(root, A),
        PEER_FORWARD: partial(torch.linalg.eigh, A),
    }
    if problem.backward:
        entries[OURS] = partial(forward_backward, root, X, G)
        entries[PEER] = partial(forward_backward, partial(EighRoot.apply, False), X, G)
    libraries, notes = library_works(A)
    result: Result = {
        "case": problem.title,
        "batch": problem.batch,
        "n": problem.n,
        "spectrum": problem.spectrum,
        "dtype": str(problem.dtype).removeprefix("torch."),
        "plan": str(matroot.choose(A, backend=backend)),
        "goal_milliseconds": problem.goal,
        "notes": notes,
    }
    add_times(result, entries | libraries, device, quick)
    add_graph_time(result, entries, OURS if problem.backward else OURS_FORWARD, device)
    try:
        result |= errors(root, inverse, A, G, problem.backward)
    except Exception as error:  # the float64 reference of a large matrix may not fit into memory
        result["notes"]["errors"] = one_line(error)
    return result


def add_times(result: Result, entries: Mapping[str, Work], device: str, quick: bool) -> None:
    """Of single calls and of calls in a row, and why entries have none."""
    rounds, budget = (2, 0.05) if quick else (8, 0.3)
    timings = time_interleaved(entries, rounds, device, time_budget=budget, min_turns=1, back_to_back=True)
    result["milliseconds"] = milliseconds_of_both(timings)
    result["notes"] |= timings.failures


def add_graph_time(result: Result, entries: Mapping[str, Work], name: str, device: str) -> None:
    """Of a brief step, or why there is none."""
    times = result["milliseconds"].get(name)
    if device != "cuda" or times is None or times["back_to_back"]["median"] > BRIEF:
        return
    try:
        result["graph_milliseconds"] = {name: milliseconds(time_in_graph(entries[name], 0.2))}
    except Exception as error:
        result["notes"][f"{name} in a graph"] = one_line(error)


def errors(root: Function, inverse: Function, A: Tensor, G: Tensor, backward: bool) -> Result:
    """Largest relative errors of the first matrices; matroot's are computed in the whole batch, eigh's in theirs."""
    batch, n = A.shape[:2]
    few = min(batch, FEW if n <= 256 else 1)
    true, condition = exact(A[:few], G[:few], backward)
    eps = torch.finfo(A.dtype).eps
    found: Result = {
        "condition": rounded(condition),
        "matrices_checked": few,
        "rounding": {
            name: rounded((root_unit if name == "root" else inverse_unit)(n, condition, eps)) for name in true
        },
        "errors": {},
    }
    eigh = {is_inverse: partial(EighRoot.apply, is_inverse) for is_inverse in (False, True)}
    ours = _results(root, inverse, A, G, backward)
    theirs = _results(eigh[False], eigh[True], A[:few], G[:few], backward)
    for name, values in ((OURS, ours), (PEER, theirs)):
        found["errors"][name] = {part: rounded(largest_error(T[:few], true[part])) for part, T in values.items()}
    return found


def _results(root: Function, inverse: Function, A: Tensor, G: Tensor, backward: bool) -> dict[str, Tensor]:
    if not backward:
        return {"root": root(A), "inverse": inverse(A)}
    value, gradient = value_and_gradient(root, A, G)
    return {"root": value, "inverse": inverse(A), "gradient": gradient}


def exact(A: Tensor, G: Tensor, backward: bool) -> tuple[dict[str, Tensor], float]:
    """Root, inverse root and gradient of the root in float64, and the largest condition number; of definite matrices.

    One decomposition for all: of a large matrix it takes longer than anything else here.
    """
    wide = torch.promote_types(A.dtype, torch.float64)
    values, U = torch.linalg.eigh(A.to(wide))
    s = values.sqrt()
    true = {"root": (U * s[..., None, :]) @ U.mH, "inverse": (U / s[..., None, :]) @ U.mH}
    if backward:
        true["gradient"] = U @ ((U.mH @ G.to(wide) @ U) / (s[..., :, None] + s[..., None, :])) @ U.mH
    return true, (values[..., -1] / values[..., 0]).max().item()
