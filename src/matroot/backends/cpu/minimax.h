/* Roots by the coupled minimax iteration, with a schedule chosen for the matrix at hand. */

/* M becomes q(M) for q of degree 4, given its square; W is overwritten. */
TARGET static void NAME(polynomial)(long n, long ld, const double *q, real *M, const real *square, real *W,
                                    enum result kind) {
    NAME(combine)(n, ld, 1, square, q[3] / q[4], M, W);
    NAME(shift)(n, ld, W, q[2] / q[4]);
    NAME(product)(n, ld, W, square, M, M, q[4], q[1], q[0], kind);
}

/* |(Z Y - I) v|/|v| for a v near the eigenvectors of the smallest eigenvalues of X, given its roots Y and Z: those which
   a schedule that is too short leaves behind. v is a vector of irregular signs times Z^8, and not those signs by which
   the condition number is estimated: both would miss the same eigenvectors. `work` has room for three vectors. */
TARGET static double NAME(deviation)(long n, long ld, const real *Y, const real *Z, real *work) {
    real *v = work, *next = work + ld, *image = work + 2 * ld, *swap;
    for (long i = 0; i < n; i++) v[i] = NAME(sign)(i, 1597334677u);
    for (int round = 0; round < 8; round++) { /* not scaled: what overflows has not converged */
        NAME(times_vector)(n, ld, Z, v, next);
        swap = v, v = next, next = swap;
    }
    NAME(times_vector)(n, ld, Y, v, next);
    NAME(times_vector)(n, ld, Z, next, image);
    double size = 0, missing = 0;
    for (long i = 0; i < n; i++) {
        double difference = image[i] - v[i];
        size += (double)v[i] * v[i];
        missing += difference * difference;
    }
    return sqrt(missing / size);
}

/* The coupled minimax iteration. buffers[0] holds X, buffers[1] its square, theta bounds its eigenvalues. Returns
   whether it converged to within `epsilon`; then buffers[0] holds X^(1/2) and buffers[1] X^(-1/2). The order of the
   others changes.

   All products are symmetric in exact arithmetic. To compute half of them is to symmetrise M along with Y and Z, which
   lets rounding grow with the condition number; where that is too much, `kind` must be GENERAL. */
TARGET static int NAME(iterate)(long n, long ld, real **buffers, double theta, const struct schedule *schedule,
                                double epsilon, enum result kind, long *products) {
    real *X = buffers[0], *power = buffers[1], *Y = buffers[2], *Z = buffers[3], *M = buffers[4];
    const double *q = schedule->steps[0];
    double c[5], unit = 1 / theta;
    c[0] = q[0] * sqrt(unit);
    for (int k = 1; k < 5; k++) c[k] = q[k] * sqrt(unit) * pow(unit, k);
    /* With T = q(X/theta), start from Y = X T/sqrt(theta) and Z = T/sqrt(theta): then Y -> X^(1/2). */
    if (q[4] != 0) {
        NAME(combine)(n, ld, c[4], power, c[3], X, M);
        NAME(shift)(n, ld, M, c[2]);
        NAME(product)(n, ld, M, power, X, Z, 1, c[1], c[0], SYMMETRIC);
        *products += 1;
    } else {
        NAME(combine)(n, ld, c[2], power, c[1], X, Z);
        NAME(shift)(n, ld, Z, c[0]);
    }
    NAME(product)(n, ld, X, Z, NULL, Y, 1, 0, 0, SYMMETRIC);
    *products += 1 + 5 * (schedule->count - 1);
    real *W = X, *swap;
    /* The last step turns a deviation d = |1 - m| into an error of 63/256 d^5. */
    double sharp = pow(12 * epsilon * 256 / 63, 0.2);
    int early = sqrt(sqrt(n)) * schedule->gap < sharp, converged = 1;
    for (int step = 1; step < schedule->count; step++) {
        NAME(product)(n, ld, Z, Y, NULL, M, 1, 0, 0, kind);
        NAME(product)(n, ld, M, M, NULL, power, 1, 0, 0, kind);
        int last = step == schedule->count - 1;
        if (last && early) { /* ||(I - M)^2||_F, at least the square of the largest |1 - m| */
            NAME(combine)(n, ld, 1, power, -2, M, W);
            NAME(shift)(n, ld, W, 1);
            converged = NAME(dot)(n, ld, W, W) < pow(sharp, 4);
        }
        NAME(polynomial)(n, ld, schedule->steps[step], M, power, W, kind);
        NAME(product)(n, ld, Y, M, NULL, power, 1, 0, 0, kind);
        swap = Y, Y = power, power = swap;
        NAME(product)(n, ld, M, Z, NULL, power, 1, 0, 0, kind);
        swap = Z, Z = power, power = swap;
        /* Rounding grows in ill-conditioned matrices where Y and Z are not symmetric. M must not be symmetrised. */
        if (!last && kind == GENERAL && schedule->condition > 1e4) {
            NAME(symmetrise)(n, ld, Y);
            NAME(symmetrise)(n, ld, Z);
        }
    }
    if (!early) {
        /* tr(Y Z) = n, and less if the schedule was too short: by little for one eigenvalue of many. */
        double missing = NAME(dot)(n, ld, Y, Z) - n, condition = schedule->condition, error = 2 * schedule->error;
        double allowed = n * error + epsilon * (n * sqrt(n) + 2 * sqrt(n * condition));
        converged = missing < allowed && missing > -allowed &&
                    NAME(deviation)(n, ld, Y, Z, power) < error + 4 * epsilon * (sqrt(n) + sqrt(condition));
    }
    buffers[0] = Y, buffers[1] = Z, buffers[2] = X, buffers[3] = power, buffers[4] = M;
    return converged;
}

/* The first schedule to try, from the moments of the spectrum; -1 if they do not suggest one. buffers[0] holds X,
   buffers[1] its square. */
TARGET static int NAME(initial_schedule)(long n, long ld, real **buffers, double x2, const struct schedule *schedules) {
    const real *X = buffers[0], *square = buffers[1];
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
