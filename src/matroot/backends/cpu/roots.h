/* Roots of one matrix of the caller. */

/* Up to this condition number half products in the type itself are exact enough. In matrices of a few rows rounding
   does not average out; schedules of double start with steeper polynomials. */
#define MODERATE(n) (sizeof(real) == sizeof(double) ? 30 : (n) < 16 ? 50 : 200)

/* Six matrices of double, the last of them equal to that of `buffers`: behind those of float, for double the same. */
TARGET static inline void NAME(widen)(long n, long ld, real **buffers, double **wide) {
    if (sizeof(real) == sizeof(double)) {
        memcpy(wide, buffers, 6 * sizeof(double *));
        return;
    }
    WIDE(split_workspace)(n, ld, (double *)(buffers[5] + SPACE(n, ld)), wide);
    for (long k = 0; k < SPACE(n, ld); k++) wide[5][k] = buffers[5][k];
}

/* Both roots of X = buffers[0], kept in buffers[5], whose square buffers[1] holds. Returns whether there are any; then
   buffers[0] and buffers[1] hold them.

   A schedule that moments suggest comes first. Where there is none, or it was too short, the Cholesky factor shows the
   condition number. Beyond MODERATE matrices are computed in double, double ones by full products. */
TARGET static int NAME(both_roots)(long n, long ld, real **buffers, double x2, double theta, double max_shift,
                                   const struct schedule *schedules, int count, long *products) {
    int is_double = sizeof(real) == sizeof(double), index = NAME(initial_schedule)(n, ld, buffers, x2, schedules);
    if (index >= 0) {
        enum result kind = schedules[index].condition <= MODERATE(n) ? SYMMETRIC : GENERAL;
        if (NAME(iterate)(n, ld, buffers, theta, &schedules[index], EPSILON, kind, products)) return 1;
    }
    double *wide[6];
    NAME(widen)(n, ld, buffers, wide);
    double condition = WIDE(condition)(n, ld, wide[5], theta, wide[2], wide[3]); /* of double, not 0 and 1 */
    int next = 0;
    while (schedules[next].condition < condition && next < count - 1) next++;
    if (condition >= 0 && schedules[next].condition <= MODERATE(n) && next > index) {
        if (index >= 0) { /* the iteration has overwritten both */
            memcpy(buffers[0], buffers[5], sizeof(real) * SPACE(n, ld));
            NAME(product)(n, ld, buffers[0], buffers[0], NULL, buffers[1], 1, 0, 0, SYMMETRIC);
            *products += 1;
        }
        if (NAME(iterate)(n, ld, buffers, theta, &schedules[next], EPSILON, SYMMETRIC, products)) return 1;
    }
    if (is_double) memcpy(wide, buffers, sizeof wide); /* an iteration changes their order */
    int found = WIDE(robust)(n, ld, wide, theta, condition, max_shift, schedules, count, EPSILON,
                             is_double ? GENERAL : SYMMETRIC, products);
    for (int root = 0; root < 2; root++)
        if (is_double)
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

#undef MODERATE
