"""Counting what a call really costs."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack


@dataclass
class Counts:
    """Operations on n x n matrices.

    Attributes:
        products: n x n x n products.
        solves: linear systems with n right-hand sides and a factored matrix.
        factorizations: Cholesky factorisations, a sixth of a product each in arithmetic.
        decompositions: eigendecompositions.
        uncounted: calls of GPU kernels, whose products are not counted.
    """

    products: float = 0
    solves: float = 0
    factorizations: float = 0
    decompositions: float = 0
    uncounted: int = 0


_aten = torch.ops.aten
_FIELDS = {
    _aten.mm: "products",
    _aten.bmm: "products",
    _aten.addmm: "products",
    _aten.baddbmm: "products",
    _aten.baddbmm_: "products",
    _aten.cholesky_solve: "solves",
    _aten._cholesky_solve_helper: "solves",
    _aten.linalg_solve_triangular: "solves",
    _aten._linalg_solve_ex: "solves",
    _aten.linalg_cholesky_ex: "factorizations",
    _aten._linalg_eigh: "decompositions",
}


@contextmanager
def count_operations(matrices: int | None = None) -> Iterator[Counts]:
    """Count products, solves, factorisations and decompositions of eager code in the block.

    Forward and backward passes alike; products with vectors and systems of one right-hand side do not count. Kernels on
    a GPU decide for themselves how many products a matrix takes: ``counts.uncounted`` says how often one was called;
    ``backend="torch"`` counts instead. Code run by ``torch.compile`` is not seen.

    Args:
        matrices: None counts a batched operation once. A number counts it once for every matrix in it, and the counts
            are averages over that many matrices: what methods cost that treat matrices differently.

    Yields:
        The counts, which grow as the block runs.

    Example:
        >>> with matroot.count_operations() as counts:
        ...     S = matroot.sqrtm(torch.eye(4), method="taylor")
        >>> counts.products
        5
    """
    mode = _Counter(matrices)
    with mode:
        yield mode.counts


def report_products(total: int, batch: int) -> None:
    """Tell those who count of the products that compiled code made for all matrices of a batch together."""
    if not torch._C._len_torch_dispatch_stack():
        return
    for mode in _get_current_dispatch_mode_stack():
        if isinstance(mode, _Counter):
            mode.counts.products += total / (mode.matrices or batch)


def report_uncounted() -> None:
    """Tell those who count that a kernel makes products they do not see."""
    if torch._C._len_torch_dispatch_stack():
        for mode in _get_current_dispatch_mode_stack():
            if isinstance(mode, _Counter):
                mode.counts.uncounted += 1


class _Counter(TorchDispatchMode):
    def __init__(self, matrices: int | None) -> None:
        super().__init__()
        self.matrices = matrices
        self.counts = Counts()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        field = _FIELDS.get(func.overloadpacket)
        if field is not None and _square({"products": args[-2:], "solves": args[:2]}.get(field, ())):
            weight = 1 if self.matrices is None else args[0].shape[:-2].numel() / self.matrices
            setattr(self.counts, field, getattr(self.counts, field) + weight)
        return func(*args, **(kwargs or {}))


def _square(matrices) -> bool:
    return all(matrix.shape[-1] == matrix.shape[-2] for matrix in matrices)
