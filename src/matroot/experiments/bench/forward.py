"""Forward error against time: degrees and iterations of the truncated methods next to the exact ones."""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

import matroot

from ...methods import Eigen, Method, Minimax, NewtonSchulz, Pade, Taylor
from ..peers import EighRoot
from ..problems import distance
from .cases import Case, Group, Outcome, Settings
from .contestants import Contestant
from .racing import DISTINCT, Check, Work, both_ways, contest, matrices
from .theory import value_bound, whitening_bound


def forward(settings: Settings) -> Iterator[Group]:
    """Roots and inverse roots of 10000 (quick: 200) covariances 64 x 64, without gradients.

    Errors are means: "mae" over entries, "nrmse" over matrices of the relative Frobenius distance, "whitening" of
    |singular values of A^(-1/2) X - 1| with A = X X^T.
    """
    for inverse in (False, True):
        choices = _choices(settings.quick)
        cases = tuple(Case("forward", name, {**order, "inverse": inverse}) for name, _, order in choices)
        yield Group(cases, partial(_forward, settings, cases, [method for _, method, _ in choices], inverse))


def _choices(quick: bool) -> list[tuple[str, Method, dict[str, int]]]:
    """Names, methods and parameters; "auto" stands for either of the methods it chooses from."""
    found: list[tuple[str, Method, dict[str, int]]] = []
    found += [("taylor", Taylor(degree=d), {"degree": d}) for d in ((6, 11, 18) if quick else range(6, 19))]
    found += [("pade", Pade(degree=d), {"degree": d}) for d in ((3, 5, 9) if quick else range(3, 10))]
    found += [
        ("newton-schulz", NewtonSchulz(iterations=k), {"iterations": k}) for k in ((3, 5, 7) if quick else range(3, 8))
    ]
    return [*found, ("auto", Minimax(), {}), ("eigh", Eigen(), {})]


def _forward(settings: Settings, cases: tuple[Case, ...], methods: list[Method], inverse: bool) -> list[Outcome]:
    A = settings.place(matrices(200 if settings.quick else 10000, 64)[0])
    sample = A[:DISTINCT]
    wide = sample.double()
    true, values = EighRoot.apply(inverse, wide), torch.linalg.eigvalsh(wide).cpu()
    entries: dict[str, tuple[Work, Check]] = {}
    function = matroot.invsqrtm if inverse else matroot.sqrtm
    for case, method in zip(cases, methods, strict=True):
        root = {"auto": function, "eigh": partial(EighRoot.apply, inverse)}.get(
            case.contestant, partial(function, method=method)
        )

        def check(root=root, method=method):
            return _errors(method, root(sample), wide, true, values, settings.eps, inverse)

        entries[case.name] = partial(root, A), check
    with torch.no_grad():
        found = contest(entries, settings)
    return [found[case.name] for case in cases]


def _errors(
    method: Method, found: Tensor, wide: Tensor, true: Tensor, values: Tensor, eps: float, inverse: bool
) -> tuple[dict[str, float], dict[str, float]]:
    found = found.double()
    errors = {"mae": (found - true).abs().mean().item(), "nrmse": distance(found, true).mean().item()}
    bounds = {"nrmse": value_bound(method, values, eps, inverse)}
    if inverse:
        # The squares of the singular values, without the data.
        squares = torch.linalg.eigvalsh(found @ wide @ found.mT)
        errors["whitening"] = (squares.clamp_min(0).sqrt() - 1).abs().mean().item()
        bounds["whitening"] = whitening_bound(method, values, eps)
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
