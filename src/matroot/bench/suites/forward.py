"""Forward error against time: degrees and iterations of the truncated methods next to the exact ones."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from ..._timer import Work
from ...methods import NewtonSchulz, Pade, Taylor
from ..baselines import EighRoot
from ..cases import Case, Group, Outcome, Settings
from ..compare import Check, Errors, compare, known
from ..entries import OUTPUTS, Entry, auto, eigh
from ..problems import DISTINCT, covariances_and_gradients, relative_errors
from ..theory import value_bound, whitening_bound


def groups(settings: Settings) -> Iterator[Group]:
    """Roots and inverse roots of 10000 covariances 64 x 64 (on the CPU 1000, quick 64), without gradients.

    Errors are means: "mae" over entries, "nrmse" over matrices of the relative Frobenius distance, "whitening" of
    |singular values of A^(-1/2) X - 1| with A = X X^T.
    """
    for inverse in (False, True):
        entries = [
            (Case("forward", entry.name, {**order, "inverse": inverse}), entry)
            for entry, order in _entries(settings.quick, inverse)
        ]
        by_name = {case.name: entry for case, entry in entries}
        yield Group(tuple(case for case, _ in entries), partial(_outcomes, settings, by_name, inverse))


def _entries(quick: bool, inverse: bool) -> Iterator[tuple[Entry, dict[str, int]]]:
    output = "inverse" if inverse else "root"
    for key, methods in (
        ("degree", [Taylor(degree=d) for d in ((6, 11, 18) if quick else range(6, 19))]),
        ("degree", [Pade(degree=d) for d in ((3, 5, 9) if quick else range(3, 10))]),
        ("iterations", [NewtonSchulz(iterations=k) for k in ((3, 5, 7) if quick else range(3, 8))]),
    ):
        for method in methods:
            yield Entry(method.name, partial(OUTPUTS[output], method=method), method), {key: getattr(method, key)}
    yield auto(output), {}
    yield eigh(output), {}


def _outcomes(
    settings: Settings, entries: Mapping[str, Entry], inverse: bool, names: Sequence[str]
) -> Iterator[tuple[str, Outcome]]:
    batch = 64 if settings.quick else 10000 if settings.device == "cuda" else 1000
    A = settings.place(covariances_and_gradients(batch, 64)[0])
    sample = A[:DISTINCT]
    # The reference is computed on the CPU: CUDA decomposes matrices of this size one by one.
    wide = sample.double().cpu()
    true, eigenvalues = EighRoot.apply(inverse, wide), torch.linalg.eigvalsh(wide)
    measured: dict[str, tuple[Work, Check]] = {}
    for name in names:
        entry = entries[name]
        check = partial(_errors, entry, sample, wide, true, eigenvalues, settings.eps, inverse)
        measured[name] = partial(entry.function, A), check
    for name, outcome in compare(measured, settings):
        yield name, replace(outcome, values={"matrices": batch})


def _errors(
    entry: Entry, sample: Tensor, wide: Tensor, true: Tensor, eigenvalues: Tensor, eps: float, inverse: bool
) -> Errors:
    found = entry.function(sample).double().cpu()
    errors = {"mae": (found - true).abs().mean().item(), "nrmse": relative_errors(found, true).mean().item()}
    bounds = {"nrmse": value_bound(entry.method, eigenvalues, eps, inverse)}
    if inverse:
        # The squares of the singular values, without the data.
        squares = torch.linalg.eigvalsh(found @ wide @ found.mT)
        errors["whitening"] = (squares.clamp_min(0).sqrt() - 1).abs().mean().item()
        bounds["whitening"] = whitening_bound(entry.method, eigenvalues, eps)
    return errors, known(bounds)
