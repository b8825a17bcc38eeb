/* Between the caller's matrices, in any layout and of any size, and clean ones: symmetric, without padding that is not
   zero, the largest modulus near one. Scaling by powers of two is exact, so products neither overflow nor underflow
   and results scale with the input bit for bit. */

/* All i and j, sixteen columns at a time: what is read across rows is then in cache for the next row. */
#define BY_COLUMNS                                                                                                     \
    for (long block = 0, end; block < n; block = end)                                                                  \
        for (long i = (end = block + 16 < n ? block + 16 : n, 0); i < n; i++)                                          \
            for (long j = block; j < end; j++)

/* Two factors with product 2^exponent, each within the range of the type. Clamped where no result is in range. */
static inline void NAME(power_of_two)(int exponent, real *factors) {
    const int most = 2 * MAX_EXPONENT - 4;
    exponent = exponent > most ? most : exponent < -most ? -most : exponent;
    int exponents[] = {exponent / 2, exponent - exponent / 2};
    for (int k = 0; k < 2; k++) { /* by its bits, as ldexp takes longer than the products of small matrices */
        integer bits = (integer)(exponents[k] + MAX_EXPONENT - 1) << (DIGITS - 1);
        memcpy(&factors[k], &bits, sizeof bits);
    }
}

/* X = after (before A + before A^T). */
TARGET static void NAME(add_transpose)(long n, long ld, const real *restrict A, const long *strides, real before,
                                       real after, real *restrict X) {
    long row = strides[1], column = strides[2];
    if (column == 1)
        BY_COLUMNS AT(X, i, j) = after * (before * A[i * row + j] + before * A[j * row + i]);
    else
        BY_COLUMNS AT(X, i, j) = after * (before * A[i * row + j * column] + before * A[j * row + i * column]);
}

/* The largest modulus of an entry, or one that is not finite if an entry is not: without their signs, numbers are
   ordered as the integers of the same bits are, and Inf and NaN come last. */
TARGET static real NAME(largest)(long n, long ld, const real *X) {
    const integer unsigned_bits = (integer)(~(uint64_t)0 >> (65 - 8 * sizeof(integer)));
    BITS most = {0};
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j += LANES) {
            BITS size = *(const BITS *)&AT(X, i, j) & unsigned_bits, larger = size > most;
            most = (size & larger) | (most & ~larger);
        }
    integer found = 0;
    for (long lane = 0; lane < LANES; lane++) found = most[lane] > found ? most[lane] : found;
    real modulus;
    memcpy(&modulus, &found, sizeof modulus);
    return modulus;
}

/* X = 2^-exponent times the symmetric part of A, with largest modulus from 1/2 to 1 and an even exponent's from 1/2 to
   2 if `even`. Returns what is zero for zero, not finite if X is not, and then the exponent is zero. */
TARGET static real NAME(read)(long n, long ld, const real *A, const long *strides, int even, real *X, int *exponent) {
    int lift = 0;
    NAME(add_transpose)(n, ld, A, strides, 1, 0.5, X);
    real size = NAME(largest)(n, ld, X), factors[2];
    if (!(size - size == 0)) { /* the sum may have overflowed */
        NAME(add_transpose)(n, ld, A, strides, 0.5, 1, X);
        size = NAME(largest)(n, ld, X);
    } else if (size < (real)ldexp(1, -MAX_EXPONENT / 2)) { /* half of a subnormal sum may not be exact */
        lift = MAX_EXPONENT / 4 * 3;
        NAME(add_transpose)(n, ld, A, strides, 1, ldexp(0.5, lift), X);
        size = NAME(largest)(n, ld, X);
    }
    *exponent = 0;
    if (size == 0 || !(size - size == 0)) return size;
    frexp(size, exponent);
    if (even) *exponent -= (*exponent - lift) & 1;
    NAME(power_of_two)(-*exponent, factors);
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j += LANES) {
            VECTOR *x = (VECTOR *)&AT(X, i, j);
            *x = *x * factors[0] * factors[1];
        }
    *exponent -= lift;
    return size;
}

/* c 2^exponent times the symmetric part of X, without the padding. */
TARGET static void NAME(write)(long n, long ld, double c, int exponent, const real *restrict X, real *restrict out) {
    int more;
    real mantissa = frexp(c, &more), factors[2];
    NAME(power_of_two)(exponent + more, factors);
    BY_COLUMNS {
        real mean = (real)0.5 * AT(X, i, j) + (real)0.5 * AT(X, j, i);
        out[i * n + j] = mantissa * mean * factors[0] * factors[1];
    }
}

TARGET static void NAME(fill)(long n, real c, real *out) {
    for (long i = 0; out && i < n * n; i++) out[i] = c;
}

#undef BY_COLUMNS
