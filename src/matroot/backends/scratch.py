"""Memory for kernels that work through a batch in chunks that stay in cache."""

import threading
from collections.abc import Iterator

import torch
from torch import Tensor

# Elements of one buffer: with half a dozen of them a chunk lives in the second-level caches.
_CHUNK = 1 << 18
# Fresh pages cost as much as a product, so buffers of this many bytes in all are kept, one set a thread.
_KEPT = 1 << 24
# Longer sums may be split among threads, differently in batches of other sizes.
_SPLIT = 1 << 15
_local = threading.local()


def chunks(matrices: int, n: int) -> Iterator[slice]:
    """Slices of a batch of n x n matrices, each small enough for the cache."""
    size = max(1, _CHUNK // (n * n))
    return (slice(start, min(start + size, matrices)) for start in range(0, matrices, size))


def buffers(count: int, chunk: Tensor) -> list[Tensor]:
    """Contiguous tensors like ``chunk`` with arbitrary contents, the same memory at every call in a thread."""
    length = chunk.numel()
    size = count * length * chunk.element_size()
    if size > _KEPT:
        return [torch.empty(chunk.shape, dtype=chunk.dtype) for _ in range(count)]
    memory: Tensor | None = getattr(_local, "memory", None)
    if memory is None or memory.numel() < size:
        del memory
        forget()  # before asking for more
        # Outside inference mode: a tensor made inside could not be written to by a later training step.
        with torch.inference_mode(False):
            memory = _local.memory = torch.empty(size, dtype=torch.uint8)
    flat = memory[:size].view(chunk.dtype)
    return [part.view(chunk.shape) for part in flat.split(length)]


def forget() -> None:
    """Give back the memory this thread keeps."""
    _local.__dict__.clear()


def diagonal(X: Tensor) -> Tensor:
    """The diagonals, (k, n), as a view."""
    return X.diagonal(dim1=-2, dim2=-1)


def frobenius(X: Tensor) -> Tensor:
    """Norms of the matrices, (k, 1, 1)."""
    if X.shape[-1] ** 2 < _SPLIT:
        return torch.linalg.vector_norm(X, dim=(-2, -1), keepdim=True)
    rows = torch.linalg.vector_norm(X, dim=-1, keepdim=True)
    return torch.linalg.vector_norm(rows, dim=-2, keepdim=True)


def total(X: Tensor) -> Tensor:
    """Sums of all entries of the matrices, (k, 1, 1)."""
    return X.sum((-2, -1), keepdim=True) if X.shape[-1] ** 2 < _SPLIT else X.sum(-1, keepdim=True).sum(-2, keepdim=True)


def twice(A: Tensor, ridge: float, out: Tensor | None = None) -> Tensor:
    """A + A^T with the ridge on it, contiguous: sums over other layouts depend on the batch."""
    X = torch.add(A, A.mT, out=torch.empty(A.shape, dtype=A.dtype) if out is None else out)
    if ridge:
        diagonal(X).add_(diagonal(X).sum(-1, keepdim=True), alpha=ridge / A.shape[-1])
    return X


def moderate(dtype: torch.dtype) -> float:
    """Norms between one over this and this have fourth powers within the dtype's range."""
    return torch.finfo(dtype).max ** 0.22


def doubled(A: Tensor, ridge: float, out: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """``twice``, its norms (k, 1, 1), and which matrices hold NaN or are not of moderate size, (k,).

    The identity replaces those.
    """
    n, limit = A.shape[-1], moderate(A.dtype)
    X = twice(A, ridge, out)
    norm = frobenius(X)
    refused = ~((norm > 1 / limit) & (norm < limit)).view(-1)
    if refused.any():
        X[refused] = torch.eye(n, dtype=A.dtype)
        norm[refused] = n**0.5
    return X, norm, refused
