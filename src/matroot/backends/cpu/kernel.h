/* Roots and gradients of one matrix, for one instruction set and one real type.

   The file is included once for each pair of them, after definitions of

     real       float or double
     EPSILON    its machine epsilon
     NAME(x)    x with a suffix of its own
     TARGET     the function attribute that selects the instruction set
     WIDTH      bytes of a vector register
     ROWS       rows of a tile of a product; up to three vectors wide, a tile must fit the registers

   Matrices are stored in HEIGHT(n) rows of `ld` numbers, multiples of ROWS and of a vector, with zeros
   beyond row and column n. */

typedef real NAME(vector) __attribute__((vector_size(WIDTH), may_alias));
#define VECTOR NAME(vector)
#define LANES ((long)(WIDTH / sizeof(real)))
#define AT(M, i, j) (M)[(i) * ld + (j)]
/* All i and j, sixteen columns at a time: what is read across rows is then in cache for the next row. */
#define BY_COLUMNS                                                                                                     \
    for (long block = 0, end; block < n; block = end)                                                                  \
        for (long i = (end = block + 16 < n ? block + 16 : n, 0); i < n; i++)                                          \
            for (long j = block; j < end; j++)

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

/* C = alpha A B + beta D + gamma I. C may be D, not A or B. */
TARGET static void NAME(product)(long n, long ld, const real *A, const real *B, const real *D, real *C, real alpha,
                                 real beta, real gamma) {
    for (long j = 0, width; j < n; j += width * LANES) {
        long left = (n - j + LANES - 1) / LANES;
        width = left == 1 ? 1 : left == 2 || left == 4 ? 2 : 3;
        for (long i = 0; i < n; i += ROWS) {
            const real *a = &AT(A, i, 0), *b = &AT(B, 0, j), *d = D ? &AT(D, i, j) : D;
            real *c = &AT(C, i, j);
            if (width == 1) NAME(tile)(n, ld, 1, a, b, d, c, alpha, beta);
            else if (width == 2) NAME(tile)(n, ld, 2, a, b, d, c, alpha, beta);
            else NAME(tile)(n, ld, 3, a, b, d, c, alpha, beta);
        }
    }
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

/* The symmetric part of X takes its place. */
TARGET static void NAME(symmetrise)(long n, long ld, real *X) {
    for (long i = 0; i < n; i++)
        for (long j = 0; j < i; j++) AT(X, i, j) = AT(X, j, i) = (real)0.5 * (AT(X, i, j) + AT(X, j, i));
}

/* The symmetric part of A. */
TARGET static void NAME(read)(long n, long ld, const real *restrict A, const long *strides, real *restrict X) {
    long row = strides[1], column = strides[2];
    if (column == 1)
        BY_COLUMNS AT(X, i, j) = (real)0.5 * A[i * row + j] + (real)0.5 * A[j * row + i];
    else
        BY_COLUMNS AT(X, i, j) = (real)0.5 * A[i * row + j * column] + (real)0.5 * A[j * row + i * column];
}

/* c times the symmetric part of X, without the padding. */
TARGET static void NAME(write)(long n, long ld, real c, const real *restrict X, real *restrict out) {
    BY_COLUMNS out[i * n + j] = c * ((real)0.5 * AT(X, i, j) + (real)0.5 * AT(X, j, i));
}

TARGET static void NAME(fill)(long n, real c, real *out) {
    for (long i = 0; out && i < n * n; i++) out[i] = c;
}

/* The largest modulus of an entry, or something that is not finite if an entry is not. */
TARGET static real NAME(largest)(long n, long ld, const real *X) {
    real most[LANES], spoilt[LANES], found = 0;
    for (long lane = 0; lane < LANES; lane++) most[lane] = spoilt[lane] = 0;
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j += LANES)
            for (long lane = 0; lane < LANES; lane++) {
                real x = AT(X, i, j + lane), size = x < 0 ? -x : x;
                most[lane] = size > most[lane] ? size : most[lane];
                spoilt[lane] += 0 * x;
            }
    for (long lane = 0; lane < LANES; lane++) {
        found = most[lane] > found ? most[lane] : found;
        found += spoilt[lane];
    }
    return found;
}

/* A bound of the largest eigenvalue from the sums of all squares in X and X^2. The eigenvalues of X^2 have mean m2
   and variance m4 - m2^2: none is further than sqrt(n - 1) deviations off. */
static inline double NAME(bound)(long n, double x2, double x4) {
    double m2 = x2 / n, variance = x4 / n - m2 * m2;
    return sqrt(m2 + (variance > 0 ? sqrt((n - 1) * variance) : 0));
}

/* M becomes q(M) for q of degree 4, W and `square` are overwritten. */
TARGET static void NAME(polynomial)(long n, long ld, const double *q, real *M, real *square, real *W) {
    NAME(product)(n, ld, M, M, NULL, square, 1, 0, 0);
    NAME(combine)(n, ld, 1, square, q[3] / q[4], M, W);
    NAME(shift)(n, ld, W, q[2] / q[4]);
    NAME(product)(n, ld, W, square, M, M, q[4], q[1], q[0]);
}

/* The coupled minimax iteration. buffers[0] holds X, buffers[1] its square, theta bounds its eigenvalues. Leaves
   X^(1/2) in buffers[0] and X^(-1/2) in buffers[1]; the order of the others changes. Returns whether it converged. */
TARGET static int NAME(iterate)(long n, long ld, real **buffers, double theta, const struct rung *rung, long *products) {
    real *X = buffers[0], *power = buffers[1], *Y = buffers[2], *Z = buffers[3], *M = buffers[4];
    const double *q = rung->steps[0];
    double c[5], unit = 1 / theta;
    c[0] = q[0] * sqrt(unit);
    for (int k = 1; k < 5; k++) c[k] = q[k] * sqrt(unit) * pow(unit, k);
    /* With T = q(X/theta), start from Y = X T/sqrt(theta) and Z = T/sqrt(theta): then Y -> X^(1/2). */
    if (q[4] != 0) {
        NAME(combine)(n, ld, c[4], power, c[3], X, M);
        NAME(shift)(n, ld, M, c[2]);
        NAME(product)(n, ld, M, power, X, Z, 1, c[1], c[0]);
        *products += 1;
    } else {
        NAME(combine)(n, ld, c[2], power, c[1], X, Z);
        NAME(shift)(n, ld, Z, c[0]);
    }
    NAME(product)(n, ld, X, Z, NULL, Y, 1, 0, 0);
    *products += 1 + 5 * (rung->count - 1);
    real *W = X, *swap;
    /* The last step turns a deviation d = |1 - m| into an error of 63/256 d^5. */
    double sharp = pow(12 * EPSILON * 256 / 63, 0.2);
    int early = sqrt(n) * rung->gap < sharp, converged = 1;
    for (int step = 1; step < rung->count; step++) {
        NAME(product)(n, ld, Z, Y, NULL, M, 1, 0, 0);
        int last = step == rung->count - 1;
        if (last && early) /* ||I - M||_F^2, at least the square of the largest |1 - m|; cancellation leaves n eps */
            converged = NAME(dot)(n, ld, M, M) - 2 * NAME(trace)(n, ld, M) + n < sharp * sharp;
        NAME(polynomial)(n, ld, rung->steps[step], M, power, W);
        NAME(product)(n, ld, Y, M, NULL, power, 1, 0, 0);
        swap = Y, Y = power, power = swap;
        NAME(product)(n, ld, M, Z, NULL, power, 1, 0, 0);
        swap = Z, Z = power, power = swap;
        /* Rounding grows in ill-conditioned matrices where Y and Z are not symmetric. M must stay as it is. */
        if (!last && rung->condition > 1e4) {
            NAME(symmetrise)(n, ld, Y);
            NAME(symmetrise)(n, ld, Z);
        }
    }
    if (!early) {
        /* tr(Y Z) = n: an eigenvalue that the schedule was too short for leaves less. */
        double missing = NAME(dot)(n, ld, Y, Z) - n;
        double allowed = 2 * n * rung->error + EPSILON * (n * sqrt(n) + 2 * sqrt(n * rung->condition));
        converged = missing < allowed && missing > -allowed;
    }
    buffers[0] = Y, buffers[1] = Z, buffers[2] = X, buffers[3] = power, buffers[4] = M;
    return converged;
}

/* The first schedule to try, from the moments of the spectrum; -1: they do not tell. */
TARGET static int NAME(guess)(long n, long ld, const real *X, const real *square, double x2, const struct rung *ladder) {
    double m1 = NAME(trace)(n, ld, X) / n, m2 = x2 / n, share = m1 * fabs(m1) / m2;
    int easy = 0;
    while (ladder[easy].condition < 45) easy++;
    /* m1^2/m2 is 1/(1 + c) for covariances of n/c samples. */
    if (!(share > 0.6)) return -1;
    if (share <= 0.85 || easy == 0) return easy;
    /* Nearly a multiple of the identity, or all but a few eigenvalues are. The two nodes of the spectrum's Gauss
       quadrature, eigenvalues of the Jacobi matrix [[m1, b], [b, a]], tell. */
    double m3 = NAME(dot)(n, ld, X, square) / n, bb = m2 - m1 * m1;
    double a = (m3 - 2 * m1 * m2 + m1 * m1 * m1) / bb, middle = 0.5 * (a + m1);
    double radius = sqrt((a - middle) * (a - middle) + bb), ratio = (middle + radius) / (middle - radius);
    return ratio > 0 && ratio < 1.7 ? 0 : ratio > 0 && ratio < 4.8 ? easy : -1;
}

/* An estimate, mostly within a factor of two, of the condition number of X given a bound of its largest
   eigenvalue; negative if X is not positive definite. L is overwritten. */
TARGET static double NAME(condition)(long n, long ld, const real *X, double theta, real *L) {
    double v[n];
    for (long i = 0; i < n; i++)
        for (long j = 0; j <= i; j++) {
            real sum = AT(X, i, j) / (real)theta;
            for (long k = 0; k < j; k++) sum -= AT(L, i, k) * AT(L, j, k);
            if (i == j && !(sum > 0)) return -1;
            AT(L, i, j) = i == j ? (real)sqrt(sum) : sum / AT(L, j, j);
        }
    /* Three inverse iterations from a vector of ones with irregular signs. */
    for (long i = 0; i < n; i++) v[i] = (i * 2654435761u >> 16 & 1) ? 1 : -1;
    double growth = sqrt(n);
    for (int round = 0; round < 3; round++) {
        double norm = 0;
        for (long i = 0; i < n; i++) {
            v[i] /= growth;
            for (long k = 0; k < i; k++) v[i] -= AT(L, i, k) * v[k];
            v[i] /= AT(L, i, i);
        }
        for (long i = n - 1; i >= 0; i--) {
            for (long k = i + 1; k < n; k++) v[i] -= AT(L, k, i) * v[k];
            v[i] /= AT(L, i, i);
            norm += v[i] * v[i];
        }
        growth = sqrt(norm);
    }
    return 1.05 * growth;
}

/* The roots of X = buffers[0], whose square buffers[1] holds if `squared`, by the schedule that its Cholesky factor asks for, then longer ones. A matrix beyond the
   last, singular or with eigenvalues negative by rounding, is shifted by 4 eps, then 4 n eps, then by `widest` if that
   is more. Returns whether it is positive then. */
TARGET static int NAME(escalate)(long n, long ld, real **buffers, double theta, int squared,
                                 double widest, const struct rung *ladder, int rungs, long *products) {
    double shifts[] = {0, 4 * EPSILON, 4 * EPSILON * n, widest};
    real *kept = buffers[5];
    memcpy(kept, buffers[0], sizeof(real) * SPACE(n, ld));
    int positive = 0;
    for (int attempt = 0; attempt < (widest > shifts[2] ? 4 : 3); attempt++) {
        if (attempt > 0) {
            NAME(shift)(n, ld, kept, (shifts[attempt] - shifts[attempt - 1]) * theta);
            squared = 0;
        }
        double condition = NAME(condition)(n, ld, kept, theta, buffers[2]);
        positive = condition >= 0;
        if (!positive || (attempt == 0 && !(condition <= ladder[rungs - 1].condition))) continue;
        int rung = attempt > 0 ? rungs - 1 : 0;
        while (ladder[rung].condition < condition && rung < rungs - 1) rung++;
        for (; rung < rungs; rung++) {
            if (!squared) {
                memcpy(buffers[0], kept, sizeof(real) * SPACE(n, ld));
                NAME(product)(n, ld, kept, kept, NULL, buffers[1], 1, 0, 0);
                *products += 1;
            }
            squared = 0;
            if (NAME(iterate)(n, ld, buffers, theta, &ladder[rung], products)) return 1;
        }
    }
    return positive;
}

/* Root and inverse root, (n, n) each or NULL, of the symmetric part of A with the ridge on it. NaN if an entry is not
   finite or an eigenvalue is clearly negative, zero for zero. */
TARGET static void NAME(roots)(long n, long ld, const real *A, const long *strides, real *S, real *R, double ridge,
                               double widest, const struct rung *ladder, int rungs, real *work, long *products) {
    real *buffers[6];
    if (n % 16) memset(work, 0, sizeof(real) * 6 * SPACE(n, ld)); /* a matrix before may have left NaN in the padding */
    for (int k = 0; k < 6; k++) buffers[k] = work + k * SPACE(n, ld);
    real *X = buffers[0];
    NAME(read)(n, ld, A, strides, X);
    real size = NAME(largest)(n, ld, X);
    if (size == 0 || !(size - size == 0)) {
        NAME(fill)(n, size - size, S);
        NAME(fill)(n, size - size, R);
        return;
    }
    /* Divided by a power of four and by 1 + ridge, so that no power leaves the range of the type. */
    int exponent;
    frexp(size, &exponent);
    int half = (exponent - (exponent & 1)) / 2;
    real unit = ldexp(1, -half);
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++) AT(X, i, j) = AT(X, i, j) * unit * unit;
    if (ridge > 0) {
        double mean = NAME(trace)(n, ld, X) / n;
        NAME(combine)(n, ld, 1 / (1 + ridge), X, 0, X, X);
        NAME(shift)(n, ld, X, ridge / (1 + ridge) * mean);
    }
    NAME(product)(n, ld, X, X, NULL, buffers[1], 1, 0, 0);
    *products += 1;
    double x2 = NAME(dot)(n, ld, X, X), x4 = NAME(dot)(n, ld, buffers[1], buffers[1]);
    /* Two percent more, since polynomials are steep beyond the ends of their intervals. */
    double theta = 1.02 * NAME(bound)(n, x2, x4);
    int rung = NAME(guess)(n, ld, X, buffers[1], x2, ladder), done = 0;
    if (rung >= 0) {
        memcpy(buffers[5], X, sizeof(real) * SPACE(n, ld));
        done = NAME(iterate)(n, ld, buffers, theta, &ladder[rung], products);
        if (!done) memcpy(buffers[0], buffers[5], sizeof(real) * SPACE(n, ld));
    }
    if (!done) done = NAME(escalate)(n, ld, buffers, theta, rung < 0, widest, ladder, rungs, products);
    double scale = sqrt(1 + ridge) * ldexp(1, half);
    if (S) NAME(write)(n, ld, done ? scale : NAN, buffers[0], S);
    if (R) NAME(write)(n, ld, done ? 1 / scale : NAN, buffers[1], R);
}

/* X with S X + X S = GS - R GR R, given R = S^-1 (n, n), then the ridge's share of it; GS or GR may be NULL, their
   symmetric parts count. Squared Smith doubling: for B X + X B = C with positive definite B, and any p > 0, let
   K = (B + p I)^-1 and F = I - 2 p K. Then

       X = F X F + 2 p K C K = sum over k of F^k (2 p K C K) F^k,

   and doubling, X <- X + F X F, F <- F^2, sums 2^j terms in j rounds. B is the preconditioned operator of Krylov,
   S/mu + mu R, whose eigenvalues t + 1/t are at least 2 and rarely much more. */
TARGET static void NAME(solve)(long n, long ld, const real *S, const real *R, const real *GS, const long *strides_s,
                               const real *GR, const long *strides_r, real *out, double ridge, real *work,
                               long *products) {
    const long strides[] = {0, n, 1};
    real *buffers[6], *swap;
    if (n % 16) memset(work, 0, sizeof(real) * 6 * SPACE(n, ld)); /* a matrix before may have left NaN in the padding */
    for (int k = 0; k < 6; k++) buffers[k] = work + k * SPACE(n, ld);
    real *V = buffers[0], *K = buffers[1], *E = buffers[2], *C = buffers[3], *P = buffers[4], *spare = buffers[5];
    NAME(read)(n, ld, S, strides, V);
    NAME(read)(n, ld, R, strides, E);
    /* The largest entries are on the diagonals; NaN is everywhere or nowhere, and fmax passes it over. */
    double s = 0, r = 0;
    for (long i = 0; i < n; i++) {
        s = fmax(s, AT(V, i, i));
        r = fmax(r, AT(E, i, i));
    }
    if (s == 0) {
        NAME(fill)(n, AT(V, 0, 0) == 0 ? 0 : NAN, out);
        return;
    }
    NAME(combine)(n, ld, 1 / s, V, 0, V, V);
    NAME(combine)(n, ld, 1 / r, E, 0, E, E);
    double tilt = sqrt(sqrt(NAME(dot)(n, ld, V, V) / NAME(dot)(n, ld, E, E))); /* mu = tilt sqrt(s/r) */
    double mu = tilt * sqrt(s) / sqrt(r), product = sqrt(s) * sqrt(r);
    NAME(combine)(n, ld, tilt * product, E, 0, E, E);
    NAME(combine)(n, ld, product / tilt, V, 1, E, V);

    /* C = GS - R GR R, then C + (mu R) C (mu R). */
    memset(C, 0, sizeof(real) * SPACE(n, ld));
    if (GR) {
        NAME(read)(n, ld, GR, strides_r, C);
        NAME(combine)(n, ld, -1 / mu / mu, C, 0, C, C);
        NAME(product)(n, ld, E, C, NULL, K, 1, 0, 0);
        NAME(product)(n, ld, K, E, NULL, C, 1, 0, 0);
        *products += 2;
    }
    if (GS) {
        NAME(read)(n, ld, GS, strides_s, P);
        NAME(combine)(n, ld, 1, P, 1, C, C);
    }
    NAME(product)(n, ld, E, C, NULL, K, 1, 0, 0);
    NAME(product)(n, ld, K, E, C, C, 1, 1, 0);

    /* V = B - 2 I has no eigenvalue below zero. K: the quadratic k(v) nearest to 1/(v + least) for v up to `top`, then
       Newton's iteration. With T the third Chebyshev polynomial, b = v + least, h half of `top` and z h the middle of
       the b's, 1 - b k = T(z - b/h)/T(z). */
    NAME(shift)(n, ld, V, -2);
    NAME(product)(n, ld, V, V, NULL, K, 1, 0, 0);
    *products += 3;
    double top = NAME(bound)(n, NAME(dot)(n, ld, V, V), NAME(dot)(n, ld, K, K));
    top = top > 0.01 ? top : 0.01;
    double p = sqrt(2 * (top + 2)), least = 2 + p, h = 0.5 * top, z = (least + h) / h;
    double t = 1 / (h * z * (4 * z * z - 3)), error = h * t, wanted = 8 * EPSILON;
    double k0 = (12 * z * z - 3) * t, k1 = -12 * z * t / h, k2 = 4 * t / (h * h);
    NAME(combine)(n, ld, k2, K, k1 + 2 * least * k2, V, K);
    NAME(shift)(n, ld, K, k0 + least * (k1 + least * k2));
    NAME(shift)(n, ld, V, least);
    for (; error > wanted; error *= error) {
        NAME(product)(n, ld, V, K, NULL, E, -1, 0, 2);
        NAME(product)(n, ld, K, E, NULL, spare, 1, 0, 0);
        swap = K, K = spare, spare = swap;
        *products += 2;
    }

    real *X = V;
    NAME(product)(n, ld, K, C, NULL, P, 1, 0, 0);
    NAME(product)(n, ld, P, K, NULL, X, 1, 0, 0);
    *products += 2;
    real *F = K;
    NAME(combine)(n, ld, -2 * p, K, 0, K, F);
    NAME(shift)(n, ld, F, 1);
    double factor = (p - 2) / (p + 2); /* the largest |eigenvalue| of F, reached at both ends of the spectrum */
    for (;;) {
        NAME(product)(n, ld, F, X, NULL, P, 1, 0, 0);
        NAME(product)(n, ld, P, F, X, X, 1, 1, 0);
        *products += 2;
        factor *= factor;
        if (!(factor * factor > wanted)) break;
        NAME(product)(n, ld, F, F, NULL, spare, 1, 0, 0);
        swap = F, F = spare, spare = swap;
        *products += 1;
    }
    NAME(shift)(n, ld, X, ridge / n * NAME(trace)(n, ld, X));
    NAME(write)(n, ld, 2 * p / mu, X, out);
}

#undef VECTOR
#undef LANES
#undef AT
#undef BY_COLUMNS
