"""Gradient schemes from the same Pade root: time, error and memory."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

import matroot

from ..._timer import Work
from ...gradients import Gradient, Implicit, Lyapunov, Unrolled
from ...methods import Pade
from ..baselines import EighRoot
from ..cases import Case, Group, Outcome, Settings
from ..compare import Check, compare, small_batch
from ..memory import PeakMemory
from ..problems import forward_backward, largest_error, value_and_gradient
from .backward import backward_pass


def groups(settings: Settings) -> Iterator[Group]:
    """The backward pass on 64 x 64 x 64 (quick: 4 x 32 x 32), and the memory of forward and backward together."""
    schemes: dict[str, Gradient] = {"lyapunov": Lyapunov(), "unrolled": Unrolled(), "implicit": Implicit()}
    cases = tuple(Case("schemes", name, {}) for name in schemes)
    yield Group(cases, partial(_outcomes, settings, schemes))


def _outcomes(
    settings: Settings, schemes: Mapping[str, Gradient], names: Sequence[str]
) -> Iterator[tuple[str, Outcome]]:
    A, G = small_batch(settings)
    _, true = value_and_gradient(partial(EighRoot.apply, False), A.double(), G.double())
    functions = {name: partial(matroot.sqrtm, method=Pade(), gradient=schemes[name]) for name in names}
    entries: dict[str, tuple[Work, Check]] = {}
    for name, function in functions.items():
        work = backward_pass(function, A, G)
        entries[name] = work, lambda work=work: ({"gradient": largest_error(work(), true)}, {})
    megabytes = {name: _megabytes(function, A, G) for name, function in functions.items()}
    for name, outcome in compare(entries, settings):
        yield name, replace(outcome, values={"megabytes": megabytes[name]})


def _megabytes(function: Callable[[Tensor], Tensor], A: Tensor, G: Tensor) -> float:
    """Peak memory beyond the input, saved matrices included."""
    X = A.clone().requires_grad_()
    if A.is_cuda:
        # The allocator also counts the workspaces of kernels.
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        forward_backward(function, X, G)
        return (torch.cuda.max_memory_allocated() - before) / 2**20
    with PeakMemory(X, G) as meter:
        forward_backward(function, X, G)
    return meter.peak / 2**20
