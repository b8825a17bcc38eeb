"""Peak rates of a GPU, measured on it, and which of them limits a time."""

from collections.abc import Mapping
from functools import partial
from statistics import median
from typing import Any

import torch
from torch import Tensor

from ..._timer import Work, one_line, seconds_back_to_back, time_in_graph

Roofline = dict[str, Any]

SPLIT = 3
"""Half-precision products in one of float32, as the kernels compute them on the fast path."""
RESIDENT = 264
"""Programs of large matrices that are resident on an H200 together."""
TENSORS = 7
"""Tensors of the size of the input that a step moves at least: A, S, R forward, S, R, G and the gradient back."""


def measure_roofline(device: str = "cuda", small: bool = False) -> Roofline:
    """Rates of products and copies, and the time of a launch and of a derivative that compute almost nothing."""
    elements = 2**14 if small else 2**25  # 128 MB of float32, more than the caches
    found: Roofline = {"float32_matmul_precision": torch.get_float32_matmul_precision(), "bmm_teraflops": {}}
    for n in (64, 128) if small else (64, 128, 256, 512):
        X = torch.randn(max(1, elements // n**2), n, n, device=device)
        found["bmm_teraflops"][str(n)] = _rate(partial(torch.bmm, X, X), 2 * len(X) * n**3, device)
    n = 128 if small else 8192
    X = torch.randn(n, n, device=device).bfloat16()
    found["bfloat16_teraflops"] = _rate(partial(torch.mm, X, X), 2 * n**3, device)
    X = torch.randn(8 * elements, device=device)
    Y = torch.empty_like(X)
    found["copy_terabytes_per_second"] = _rate(partial(Y.copy_, X), 2 * X.nbytes, device)
    found["autograd_microseconds"] = 1e6 * _seconds(_tiny_step(device), device)
    found["launch_in_a_graph_microseconds"] = None
    try:
        launch = partial(torch.ones(1, device=device).add_, 1)
        found["launch_in_a_graph_microseconds"] = 1e6 * median(time_in_graph(launch))
    except Exception as error:
        found["note"] = one_line(error)
    return found


def _rate(work: Work, amount: int, device: str) -> float:
    """Trillions a second."""
    return 1e-12 * amount / _seconds(work, device)


def _seconds(work: Work, device: str) -> float:
    for _ in range(3):
        work()
    return median(seconds_back_to_back(work, 10, device) for _ in range(7))


def _tiny_step(device: str) -> Work:
    """A forward and backward pass of one number: what PyTorch takes for one however fast the kernels are."""
    X = torch.ones(1, device=device, requires_grad=True)
    G = torch.ones(1, device=device)

    def step() -> tuple[Tensor, ...]:
        return torch.autograd.grad(X.neg(), X, G)

    return step


def lower_bounds(batch: int, n: int, products: float, found: Roofline) -> dict[str, float]:
    """Microseconds that a step takes at least by launches, by arithmetic and by bytes."""
    flops, moved = work_of(batch, n, products)
    return {
        "launches": launches(batch, n) * (found["launch_in_a_graph_microseconds"] or 0.0),
        "arithmetic": 1e-6 * SPLIT * flops / found["bfloat16_teraflops"],
        "bytes": 1e-6 * moved / found["copy_terabytes_per_second"],
    }


def launches(batch: int, n: int) -> int:
    """Kernels in a step: above 64 some are for the robust path, above 128 large batches launch one for every phase."""
    across = -(-n // 64)
    resident = n <= 128 or batch * across * (across + 1) // 2 <= RESIDENT
    return 2 if n <= 64 else 6 if resident else 27


def work_of(batch: int, n: int, products: float) -> tuple[float, float]:
    """Floating-point operations and bytes of a step."""
    return 2.0 * products * batch * n**3, 4.0 * TENSORS * batch * n**2


def roofline_shares(teraflops: float, terabytes: float, n: int, found: Roofline) -> dict[str, float]:
    """Achieved rates as shares of the roofline: of library products of about this size, of bfloat16 ones, of a copy."""
    sizes = sorted(int(size) for size in found["bmm_teraflops"])
    nearest = next((size for size in sizes if size >= n), sizes[-1])
    return {
        "bmm": round(teraflops / found["bmm_teraflops"][str(nearest)], 4),
        "bfloat16": round(SPLIT * teraflops / found["bfloat16_teraflops"], 4),
        "copy": round(terabytes / found["copy_terabytes_per_second"], 4),
    }


def limiting_factor(time: float, alone: float | None, least: Mapping[str, float]) -> str:
    """A sentence: what limits a step of ``time`` us of which one matrix alone takes ``alone``, given lower bounds."""
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
        bound = "At no peak rate, so bound by what lies between products (splitting, reductions, barriers) or occupancy"
    return f"{bound}: of {time:.1f} us {numbers}; one matrix alone " + (
        "not measured." if alone is None else f"{alone:.1f} us ({alone_share:.0%})."
    )
