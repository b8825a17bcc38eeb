"""Launching the phases: as many launches as the shape alone tells, whatever the matrices hold.

Matrices that need fewer steps than others, or none, end at once in what is left of the sequence.
"""

from collections.abc import Iterator
from functools import cache

import torch
from torch import Tensor

from ..launch import LaunchSequence, device_context
from . import gradient_bounds, gradient_input, gradient_steps, roots_input, roots_progress, roots_steps
from .schedule import coefficients
from .tiles import BUFFERS, SMALL_TILE

_DEPTH = 64
"""Columns of the left factor that are loaded at a time; half of them where shared memory is small."""
_LARGE_TILE_SHARED_MEMORY = 192 << 10
_SMALL_TILE = SMALL_TILE.value
_MAX_SCRATCH = 1 << 30
"""Bytes of scratch; larger batches are processed in parts, of one matrix at least."""


def roots(A: Tensor, S: Tensor, R: Tensor, ridge: float, max_shift: float, key: tuple) -> None:
    """Roots into S and inverse roots into R, contiguous, of the symmetric parts of ``A`` (k, n, n)."""
    n, strides = A.shape[-1], A.stride()
    table = coefficients(A.device)
    tile, side = _shape(n)
    (lower, every), (small_lower, small_every) = _counts(side, tile), _counts(side, _SMALL_TILE)
    programs = (lower, 2 * lower, every, every, every, 2 * lower)
    with device_context(A.device):
        for part in _parts(len(A), side):
            a, s, r = A[part], S[part], R[part]
            scratch, sums, stats = _memory(a, side, roots_input.SUM_ROWS.value, roots_input.STATS.value)
            others, products = _sequences(tile, side, A.device, (*key, *_aligned(a, s, r)))
            others.launch(roots_input.measure_kernel, len(a) * small_lower, (a, sums, n, *strides))
            arguments = (a, scratch, sums, stats, n, *strides, ridge)
            others.launch(roots_input.scale_kernel, len(a) * small_lower, arguments)
            arguments = (s, r, scratch, sums, stats, table, n, _padded(n, _DEPTH), max_shift)
            for step, phase in _ROOTS_PHASES:
                kernel = roots_steps.roots_product_kernel
                products.launch(kernel, len(a) * programs[phase], (*arguments, phase, step))
            parity = roots_progress.MAX_STEPS.value % 2
            others.launch(roots_input.finish_kernel, len(a) * small_every, (s, r, stats, n, parity))


def solve(
    S: Tensor, R: Tensor, GS: Tensor, GR: Tensor, out: Tensor, ridge: float, has_S: bool, has_R: bool, key: tuple
) -> None:
    """X with S X + X S = GS - R GR R and the ridge term into ``out``, of the cotangents that are there; contiguous."""
    n, has_cotangent = S.shape[-1], (int(has_S), int(has_R))
    tile, side = _shape(n)
    (lower, every), small_lower = _counts(side, tile), _counts(side, _SMALL_TILE)[0]
    with device_context(S.device):
        for part in _parts(len(S), side):
            inputs, x = [T[part] for T in (S, R, GS, GR)], out[part]
            scratch, sums, stats = _memory(x, side, gradient_input.SUM_ROWS.value, gradient_input.STATS.value)
            others, products = _sequences(tile, side, S.device, (*key, *_aligned(*inputs, x)))
            others.launch(gradient_input.norms_kernel, len(x) * 4 * small_lower, (*inputs, sums, n))
            arguments = (*inputs, scratch, sums, stats, n, *has_cotangent)
            others.launch(gradient_input.precondition_kernel, len(x) * 3 * small_lower, arguments)
            arguments = (inputs[2], scratch, sums, stats, n, _padded(n, _DEPTH), *has_cotangent)
            for phase, repetition in _gradient_phases(has_R):
                programs = _gradient_programs(phase, repetition, every, lower)
                kernel = gradient_steps.gradient_product_kernel
                products.launch(kernel, len(x) * programs, (*arguments, phase, repetition))
            arguments = (x, scratch, sums, stats, n, ridge, side // tile)
            others.launch(gradient_input.store_gradient_kernel, len(x) * small_lower, arguments)


_ROOTS_PHASES = (
    (0, roots_steps.SQUARE_INPUT.value),
    (0, roots_steps.FIRST_STEP.value),
    *(
        (step, phase)
        for step in range(roots_progress.MAX_STEPS.value)
        for phase in range(roots_steps.RESIDUAL.value, roots_steps.UPDATE.value + 1)
    ),
)
"""Steps, and phases of them."""


@cache
def _gradient_phases(has_R: bool) -> tuple[tuple[int, int], ...]:
    """Phases, and their repetitions."""
    g = gradient_steps
    left, right = g.SANDWICH_LEFT.value, g.SANDWICH_RIGHT.value
    sandwiches = [(left, 0), (right, 0), (left, 1), (right, 1)] if has_R else [(left, 0), (right, 1)]
    newton = [(g.NEWTON.value, 0)]
    for k in range(1, gradient_bounds.MAX_NEWTON.value):
        newton += [(g.NEWTON_RESIDUAL.value, k), (g.NEWTON.value, k)]
    terms = [(phase.value, 0) for phase in (g.INVERSE_SQUARE, g.TERMS_LEFT, g.TERMS)]
    doublings = [
        (phase.value, k) for k in range(gradient_bounds.MAX_DOUBLINGS.value) for phase in (g.DOUBLE_LEFT, g.DOUBLE)
    ]
    return (*sandwiches, (g.START_INVERSE.value, 0), *newton, *terms, *doublings)


def _gradient_programs(phase: int, repetition: int, every: int, lower: int) -> int:
    """What ``gradient_steps.tiles_of_phase`` tells the programs."""
    if phase == gradient_steps.TERMS_LEFT.value:
        return 2 * every + lower
    if phase == gradient_steps.START_INVERSE.value:
        return 2 * lower
    if phase == gradient_steps.DOUBLE_LEFT.value:
        return every + lower
    if phase == gradient_steps.SANDWICH_LEFT.value:
        return every if repetition else every + lower
    return lower


def _padded(n: int, tile: int) -> int:
    return -(-n // tile) * tile


@cache
def _shape(n: int) -> tuple[int, int]:
    """Tile of products, and the size padded to whole tiles; by n alone, so that results do not depend on the batch.

    Large tiles load less, but where they pad more than small ones a step in n would more than double the work.
    """
    large = n > 512 or (n > 192 and _padded(n, 128) == _padded(n, 64))
    tile = 128 if large else 64
    return tile, _padded(n, tile)


def _counts(side: int, tile: int) -> tuple[int, int]:
    """Tiles of a matrix on and below its diagonal, and all."""
    rows = side // tile
    return rows * (rows + 1) // 2, rows * rows


def _sequences(tile: int, side: int, device: torch.device, key: tuple) -> tuple[LaunchSequence, LaunchSequence]:
    """Launches without products, and those with."""
    depth = _DEPTH if tile == _SMALL_TILE or _has_room(device) else _DEPTH // 2
    options = {"side": side, "TILE": tile, "DEPTH": depth}
    small = LaunchSequence({"side": side, "TILE": _SMALL_TILE}, device, key)
    return small, LaunchSequence(options, device, key, warps=tile // 16)


@cache
def _has_room(device: torch.device) -> bool:
    if device.type != "cuda":
        return True
    return torch.cuda.get_device_properties(device).shared_memory_per_block_optin >= _LARGE_TILE_SHARED_MEMORY


def _parts(batch: int, side: int) -> Iterator[slice]:
    """Parts of the batch with a limited scratch."""
    count = max(1, _MAX_SCRATCH // (4 * BUFFERS.value * side * side))
    return (slice(start, start + count) for start in range(0, batch, count))


def _aligned(*tensors: Tensor) -> Iterator[bool]:
    """What code is compiled for: matrices of an odd size begin anywhere."""
    return (T.data_ptr() % 16 == 0 for T in tensors)


def _memory(A: Tensor, side: int, rows: int, stats: int) -> tuple[Tensor, Tensor, Tensor]:
    """Scratch, sums, and statistics of each matrix, uninitialised."""
    batch = len(A)
    scratch = torch.empty(batch, BUFFERS.value, 2, side, side, dtype=torch.float16, device=A.device)
    sums = torch.empty(batch, rows, _counts(side, _SMALL_TILE)[1], dtype=torch.float32, device=A.device)
    return scratch, sums, torch.empty(batch, stats, dtype=torch.float32, device=A.device)
