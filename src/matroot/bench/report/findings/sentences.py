"""Parts of sentences: names, lists and comparisons."""

from collections.abc import Iterable, Sequence

from ...formatting import duration, ratio
from ..case import Case
from ..series import label

NAMES = {
    "auto": "the default",
    "eigh": "torch.linalg.eigh",
    "paper": "the paper's method",
    "svd": "the eigendecomposition",
    "scipy": "SciPy",
}
"""Where legends, which are shorter, say something else."""
BATCHED = {"jax eigh": "JAX", "cupy eigh": "CuPy"}
"""Libraries whose decomposition of a batch was timed."""
EQUAL_WITHIN = 1.05
"""Times closer than this factor count as equal."""


def name(contestant: str) -> str:
    """What a contestant is called in a sentence."""
    return NAMES.get(contestant) or label(contestant)


def listing(items: Iterable[object]) -> str:
    """``a, b and c``."""
    texts = [str(item) for item in items]
    return " and ".join(([", ".join(texts[:-1])] if texts[:-1] else []) + texts[-1:])


def compare_times(time: float, other: float, other_name: str) -> str:
    """``3.7 times as fast as B (7.4 ms)``, for two times in milliseconds."""
    if other >= EQUAL_WITHIN * time:
        relation = f"{ratio(other / time)} times as fast as"
    elif time >= EQUAL_WITHIN * other:
        relation = f"{ratio(time / other)} times as long as"
    else:
        relation = "within 5 percent of"
    return f"{relation} {other_name} ({duration(other)})"


def where(selected: Sequence[object], everything: Sequence[object], quantity: str) -> str:
    """``everywhere (3 of 3)``, ``nowhere (0 of 3)`` or ``only for n = 8 (1 of 3)``."""
    count = f"({len(selected)} of {len(everything)})"
    if len(selected) == len(everything):
        return f"everywhere {count}"
    return f"only for {quantity} {listing(selected)} {count}" if selected else f"nowhere {count}"


def batched_decomposition(cases: Iterable[Case]) -> str:
    """What is called so: that of one library, or the faster of those that were timed."""
    timed = {case.contestant for case in cases if case.time}
    libraries = [library for contestant, library in BATCHED.items() if contestant in timed]
    faster = f"the faster of {listing(libraries)}" if len(libraries) > 1 else listing(libraries)
    return f"the batched eigendecomposition ({faster})"
