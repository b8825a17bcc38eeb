"""Batches in parts that stay in cache."""

from collections.abc import Iterator

_CHUNK = 1 << 18
"""Elements of a part."""


def cache_sized_slices(batch: int, n: int) -> Iterator[slice]:
    """Slices of a batch of n x n matrices, each small enough for the cache."""
    size = max(1, (_CHUNK if n <= 128 else 4 * _CHUNK) // (n * n))  # of large matrices not even one stays in cache
    return (slice(start, min(start + size, batch)) for start in range(0, batch, size))
