"""Entries on the same matrices: interleaved times, and errors against a float64 eigendecomposition."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from .._timer import TimingInterrupted, Work, milliseconds, one_line, time_interleaved
from .baselines import EighRoot
from .cases import FAILED, LEFT_OUT, Case, Group, Outcome, Settings
from .entries import VALUE_ALONE, Entry
from .problems import covariances_and_gradients, forward_backward, largest_error
from .theory import gradient_bound, value_bound

CHECKED = 16
"""Matrices of a batch whose errors are measured where times are what matters."""

Errors = tuple[Mapping[str, float | None], Mapping[str, float]]
"""Errors, and bounds for them."""
Check = Callable[[], Errors]


def small_batch(settings: Settings) -> tuple[Tensor, Tensor]:
    """64 covariances of size 64 x 64 and gradients of the output; quick: 4 of 32 x 32."""
    batch, n = (4, 32) if settings.quick else (64, 64)
    A, G = covariances_and_gradients(batch, n)
    return settings.place(A), settings.place(G)


def compare(entries: Mapping[str, tuple[Work, Check]], settings: Settings) -> Iterator[tuple[str, Outcome]]:
    """Errors, bounds, then times of all entries; one that fails has a note that says why.

    After Ctrl-C come the entries that were timed often enough, and only then the interrupt.
    """
    checked: dict[str, Errors] = {}
    failures: dict[str, str] = {}
    for name, (_, check) in entries.items():
        try:
            checked[name] = check()
        except Exception as error:
            checked[name], failures[name] = ({}, {}), one_line(error)
    works = {name: work for name, (work, _) in entries.items()}
    interrupt = None
    try:
        timings = time_interleaved(works, settings.rounds, settings.device, time_budget=settings.time_budget)
    except TimingInterrupted as stopped:
        timings, interrupt = stopped.timings, stopped
    failures |= timings.failures
    for name, (errors, bounds) in checked.items():
        if name in timings.samples or name in timings.failures:
            samples = timings.samples.get(name)
            note = FAILED + failures[name] if name in failures else None
            yield name, Outcome(samples and milliseconds(samples.single), errors, note=note, bounds=bounds)
    if interrupt:
        raise interrupt


def forward_backward_group(
    entries: Sequence[tuple[Case, Entry]], settings: Settings, batch: int, n: int, output: str = "root"
) -> Group:
    """A group that times a forward and backward pass of ``output`` for ``batch`` matrices of size ``n``.

    Entries without a gradient are timed without one and have a note; those that are left out have one too.
    """
    by_name = {case.name: entry for case, entry in entries}

    def outcomes(names: Sequence[str]) -> Iterator[tuple[str, Outcome]]:
        A, G = (settings.place(T) for T in covariances_and_gradients(batch, n))
        X = A.clone().requires_grad_()
        reference = Reference(A[:CHECKED], G[:CHECKED], output)
        measured: dict[str, tuple[Work, Check]] = {}
        for name in names:
            entry = by_name[name]
            if why := entry.why_left_out(settings.device, batch, n):
                yield name, Outcome(note=LEFT_OUT + why)
            else:
                measured[name] = partial(step, entry, X, G), partial(reference.check, entry, settings.eps)
        for name, outcome in compare(measured, settings):
            value_alone = None if by_name[name].differentiable else VALUE_ALONE
            yield name, replace(outcome, note=outcome.note or value_alone)

    return Group(tuple(case for case, _ in entries), outcomes)


def cases_of(suite: str, parameters: Mapping[str, Any], entries: Sequence[Entry]) -> list[tuple[Case, Entry]]:
    """Entries with cases that all have the same parameters."""
    return [(Case(suite, entry.name, parameters), entry) for entry in entries]


def step(entry: Entry, X: Tensor, G: Tensor) -> tuple[tuple[Tensor, ...], Tensor | None]:
    """The outputs, and the gradient of the sum of <output, G> where the entry has one; ``X`` requires it."""
    if entry.differentiable:
        return forward_backward(entry.function, X, G)
    return (entry.function(X),), None


class Reference:
    """Exact outputs and gradient for some matrices, and the errors of entries against them."""

    def __init__(self, A: Tensor, G: Tensor, output: str) -> None:
        """``output`` is "root", "inverse" or "both"."""
        self.A, self.G = A, G
        self.is_inverse = {"root": (False,), "inverse": (True,), "both": (False, True)}[output]
        self.outputs, self.gradient = forward_backward(
            lambda X: tuple(EighRoot.apply(inverse, X) for inverse in self.is_inverse),
            A.double().requires_grad_(),
            G.double(),
        )
        self.eigenvalues = torch.linalg.eigvalsh(A.double()).cpu()

    def check(self, entry: Entry, eps: float) -> Errors:
        """Largest errors in the batch, and bounds where there are some; "root" is the only output if there is one."""
        outputs, gradient = step(entry, self.A.clone().requires_grad_(), self.G)
        errors: dict[str, float | None] = {}
        bounds: dict[str, float | None] = {}
        for inverse, found, true in zip(self.is_inverse, outputs, self.outputs, strict=True):
            name = "inverse" if inverse and len(self.is_inverse) > 1 else "root"
            errors[name] = largest_error(found, true)
            bounds[name] = value_bound(entry.method, self.eigenvalues, eps, inverse)
        errors["gradient"] = None if gradient is None else largest_error(gradient, self.gradient)
        if entry.exact:
            bounds["gradient"] = gradient_bound(entry.method, self.eigenvalues, eps)
        return errors, known(bounds)


def known(bounds: Mapping[str, float | None]) -> dict[str, float]:
    """The bounds that exist."""
    return {name: bound for name, bound in bounds.items() if bound is not None}
