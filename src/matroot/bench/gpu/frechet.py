"""The Frechet distance of two sets of features, next to the same by decompositions."""

from functools import partial
from typing import Any

import torch
from torch import Tensor

from ...metrics import frechet_distance_of_samples
from ..cases import rounded
from ..problems import normal
from .compared import OURS_FORWARD, PEER_FORWARD, add_times
from .singular import eigh_root

Result = dict[str, Any]

FEATURES, SAMPLES = 2048, 5000
GOAL = 50.0
"""Milliseconds."""


def measure(device: str, quick: bool) -> Result:
    """Times of a forward pass, and the relative distance of the two results."""
    d, samples = (8, 20) if quick else (FEATURES, SAMPLES)
    x1, x2 = (normal(samples, d, seed=seed, device=device, dtype=torch.float32) for seed in (0, 1))
    x2 = 1.5 * x2 + 0.5
    result: Result = {
        "case": f"Frechet distance, {d} features, {samples} samples",
        "batch": 1,
        "n": d,
        "dtype": "float32",
        "goal_milliseconds": GOAL,
        "notes": {},
    }
    works = {OURS_FORWARD: partial(frechet_distance_of_samples, x1, x2), PEER_FORWARD: partial(by_eigh, x1, x2)}
    add_times(result, works, device, quick)
    ours, theirs = works[OURS_FORWARD]().double(), by_eigh(x1, x2)
    return result | {"errors": {OURS_FORWARD: {"distance": rounded(((ours - theirs).abs() / theirs).item())}}}


def by_eigh(x1: Tensor, x2: Tensor) -> Tensor:
    """|m1 - m2|^2 + tr C1 + tr C2 - 2 tr (C1^(1/2) C2 C1^(1/2))^(1/2) in float64, by two decompositions."""
    (m1, C1), (m2, C2) = ((x.double().mean(0), torch.cov(x.double().mT)) for x in (x1, x2))
    root = eigh_root(C1)
    values = torch.linalg.eigvalsh(root @ C2 @ root).clamp_min(0)
    return (m1 - m2).square().sum() + C1.trace() + C2.trace() - 2 * values.sqrt().sum()
