"""Squared Smith doubling on the CPU: one chunk of real matrices, in place.

For B X + X B = C with positive definite B, and any p > 0, let K = (B + p I)^-1 and F = I - 2 p K. Then

    X = F X F + 2 p K C K = sum over k of F^k (2 p K C K) F^k,

and doubling, X <- X + F X F, F <- F^2, sums 2^j terms in j rounds. B is the preconditioned operator of
``Krylov``, S/mu + mu R, whose eigenvalues t + 1/t are at least 2 and rarely much more. Compared with
conjugate gradients this takes more products and far fewer passes over memory.
"""

import torch
from torch import Tensor

from .scratch import buffers, diagonal, frobenius


def solve(S: Tensor, R: Tensor, GS: Tensor | None, GR: Tensor | None, out: Tensor) -> None:
    """Write X with S X + X S = GS - R GR R to ``out``, given R = S^-1; symmetric parts of GS and GR count."""
    if len(S) == 1:
        # A batch of one takes another way through the library, with other last bits.
        pair = torch.empty(2, *S.shape[1:], dtype=S.dtype)
        twice = [None if G is None else G.expand(2, -1, -1) for G in (GS, GR)]
        solve(S.expand(2, -1, -1), R.expand(2, -1, -1), twice[0], twice[1], pair)
        out.copy_(pair[:1])
        return
    V, K, E, C = buffers(4, S)
    mu = torch.sqrt(frobenius(S) / frobenius(R))
    inverse = torch.mul(R, mu, out=E)
    torch.addcmul(inverse, S, mu.reciprocal(), out=V)
    # C = 2 GS - 2 R GR R, then C + (mu R) C (mu R); the 2 goes out at the end.
    if GR is not None:
        torch.add(GR, GR.mT, out=C).mul_(-mu.square().reciprocal())
        torch.bmm(inverse, C, out=K)
        torch.bmm(K, inverse, out=C)
    if GS is not None and GR is not None:
        C.add_(GS).add_(GS.mT)
    elif GS is not None:
        torch.add(GS, GS.mT, out=C)
    torch.bmm(inverse, C, out=K)
    C.baddbmm_(K, inverse)

    # V = B - 2 I has no eigenvalue below zero. K: the best quadratic for its job, then Newton's iteration.
    diagonal(V).sub_(2)
    torch.bmm(V, V, out=K)
    top = _largest(V, K)
    p = torch.sqrt(2 * (top + 2))
    (c0, c1, c2), error = _quadratic(2 + p, top)
    K.mul_(c2).addcmul_(V, c1)
    diagonal(K).add_(c0.view(-1, 1))
    diagonal(V).add_((2 + p).view(-1, 1))
    wanted = 8 * torch.finfo(S.dtype).eps
    spare = out
    while True:
        active = error > wanted
        if not active.any():
            break
        diagonal(E.baddbmm_(V, K, beta=0, alpha=-1)).add_(1)
        _keep(E, active)
        diagonal(E).add_(1)
        K, spare = torch.bmm(K, E, out=spare), K
        error = torch.where(active, error.square(), error)

    X, P = V, E
    torch.bmm(K, C, out=P)
    torch.bmm(P, K, out=X)
    F, spare = K.mul_(-2 * p), C
    diagonal(F).add_(1)
    # The largest |eigenvalue| of F, reached at both ends of the spectrum.
    factor = (p - 2) / (p + 2)
    while True:
        torch.bmm(F, X, out=P)
        X.baddbmm_(P, F)
        factor = factor.square()
        active = factor.square() > wanted
        if not active.any():
            break
        F, spare = torch.bmm(F, F, out=spare), F
        _keep(F, active)
    torch.add(X, X.mT, out=out).mul_(0.5 * p / mu)


def _keep(increment: Tensor, active: Tensor) -> None:
    """Zero the increments of matrices that are done, so that they do not depend on the others."""
    if not active.all():
        increment.mul_(active)


def _largest(V: Tensor, square: Tensor) -> Tensor:
    """A bound of the largest eigenvalue, (k, 1, 1), from the mean and variance of those of V^2."""
    n = V.shape[-1]
    m2 = frobenius(V).square_() / n
    m4 = frobenius(square).square_() / n
    return ((m4 - m2 * m2).clamp_min_(0) * (n - 1)).sqrt_().add_(m2).sqrt_().clamp_min_(0.01)


def _quadratic(least: Tensor, width: Tensor) -> tuple[tuple[Tensor, Tensor, Tensor], Tensor]:
    """The quadratic k(v) nearest to 1/(v + least) for v in [0, width], and the largest |1 - (v + least) k(v)|.

    With T the third Chebyshev polynomial, b = v + least, h half the width and z h the middle of the b's,
    1 - b k = T(z - b/h)/T(z).
    """
    h = 0.5 * width
    z = (least + h) / h
    unit = 1 / (h * z * (4 * z * z - 3))
    k0, k1, k2 = (12 * z * z - 3) * unit, -12 * z * unit / h, 4 * unit / (h * h)
    return (k0 + least * (k1 + least * k2), k1 + 2 * least * k2, k2), h * unit
