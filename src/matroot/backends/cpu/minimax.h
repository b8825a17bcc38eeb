/* Roots by the coupled minimax iteration, with a schedule chosen for the matrix at hand. */

/* M becomes q(M) for q of degree 4, W and `square` are overwritten. */
TARGET static void NAME(polynomial)(long n, long ld, const double *q, real *M, real *square, real *W) {
    NAME(product)(n, ld, M, M, NULL, square, 1, 0, 0);
    NAME(combine)(n, ld, 1, square, q[3] / q[4], M, W);
    NAME(shift)(n, ld, W, q[2] / q[4]);
    NAME(product)(n, ld, W, square, M, M, q[4], q[1], q[0]);
}

/* The coupled minimax iteration. buffers[0] holds X, buffers[1] its square, theta bounds its eigenvalues. Returns
   whether it converged; then buffers[0] holds X^(1/2) and buffers[1] X^(-1/2). The order of the others changes. */
TARGET static int NAME(iterate)(long n, long ld, real **buffers, double theta, const struct schedule *schedule,
                                long *products) {
    real *X = buffers[0], *power = buffers[1], *Y = buffers[2], *Z = buffers[3], *M = buffers[4];
    const double *q = schedule->steps[0];
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
    *products += 1 + 5 * (schedule->count - 1);
    real *W = X, *swap;
    /* The last step turns a deviation d = |1 - m| into an error of 63/256 d^5. */
    double sharp = pow(12 * EPSILON * 256 / 63, 0.2);
    int early = sqrt(n) * schedule->gap < sharp, converged = 1;
    for (int step = 1; step < schedule->count; step++) {
        NAME(product)(n, ld, Z, Y, NULL, M, 1, 0, 0);
        int last = step == schedule->count - 1;
        if (last && early) /* ||I - M||_F^2, at least the square of the largest |1 - m|, up to n eps by cancellation */
            converged = NAME(dot)(n, ld, M, M) - 2 * NAME(trace)(n, ld, M) + n < sharp * sharp;
        NAME(polynomial)(n, ld, schedule->steps[step], M, power, W);
        NAME(product)(n, ld, Y, M, NULL, power, 1, 0, 0);
        swap = Y, Y = power, power = swap;
        NAME(product)(n, ld, M, Z, NULL, power, 1, 0, 0);
        swap = Z, Z = power, power = swap;
        /* Rounding grows in ill-conditioned matrices where Y and Z are not symmetric. M must not be symmetrised. */
        if (!last && schedule->condition > 1e4) {
            NAME(symmetrise)(n, ld, Y);
            NAME(symmetrise)(n, ld, Z);
        }
    }
    if (!early) {
        /* tr(Y Z) = n, and less if the schedule was too short for an eigenvalue. */
        double missing = NAME(dot)(n, ld, Y, Z) - n;
        double allowed = 2 * n * schedule->error + EPSILON * (n * sqrt(n) + 2 * sqrt(n * schedule->condition));
        converged = missing < allowed && missing > -allowed;
    }
    buffers[0] = Y, buffers[1] = Z, buffers[2] = X, buffers[3] = power, buffers[4] = M;
    return converged;
}

/* The first schedule to try, from the moments of the spectrum; -1 if they do not suggest one. */
TARGET static int NAME(initial_schedule)(long n, long ld, const real *X, const real *square, double x2,
                                         const struct schedule *schedules) {
    double m1 = NAME(trace)(n, ld, X) / n, m2 = x2 / n, share = m1 * fabs(m1) / m2;
    int moderate = 0;
    while (schedules[moderate].condition < 45) moderate++;
    /* m1^2/m2 is 1/(1 + c) for covariances of n/c samples. */
    if (!(share > 0.6)) return -1;
    if (share <= 0.85 || moderate == 0) return moderate;
    /* Nearly a multiple of the identity, or all but a few eigenvalues are. The two nodes of the spectrum's Gauss
       quadrature, eigenvalues of the Jacobi matrix [[m1, b], [b, a]], tell which. */
    double m3 = NAME(dot)(n, ld, X, square) / n, bb = m2 - m1 * m1;
    double a = (m3 - 2 * m1 * m2 + m1 * m1 * m1) / bb, middle = 0.5 * (a + m1);
    double radius = sqrt((a - middle) * (a - middle) + bb), ratio = (middle + radius) / (middle - radius);
    return ratio > 0 && ratio < 1.7 ? 0 : ratio > 0 && ratio < 4.8 ? moderate : -1;
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

/* The roots of X = buffers[0], whose square buffers[1] holds if `squared`, by the schedule for the condition number
   that its Cholesky factor shows, then longer ones. A matrix beyond the last schedule, singular or with eigenvalues
   negative by rounding, is shifted by 4 eps, then 4 n eps, then by `max_shift` if that is more, relative to theta.
   Returns whether it is positive definite then. */
TARGET static int NAME(retry_with_shift)(long n, long ld, real **buffers, double theta, int squared, double max_shift,
                                         const struct schedule *schedules, int count, long *products) {
    double shifts[] = {0, 4 * EPSILON, 4 * EPSILON * n, max_shift};
    real *kept = buffers[5];
    memcpy(kept, buffers[0], sizeof(real) * SPACE(n, ld));
    int positive = 0;
    for (int attempt = 0; attempt < (max_shift > shifts[2] ? 4 : 3); attempt++) {
        if (attempt > 0) {
            NAME(shift)(n, ld, kept, (shifts[attempt] - shifts[attempt - 1]) * theta);
            squared = 0;
        }
        double condition = NAME(condition)(n, ld, kept, theta, buffers[2]);
        positive = condition >= 0;
        if (!positive || (attempt == 0 && !(condition <= schedules[count - 1].condition))) continue;
        int index = attempt > 0 ? count - 1 : 0;
        while (schedules[index].condition < condition && index < count - 1) index++;
        for (; index < count; index++) {
            if (!squared) {
                memcpy(buffers[0], kept, sizeof(real) * SPACE(n, ld));
                NAME(product)(n, ld, kept, kept, NULL, buffers[1], 1, 0, 0);
                *products += 1;
            }
            squared = 0;
            if (NAME(iterate)(n, ld, buffers, theta, &schedules[index], products)) return 1;
        }
    }
    return positive;
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
    NAME(product)(n, ld, X, X, NULL, buffers[1], 1, 0, 0);
    *products += 1;
    double x2 = NAME(dot)(n, ld, X, X), x4 = NAME(dot)(n, ld, buffers[1], buffers[1]);
    /* Two percent more, since polynomials are steep beyond the ends of their intervals. */
    double theta = 1.02 * NAME(bound)(n, x2, x4);
    /* Subnormal entries are rounded by up to half of LEAST, which moves eigenvalues by up to n times that. */
    double subnormal_shift = 0.5 * n * ldexp(LEAST, -exponent) / theta;
    max_shift = fmax(max_shift, fmin(subnormal_shift, 0.5));
    int index = NAME(initial_schedule)(n, ld, X, buffers[1], x2, schedules), done = 0;
    if (index >= 0) {
        memcpy(buffers[5], X, sizeof(real) * SPACE(n, ld));
        done = NAME(iterate)(n, ld, buffers, theta, &schedules[index], products);
        if (!done) memcpy(buffers[0], buffers[5], sizeof(real) * SPACE(n, ld));
    }
    if (!done)
        done = NAME(retry_with_shift)(n, ld, buffers, theta, index < 0, max_shift, schedules, count, products);
    if (!done) {
        NAME(fill)(n, NAN, S);
        NAME(fill)(n, NAN, R);
        return;
    }
    double root_of_ridge = sqrt(1 + ridge);
    if (S) NAME(write)(n, ld, root_of_ridge, exponent / 2, buffers[0], S);
    if (R) NAME(write)(n, ld, 1 / root_of_ridge, -exponent / 2, buffers[1], R);
}
