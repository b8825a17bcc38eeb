/* Operations on whole matrices in padded storage. */

/* Six matrices in the workspace of a thread. The matrix before may have left NaN in the padding. */
static inline void NAME(split_workspace)(long n, long ld, real *work, real **buffers) {
    if (n % 16) memset(work, 0, sizeof(real) * 6 * SPACE(n, ld));
    for (int k = 0; k < 6; k++) buffers[k] = work + k * SPACE(n, ld);
}

/* C = alpha A B + beta D, `width` vectors of ROWS rows; no D when beta is zero. */
TARGET static inline __attribute__((always_inline)) void NAME(tile)(long n, long ld, int width, const real *A,
                                                                    const real *B, const real *D, real *C, real alpha,
                                                                    real beta) {
    VECTOR sum[ROWS][3] = {{{0}}};
    for (long k = 0; k < n; k++)
        for (int r = 0; r < ROWS; r++)
            for (int v = 0; v < width; v++) sum[r][v] += AT(A, r, k) * *(const VECTOR *)&AT(B, k, v * LANES);
    for (int r = 0; r < ROWS; r++)
        for (int v = 0; v < width; v++) {
            VECTOR *out = (VECTOR *)&AT(C, r, v * LANES);
            *out = beta == 0 ? alpha * sum[r][v] : alpha * sum[r][v] + beta * *(const VECTOR *)&AT(D, r, v * LANES);
        }
}

/* The triangle above the diagonal is copied below it, in blocks of four by four. */
TARGET static void NAME(mirror)(long n, long ld, real *C) {
    for (long i = 0; i < n; i += 4)
        for (long j = 0; j < i; j += 4) {
            const QUAD *row = (const QUAD *)&AT(C, j, i);
            QUAD a = row[0], b = row[ld / 4], c = row[ld / 2], d = row[ld / 4 * 3];
            QUAD ab = SHUFFLE(a, b, 0, 4, 1, 5), AB = SHUFFLE(a, b, 2, 6, 3, 7);
            QUAD cd = SHUFFLE(c, d, 0, 4, 1, 5), CD = SHUFFLE(c, d, 2, 6, 3, 7);
            QUAD *out = (QUAD *)&AT(C, i, j);
            out[0] = SHUFFLE(ab, cd, 0, 1, 4, 5), out[ld / 4] = SHUFFLE(ab, cd, 2, 3, 6, 7);
            out[ld / 2] = SHUFFLE(AB, CD, 0, 1, 4, 5), out[ld / 4 * 3] = SHUFFLE(AB, CD, 2, 3, 6, 7);
        }
    for (long i = 0; i < n; i++)
        for (long j = i / 4 * 4; j < i; j++) AT(C, i, j) = AT(C, j, i);
}

/* C = alpha A B + beta D + gamma I. C may be D, not A or B. Where the result is known to be SYMMETRIC, but for
   rounding, the half above the diagonal is computed and copied. */
TARGET static void NAME(product)(long n, long ld, const real *A, const real *B, const real *D, real *C, real alpha,
                                 real beta, real gamma, enum result kind) {
    for (long j = 0, width; j < n; j += width * LANES) {
        long vectors = (n - j + LANES - 1) / LANES;
        width = vectors == 1 ? 1 : vectors == 2 || vectors == 4 ? 2 : 3;
        for (long i = 0; i < n; i += ROWS) {
            long below = kind == SYMMETRIC && i > j ? (i - j) / LANES : 0; /* vectors below the diagonal */
            if (below >= width) break;
            long first = j + below * LANES;
            const real *a = &AT(A, i, 0), *b = &AT(B, 0, first), *d = D ? &AT(D, i, first) : D;
            real *c = &AT(C, i, first);
            if (width - below == 1) NAME(tile)(n, ld, 1, a, b, d, c, alpha, beta);
            else if (width - below == 2) NAME(tile)(n, ld, 2, a, b, d, c, alpha, beta);
            else NAME(tile)(n, ld, 3, a, b, d, c, alpha, beta);
        }
    }
    if (kind == SYMMETRIC) NAME(mirror)(n, ld, C);
    if (gamma != 0)
        for (long i = 0; i < n; i++) AT(C, i, i) += gamma;
}

/* The sum of all x_ij y_ij. */
TARGET static double NAME(dot)(long n, long ld, const real *X, const real *Y) {
    double total = 0;
    for (long i = 0; i < n; i++) {
        VECTOR sum = {0};
        for (long j = 0; j < n; j += LANES) sum += *(const VECTOR *)&AT(X, i, j) * *(const VECTOR *)&AT(Y, i, j);
        real row = 0;
        for (long lane = 0; lane < LANES; lane++) row += sum[lane];
        total += row;
    }
    return total;
}

/* The vector X v for a symmetric X. */
TARGET static void NAME(times_vector)(long n, long ld, const real *X, const real *v, real *out) {
    for (long j = 0; j < n; j += LANES) {
        VECTOR sum[4] = {{0}};
        long i = 0;
        for (; i + 4 <= n; i += 4)
            for (int r = 0; r < 4; r++) sum[r] += v[i + r] * *(const VECTOR *)&AT(X, i + r, j);
        for (; i < n; i++) sum[0] += v[i] * *(const VECTOR *)&AT(X, i, j);
        *(VECTOR *)&out[j] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }
}

/* Entries of either sign, as if at random: 1 or -1. */
static inline real NAME(sign)(long i, uint32_t multiplier) { return (uint32_t)i * multiplier >> 16 & 1 ? 1 : -1; }

TARGET static double NAME(trace)(long n, long ld, const real *X) {
    double sum = 0;
    for (long i = 0; i < n; i++) sum += AT(X, i, i);
    return sum;
}

/* X + c I. */
TARGET static void NAME(shift)(long n, long ld, real *X, real c) {
    for (long i = 0; i < n; i++) AT(X, i, i) += c;
}

/* Z = a X + b Y. */
TARGET static void NAME(combine)(long n, long ld, real a, const real *X, real b, const real *Y, real *Z) {
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j += LANES)
            *(VECTOR *)&AT(Z, i, j) = a * *(const VECTOR *)&AT(X, i, j) + b * *(const VECTOR *)&AT(Y, i, j);
}

/* X becomes c X. */
TARGET static void NAME(multiply)(long n, long ld, real c, real *X) {
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j += LANES) *(VECTOR *)&AT(X, i, j) *= c;
}

/* The symmetric part of X takes its place. */
TARGET static void NAME(symmetrise)(long n, long ld, real *X) {
    for (long i = 0; i < n; i++)
        for (long j = 0; j < i; j++) AT(X, i, j) = AT(X, j, i) = (real)0.5 * (AT(X, i, j) + AT(X, j, i));
}

/* A bound of the largest eigenvalue from the sums of all squares in X and X^2. The eigenvalues of X^2 have mean m2
   and variance m4 - m2^2: none is further than sqrt(n - 1) deviations off. */
static inline double NAME(bound)(long n, double x2, double x4) {
    double m2 = x2 / n, variance = x4 / n - m2 * m2;
    return sqrt(m2 + (variance > 0 ? sqrt((n - 1) * variance) : 0));
}

/* X becomes (X + ridge (trace(X)/n) I)/(1 + ridge), no larger than X however large the ridge. */
TARGET static void NAME(add_ridge)(long n, long ld, double ridge, real *X) {
    if (ridge == 0) return;
    double mean = NAME(trace)(n, ld, X) / n;
    NAME(multiply)(n, ld, 1 / (1 + ridge), X);
    NAME(shift)(n, ld, X, ridge / (1 + ridge) * mean);
}
