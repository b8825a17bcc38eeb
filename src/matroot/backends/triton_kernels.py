"""Roots and their gradients on a GPU, one launch each: one program per matrix, everything on chip.

The programs do what ``native`` does, and nothing is left to the host: cleaning, scaling,
ridge, definiteness, stopping and restoring happen inside. Products that only correct a result are made of fewer
tensor core ones than others: of CHEAP ones the relative error is 4e-6, and it counts in proportion to the
correction. Import only where Triton is.
"""

import triton
import triton.language as tl

STEPS = tl.constexpr(6)  # of the longest schedule in the table


@triton.jit
def _product(a, b, PRECISION: tl.constexpr):
    return tl.dot(a, b, input_precision=PRECISION)


@triton.jit
def _total(x):
    return tl.sum(tl.sum(x, 1), 0)


@triton.jit
def _bound(m2, m4, n):
    """Bound of the largest eigenvalue, from the means of their squares and fourth powers."""
    return tl.sqrt(m2 + tl.sqrt((n - 1) * tl.maximum(m4 - m2 * m2, 0.0)))


@triton.jit
def _near_inverse(top):
    """Smith's p, then the quadratic of native/kernel.h nearest to (V + 2 + p)^-1 for V from 0 to ``top``: its
    coefficients, and how far from one it leaves their product."""
    p = tl.sqrt(2 * (top + 2))
    h = 0.5 * top
    least = 2 + p
    z = (least + h) / h
    unit = 1 / (h * z * (4 * z * z - 3))
    k1 = -12 * z * unit / h
    k2 = 4 * unit / (h * h)
    k0 = (12 * z * z - 3) * unit + least * (k1 + least * k2)
    return p, k0, k1 + 2 * least * k2, k2, h * unit


@triton.jit
def roots_kernel(
    A, S, R, table, n, stride_batch, stride_row, stride_column, ridge, widest,
    N: tl.constexpr, PRECISION: tl.constexpr, CHEAP: tl.constexpr,
):  # fmt: skip
    """Roots S and inverse roots R, float32 (k, n, n), of the symmetric parts of A, any floating dtype.

    ``table`` holds three schedules of STEPS steps of five coefficients; ``widest`` is the last shift to try
    on a matrix that is not positive, relative to a bound of its largest eigenvalue.
    """
    matrix = tl.program_id(0).to(tl.int64)
    row = tl.arange(0, N)[:, None]
    column = tl.arange(0, N)[None, :]
    inside = (row < n) & (column < n)
    source = A + matrix * stride_batch
    X = tl.load(source + row * stride_row + column * stride_column, inside, 0.0).to(tl.float32)
    X += tl.trans(X)
    eye = tl.where((row == column) & inside, 1.0, 0.0)

    # Scaled by a power of two so that no power leaves the range of float32. A mean modulus will do: the largest
    # is no more than n^2 times that, and NaN and Inf show in it.
    size = _total(tl.abs(X) * (1.0 / (N * N)))
    finite = size - size == 0
    exponent = tl.floor(tl.log2(tl.maximum(size, 1e-37)))
    half = tl.floor(0.5 * exponent)
    X = tl.where((size > 0) & finite, X * tl.exp2(-half) * tl.exp2(half - exponent), eye)
    trace = _total(X * eye)
    X += eye * (ridge / n) * trace
    trace += ridge * trace

    Y, Z = eye, eye
    attempt = 0
    shift = 0.0 * widest
    done = size < 0
    sharp = 0.0081  # (12 eps/(63/256))^(2/5)
    while (attempt < 4) & (not done):
        square = _product(X, X, PRECISION)
        m1 = trace / n
        m2 = _total(X * X) / n
        m4 = _total(square * square) / n
        theta = 1.02 * _bound(m2, m4, n)
        share = m1 * tl.abs(m1) / m2
        schedule = tl.where(share > 0.6, 0, tl.where(share > 0.35, 1, 2))
        schedule = tl.where(attempt > 0, 2, schedule)
        steps = table + schedule * (STEPS * 5)
        inverse = 1.0 / theta
        root = tl.sqrt(inverse)
        Z = (
            tl.load(steps) * root * eye
            + tl.load(steps + 1) * root * inverse * X
            + tl.load(steps + 2) * root * inverse * inverse * square
        )
        Y = _product(X, Z, PRECISION)
        step = 1
        going = theta == theta
        while going:
            M = _product(Z, Y, PRECISION)
            E = eye - M
            gap = _total(E * E)
            done = gap < sharp
            if done:
                # Taylor's step, as a correction: M^(-1/2) - I in powers of E.
                square = _product(E, E, CHEAP)
                T = 0.5 * E + 0.375 * square + _product(square, 0.3125 * E + 0.2734375 * square, CHEAP)
                Y += _product(Y, T, CHEAP)
                Z += _product(T, Z, CHEAP)
            else:
                c = steps + tl.minimum(step, STEPS - 1) * 5
                square = _product(M, M, PRECISION)
                T = tl.load(c + 4) * square + tl.load(c + 3) * M + tl.load(c + 2) * eye
                T = _product(T, square, PRECISION) + tl.load(c + 1) * M + tl.load(c) * eye
                Y = _product(Y, T, PRECISION)
                Z = _product(T, Z, PRECISION)
                if schedule > 0:
                    # Rounding grows in ill-conditioned matrices where Y and Z are not symmetric.
                    Y = 0.5 * (Y + tl.trans(Y))
                    Z = 0.5 * (Z + tl.trans(Z))
            step += 1
            # Steps beyond the longest schedule enlarge a small singular value by 2.46 each: what is left far behind
            # then is as good as singular.
            going = (not done) & (step < tl.where((schedule == 2) & (attempt == 0) & (gap > 0.5), 7, 12)) & (gap < 1e6)
        if not done:
            # Singular, negative by rounding, or indefinite.
            wider = tl.where(attempt == 0, 4.8e-7, tl.where(attempt == 1, 4.8e-7 * n, widest))
            X += (wider - shift) * theta * eye
            trace += (wider - shift) * theta * n
            shift = wider
            attempt += 1

    # X is twice the matrix, divided by 2^exponent.
    poison = tl.where(finite & (done | (size == 0)), 0.0, float("nan"))
    scale = 0.5 * tl.sqrt(0.5 * tl.exp2(exponent - 2 * half)) * tl.exp2(half)
    keep = tl.where(size > 0, 1.0, 0.0)
    target = matrix * n * n + row * n + column
    tl.store(S + target, keep * scale * (Y + tl.trans(Y)) + poison, inside)
    tl.store(R + target, keep * (0.25 / scale) * (Z + tl.trans(Z)) + poison, inside)


@triton.jit
def smith_kernel(
    S, R, GS, GR, out, n, ridge, HAS_S: tl.constexpr, HAS_R: tl.constexpr,
    N: tl.constexpr, PRECISION: tl.constexpr, CHEAP: tl.constexpr,
):  # fmt: skip
    """X with S X + X S = GS - R GR R, then the ridge's share of it; float32 (k, n, n), contiguous."""
    matrix = tl.program_id(0).to(tl.int64)
    row = tl.arange(0, N)[:, None]
    column = tl.arange(0, N)[None, :]
    inside = (row < n) & (column < n)
    place = matrix * n * n + row * n + column
    eye = tl.where((row == column) & inside, 1.0, 0.0)
    V = tl.load(S + place, inside, 0.0)
    inverse = tl.load(R + place, inside, 0.0)
    norm = _total(V * V)
    zero = norm == 0
    mu = tl.sqrt(tl.sqrt(norm) / tl.sqrt(_total(inverse * inverse)))
    mu = tl.where(zero, 1.0, mu)
    inverse *= mu
    V = V / mu + inverse

    C = tl.zeros((N, N), tl.float32)
    if HAS_R:
        G = tl.load(GR + place, inside, 0.0)
        G += tl.trans(G)
        C -= _product(_product(inverse, G, PRECISION), inverse, PRECISION) / (mu * mu)
    if HAS_S:
        G = tl.load(GS + place, inside, 0.0)
        C += G + tl.trans(G)
    C += _product(_product(inverse, C, PRECISION), inverse, PRECISION)

    V -= 2 * eye
    square = _product(V, V, CHEAP)
    top = tl.maximum(_bound(_total(V * V) / n, _total(square * square) / n, n), 0.01)
    top = tl.where(zero, 1.0, top)
    p, k0, k1, k2, error = _near_inverse(top)
    K = k0 * eye + k1 * V + k2 * square
    V += (2 + p) * eye
    wanted = 1e-6
    while error > wanted:
        K += _product(K, eye - _product(V, K, PRECISION), CHEAP)
        error *= error
    X = _product(_product(K, C, PRECISION), K, PRECISION)
    F = eye - 2 * p * K
    factor = (p - 2) / (p + 2)
    going = mu == mu
    while going:
        X += _product(_product(F, X, CHEAP), F, CHEAP)
        factor *= factor
        going = factor * factor > wanted
        if going:
            F = _product(F, F, CHEAP)
    X = (X + tl.trans(X)) * tl.where(zero, 0.0, 0.5 * p / mu)
    if ridge != 0:
        X += eye * (ridge / n) * _total(X * eye)
    tl.store(out + place, X, inside)
