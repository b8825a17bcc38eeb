"""Random batches, each from its number."""

import math
import random
from dataclasses import dataclass

import torch
from torch import Tensor

from ..problems import normal

DEFINITE = ("log", "uniform", "one-small", "one-large", "clustered")
"""Of spectra; eigenvalues of the first two are drawn."""
SINGULAR = ("singular", "rounded-zeros")
"""Half of the eigenvalues are zeros; or as rounding leaves zeros in covariances, up to 4 eps of either sign."""
KINDS = (*DEFINITE, *SINGULAR)
BAD = ("nan", "inf", "zero", "indefinite")
"""Matrices among the others: without a root, but for the zero matrix."""
DTYPES = {"float32": 0.75, "float64": 0.15, "bfloat16": 0.05, "float16": 0.05}
"""With the share of batches that have them."""
MAX_CONDITION = {"float32": 1e6, "float64": 1e6, "bfloat16": 10.0, "float16": 100.0}
"""Beyond that rounding the entries of a half type may leave no definite matrix."""
EDGES = (1, 2, 15, 16, 17, 31, 32, 33, 47, 48, 63, 64, 65, 66, 127, 128)
"""Sizes where something changes in kernels."""
MAX_SIZE = 1100
ELEMENTS = 1 << 17
"""Of a batch, about."""
MAX_EXPONENT = 50
"""Scales are powers of four up to 4^50, about 1e30: dividing by them and by their roots is exact."""
MAX_EXPONENT_OF_INVERSE = 30
"""Beyond, the gradient of an inverse root may lie outside the range of float32."""


@dataclass(frozen=True)
class Batch:
    """What a number says of a batch. ``conditions`` are those of its definite matrices, ``bad`` the kinds of others by
    position, ``gradients`` of which of the roots there are cotangents."""

    number: int
    n: int
    kind: str
    dtype: str
    exponent: int
    conditions: tuple[float, ...]
    bad: dict[int, str]
    gradients: tuple[bool, bool]

    @property
    def size(self) -> int:
        return len(self.conditions) + len(self.bad)

    @property
    def scale(self) -> float:
        return 4.0**self.exponent

    def good(self) -> list[int]:
        """Positions of the matrices with known eigenvalues."""
        return [i for i in range(self.size) if i not in self.bad]


def batch_of(number: int, max_size: int = MAX_SIZE) -> Batch:
    """The same for the same number, on every machine."""
    chance = random.Random(number)
    dtype = chance.choices(list(DTYPES), list(DTYPES.values()))[0]
    half = dtype in ("bfloat16", "float16")
    n = min(_size(chance), max_size, 256 if half else max_size)
    count = max(2, min(64, ELEMENTS // n**2))
    kind = chance.choice(DEFINITE if half else KINDS)
    most = math.log10(MAX_CONDITION[dtype])
    conditions = tuple(10 ** chance.uniform(0, most) for _ in range(count))
    spoilt = chance.random() < 0.3
    places = chance.sample(range(count + len(BAD)), len(BAD)) if spoilt else []
    limit = 3 if dtype == "float16" else MAX_EXPONENT
    exponent = chance.choice((0, chance.randint(-limit, limit)))
    root, inverse = chance.choice(((True, False), (False, True), (True, True)))
    if abs(exponent) > MAX_EXPONENT_OF_INVERSE:
        root, inverse = True, False
    return Batch(number, n, kind, dtype, exponent, conditions, dict(zip(places, BAD, strict=False)), (root, inverse))


def _size(chance: random.Random) -> int:
    """Mostly up to 128, often where something changes, seldom large."""
    where = chance.random()
    if where < 0.7:
        return chance.randint(1, 128)
    if where < 0.94:
        return chance.choice(EDGES)
    return round(math.exp(chance.uniform(math.log(129), math.log(MAX_SIZE))))


@dataclass(frozen=True)
class Matrices:
    """A batch on a device: what is asked, and what is known of the answer.

    A: (k, n, n) in the dtype asked. GS, GR: cotangents of root and inverse root in it, or None. ``scaled``
    ones are the same in float64 at scale one; eigenvalues (m, n) and eigenvectors (m, n, n) are those of the m ``good``
    matrices before rounding.
    """

    A: Tensor
    GS: Tensor | None
    GR: Tensor | None
    scaled_A: Tensor  # noqa: N815
    scaled_GS: Tensor | None  # noqa: N815
    scaled_GR: Tensor | None  # noqa: N815
    values: Tensor
    vectors: Tensor
    good: Tensor


def matrices_of(batch: Batch, device: str) -> Matrices:
    """Random numbers are the device's own: other kinds of devices have other eigenvectors and cotangents."""
    n, dtype = batch.n, getattr(torch, batch.dtype)
    noise = normal(3 * batch.size + 1, n, n, seed=batch.number, device=device)
    vectors = _bases(noise[-1], noise[: batch.size, 0])
    conditions = torch.tensor(batch.conditions, dtype=torch.float64, device=device)[:, None]
    good = torch.tensor(batch.good(), device=device)
    shares = noise[: batch.size, -1].erf().abs()[good]  # in (0, 1)
    values = eigenvalues(batch.kind, conditions, shares, torch.finfo(dtype).eps)
    A = torch.zeros(batch.size, n, n, dtype=torch.float64, device=device)
    A[good] = _with_eigenvalues(values, vectors[good])
    for place, kind in batch.bad.items():
        A[place] = _bad(kind, vectors[place], half=dtype.itemsize == 2)
    A = (batch.scale * A).to(dtype)
    # At scale one the largest eigenvalue is one, and so about are both roots and, times these, their gradients.
    cotangents: list[Tensor | None] = []
    for there, power, start in ((batch.gradients[0], 1, batch.size), (batch.gradients[1], 3, 2 * batch.size)):
        G = noise[start : start + batch.size]
        cotangents.append((2.0 ** (power * batch.exponent) * (G + G.mT)).to(dtype) if there else None)
    GS, GR = cotangents
    return Matrices(
        A,
        GS,
        GR,
        A.double() / batch.scale,
        None if GS is None else GS.double() / 2.0**batch.exponent,
        None if GR is None else GR.double() / 8.0**batch.exponent,
        values,
        vectors[good],
        good,
    )


def eigenvalues(kind: str, conditions: Tensor, shares: Tensor, eps: float) -> Tensor:
    """(m, n) in [1/condition, 1] with both ends among them, or zeros, given random ``shares`` (m, n) in (0, 1)."""
    n = shares.shape[-1]
    low = 1 / conditions
    if kind == "log":
        values = low**shares
    elif kind == "uniform":
        values = low + (1 - low) * shares
    elif kind in ("one-small", "one-large"):
        values = torch.ones_like(shares) if kind == "one-small" else low.expand_as(shares).clone()
    else:  # two clusters
        values = torch.where(shares < 0.5, low, torch.ones_like(shares))
    values[:, -1:] = low
    values[:, 0] = 1
    if kind in SINGULAR:
        zeros = slice((n + 1) // 2, n)
        values[:, zeros] = 0 if kind == "singular" else 4 * eps * (2 * shares[:, zeros] - 1)
    return values


def _bases(noise: Tensor, directions: Tensor) -> Tensor:
    """(k, n, n) orthogonal: one random basis, reflected along a random direction of each matrix (k, n).

    A factorisation for each would take longer than all that is measured.
    """
    basis = torch.linalg.qr(noise)[0]
    v = directions / torch.linalg.vector_norm(directions, dim=-1, keepdim=True)
    return basis - 2 * (v @ basis.mT)[..., :, None] * v[..., None, :]


def _with_eigenvalues(values: Tensor, vectors: Tensor) -> Tensor:
    A = (vectors * values[..., None, :]) @ vectors.mT
    return 0.5 * (A + A.mT)


def _bad(kind: str, vectors: Tensor, half: bool) -> Tensor:
    n = len(vectors)
    values = torch.ones(n, dtype=torch.float64, device=vectors.device)
    if kind == "indefinite":
        values[-1] = -0.5 if half else -0.1  # clearly: rounding to a half type excuses -0.02
    A = _with_eigenvalues(values, vectors)
    if kind == "zero":
        A = torch.zeros_like(A)
    elif kind in ("nan", "inf"):
        A[0, -1] = float(kind)
    return A
