"""Singular matrices: relative errors of their roots, and times."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor

import matroot

from ..baselines import exact_root
from ..cases import rounded
from ..problems import covariances, largest_error
from .compared import OURS_FORWARD, PEER_FORWARD, add_times

Result = dict[str, Any]

SHAPES = ((16, 64), (4, 512), (1, 1024))
GOAL = 3e-4
"""What ``torch.linalg.eigh`` in float32 reaches."""
LARGEST_ON_CPU = 512
OURS_ON_CPU = "matroot on the CPU"


def measure(device: str, quick: bool, backend: str = "auto") -> Iterator[Result]:
    """Covariances of n/2 samples in float32: half of their eigenvalues are zeros, up to the rounding of entries."""
    root = partial(matroot.sqrtm, backend=backend)
    for batch, n in ((2, 8),) if quick else SHAPES:
        A = covariances(batch, n, n // 2, device=device).float()
        result: Result = {"case": f"{batch} x {n}, rank {n // 2}", "batch": batch, "n": n, "goal_error": GOAL}
        result["notes"] = {}
        entries = {OURS_FORWARD: partial(root, A), PEER_FORWARD: partial(eigh_root, A)}
        add_times(result, entries, device, quick)
        true = exact_root(A)
        found = {OURS_FORWARD: root(A), PEER_FORWARD: eigh_root(A)}
        if n <= LARGEST_ON_CPU:
            found[OURS_ON_CPU] = matroot.sqrtm(A.cpu()).to(device)
        result["errors"] = {name: {"root": rounded(largest_error(S, true))} for name, S in found.items()}
        yield result


def eigh_root(A: Tensor) -> Tensor:
    """By ``torch.linalg.eigh`` in the dtype of ``A``, negative eigenvalues being zeros."""
    values, U = torch.linalg.eigh(A)
    return (U * values.clamp_min(0).sqrt()[..., None, :]) @ U.mT
