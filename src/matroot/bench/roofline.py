"""What a GPU can do at most, measured on it, and which of that bounds a time."""

from collections.abc import Callable, Mapping
from functools import partial
from statistics import median
from typing import Any

import torch
from torch import Tensor

from .timer import back_to_back, reason, replay

Ceilings = dict[str, Any]

SPLIT = 3
"""Half products in one of float32, as the kernels make them for easy matrices."""
AT_ONCE = 264
"""Programs of large matrices that fit on an H200 at once."""
TENSORS = 7
"""Tensors of the size of the input that a step moves at least: A, S, R forward, S, R, G and the gradient back."""


def ceilings(device: str = "cuda", small: bool = False) -> Ceilings:
    """Rates of products and copies, and what a launch and a derivative cost that compute nothing."""
    elements = 2**14 if small else 2**25  # 128 MB of float32, more than caches hold
    found: Ceilings = {"float32_matmul_precision": torch.get_float32_matmul_precision(), "bmm_teraflops": {}}
    for n in (64, 128) if small else (64, 128, 256, 512):
        X = torch.randn(max(1, elements // n**2), n, n, device=device)
        found["bmm_teraflops"][str(n)] = _rate(partial(torch.bmm, X, X), 2 * len(X) * n**3, device)
    n = 128 if small else 8192
    X = torch.randn(n, n, device=device).bfloat16()
    found["bfloat16_teraflops"] = _rate(partial(torch.mm, X, X), 2 * n**3, device)
    X = torch.randn(8 * elements, device=device)
    Y = torch.empty_like(X)
    found["copy_terabytes_per_second"] = _rate(partial(Y.copy_, X), 2 * X.nbytes, device)
    found["autograd_microseconds"] = 1e6 * _seconds(_nothing(device), device)
    found["launch_in_a_graph_microseconds"] = None
    try:
        found["launch_in_a_graph_microseconds"] = 1e6 * median(replay(partial(torch.ones(1, device=device).add_, 1)))
    except Exception as error:
        found["note"] = reason(error)
    return found


def _rate(work: Callable[[], object], amount: int, device: str) -> float:
    """Trillions a second."""
    return 1e-12 * amount / _seconds(work, device)


def _seconds(work: Callable[[], object], device: str) -> float:
    for _ in range(3):
        work()
    return median(back_to_back(work, 10, device) for _ in range(7))


def _nothing(device: str) -> Callable[[], object]:
    """A forward and backward pass of almost nothing: what PyTorch takes for one however fast the kernels are."""
    X = torch.ones(1, device=device, requires_grad=True)
    G = torch.ones(1, device=device)

    def step() -> tuple[Tensor, ...]:
        return torch.autograd.grad(X.neg(), X, G)

    return step


def floors(batch: int, n: int, products: float, found: Ceilings) -> dict[str, float]:
    """Microseconds that a step takes at least by launches, by arithmetic and by bytes."""
    flops, moved = work_of(batch, n, products)
    return {
        "launches": launches(batch, n) * (found["launch_in_a_graph_microseconds"] or 0.0),
        "arithmetic": 1e-6 * SPLIT * flops / found["bfloat16_teraflops"],
        "bytes": 1e-6 * moved / found["copy_terabytes_per_second"],
    }


def launches(batch: int, n: int) -> int:
    """Kernels in a step: above 64 some are for what is not easy, above 128 large batches take one for every phase."""
    across = -(-n // 64)
    at_once = n <= 128 or batch * across * (across + 1) // 2 <= AT_ONCE
    return 2 if n <= 64 else 6 if at_once else 27


def work_of(batch: int, n: int, products: float) -> tuple[float, float]:
    """Floating-point operations and bytes of a step."""
    return 2.0 * products * batch * n**3, 4.0 * TENSORS * batch * n**2


def shares(teraflops: float, terabytes: float, n: int, found: Ceilings) -> dict[str, float]:
    """Achieved rates next to the ceilings: of library products of about this size, of bfloat16 ones, of a copy."""
    sizes = sorted(int(size) for size in found["bmm_teraflops"])
    nearest = next((size for size in sizes if size >= n), sizes[-1])
    return {
        "bmm": round(teraflops / found["bmm_teraflops"][str(nearest)], 4),
        "bfloat16": round(SPLIT * teraflops / found["bfloat16_teraflops"], 4),
        "copy": round(terabytes / found["copy_terabytes_per_second"], 4),
    }


def verdict(time: float, alone: float | None, least: Mapping[str, float]) -> str:
    """A sentence: what bounds a step of ``time`` us of which one matrix alone takes ``alone``, given its floors."""
    share = {name: floor / time for name, floor in least.items()}
    numbers = ", ".join(f"{name} {least[name]:.1f} us ({share[name]:.0%})" for name in least)
    alone_share = (alone or 0.0) / time
    if share["launches"] > 0.5:
        bound = "Bound by launches"
    elif max(share["arithmetic"], share["bytes"]) > 0.5:
        bound = f"Bound by {'arithmetic' if share['arithmetic'] > share['bytes'] else 'bytes'}"
    elif alone_share > 0.6:
        bound = "Bound by latency, the chain of steps in a single matrix"
    else:
        bound = "At no ceiling, so bound by what lies between products (splitting, reductions, barriers) or occupancy"
    return f"{bound}: of {time:.1f} us {numbers}; one matrix alone " + (
        "not measured." if alone is None else f"{alone:.1f} us ({alone_share:.0%})."
    )
