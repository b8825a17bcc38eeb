/* Roots of one matrix of the caller. */

/* Up to this condition number half products in the type itself are exact enough. */

#define MODERATE 200

/* Six matrices of double, the first of them a copy of `X`: behind those of float, or the same for double. */
TARGET static inline void NAME(widen)(long n, long ld, real **buffers, double **wide) {
    if (sizeof(real) == sizeof(double)) {
        memcpy(wide, buffers, 6 * sizeof(double *));
        return;
    }
    WIDE(split_workspace)(n, ld, (double *)(buffers[5] + SPACE(n, ld)), wide);
    for (long k = 0; k < SPACE(n, ld); k++) wide[0][k] = buffers[5][k];
}

/* Both roots of X = buffers[0], kept in buffers[5], whose square buffers[1] holds. Returns whether there are any; then
   buffers[0] and buffers[1] hold them.

   A schedule that moments suggest comes first. Where there is none, or it was too short, the Cholesky factor shows the
   condition number. Matrices beyond MODERATE are computed in double; double ones with full products. */
TARGET static int NAME(both_roots)(long n, long ld, real **buffers, double x2, double theta, double max_shift,
                                   const struct schedule *schedules, int count, long *products) {
    const size_t bytes = sizeof(real) * SPACE(n, ld);
    int index = NAME(initial_schedule)(n, ld, buffers[0], buffers[1], x2, schedules);
    if (index >= 0) {
        if (NAME(iterate)(n, ld, buffers, theta, &schedules[index], EPSILON, SYMMETRIC, products)) return 1;
        memcpy(buffers[0], buffers[5], bytes);
    }
    double *wide[6];
    NAME(widen)(n, ld, buffers, wide);
    double condition = WIDE(condition)(n, ld, wide[0], theta, wide[2], wide[3]);
    int next = 0;
    while (schedules[next].condition < condition && next < count - 1) next++;
    if (condition >= 0 && schedules[next].condition <= MODERATE && next > index) {
        NAME(product)(n, ld, buffers[0], buffers[0], NULL, buffers[1], 1, 0, 0, SYMMETRIC);
        *products += 1;
        if (NAME(iterate)(n, ld, buffers, theta, &schedules[next], EPSILON, SYMMETRIC, products)) return 1;
        memcpy(buffers[0], buffers[5], bytes);
        NAME(widen)(n, ld, buffers, wide);
    }
    enum result kind = sizeof(real) == sizeof(double) ? GENERAL : SYMMETRIC;
    int found = WIDE(robust)(n, ld, wide, theta, condition, max_shift, schedules, count, EPSILON, kind, products);
    for (int root = 0; root < 2; root++)
        if (sizeof(real) == sizeof(double))
            buffers[root] = (real *)wide[root];
        else
            for (long k = 0; k < SPACE(n, ld); k++) buffers[root][k] = wide[root][k];
    return found;
}

/* Root and inverse root, (n, n) each or NULL, of the symmetric part of A with the ridge on it. NaN if an entry is not
   finite or an eigenvalue is clearly negative, zero for zero. */
TARGET static void NAME(roots)(long n, long ld, const real *A, const long *strides, real *S, real *R, double ridge,
                               double max_shift, const struct schedule *schedules, int count, real *work,
                               long *products) {
    real *buffers[6];
    NAME(split_workspace)(n, ld, work, buffers);
    real *X = buffers[0];
    int exponent;
    real size = NAME(read)(n, ld, A, strides, 1, X, &exponent);
    if (size == 0 || !(size - size == 0)) {
        NAME(fill)(n, size - size, S);
        NAME(fill)(n, size - size, R);
        return;
    }
    NAME(add_ridge)(n, ld, ridge, X);
    memcpy(buffers[5], X, sizeof(real) * SPACE(n, ld));
    NAME(product)(n, ld, X, X, NULL, buffers[1], 1, 0, 0, SYMMETRIC);
    *products += 1;
    double x2 = NAME(dot)(n, ld, X, X), x4 = NAME(dot)(n, ld, buffers[1], buffers[1]);
    /* Two percent more, since polynomials are steep beyond the ends of their intervals. */
    double theta = 1.02 * NAME(bound)(n, x2, x4);
    /* Subnormal entries are rounded by up to half of LEAST, which moves eigenvalues by up to n times that. */
    double subnormal_shift = 0.5 * n * ldexp(LEAST, -exponent) / theta;
    max_shift = fmax(max_shift, fmin(subnormal_shift, 0.5));
    if (!NAME(both_roots)(n, ld, buffers, x2, theta, max_shift, schedules, count, products)) {
        NAME(fill)(n, NAN, S);
        NAME(fill)(n, NAN, R);
        return;
    }
    double root_of_ridge = sqrt(1 + ridge);
    if (S) NAME(write)(n, ld, root_of_ridge, exponent / 2, buffers[0], S);
    if (R) NAME(write)(n, ld, 1 / root_of_ridge, -exponent / 2, buffers[1], R);
}


