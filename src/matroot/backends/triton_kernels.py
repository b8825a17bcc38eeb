"""Roots on a GPU in one launch: one program per matrix, everything on chip.

The program does what ``native`` does, and nothing is left to the host: cleaning, scaling, ridge, definiteness,
stopping and restoring happen inside. Import only where Triton is.

Float32 products are made of half ones with sums in float32. Three float16 ones (FAST) are as exact as float32
but for how tensor cores sum, by truncation, which shows where a matrix is ill-conditioned: those take EXACT, six
float16 ones, of which what counts most are sums of whole numbers. What only corrects a result may be CHEAP then, three
bfloat16 ones: of their relative error of 4e-6 counts only what the correction makes of it. ROUGH is half precision.
"""
# pyright: reportGeneralTypeIssues=false
# Triton declares that calls of kernel functions never return.

import triton
import triton.language as tl

STEPS = tl.constexpr(6)  # of the longest schedule in the table
SHARP = tl.constexpr(0.0081)  # (12 eps/(63/256))^(2/5): what the sum of squares of I - M may be before Taylor's step
FAST = tl.constexpr("fp16x3")
TURNED = tl.constexpr("fp16x3 by the transpose")
EXACT = tl.constexpr("fp16x6")
ROUGH = tl.constexpr("fp16")
WHOLE = tl.constexpr(12582912.0)  # 1.5 2^23: what is added to it is rounded to a whole number
UNIT = tl.constexpr(16.0)  # what stands for one in factors of FAST products, for ``halves`` to keep their digits
FOURTH = tl.constexpr(UNIT.value**-4)
BEGINNING = tl.constexpr(3 * STEPS * 5)  # of the steps for easy matrices, after three schedules


@triton.jit
def halves(x):
    """float16 high and low with x = high + low to 22 bits; for |x| below 65504, and no finer than 2^-25."""
    high = x.to(tl.float16)
    return high, (x - high.to(tl.float32)).to(tl.float16)


@triton.jit
def _slices(x, AXIS: tl.constexpr):
    """x = unit (first + second/1024 + third/1024^2) with a unit for each row or column; whole numbers up to 512."""
    size = tl.maximum(tl.max(tl.abs(x), AXIS, keep_dims=True), 1e-30)
    bits = size.to(tl.int32, bitcast=True) & 0x7F800000  # the exponent alone: a power of two
    x *= 256 * (0x7F000000 - bits).to(tl.float32, bitcast=True)
    first = (x + WHOLE) - WHOLE
    x = 1024 * (x - first)
    second = (x + WHOLE) - WHOLE
    third = 1024 * (x - second)
    unit = bits.to(tl.float32, bitcast=True) * (1 / 256)
    return unit, first.to(tl.float16), second.to(tl.float16), third.to(tl.float16)


@triton.jit
def exact_product(a, b):
    """a b, of up to 64 columns and rows: tensor cores truncate sums, but not those of whole numbers up to 2^24."""
    left, a0, a1, a2 = _slices(a, 1)
    right, b0, b1, b2 = _slices(b, 0)
    small = tl.dot(a2, b0, tl.dot(a1, b1, tl.dot(a0, b2)))
    middle = tl.dot(a1, b0, tl.dot(a0, b1))
    return (tl.dot(a0, b0) + (middle + small * (1 / 1024)) * (1 / 1024)) * (left * right)


@triton.jit
def _fast_product(a, b):
    a0, a1 = halves(a)
    b0, b1 = halves(b)
    return tl.dot(a0, b0, tl.dot(a1, b0, tl.dot(a0, b1)))


@triton.jit
def _product(a, b, PRECISION: tl.constexpr):
    """a b, but if TURNED or ROUGH a times the transpose of b, for a symmetric b.

    What a thread has of a result is what it needs of a left factor, and of the transpose of a right one. But where
    rounding has left b less than symmetric, and the iteration lives by the order of factors, that would not do.
    """
    if PRECISION == FAST:
        found = _fast_product(a, b)
    elif PRECISION == TURNED:
        found = _fast_product(a, tl.trans(b))
    elif PRECISION == ROUGH:
        found = tl.dot(a.to(tl.float16), tl.trans(b).to(tl.float16))
    elif PRECISION == EXACT:
        found = exact_product(a, b)
    else:
        found = tl.dot(a, b, input_precision=PRECISION)
    return found


@triton.jit
def _total(x):
    return tl.sum(tl.sum(x, 1), 0)


@triton.jit
def _bound(m2, m4, n):
    """Bound of the largest eigenvalue, from the means of their squares and fourth powers."""
    return tl.sqrt(m2 + tl.sqrt((n - 1) * tl.maximum(m4 - m2 * m2, 0.0)))


@triton.jit
def bound_around_mean(m1, m2, m3, m4, n):
    """Bound of the largest eigenvalue from the means of their powers: the better of that about zero and about m1."""
    d2 = tl.maximum(m2 - m1 * m1, 0.0)
    d4 = m4 + m1 * (-4 * m3 + m1 * (6 * m2 - 3 * m1 * m1))
    return tl.minimum(_bound(m2, m4, n), m1 + _bound(d2, d4, n))


@triton.jit
def _share(m1, m2):
    """How near to one another eigenvalues are, from their means of first and second powers: one if they are equal."""
    return m1 * tl.abs(m1) / m2


@triton.jit
def looks_easy(m1, m2, n):
    """Whether few steps may be enough for eigenvalues of these means: few of them do not spread as far as many."""
    return _share(m1, m2) > tl.where(n <= 32, 0.5, tl.where(n <= 128, 0.55, 0.6))


@triton.jit
def schedule_of(m1, m2):
    """The schedule for eigenvalues of these means: 0 for easy matrices, 1 and 2."""
    share = _share(m1, m2)
    return tl.where(share > 0.6, 0, tl.where(share > 0.35, 1, 2))


@triton.jit
def _first_step(X, square, eye, theta, steps, unit, PRECISION: tl.constexpr):
    """Y and Z times ``unit`` after the first step of a schedule for eigenvalues up to theta, given X and its square."""
    inverse = 1.0 / theta
    root = unit * tl.sqrt(inverse)
    Z = (
        tl.load(steps) * root * eye
        + tl.load(steps + 1) * root * inverse * X
        + tl.load(steps + 2) * root * inverse * inverse * square
    )
    return _product(X, Z, PRECISION), Z


@triton.jit
def _later_step(Y, Z, M, eye, c, PRECISION: tl.constexpr):
    """Y and Z after a step with five coefficients, M = Z Y."""
    square = _product(M, M, PRECISION)
    T = tl.load(c + 4) * square + tl.load(c + 3) * M + tl.load(c + 2) * eye
    T = _product(T, square, PRECISION) + tl.load(c + 1) * M + tl.load(c) * eye
    return _product(Y, T, PRECISION), _product(T, Z, PRECISION)


@triton.jit
def _last_step(Y, Z, E, square, PRECISION: tl.constexpr):
    """Taylor's step, as a correction: M^(-1/2) - I in powers of E = I - M."""
    T = 0.5 * E + 0.375 * square
    T += _product(square, 0.3125 * E + 0.2734375 * square, PRECISION)
    return Y + _product(Y, T, PRECISION), Z + _product(T, Z, PRECISION)


@triton.jit
def _gap(Y, Z, eye):
    """E = I - Z Y and its square, all in UNIT, but the square in the square of that."""
    E = eye * UNIT - _product(Z, Y, FAST) * (1 / UNIT)
    return E, _product(E, E, TURNED)


@triton.jit
def _corrected(Y, Z, E, square, eye, c, PRECISION: tl.constexpr):
    """Y and Z after a step given by a correction in powers of E; of the third and fourth power with this precision."""
    T = (tl.load(c) * UNIT) * eye + tl.load(c + 1) * E + (tl.load(c + 2) / UNIT) * square
    rest = tl.load(c + 3) * E + (tl.load(c + 4) / UNIT) * square
    T += _product(square, rest, PRECISION) * (1 / (UNIT * UNIT))
    return Y + _product(Y, T, FAST) * (1 / UNIT), Z + _product(T, Z, TURNED) * (1 / UNIT)


@triton.jit
def _easy(X, eye, m1, m2, n, table):
    """Roots Y and Z of a matrix that looks easy, in UNIT, in three steps or four, and whether it was.

    The sum of fourth powers of what the first two leave of I - M bounds the largest: by 0.09 if three steps are enough,
    by 0.6 if four may be. What the last step makes of its cube, 2e-4 at most, may be rough.
    """
    steps = table + BEGINNING
    square = _product(X, X, TURNED)
    theta = 1.02 * bound_around_mean(m1, m2, _total(X * square) / n, _total(square * square) / n, n)
    Y, Z = _first_step(X, square, eye, theta, steps, UNIT, TURNED)
    E, square = _gap(Y, Z, eye)
    Y, Z = _corrected(Y, Z, E, square, eye, steps + 5, TURNED)
    E, square = _gap(Y, Z, eye)
    fourth = _total(square * square) * FOURTH
    if (fourth >= SHARP * SHARP) & (fourth < 0.13):
        Y, Z = _corrected(Y, Z, E, square, eye, steps + 10, TURNED)
        E, square = _gap(Y, Z, eye)
        fourth = _total(square * square) * FOURTH
    Y, Z = _corrected(Y, Z, E, square, eye, steps + 10, ROUGH)
    return Y, Z, fourth < SHARP * SHARP


@triton.jit
def _careful(X, eye, n, steps, schedule, first, CHEAP: tl.constexpr):
    """Roots Y and Z of any X, whether they converged, and a bound of the largest eigenvalue."""
    square = _product(X, X, EXACT)
    theta = 1.02 * _bound(_total(X * X) / n, _total(square * square) / n, n)
    Y, Z = _first_step(X, square, eye, theta, steps, 1.0, EXACT)
    step = 1
    done = theta < 0
    going = theta == theta
    while going:
        M = _product(Z, Y, EXACT)
        E = eye - M
        gap = _total(E * E)
        done = gap < SHARP
        if done:
            Y, Z = _last_step(Y, Z, E, _product(E, E, CHEAP), CHEAP)
        else:
            Y, Z = _later_step(Y, Z, M, eye, steps + tl.minimum(step, STEPS - 1) * 5, EXACT)
            # Rounding grows in ill-conditioned matrices where Y and Z are not symmetric.
            Y = 0.5 * (Y + tl.trans(Y))
            Z = 0.5 * (Z + tl.trans(Z))
        step += 1
        # Steps beyond the longest schedule enlarge a small singular value by 2.46 each: what is left far behind
        # then is as good as singular.
        going = (not done) & (step < tl.where((schedule == 2) & first & (gap > 0.5), 7, 12)) & (gap < 1e6)
    return Y, Z, done, theta


@triton.jit
def _scaled(source, n, stride_row, stride_column, ridge, N: tl.constexpr) -> tuple:
    """Twice the symmetric part of a matrix, divided by a power of two so that none of its powers leaves the range of
    float32, with the ridge; its trace, the exponent of that power, and the mean modulus before.

    A mean modulus will do: the largest is no more than n^2 times that, and NaN and Inf show in it. In place of what is
    zero or not finite stands the identity.
    """
    row, column, inside, eye = _lanes(n, N)
    X = tl.load(source + row * stride_row + column * stride_column, inside, 0.0).to(tl.float32)
    X += tl.trans(X)
    size = _total(tl.abs(X) * (1.0 / (N * N)))
    exponent = tl.floor(tl.log2(tl.maximum(size, 1e-37)))
    half = tl.floor(0.5 * exponent)
    usable = (size > 0) & (size - size == 0)
    X = tl.where(usable, X * tl.exp2(-half) * tl.exp2(half - exponent), eye)
    trace = _total(X * eye)
    return X + eye * (ridge / n) * trace, trace + ridge * trace, exponent, size


@triton.jit
def _lanes(n, N: tl.constexpr) -> tuple:
    """Rows and columns, which entries belong to the matrix, and the identity."""
    row = tl.arange(0, N)[:, None]
    column = tl.arange(0, N)[None, :]
    inside = (row < n) & (column < n)
    return row, column, inside, tl.where((row == column) & inside, 1.0, 0.0)


@triton.jit
def _deliver(S, R, Y, Z, unit, exponent, size, good, n, N: tl.constexpr):
    """Roots from those of the scaled matrix in this unit: zero if its size was zero, NaN if not finite, or if they are
    no good."""
    row, column, inside, _ = _lanes(n, N)
    poison = tl.where((size - size == 0) & (good | (size == 0)), 0.0, float("nan"))
    half = tl.floor(0.5 * exponent)
    scale = 0.5 * tl.sqrt(0.5 * tl.exp2(exponent - 2 * half)) * tl.exp2(half)
    keep = tl.where(size > 0, 1 / unit, 0.0)
    target = row * n + column
    tl.store(S + target, keep * scale * (Y + tl.trans(Y)) + poison, inside)
    tl.store(R + target, keep * (0.25 / scale) * (Z + tl.trans(Z)) + poison, inside)


@triton.jit
def roots_kernel(
    A, S, R, table, n, stride_batch, stride_row, stride_column, ridge, widest, N: tl.constexpr, CHEAP: tl.constexpr
):  # fmt: skip
    """Roots S and inverse roots R, float32 (k, n, n), of the symmetric parts of A, any floating dtype.

    ``table`` holds three schedules of STEPS steps of five coefficients, then the steps for easy matrices; ``widest`` is
    the last shift to try on a matrix that is not positive, relative to a bound of its largest eigenvalue.
    """
    matrix = tl.program_id(0).to(tl.int64)
    _, _, _, eye = _lanes(n, N)
    A += matrix * stride_batch
    S += matrix * n * n
    R += matrix * n * n
    X, trace, exponent, size = _scaled(A, n, stride_row, stride_column, ridge, N)
    m1, m2 = trace / n, _total(X * X) / n
    schedule = schedule_of(m1, m2)
    done = m2 < 0
    if looks_easy(m1, m2, n):
        Y, Z, done = _easy(X, eye, m1, m2, n, table)
        if done:
            _deliver(S, R, Y, Z, UNIT, exponent, size, done, n, N)
    if not done:
        # Read once more: easy matrices need the registers that would keep it.
        X, trace, exponent, size = _scaled(A, n, stride_row, stride_column, ridge, N)
        Y, Z = eye, eye
        attempt = 0
        shift = 0.0 * widest
        while (attempt < 4) & (not done):
            schedule = tl.where(attempt > 0, 2, schedule)
            steps = table + schedule * (STEPS * 5)
            Y, Z, done, theta = _careful(X, eye, n, steps, schedule, attempt == 0, CHEAP)
            if not done:
                # Singular, negative by rounding, or indefinite.
                wider = tl.where(attempt == 0, 4.8e-7, tl.where(attempt == 1, 4.8e-7 * n, widest))
                X += (wider - shift) * theta * eye
                shift = wider
                attempt += 1
        _deliver(S, R, Y, Z, 1.0, exponent, size, done, n, N)
