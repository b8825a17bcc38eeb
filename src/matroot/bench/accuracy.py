"""The default solver and its peers on matrices with known spectra, as in ``experiments.solver``."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch

from . import solver
from .cases import LEFT_OUT, Case, Group, Outcome, Settings
from .contestants import VALUE_ALONE, scipy_obstacle, scipy_root
from .problems import SPECTRA, covariances, symmetric, with_spectrum
from .racing import worst
from .theory import gradient_bound, value_bound

CONVERGED = ("minimax+krylov", "minimax+smith", "eigh")


def accuracy(settings: Settings) -> Iterator[Group]:
    """Errors, and products of both roots and of the gradient of the root; 64 x 64 matrices (quick: 16 x 16)."""
    for kind in SPECTRA:
        for condition in (
            (None,) if kind == "wishart" else solver.CONDITIONS[1::3] if settings.quick else solver.CONDITIONS
        ):
            parameters = {"spectrum": kind, "condition": condition}
            cases = tuple(Case("accuracy", name, parameters) for name in (*solver.SOLVERS, "scipy"))
            yield Group(cases, partial(_outcomes, settings, kind, condition))


def _outcomes(settings: Settings, kind: str, condition: float | None) -> list[Outcome]:
    batch, n = (2, 16) if settings.quick else (8, 64)
    A = covariances(batch, n) if condition is None else with_spectrum(kind, batch, n, condition)
    A, G = settings.place(A), settings.place(symmetric(batch, n))
    values = torch.linalg.eigvalsh(A.double()).cpu()
    found = [_outcome(A, G, values, name, choice, settings.eps) for name, choice in solver.SOLVERS.items()]
    return [*found, _scipy(A, settings.device)]


def _scipy(A: torch.Tensor, device: str) -> Outcome:
    """SciPy has neither inverse root nor gradient."""
    if obstacle := scipy_obstacle(device):
        return Outcome(note=LEFT_OUT + obstacle)
    values, U = torch.linalg.eigh(A.double())
    true = (U * values.clamp_min(0).sqrt()[..., None, :]) @ U.mT
    return Outcome(errors={"root": worst(scipy_root(A), true)}, note=VALUE_ALONE)


def _outcome(A: torch.Tensor, G: torch.Tensor, values: torch.Tensor, name: str, choice: Any, eps: float) -> Outcome:
    found = solver.errors(A, G, choice)
    errors = {key.removesuffix("_error"): value for key, value in found.items()}
    # Counted on the CPU, since nobody sees the products inside a kernel.
    spent = solver.operations(A.cpu(), G.cpu(), choice)
    bounds = {"root": value_bound(choice["method"], values, eps), "inverse": None, "root_gradient": None}
    bounds["inverse"] = value_bound(choice["method"], values, eps, inverse=True)
    if name in CONVERGED:
        bounds["root_gradient"] = bounds["inverse_gradient"] = gradient_bound(choice["method"], values, eps)
    kept = {key: bound for key, bound in bounds.items() if bound is not None}
    # None is no number here where a bound says there should be one.
    errors = {key: float("nan") if value is None and key in kept else value for key, value in errors.items()}
    products = {f"{way}_products": float(spent[way]["products"]) for way in ("forward", "backward")}
    return Outcome(errors=errors, values=products, bounds=kept)
