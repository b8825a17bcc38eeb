"""One random batch: which properties its results lack, and how large their errors are."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

import matroot

from ..problems import inverse_unit, relative_errors, root_unit
from .batches import SINGULAR, Batch, Matrices, matrices_of
from .reference import Answer, Exact, answer_of, singular_root

PARTS = ("root", "inverse", "gradient")
SINGULAR_ROOT = "singular root"
SAMPLE = 10
"""Every so many batches a matrix is computed alone as well."""
SAME = {"cuda": 8.0, "cpu": 16.0}
"""Units of rounding that the result in a batch and the result alone may differ: both have errors, and those of
decompositions, which large matrices take on a CPU, are up to eight."""

Roots = Callable[[Tensor], tuple[Tensor, Tensor]]
Cotangents = tuple[Tensor | None, Tensor | None]


@dataclass(frozen=True)
class Report:
    """``errors``: quantity -> (units, relative errors) of matrices in order; ``failures``: what must not be."""

    errors: dict[str, tuple[list[float], list[float]]]
    failures: list[str]
    condition: list[float]


def check(batch: Batch, device: str, roots: Roots = matroot.roots) -> Report:
    """Compute the batch and compare; ``errors`` and ``condition`` are of its matrices with known eigenvalues."""
    made = matrices_of(batch, device)
    results = compute(made.A, (made.GS, made.GR), roots)
    failures = _property_failures(batch, made, results)
    if batch.kind in SINGULAR and batch.n > 1:
        errors = relative_errors(_at_scale_one(batch, results)["root"][made.good], singular_root(made))
        units = errors / torch.finfo(made.A.dtype).eps ** 0.5
        return Report({SINGULAR_ROOT: (units.tolist(), errors.tolist())}, failures, [torch.inf] * len(errors))
    true = answer_of(made)
    if batch.number % SAMPLE == 0:
        failures += _batch_failures(batch, made, results, roots, true)
    return Report(_errors(batch, made, results, true), failures, true.condition.tolist())


def compute(A: Tensor, cotangents: Cotangents, roots: Roots) -> dict[str, Tensor]:
    """Root, inverse root and the gradient of their inner products with the cotangents, at the scale of the input."""
    X = A.detach().requires_grad_()
    outputs = roots(X)
    pairs = [(T, G) for T, G in zip(outputs, cotangents, strict=True) if G is not None]
    (gradient,) = torch.autograd.grad([T for T, _ in pairs], X, [G for _, G in pairs])
    return dict(zip(PARTS, (*(T.detach() for T in outputs), gradient), strict=True))


def _at_scale_one(batch: Batch, results: dict[str, Tensor]) -> dict[str, Tensor]:
    """In float64. Cotangents were scaled so that the gradient needs nothing."""
    powers = {"root": -1, "inverse": 1, "gradient": 0}
    return {name: T.double() * 2.0 ** (powers[name] * batch.exponent) for name, T in results.items()}


def _property_failures(batch: Batch, made: Matrices, results: dict[str, Tensor]) -> list[str]:
    """One look at the device for all of them."""
    names, flags = [], []
    eps = torch.finfo(made.A.dtype).eps
    bad = [(place, kind) for place, kind in batch.bad.items() if kind != "zero"]
    zero = [place for place, kind in batch.bad.items() if kind == "zero"]
    for name, T in results.items():
        good = T[made.good]
        names.append(f"{name} not finite")
        flags.append(~torch.isfinite(good).all())
        names.append(f"{name} not symmetric")
        distance = (good.double() - good.double().mT).abs().amax((-2, -1))
        flags.append((distance > eps * good.double().abs().amax((-2, -1))).any())
        for place, kind in bad:
            names.append(f"{name} not NaN where the matrix is {kind}")
            flags.append(~torch.isnan(T[place]).all())
        for place in zero:
            names.append(f"{name} not zero where the matrix is")
            flags.append((T[place] != 0).any())
    failed = torch.stack(flags).tolist()
    return [name for name, wrong in zip(names, failed, strict=True) if wrong]


def _errors(
    batch: Batch, made: Matrices, results: dict[str, Tensor], true: Answer
) -> dict[str, tuple[list[float], list[float]]]:
    measured = {}
    for name, T in _at_scale_one(batch, results).items():
        exact: Exact = getattr(true, name)
        errors = torch.linalg.matrix_norm(T[made.good] - exact.value) / exact.size
        measured[name] = (errors / _unit(name, made.A, true.condition)).tolist(), errors.tolist()
    return measured


def _unit(name: str, A: Tensor, condition: Tensor) -> Tensor:
    """What rounding alone costs, as a relative error (m,)."""
    return (root_unit if name == "root" else inverse_unit)(A.shape[-1], condition, torch.finfo(A.dtype).eps)


def _batch_failures(batch: Batch, made: Matrices, results: dict[str, Tensor], roots: Roots, true: Answer) -> list[str]:
    """The last of the good matrices alone: neither its neighbours nor their number may matter."""
    place = made.good[-1:]
    GS, GR = (None if G is None else G[place] for G in (made.GS, made.GR))
    alone = _at_scale_one(batch, compute(made.A[place], (GS, GR), roots))
    found = []
    for name, T in _at_scale_one(batch, results).items():
        difference = torch.linalg.matrix_norm(T[place] - alone[name]) / getattr(true, name).size[-1]
        if not (difference <= SAME[T.device.type] * _unit(name, made.A, true.condition[-1:])).all():
            found.append(f"{name} depends on the batch")
    return found
