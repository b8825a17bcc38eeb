"""Forward error against time: degrees and iterations of the truncated methods next to the exact ones."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

import matroot

from ..methods import NewtonSchulz, Pade, Taylor
from .baselines import EighRoot
from .cases import Case, Group, Outcome, Settings
from .contestants import Contestant, auto, eigh
from .problems import distance
from .racing import DISTINCT, Check, Work, both_ways, contest, matrices
from .theory import value_bound, whitening_bound


def forward(settings: Settings) -> Iterator[Group]:
    """Roots and inverse roots of 10000 covariances 64 x 64 (on the CPU 1000, quick 64), without gradients.

    Errors are means: "mae" over entries, "nrmse" over matrices of the relative Frobenius distance, "whitening" of
    |singular values of A^(-1/2) X - 1| with A = X X^T.
    """
    for inverse in (False, True):
        field = [
            (Case("forward", contestant.name, {**order, "inverse": inverse}), contestant)
            for contestant, order in _field(settings.quick, inverse)
        ]
        yield Group(tuple(case for case, _ in field), partial(_forward, settings, field, inverse))


def _field(quick: bool, inverse: bool) -> Iterator[tuple[Contestant, dict[str, int]]]:
    output, function = ("inverse", matroot.invsqrtm) if inverse else ("root", matroot.sqrtm)
    for key, methods in (
        ("degree", [Taylor(degree=d) for d in ((6, 11, 18) if quick else range(6, 19))]),
        ("degree", [Pade(degree=d) for d in ((3, 5, 9) if quick else range(3, 10))]),
        ("iterations", [NewtonSchulz(iterations=k) for k in ((3, 5, 7) if quick else range(3, 8))]),
    ):
        for method in methods:
            yield Contestant(method.name, partial(function, method=method), method), {key: getattr(method, key)}
    yield auto(output), {}
    yield eigh(output), {}


def _forward(settings: Settings, field: list[tuple[Case, Contestant]], inverse: bool) -> list[Outcome]:
    number = 64 if settings.quick else 10000 if settings.device == "cuda" else 1000
    A = settings.place(matrices(number, 64)[0])
    sample = A[:DISTINCT]
    # What is exact is computed on the CPU: CUDA decomposes matrices of this size one by one.
    wide = sample.double().cpu()
    true, values = EighRoot.apply(inverse, wide), torch.linalg.eigvalsh(wide)
    entries: dict[str, tuple[Work, Check]] = {}
    for case, c in field:

        def check(c=c):
            return _errors(c, c.function(sample), wide, true, values, settings.eps, inverse)

        entries[case.name] = partial(c.function, A), check
    with torch.no_grad():
        found = contest(entries, settings)
    return [replace(found[case.name], values={"matrices": number}) for case, _ in field]


def _errors(
    contestant: Contestant, found: Tensor, wide: Tensor, true: Tensor, values: Tensor, eps: float, inverse: bool
) -> tuple[dict[str, float], dict[str, float]]:
    found = found.double().cpu()
    errors = {"mae": (found - true).abs().mean().item(), "nrmse": distance(found, true).mean().item()}
    bounds = {"nrmse": value_bound(contestant.method, values, eps, inverse)}
    if inverse:
        # The squares of the singular values, without the data.
        squares = torch.linalg.eigvalsh(found @ wide @ found.mT)
        errors["whitening"] = (squares.clamp_min(0).sqrt() - 1).abs().mean().item()
        bounds["whitening"] = whitening_bound(contestant.method, values, eps)
    return errors, {name: bound for name, bound in bounds.items() if bound is not None}


def pade(settings: Settings) -> Iterator[Group]:
    """Pade approximants of degree 3 to 6, forward and backward, on 64 (quick: 8) covariances 64 x 64."""
    for inverse in (False, True):
        output, function = ("inverse", matroot.invsqrtm) if inverse else ("root", matroot.sqrtm)
        field = [
            (
                Case("pade", "pade", {"degree": d, "inverse": inverse}),
                Contestant("pade", partial(function, method=Pade(degree=d)), Pade(degree=d)),
            )
            for d in (3, 4, 5, 6)
        ]
        yield both_ways(field, settings, 8 if settings.quick else 64, 64, output)
