"""Errors and matrix products of solvers on matrices with known spectra."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import torch
from torch import Tensor

import matroot

from ..baselines import EighRoot, exact_root
from ..cases import LEFT_OUT, Case, Group, Outcome, Settings
from ..compare import known
from ..entries import SOLVERS, VALUE_ALONE, scipy_root, why_no_scipy
from ..problems import SPECTRA, covariances, largest_error, symmetric, value_and_gradient, with_spectrum
from ..theory import gradient_bound, value_bound

CONDITIONS = tuple(10.0**k for k in range(1, 8))
CONVERGED = ("minimax+krylov", "minimax+smith", "eigh")
"""Solvers whose gradient is exact up to rounding."""


def groups(settings: Settings) -> Iterator[Group]:
    """Errors, and products of both roots and of the gradient of the root; 64 x 64 matrices (quick: 16 x 16)."""
    for kind, condition in spectra(settings.quick):
        parameters = {"spectrum": kind, "condition": condition}
        cases = tuple(Case("accuracy", name, parameters) for name in (*SOLVERS, "scipy"))
        solvers = {case.name: case.contestant for case in cases}
        yield Group(cases, partial(_outcomes, settings, solvers, kind, condition))


def spectra(quick: bool) -> Iterator[tuple[str, float | None]]:
    """Kinds of spectra with condition numbers; that of covariances is as it comes."""
    for kind in SPECTRA:
        for condition in (None,) if kind == "wishart" else CONDITIONS[1::3] if quick else CONDITIONS:
            yield kind, condition


def matrices(kind: str, condition: float | None, quick: bool) -> tuple[Tensor, Tensor]:
    """Eight matrices 64 x 64 (quick: two of 16 x 16) with a spectrum, and gradients of the output, in float64."""
    batch, n = (2, 16) if quick else (8, 64)
    A = covariances(batch, n) if condition is None else with_spectrum(kind, batch, n, condition)
    return A, symmetric(batch, n)


def errors(A: Tensor, G: Tensor, solver: Any) -> dict[str, float]:
    """Largest errors of root, inverse root and their gradients in the batch.

    NaN where there is no exact answer: singular matrices have a root, but neither its gradient nor an inverse.
    """
    found: dict[str, float] = {}
    for name, function, inverse in (("root", matroot.sqrtm, False), ("inverse", matroot.invsqrtm, True)):
        value, gradient = value_and_gradient(partial(function, **solver), A, G)
        true_value, true_gradient = value_and_gradient(partial(EighRoot.apply, inverse), A.double(), G.double())
        found[name] = largest_error(value, true_value if inverse else exact_root(A))
        found[f"{name}_gradient"] = largest_error(gradient, true_gradient)
    return found


def operations(A: Tensor, G: Tensor, solver: Any) -> dict[str, dict[str, float]]:
    """Products and factorisations per matrix, of both roots and of the gradient of the root.

    On the CPU, where all products are counted: those inside CUDA kernels are not.
    """
    A, G = A.cpu(), G.cpu()
    with matroot.count_operations(matrices=len(A)) as forward:
        matroot.roots(A, **solver)
    X = A.clone().requires_grad_()
    S = matroot.sqrtm(X, **solver)
    with matroot.count_operations(matrices=len(A)) as backward:
        torch.autograd.grad(S, X, G)
    return {"forward": asdict(forward), "backward": asdict(backward)}


def _outcomes(
    settings: Settings, solvers: dict[str, str], kind: str, condition: float | None, names: Sequence[str]
) -> Iterator[tuple[str, Outcome]]:
    A, G = (settings.place(T) for T in matrices(kind, condition, settings.quick))
    eigenvalues = torch.linalg.eigvalsh(A.double()).cpu()
    for name in names:
        solver = solvers[name]
        if solver == "scipy":
            yield name, _scipy(A, settings.device)
        else:
            yield name, _outcome(A, G, eigenvalues, solver, settings.eps)


def _scipy(A: Tensor, device: str) -> Outcome:
    """SciPy has neither inverse root nor gradient."""
    if why := why_no_scipy(device):
        return Outcome(note=LEFT_OUT + why)
    return Outcome(errors={"root": largest_error(scipy_root(A), exact_root(A))}, note=VALUE_ALONE)


def _outcome(A: Tensor, G: Tensor, eigenvalues: Tensor, name: str, eps: float) -> Outcome:
    method = SOLVERS[name]["method"]
    bounds = {inverse: value_bound(method, eigenvalues, eps, inverse == "inverse") for inverse in ("root", "inverse")}
    if name in CONVERGED:
        bounds["root_gradient"] = bounds["inverse_gradient"] = gradient_bound(method, eigenvalues, eps)
    spent = operations(A, G, SOLVERS[name])
    products = {f"{way}_products": float(spent[way]["products"]) for way in ("forward", "backward")}
    return Outcome(errors=errors(A, G, SOLVERS[name]), values=products, bounds=known(bounds))
