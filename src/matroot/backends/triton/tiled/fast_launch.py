"""Launching the phases of easy matrices, all at once where the programs for all tiles can be there at once."""

from collections.abc import Iterator

import torch
from torch import Tensor

from ..launch import Row, launch_known, resident
from . import fast_kernels as kernels
from . import tiles as tiles
from .fast_gradient import STEPS
from .split_fp16 import BUFFERS, SUMS

_TILE = 64
_SCRATCH = 1 << 29
"""Bytes of scratch; larger batches take turns."""
_AT_ONCE = {"num_warps": 4, "num_stages": 3, "launch_cooperative_grid": True}


def members(A: Tensor) -> int:
    """Programs for each matrix with which all phases can be one launch; zero if that is too many."""
    batch, n = A.shape[:2]
    half, full = _tiles(n, _small_tile(n))
    programs = min(full + half, resident(A.device, 98) // batch)
    return programs if programs >= half else 0


def roots(A: Tensor, S: Tensor, R: Tensor, left: Tensor, table: Tensor, ridge: float, members: int, key: tuple) -> None:
    """Roots into S and inverse roots into R of ``A`` (k, n, n), or a mark that a matrix is left."""
    n, strides = A.shape[-1], A.stride()
    if members:
        memory, facts, options = _memory(A, _small_tile(n), 2)
        members, warps = _crowd(A, members)
        arguments = (A, S, R, *memory, facts, left, table, n, *strides, ridge, members)
        options |= _AT_ONCE | {"num_warps": warps}
        launch_known(kernels.all_roots_phases_kernel, (len(A) * members, 1, 1), arguments, options, (warps, *key))
        return
    for part in _parts(A):
        memory, facts, options = _memory(A[part], _TILE, 2)
        half = len(facts) * _tiles(n, _TILE)[0]
        row = Row(options, A.device, key)
        row.launch(kernels.scale_kernel, half, (A[part], memory[0], facts, left[part], n, *strides, ridge))
        arguments = (S[part], R[part], *memory, facts, left[part], table, n)
        for phase in range(kernels.ROOTS_PHASES.value):
            programs = kernels.roots_tiles.fn(phase, half)
            row.launch(kernels.roots_phase_kernel, programs, arguments, PHASE=phase)


def solve(
    given: tuple[Tensor, ...],
    out: Tensor,
    left: Tensor,
    ridge: float,
    has: dict[str, bool],
    members: int,
    key: tuple,
) -> None:
    """X with S X + X S = GS - R GR R into ``out``, given S, R, GS and GR, or a mark that a matrix is left."""
    n = out.shape[-1]
    if members:
        memory, facts, options = _memory(out, _small_tile(n), 4)
        options |= has | _AT_ONCE
        arguments = (*given, out, *memory, facts, left, n, ridge, members)
        launch_known(kernels.all_solve_phases_kernel, (len(out) * members, 1, 1), arguments, options, key)
        return
    for part in _parts(out):
        S, R, GS, GR = (T[part] for T in given)
        memory, facts, options = _memory(out[part], _TILE, 4)
        scratch, sums = memory
        half, full = (len(facts) * count for count in _tiles(n, _TILE))
        row = Row(options, out.device, key)
        row.launch(kernels.measure_kernel, half, (R, GS, GR, sums, n), **has)
        row.launch(kernels.prepare_kernel, half, (S, R, GS, GR, scratch, sums, facts, left[part], n), **has)
        arguments = (GS, out[part], scratch, sums, facts, left[part], n, ridge)
        for phase in range(0 if has["HAS_R"] else 2, kernels.SOLVE_PHASES.value):
            programs = kernels.solve_tiles.fn(phase, half, full)
            for before in range(kernels.repeats.fn(phase, STEPS.value, STEPS.value)):
                known = (*arguments, before)
                row.launch(kernels.solve_phase_kernel, programs, known, PHASE=phase, HAS_S=has["HAS_S"])


def _crowd(A: Tensor, members: int) -> tuple[int, int]:
    """Programs for each matrix in a launch for roots, and their warps: rather half the warps than tiles that wait."""
    batch, n = A.shape[:2]
    most = 2 * _tiles(n, _small_tile(n))[0]
    if members >= most or _small_tile(n) == _TILE or not A.is_cuda:
        return members, 4
    return min(most, 2 * resident(A.device, 98) // batch), 2


def _small_tile(n: int) -> int:
    """That of all phases at once."""
    return 32 if n <= 128 else _TILE


def _side(n: int) -> int:
    return -(-n // _TILE) * _TILE


def _tiles(n: int, tile: int) -> tuple[int, int]:
    """Tiles of a matrix on and below its diagonal, and all."""
    across = _side(n) // tile
    return across * (across + 1) // 2, across * across


def _parts(A: Tensor) -> Iterator[slice]:
    """Parts of the batch, so that the scratch of each is not too large; all begin where memory is as aligned."""
    count = max(8, _SCRATCH // (4 * BUFFERS.value * _side(A.shape[-1]) ** 2) // 8 * 8)
    return (slice(start, start + count) for start in range(0, len(A), count))


def _memory(A: Tensor, tile: int, facts: int) -> tuple[tuple[Tensor, Tensor], Tensor, dict[str, int]]:
    """Scratch and sums, room for some facts about each matrix, and options."""
    batch, side = len(A), _side(A.shape[-1])
    scratch = torch.empty(batch, BUFFERS.value, 2, side, side, dtype=torch.float16, device=A.device)
    sums = torch.empty(batch, SUMS.value, tiles.SLOTS.value, dtype=torch.float32, device=A.device)
    known = torch.empty(batch, facts, dtype=torch.float32, device=A.device)
    return (scratch, sums), known, {"side": side, "TILE": tile, "DEPTH": _TILE}
