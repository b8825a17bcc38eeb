/* Roots of matrices that moments of the spectrum say too little about: ill-conditioned, singular, or indefinite. */

/* The upper triangular factor of X/theta goes to U, ROWS rows at a time. Returns whether X is positive definite. */
TARGET static int NAME(cholesky)(long n, long ld, const real *X, double theta, real *U) {
    for (long i = 0; i < n; i += ROWS) {
        long start = i / LANES * LANES;
        for (long j = start; j < n; j += LANES) {
            VECTOR sum[ROWS];
            for (int r = 0; r < ROWS; r++) sum[r] = *(const VECTOR *)&AT(X, i + r, j) * (real)(1 / theta);
            for (long k = 0; k < i; k++)
                for (int r = 0; r < ROWS; r++) sum[r] -= AT(U, k, i + r) * *(const VECTOR *)&AT(U, k, j);
            for (int r = 0; r < ROWS; r++) *(VECTOR *)&AT(U, i + r, j) = sum[r];
        }
        for (long row = i; row < i + ROWS && row < n; row++) {
            for (long above = i; above < row; above++) {
                real c = AT(U, above, row);
                for (long j = start; j < n; j += LANES)
                    *(VECTOR *)&AT(U, row, j) -= c * *(const VECTOR *)&AT(U, above, j);
            }
            real pivot = AT(U, row, row);
            if (!(pivot > 0)) return 0;
            for (long j = start; j < n; j += LANES) *(VECTOR *)&AT(U, row, j) *= 1 / sqrt(pivot);
        }
    }
    return 1;
}

/* An estimate, mostly within a factor of two, of the condition number of X given a bound of its largest
   eigenvalue; negative if X is not positive definite. U is overwritten, and the first two rows of v. */
TARGET static double NAME(condition)(long n, long ld, const real *X, double theta, real *U, real *v) {
    if (!NAME(cholesky)(n, ld, X, theta, U)) return -1;
    /* Inverse iterations from a vector of ones with irregular signs. */
    real *unit = v + ld; /* over the diagonal of U */
    for (long i = 0; i < n; i++) v[i] = NAME(sign)(i, 2654435761u), unit[i] = 1 / AT(U, i, i);
    for (long i = n; i < ld; i++) v[i] = 0;
    double growth = sqrt(n);
    for (int round = 0; round < 4; round++) {
        double norm = 0;
        for (long i = 0; i < n; i++) v[i] /= growth;
        for (long i = 0; i < n; i++) {
            real c = v[i] *= unit[i];
            for (long j = i + 1; j < n; j++) v[j] -= c * AT(U, i, j);
        }
        for (long i = n - 1; i >= 0; i--) {
            VECTOR sum = {0};
            real known = v[i];
            v[i] = 0; /* below the diagonal of U there is anything, which meets entries that are not solved for yet */
            long aligned = (i + LANES) / LANES * LANES;
            for (long j = i + 1; j < aligned && j < n; j++) known -= AT(U, i, j) * v[j];
            for (long j = aligned; j < n; j += LANES) sum += *(const VECTOR *)&AT(U, i, j) * *(const VECTOR *)&v[j];
            for (long lane = 0; lane < LANES; lane++) known -= sum[lane];
            v[i] = known * unit[i];
            norm += v[i] * v[i];
        }
        growth = sqrt(norm);
    }
    return growth;
}

/* The roots of X = buffers[5] by the schedule for its condition number, negative if it is not positive definite, then
   longer ones. A matrix beyond the last schedule, singular or with eigenvalues negative by rounding, is shifted by 4
   epsilon, then 4 n epsilon, then by `max_shift` if that is more, relative to theta. Returns whether it is positive
   definite then.

   The inverse root R is that of X + shift I. The root is S - shift R = X (X + shift I)^(-1/2), zero where X is: S alone
   would be off by sqrt(shift). That is worse than S only where an eigenvalue is below -shift/2. */
TARGET static int NAME(robust)(long n, long ld, real **buffers, double theta, double condition, double max_shift,
                               const struct schedule *schedules, int count, double epsilon, enum result kind,
                               long *products) {
    double shifts[] = {0, 4 * epsilon, 4 * epsilon * n, max_shift};
    real *kept = buffers[5];
    for (int attempt = 0; attempt < (max_shift > shifts[2] ? 4 : 3); attempt++) {
        double shift = shifts[attempt];
        if (attempt > 0) {
            NAME(shift)(n, ld, kept, (shift - shifts[attempt - 1]) * theta);
            condition = NAME(condition)(n, ld, kept, theta, buffers[2], buffers[3]);
        }
        if (condition < 0 || (attempt == 0 && !(condition <= schedules[count - 1].condition))) continue;
        int index = 0, converged = 0;
        while (schedules[index].condition < condition && index < count - 1) index++;
        for (; index < count && !converged; index++) {
            memcpy(buffers[0], kept, sizeof(real) * SPACE(n, ld));
            NAME(product)(n, ld, kept, kept, NULL, buffers[1], 1, 0, 0, SYMMETRIC);
            *products += 1;
            /* Rounding of half products grows by more than the condition number. */
            enum result own = schedules[index].condition < 1e6 ? kind : GENERAL;
            converged = NAME(iterate)(n, ld, buffers, theta, &schedules[index], epsilon, own, products);
        }
        if (converged) {
            if (shift * condition < 1.5) NAME(combine)(n, ld, 1, buffers[0], -shift * theta, buffers[1], buffers[0]);
            return 1;
        }
    }
    return condition >= 0;
}
