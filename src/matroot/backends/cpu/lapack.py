"""Roots and gradients by eigendecomposition on the CPU: one chunk of real matrices, in few operations.

For one small matrix the operations around the decomposition take longer than the decomposition.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import torch
from torch import Tensor

# Elements of a chunk, so that what is made of it stays in cache.
_CHUNK = 1 << 18
# Below this many elements a thread has less to do than to wait for.
_WORTHWHILE = 1 << 15


def chunks(matrices: int, n: int) -> Iterator[slice]:
    """Slices of a batch of n x n matrices, each small enough for the cache."""
    size = max(1, (_CHUNK if n <= 128 else 4 * _CHUNK) // (n * n))  # of large matrices not even one stays in cache
    return (slice(start, min(start + size, matrices)) for start in range(0, matrices, size))


def decompose(A: Tensor, ridge: float) -> tuple[Tensor, Tensor, Tensor]:
    """Eigenvalues (k, n) and eigenvectors of the symmetric parts of ``A`` (k, n, n); which were refused, (k,).

    Refused are matrices that hold NaN, are zero, very large or very small, or have a clearly negative
    eigenvalue; they get eigenvalues one.
    """
    n = A.shape[-1]
    try:
        values, vectors = _eigh(_twice(A, ridge))
    except torch.linalg.LinAlgError:
        X = _twice(A, ridge)
        unusual = ~torch.isfinite(X).all(-1).all(-1)
        X[unusual] = torch.eye(n, dtype=A.dtype)
        values, vectors = _eigh(X)
        values[unusual] = 0  # to be refused below
    # Between one over this and this, fourth powers are within the dtype's range.
    limit = torch.finfo(A.dtype).max ** 0.22
    least, rounding = 1 / limit, -4 * n * torch.finfo(A.dtype).eps
    ends = torch.stack((values[:, 0], values[:, -1])).tolist()
    usable = [least < high < limit and low > rounding * high for low, high in zip(*ends, strict=True)]
    refused = ~torch.tensor(usable)
    if not all(usable):
        values[refused], vectors[refused] = 1.0, torch.eye(n, dtype=A.dtype)
    return values.mul_(0.5), vectors, refused


def compose(vectors: Tensor, values: Tensor) -> Tensor:
    """U diag(values) U^T, symmetric to the last bit."""
    half = torch.bmm(vectors * (0.5 * values).unsqueeze(-2), vectors.mT)
    return half + half.mT


def solve(values: Tensor, vectors: Tensor, GS: Tensor | None, GR: Tensor | None) -> Tensor:
    """X with S X + X S = GS - R GR R, given the eigenvalues, positive, of S^2; symmetric parts of GS and GR count.

    In the eigenbasis X_ij = GS_ij/(s_i + s_j) - GR_ij/(s_i s_j (s_i + s_j)).
    """
    s = torch.sqrt(values)
    i, j = s.unsqueeze(-1), s.unsqueeze(-2)
    inner = torch.zeros((), dtype=s.dtype)
    if GS is not None:
        inner = torch.bmm(vectors.mT, torch.bmm(GS, vectors))
    if GR is not None:
        inner = inner - torch.bmm(vectors.mT, torch.bmm(GR, vectors)).div_(i * j)
    half = torch.bmm(vectors, torch.bmm(inner.div_(i + j), vectors.mT))
    return half.add(half.mT).mul_(0.5)


def _twice(A: Tensor, ridge: float) -> Tensor:
    """A + A^T with the ridge on it, contiguous: sums over other layouts depend on the batch."""
    X = torch.add(A, A.mT, out=torch.empty(A.shape, dtype=A.dtype))
    if ridge:
        diagonal = X.diagonal(dim1=-2, dim2=-1)
        diagonal.add_(diagonal.sum(-1, keepdim=True), alpha=ridge / A.shape[-1])
    return X


def _eigh(A: Tensor) -> tuple[Tensor, Tensor]:
    """``torch.linalg.eigh``, the batch shared out among ``torch.get_num_threads()`` threads.

    How the library underneath uses threads changes the last bits of medium matrices, so whether it may does not
    depend on the batch. On few cores its own threads do better from n = 64 on, and from n = 256 everywhere.
    """
    n, available = A.shape[-1], torch.get_num_threads()
    threads = min(available, len(A), A.numel() // _WORTHWHILE)
    if n >= (64 if available < 4 else 256) or (n < 96 and threads < 2):
        return torch.linalg.eigh(A)
    parts = A.tensor_split(max(threads, 1))
    try:
        torch.set_num_threads(1)  # for the library, in all threads
        others = [_pool(available).submit(torch.linalg.eigh, part) for part in parts[1:]]
        results = [torch.linalg.eigh(parts[0]), *(other.result() for other in others)]
    finally:
        torch.set_num_threads(available)
    values, vectors = zip(*results, strict=True)
    return torch.cat(values), torch.cat(vectors)


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads - 1, "matroot")
