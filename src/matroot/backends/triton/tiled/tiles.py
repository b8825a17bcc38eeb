"""Matrices in tiles, for kernels in which a group of programs shares a matrix.

Matrices lie in a scratch that stays in the L2 cache, padded with zeros to whole tiles. The programs of a group deal the
tiles of a product among them and meet after it. Every sum is taken from the same slots in the same order by all of
them, so that they decide alike and results do not depend on their number. Of results that are symmetric but for
rounding, only the tiles on and below the diagonal are made.
"""
# pyright: reportGeneralTypeIssues=false
# Triton declares that calls of kernel functions never return.

import triton
import triton.language as tl

from ..primitives import integer_split_matmul

BUFFERS = tl.constexpr(6)  # matrices in the scratch of a group
SUMS = tl.constexpr(7)  # rows of slots for sums, each used for one purpose: a row may be written while another is read
SLOTS = tl.constexpr(256)  # to a row: tiles of the largest matrix
LINE = tl.constexpr(32)  # numbers to a cache line: whether a matrix is left, and the counter of a group


@triton.jit
def leave(left, matrix, whether):
    """Note whether a matrix is left, and let the counter of the group of that number start at zero."""
    tl.store(left + matrix * LINE, tl.where(whether, 1, 0))
    tl.store(left + matrix * LINE + 1, 0)


@triton.jit
def any_left(left, batch):
    """Whether any matrix is left, asked of many at a time."""
    lane = tl.arange(0, SLOTS)
    found = 0
    for start in range(0, batch, SLOTS):
        matrix = (start + lane).to(tl.int64)
        found += tl.sum(tl.load(left + matrix * LINE, matrix < batch, 0), 0)
    return found > 0


@triton.jit
def meet(counter, due, members):
    """Wait for the group; what its programs wrote is then there to read.

    One thread asks and tells the others: if each asked by itself, threads of a program could part here, and tensor
    cores need them together.
    """
    tl.debug_barrier()
    seen = tl.atomic_add(counter, 1, sem="acq_rel", scope="gpu") + 1
    while seen < due:
        seen = tl.atomic_add(counter, 0, sem="acquire", scope="gpu")
    tl.debug_barrier()
    return due + members


@triton.jit
def corner(t):
    """Row and column of tile t on or below the diagonal."""
    i = (0.5 * tl.sqrt(8.0 * tl.cast(t, tl.float32) + 1.0) - 0.49).to(tl.int32)  # the root is not rounded correctly
    return i, t - i * (i + 1) // 2


@triton.jit
def lower(t) -> tuple:
    """Row and column of tile t on or below the diagonal, and how often it counts in sums."""
    i, j = corner(t)
    return i, j, tl.where(i == j, 1.0, 2.0)


@triton.jit
def tile(t, half, across):
    """The place of tile t of all, or of half of them, and how often it counts in sums."""
    i, j, weight = lower(t)
    return tl.where(half, i, t // across), tl.where(half, j, t % across), tl.where(half, weight, 1.0)


@triton.jit
def index(i, j, TILE: tl.constexpr) -> tuple:
    lane = tl.arange(0, TILE)
    return (i * TILE + lane)[:, None], (j * TILE + lane)[None, :]


@triton.jit
def identity(i, j, n, TILE: tl.constexpr):
    row, column = index(i, j, TILE)
    return tl.where((row == column) & (row < n), 1.0, 0.0)


@triton.jit
def load(A, i, j, side, TILE: tl.constexpr):
    # Past the first cache, which does not see what other programs write.
    row, column = index(i, j, TILE)
    return tl.load(A + row * side + column, cache_modifier=".cg")


@triton.jit
def store(A, x, i, j, half, side, TILE: tl.constexpr):
    """Write a tile; if only half of them are made, its mirror image too."""
    row, column = index(i, j, TILE)
    if half & (i == j):
        x = 0.5 * x + 0.5 * tl.trans(x)
    tl.store(A + row * side + column, x)
    if half & (i != j):
        row, column = index(j, i, TILE)
        tl.store(A + row * side + column, tl.trans(x))


@triton.jit
def product(acc, A, B, i, j, side, TILE: tl.constexpr, DEPTH: tl.constexpr):
    """A tile of A B, added to acc."""
    lane, depth = tl.arange(0, TILE), tl.arange(0, DEPTH)
    left = A + (i * TILE + lane)[:, None] * side + depth[None, :]
    right = B + depth[:, None] * side + (j * TILE + lane)[None, :]
    for k in range(0, side, DEPTH):
        a = tl.load(left + k, cache_modifier=".cg")
        b = tl.load(right + k * side, cache_modifier=".cg")
        acc += integer_split_matmul(a, b)
    return acc


@triton.jit
def polynomial(
    A, Q, i, j, n, s, t, c0, c1, c2,
    QUADRATIC: tl.constexpr, side, TILE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """A tile of B (c0 I + c1 B + c2 Q), B = s t A: the second factor need not be written, nor waited for."""
    acc = tl.zeros((TILE, TILE), tl.float32)
    lane, depth = tl.arange(0, TILE), tl.arange(0, DEPTH)
    left = A + (i * TILE + lane)[:, None] * side + depth[None, :]
    place = depth[:, None] * side + (j * TILE + lane)[None, :]
    for k in range(0, side, DEPTH):
        row, column = k + depth[:, None], (j * TILE + lane)[None, :]
        a = tl.load(left + k, cache_modifier=".cg") * s * t
        b = c1 * (tl.load(A + place + k * side, cache_modifier=".cg") * s * t)
        b += tl.where((row == column) & (row < n), c0, 0.0)
        if QUADRATIC:
            b += c2 * tl.load(Q + place + k * side, cache_modifier=".cg")
        acc += integer_split_matmul(a, b)
    return acc


@triton.jit
def slots(sums, count):
    slot = tl.arange(0, SLOTS)
    return tl.load(sums + slot, slot < count, 0.0, cache_modifier=".cg")


@triton.jit
def collect(sums, count):
    return tl.sum(slots(sums, count), 0)


@triton.jit
def floor_log2(size):
    """The power of two of a size."""
    return tl.floor(tl.log2(tl.maximum(size, 1e-37)))


@triton.jit
def deliver(target, x, i, j, n, TILE: tl.constexpr):
    """A tile and its mirror image, where they lie inside of the matrix."""
    if i == j:
        x = 0.5 * x + 0.5 * tl.trans(x)
    row, column = index(i, j, TILE)
    tl.store(target + row * n + column, x, (row < n) & (column < n))
    if i != j:
        row, column = index(j, i, TILE)
        tl.store(target + row * n + column, tl.trans(x), (row < n) & (column < n))


@triton.jit
def given(source, i, j, n, stride_row, stride_column, TILE: tl.constexpr):
    """A tile of a matrix of the caller, in float32."""
    row, column = index(i, j, TILE)
    inside = (row < n) & (column < n)
    return tl.load(source + row * stride_row + column * stride_column, inside, 0.0).to(tl.float32)


@triton.jit
def twice(source, i, j, n, stride_row, stride_column, TILE: tl.constexpr):
    """A tile of twice the symmetric part of a matrix of the caller."""
    mirrored = given(source, j, i, n, stride_row, stride_column, TILE)
    return given(source, i, j, n, stride_row, stride_column, TILE) + tl.trans(mirrored)
