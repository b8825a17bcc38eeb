"""The coupled minimax iteration on the CPU: one chunk of real matrices, in place.

Arithmetic is not the bottleneck here: a pass over a chunk that adds matrices to their transposes
takes as long as a product, a factorisation as long as many. So symmetrising waits until the end,
polynomials are folded into the accumulation of products, and only matrices that do not look
easy are factored. Every decision is made per matrix, from that matrix alone.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from .eager import inverse_norm
from .scratch import buffers, diagonal, doubled, frobenius, total


class Rung(NamedTuple):
    """A schedule: steps of degree 4, the first of degree 2 or 4."""

    condition: float
    """The condition number it allows for."""
    gap: float
    """The largest |1 - m| before the last step."""
    error: float
    """The largest |1 - sqrt(m)| after it."""
    steps: Sequence[Sequence[float]]


Ladder = Sequence[Rung]  # ascending


class _Part(NamedTuple):
    """Some matrices of the chunk."""

    members: Tensor
    """Their places in it."""
    X: Tensor
    """Twice the matrices, until their roots take the place."""
    square: Tensor
    """X^2, until the inverse roots take the place."""
    theta: Tensor
    """Bounds of the largest eigenvalues of X, (k, 1, 1)."""

    def take(self, chosen: Tensor) -> "_Part":
        return _Part(*(field[chosen] for field in self))


_UNKNOWN = -1
# Beyond this condition number Y and Z are symmetrised in every step: where they are not, rounding grows.
_UNSTABLE = 1e4
# The last step turns a deviation d = |1 - m| into an error of this times d^5.
_LEFT_OVER = 63 / 256


def roots(A: Tensor, ridge: float, ladder: Ladder, S: Tensor, R: Tensor) -> Tensor:
    """Write the roots of ``A`` (k, n, n) to ``S`` and ``R``; return which matrices were refused, (k,).

    Refused are matrices that hold NaN, are zero, very large or very small, or have a clearly negative
    eigenvalue; their rows of ``S`` and ``R`` are the identity.
    """
    X, norm, refused = doubled(A, ridge, S)
    square = torch.bmm(X, X, out=R)
    theta, rungs = _estimate(X, square, norm, ladder)

    whole = _Part(torch.arange(len(A)), X, square, theta)
    if rungs[0] != _UNKNOWN and rungs.count(rungs[0]) == len(rungs):
        late = _iterate(whole, ladder[rungs[0]])
        hard = whole.members[late]
        if len(hard) > 0:
            X, _, _ = doubled(A[hard], ridge)
            _escalate(_Part(hard, X, X @ X, theta[hard]), ladder, S, R, refused)
    else:
        guesses = torch.tensor(rungs)
        parts = [(rung, whole.take(guesses == rung)) for rung in sorted(set(rungs), reverse=True)]
        for rung, part in parts:
            if rung == _UNKNOWN:
                _escalate(part, ladder, S, R, refused)
                continue
            fresh = _Part(*(field.clone() for field in part))
            late = _iterate(part, ladder[rung])
            S[part.members], R[part.members] = part.X, part.square
            if late.any():
                _escalate(fresh.take(late), ladder, S, R, refused)
    if refused.any():
        S[refused] = R[refused] = torch.eye(A.shape[-1], dtype=A.dtype)
    return refused


def _iterate(part: _Part, rung: Rung) -> Tensor:
    """Put the roots of X/2 and their inverses where X and its square are; which have not converged, (k,)."""
    if len(part.X) == 1:
        # A batch of one takes another way through the library, with other last bits.
        pair = part.take(torch.tensor([0, 0]))
        late = _iterate(pair, rung)
        part.X.copy_(pair.X[:1])
        part.square.copy_(pair.square[:1])
        return late[:1]
    _, X, square, theta = part
    Y, Z, M = buffers(3, X)
    n, eps = X.shape[-1], torch.finfo(X.dtype).eps
    first, *middle, last = rung.steps
    # With T = first(X/theta), start from Y = X T/sqrt(theta) and Z = T/sqrt(theta): then Y -> X^(1/2).
    inverse = theta.reciprocal()
    c = [q * inverse ** (k + 0.5) for k, q in enumerate(first)]
    if len(c) == 5:
        torch.mul(square, c[4], out=M).addcmul_(X, c[3])
        diagonal(M).add_(c[2].view(-1, 1))
        torch.mul(X, c[1], out=Z).baddbmm_(M, square)
    else:
        torch.mul(square, c[2], out=Z).addcmul_(X, c[1])
    diagonal(Z).add_(c[0].view(-1, 1))
    torch.bmm(X, Z, out=Y)
    W, power = X, square
    for q in middle:
        torch.bmm(Z, Y, out=M)
        _polynomial(q, M, torch.bmm(M, M, out=power), W)
        Y, power = torch.bmm(Y, M, out=power), Y
        Z, power = torch.bmm(M, Z, out=power), Z
        if rung.condition > _UNSTABLE:
            Y, power = torch.add(Y, Y.mT, out=power).mul_(0.5), Y
            Z, power = torch.add(Z, Z.mT, out=power).mul_(0.5), Z

    torch.bmm(Z, Y, out=M)
    sharp = (12 * eps / _LEFT_OVER) ** 0.2
    early = n**0.5 * rung.gap < sharp
    late = torch.empty(0)
    if early:
        # ||I - M||_F^2, at least the square of the largest |1 - m|; cancellation leaves n eps.
        late = ~(frobenius(M).square_().view(-1) - 2 * diagonal(M).sum(-1) + n < sharp**2)
    _polynomial(last, M, torch.bmm(M, M, out=power), W)
    # Halves of the roots of X/2, and their sums with their transposes.
    power.baddbmm_(Y, M, beta=0, alpha=0.125**0.5)
    torch.add(power, power.mT, out=X)
    half = Y if power is square else power
    half.baddbmm_(M, Z, beta=0, alpha=0.5**0.5)
    if not early:
        # 2 tr(S Z) = n: an eigenvalue that the schedule was too short for leaves less.
        missing = 2 * total(torch.mul(X, half, out=M)).view(-1) - n
        late = ~(missing.abs() < 2 * n * rung.error + eps * (n**1.5 + 2 * (n * rung.condition) ** 0.5))
    torch.add(half, half.mT, out=square)
    return late


def _polynomial(q: Sequence[float], M: Tensor, square: Tensor, W: Tensor) -> None:
    """Overwrite M with q(M) for q of degree 4."""
    torch.add(square, M, alpha=q[3] / q[4], out=W)
    diagonal(W).add_(q[2] / q[4])
    diagonal(M.baddbmm_(W, square, beta=q[1], alpha=q[4])).add_(q[0])


def _estimate(X: Tensor, square: Tensor, norm: Tensor, ladder: Ladder) -> tuple[Tensor, list[int]]:
    """A bound of the largest eigenvalue (k, 1, 1), and the schedules to try first."""
    n = X.shape[-1]
    m2 = norm.square() / n
    m4 = frobenius(square).square_() / n
    # Eigenvalues of X^2 have mean m2 and variance m4 - m2^2: none is further than sqrt(n - 1) deviations off.
    # Two percent more, since polynomials are steep beyond the ends of their intervals.
    theta = ((m4 - m2 * m2).clamp_min_(0) * (n - 1)).sqrt_().add_(m2).sqrt_().mul_(1.02)
    # m1^2/m2 is 1/(1 + c) for covariances of n/c samples.
    m1 = diagonal(X).sum(-1).view(-1, 1, 1) / n
    share = m1.abs() * m1 / m2
    easy = next(k for k, rung in enumerate(ladder) if rung.condition >= 45)
    rungs = [easy if s > 0.6 else _UNKNOWN for s in share.view(-1).tolist()]
    if easy > 0 and (share > 0.85).any():
        # Nearly a multiple of the identity, or all but a few eigenvalues are. The two nodes of the spectrum's
        # Gauss quadrature, eigenvalues of the Jacobi matrix [[m1, b], [b, a]], tell.
        (work,) = buffers(1, X)
        m3 = total(torch.mul(X, square, out=work)) / n
        bb = m2 - m1 * m1
        a = (m3 - 2 * m1 * m2 + m1**3) / bb
        middle = 0.5 * (a + m1)
        radius = torch.sqrt(torch.square(a - middle) + bb)
        ratio = ((middle + radius) / (middle - radius)).view(-1).tolist()
        for k, (s, r) in enumerate(zip(share.view(-1).tolist(), ratio, strict=True)):
            if s > 0.85:
                rungs[k] = 0 if 0 < r < 1.7 else easy if 0 < r < 4.8 else _UNKNOWN
    return theta, rungs


def _escalate(part: _Part, ladder: Ladder, S: Tensor, R: Tensor, refused: Tensor) -> None:
    """Schedules by the condition that a Cholesky factor shows, then longer ones for those still not done.

    A matrix beyond the last schedule, singular or with eigenvalues negative by rounding, is shifted by rounding.
    """
    members, X, square, theta = part
    n, eps = X.shape[-1], torch.finfo(X.dtype).eps
    last = len(ladder) - 1
    factor, failed = torch.linalg.cholesky_ex(X / theta)
    condition = 1.05 * inverse_norm(factor)
    rungs = torch.zeros_like(failed)
    for rung in ladder[:-1]:
        rungs += condition > rung.condition
    waiting = failed.bool() | ~(condition <= ladder[-1].condition)
    failed[waiting] = 1
    for more in (0.0, 4 * eps, 4 * (n - 1) * eps):  # shifts of 4 eps, then 4 n eps
        if more:
            singular = waiting.nonzero()[:, 0]
            X[singular] += more * theta[singular] * torch.eye(n, dtype=X.dtype)
            square[singular] = X[singular] @ X[singular]
            failed[singular] = torch.linalg.cholesky_ex(X[singular] / theta[singular])[1]
            rungs[singular] = last
            tried = waiting & (failed == 0)
        else:
            tried = ~waiting
        for k, rung in enumerate(ladder):
            chosen = (tried & (rungs == k)).nonzero()[:, 0]
            if len(chosen) > 0:
                some = part.take(chosen)
                late = _iterate(some, rung)
                S[some.members], R[some.members] = some.X, some.square
                rungs[chosen[late]] += 1
        waiting = (failed != 0) | (rungs > last)  # or did not converge
        if not waiting.any():
            return
    refused[members[failed != 0]] = True
