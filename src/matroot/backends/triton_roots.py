"""Launching the fused kernels, where there is Triton and a GPU for it."""

import contextlib
from functools import cache
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

Schedules = tuple[tuple[tuple[float, ...], ...], ...]
"""For easy, middling and hard matrices: six steps of five coefficients, the last of them Taylor's."""

LARGEST = 1024
"""Larger matrices take other ways."""

_ON_CHIP = 64
"""Matrices of this size still fit on chip, one a program; larger ones are shared by a group of programs."""


@torch.compiler.assume_constant_result
@cache
def missing(device: torch.device) -> str | None:
    """What kernels lack on a CUDA device, in words: Triton, or tensor cores for bfloat16."""
    if find_spec("triton") is None:
        return "Triton is not installed"
    major, minor = torch.cuda.get_device_capability(device)
    return None if major >= 8 else f"the GPU has compute capability {major}.{minor}, kernels need 8.0"


def roots(A: Tensor, ridge: float, schedules: Schedules) -> tuple[Tensor, Tensor]:
    """Roots and inverse roots in float32 of the symmetric parts of ``A`` (k, n, n), n <= LARGEST.

    NaN for matrices that hold NaN or Inf or have a clearly negative eigenvalue, zero for zero matrices.
    """
    n, strides = A.shape[-1], A.stride()
    S = torch.empty(A.shape, dtype=torch.float32, device=A.device)
    R = torch.empty_like(S)
    numbers = (n, *strides, ridge, _widest(n, A.dtype))
    table = on_device(A.device, schedules)
    if n > _ON_CHIP:
        from .triton_tiled_roots import tiled_roots_kernel as kernel

        grid, memory, options = _groups(A)
        _launch(kernel, grid, (A, S, R, table, *memory, *numbers), options, strides)
    else:
        from .triton_kernels import roots_kernel as kernel

        _launch(kernel, (A.shape[0], 1, 1), (A, S, R, table, *numbers), _with_cheap(n, A.is_cuda), strides)
    return S, R


def solve(S: Tensor, R: Tensor, GS: Tensor | None, GR: Tensor | None, ridge: float) -> Tensor:
    """X with S X + X S = GS - R GR R and the ridge's share, for float32 (k, n, n); symmetric parts of the G's count."""
    out = torch.empty_like(S)
    n = S.shape[-1]
    has = {"HAS_S": GS is not None, "HAS_R": GR is not None}
    GS, GR = (S if G is None else G.contiguous() for G in (GS, GR))
    inputs = (S, R, GS, GR, out)
    if n > _ON_CHIP:
        from .triton_tiled_smith import tiled_smith_kernel as kernel

        grid, memory, options = _groups(S)
        _launch(kernel, grid, (*inputs, *memory, n, ridge), has | options)
    else:
        from .triton_kernels import smith_kernel as kernel

        _launch(kernel, (S.shape[0], 1, 1), (*inputs, n, ridge), has | _with_cheap(n, S.is_cuda))
    return out


_compiled: dict[tuple, Any] = {}


def _launch(kernel: Any, grid: tuple[int, int, int], arguments: tuple, options: dict[str, Any], *more: object) -> None:
    """Launch a kernel, past the dispatcher of Triton where the same compiled code will do.

    Code is compiled for dtypes, alignments and divisibility of numbers, so for what is in the key or implied by it:
    ``more`` is what else the numbers depend on.
    """
    tensors = [argument for argument in arguments if isinstance(argument, Tensor)]
    key = (
        kernel,
        tensors[0].device,
        tuple((tensor.dtype, tensor.data_ptr() % 16 == 0) for tensor in tensors),
        tensors[0].shape[-1],
        *options.values(),
        *more,
    )
    compiled = _compiled.get(key)
    if compiled is None:
        with torch.cuda.device(tensors[0].device) if tensors[0].is_cuda else contextlib.nullcontext():
            _compiled[key] = kernel[grid](*arguments, **options)
        return
    constants = [options[name] for name in kernel.arg_names[len(arguments) :]]
    with torch.cuda.device(tensors[0].device):
        compiled[grid](*arguments, *constants)


@cache
def _widest(n: int, dtype: torch.dtype) -> float:
    """The last shift to try: rounding in float32, and that of the caller's dtype."""
    eps = torch.finfo(torch.float32).eps
    return 4 * n * eps + (torch.finfo(dtype).eps if dtype != torch.float32 else 0.0)


@cache
def on_chip(n: int, cuda: bool) -> dict[str, Any]:
    """Tile, precision and warps of kernels with one matrix a program; measured on one H200."""
    size = max(16, 1 << (n - 1).bit_length())
    return {"N": size, "PRECISION": _precision(cuda), "num_warps": {16: 1, 32: 2, 64: 4}[size]}


_RESIDENT = 2
"""Programs that fit on a multiprocessor at once: 4 warps with all the registers they can have, 113 KB each."""
_CACHE = 40 << 20
"""Bytes of scratch that stay in the L2 cache."""


def _groups(A: Tensor) -> tuple[tuple[int, int, int], tuple[Any, ...], dict[str, Any]]:
    """Grid, memory and options of a launch in which groups of programs share matrices."""
    from .triton_tiles import BUFFERS, LINE, SUMS

    batch, n = A.shape[:2]
    tile = 32 if n <= 128 else 64  # of the size alone, so that results do not depend on the batch
    across = -(-n // tile)
    size = across * tile
    programs = _RESIDENT * _multiprocessors(A.device)
    cached = _CACHE // (4 * BUFFERS.value * size * size)
    group, groups = _shape(across, batch, programs, cached) if A.is_cuda else (1, 1)
    slots = 1 << (across * across - 1).bit_length()
    memory = (
        torch.empty(groups, BUFFERS.value, size, size, dtype=torch.float32, device=A.device),
        torch.empty(groups, SUMS.value, slots, dtype=torch.float32, device=A.device),
        torch.zeros(groups, LINE.value, dtype=torch.int32, device=A.device),
        batch,
        groups,
        group,
    )
    options = {
        "SIZE": size,
        "TILE": tile,
        "DEPTH": 32,
        "SLOTS": slots,
        "PRECISION": _precision(A.is_cuda),
        "num_warps": 4,
        "num_stages": 3,
        "launch_cooperative_grid": True,  # programs wait for each other: all must be there
    }
    return (groups * group, 1, 1), memory, options


@cache
def _shape(across: int, batch: int, programs: int, cached: int) -> tuple[int, int]:
    """Programs in a group, and groups: those with the fewest rounds of tiles, then the fewest programs."""
    half, full = across * (across + 1) // 2, across * across

    def groups(group: int) -> int:
        return min(batch, programs // group, max(1, cached))

    def cost(group: int) -> int:
        rounds = sum(often * -(-tiles // group) for often, tiles in ((8, half), (3, 2 * half), (3, full)))
        return rounds * -(-batch // groups(group))

    group = min(range(1, min(programs, 2 * full) + 1), key=cost)
    return group, groups(group)


def _precision(cuda: bool) -> str:
    """How a float32 product is made of tensor core ones."""
    return "bf16x6" if cuda else "ieee"


@cache
def _with_cheap(n: int, cuda: bool) -> dict[str, Any]:
    """And how products for corrections are. ("tf32" gave NaN for odd n below 16 with Triton 3.6.)"""
    return on_chip(n, cuda) | {"CHEAP": "bf16x3" if cuda else "ieee"}


@cache
def _multiprocessors(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1


@cache
def on_device(device: torch.device, rows: tuple[tuple, ...]) -> Tensor:
    """Coefficients where kernels can read them."""
    return torch.tensor(rows, dtype=torch.float32, device="cpu").to(device, non_blocking=True)
