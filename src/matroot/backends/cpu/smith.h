/* X with S X + X S = GS - R GR R, given R = S^-1 (n, n), then the ridge's share of it; GS or GR may be NULL, their
   symmetric parts count. NaN if S is not finite, zero for zero. Squared Smith doubling: for B X + X B = C with
   positive definite B, and any p > 0, let K = (B + p I)^-1 and F = I - 2 p K. Then

       X = F X F + 2 p K C K = sum over k of F^k (2 p K C K) F^k,

   and doubling, X <- X + F X F, F <- F^2, sums 2^j terms in j rounds. B is the preconditioned operator of Krylov,
   S/mu + mu R, whose eigenvalues t + 1/t are at least 2 and rarely much more. */
TARGET static void NAME(solve)(long n, long ld, const real *S, const real *R, const real *GS, const long *strides_s,
                               const real *GR, const long *strides_r, real *out, double ridge, real *work,
                               long *products) {
    const long strides[] = {0, n, 1};
    real *buffers[6], *swap;
    NAME(split_workspace)(n, ld, work, buffers);
    real *V = buffers[0], *K = buffers[1], *E = buffers[2], *C = buffers[3], *P = buffers[4], *spare = buffers[5];
    int exponent_S, exponent_R, exponent_GS = 0, exponent_GR = 0;
    real size = NAME(read)(n, ld, S, strides, 0, V, &exponent_S);
    if (size == 0 || !(size - size == 0)) {
        NAME(fill)(n, size - size, out);
        return;
    }
    NAME(read)(n, ld, R, strides, 0, E, &exponent_R);
    int has_GS = GS && NAME(read)(n, ld, GS, strides_s, 0, P, &exponent_GS) != 0;
    int has_GR = GR && NAME(read)(n, ld, GR, strides_r, 0, C, &exponent_GR) != 0;
    if (!has_GS && !has_GR) {
        NAME(fill)(n, 0, out);
        return;
    }

    /* E = m 2^e R and V = S/(m 2^e) + E, where mu = m 2^e makes both terms equally large. */
    int odd = (exponent_S - exponent_R) & 1, e = (exponent_S - exponent_R - odd) / 2;
    double m = sqrt(ldexp(sqrt(NAME(dot)(n, ld, V, V) / NAME(dot)(n, ld, E, E)), odd));
    NAME(multiply)(n, ld, ldexp(m, exponent_R + e), E);
    NAME(combine)(n, ld, ldexp(1 / m, exponent_S - e), V, 1, E, V);

    /* 2^exponent C = GS - R GR R, then C + E C E. */
    exponent_GR -= 2 * e;
    int exponent = has_GS && (!has_GR || exponent_GS > exponent_GR) ? exponent_GS : exponent_GR;
    if (has_GR) {
        NAME(multiply)(n, ld, ldexp(-1 / m / m, exponent_GR - exponent), C);
        NAME(product)(n, ld, E, C, NULL, K, 1, 0, 0, GENERAL);
        NAME(product)(n, ld, K, E, NULL, C, 1, 0, 0, SYMMETRIC);
        *products += 2;
    }
    if (has_GS && has_GR)
        NAME(combine)(n, ld, ldexp(1, exponent_GS - exponent), P, 1, C, C);
    else if (has_GS)
        swap = C, C = P, P = swap;
    NAME(product)(n, ld, E, C, NULL, K, 1, 0, 0, GENERAL);
    NAME(product)(n, ld, K, E, C, C, 1, 1, 0, SYMMETRIC);

    /* V = B - 2 I has no eigenvalue below zero. K: the quadratic k(v) nearest to 1/(v + least) for v up to `top`, then
       Newton's iteration. With T the third Chebyshev polynomial, b = v + least, h half of `top` and z h the middle of
       the b's, 1 - b k = T(z - b/h)/T(z). */
    NAME(shift)(n, ld, V, -2);
    NAME(product)(n, ld, V, V, NULL, K, 1, 0, 0, SYMMETRIC);
    *products += 3;
    double top = NAME(bound)(n, NAME(dot)(n, ld, V, V), NAME(dot)(n, ld, K, K));
    top = top > 0.01 ? top : 0.01;
    double p = sqrt(2 * (top + 2)), least = 2 + p, h = 0.5 * top, z = (least + h) / h;
    double t = 1 / (h * z * (4 * z * z - 3)), error = h * t, allowed = fmin(8, 1 + sqrt(n)) * EPSILON;
    double k0 = (12 * z * z - 3) * t, k1 = -12 * z * t / h, k2 = 4 * t / (h * h);
    NAME(combine)(n, ld, k2, K, k1 + 2 * least * k2, V, K);
    NAME(shift)(n, ld, K, k0 + least * (k1 + least * k2));
    NAME(shift)(n, ld, V, least);
    for (; error > allowed; error *= error) {
        NAME(product)(n, ld, V, K, NULL, E, -1, 0, 2, SYMMETRIC);
        NAME(product)(n, ld, K, E, NULL, spare, 1, 0, 0, SYMMETRIC);
        swap = K, K = spare, spare = swap;
        *products += 2;
    }

    real *X = V, *F = K;
    NAME(product)(n, ld, K, C, NULL, P, 1, 0, 0, GENERAL);
    NAME(product)(n, ld, P, K, NULL, X, 1, 0, 0, SYMMETRIC);
    *products += 2;
    NAME(multiply)(n, ld, -2 * p, F);
    NAME(shift)(n, ld, F, 1);
    double factor = (p - 2) / (p + 2); /* the largest |eigenvalue| of F, reached at both ends of the spectrum */
    for (;;) {
        NAME(product)(n, ld, F, X, NULL, P, 1, 0, 0, GENERAL);
        NAME(product)(n, ld, P, F, X, X, 1, 1, 0, SYMMETRIC);
        *products += 2;
        factor *= factor;
        if (!(factor * factor > allowed)) break;
        NAME(product)(n, ld, F, F, NULL, spare, 1, 0, 0, SYMMETRIC);
        swap = F, F = spare, spare = swap;
        *products += 1;
    }

    NAME(add_ridge)(n, ld, ridge, X); /* a self-adjoint map, so its adjoint too */
    NAME(write)(n, ld, 2 * p / m * (1 + ridge), exponent - e, X, out);
}
