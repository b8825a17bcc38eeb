/* Roots of symmetric positive definite matrices and their gradients, one matrix after another on every core.

   What the rest of the package does with whole batches is done here with a matrix that never leaves the nearest
   caches. Every decision is made for that matrix alone, in a workspace of fixed alignment, so its results are the same
   bits wherever it lies in memory and whatever the batch, its layout and the number of threads. Called through ctypes;
   nothing here knows of Python. */

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Steps of the minimax iteration and the spectra they are for. Coefficients ascend, the first step may be short. */
struct schedule {
    double condition; /* number, the largest */
    double gap;       /* the largest |1 - m| before the last step */
    double error;     /* the largest |1 - sqrt(m)| after it */
    double count;     /* of steps */
    double steps[12][5];
};

/* Storage of an n x n matrix: whole tiles and vectors, and rows that do not compete for the same places in cache. */
#define HEIGHT(n) (((n) + 7) / 8 * 8)
#define SPACE(n, ld) (HEIGHT(n) * (ld))
static long leading(long n) {
    long ld = (n + 15) / 16 * 16;
    return ld % 128 == 0 ? ld + 16 : ld;
}

/* Numbers of `size` bytes in the workspace of a thread: six matrices, and six of double ones behind those of float. */
long matroot_workspace(long n, long size) { return (size == sizeof(float) ? 18 : 6) * SPACE(n, leading(n)); }

enum result { GENERAL, SYMMETRIC };

#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (QUAD_BITS){__VA_ARGS__})
#endif

#define JOIN_(x, y, z) x##_##y##_##z
#define JOIN(x, y, z) JOIN_(x, y, z)
#define NAME(x) JOIN(x, real, ISA)
#define WIDE(x) JOIN(x, double, ISA)

#if defined(__x86_64__)
#define ISA avx512
#define TARGET __attribute__((target("avx512f,avx512dq,avx512vl,avx2,fma")))
#define WIDTH 64
#define ROWS 8
#include "both_types.h"
#define ISA avx2
#define TARGET __attribute__((target("avx2,fma")))
#define WIDTH 32
#define ROWS 4
#include "both_types.h"
#ifndef DISPATCH /* tests name an instruction set */
#define DISPATCH(f) (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") ? f##_avx512 \
                     : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? f##_avx2 : f##_plain)
#endif
#else
#define DISPATCH(f) f##_plain
#endif
#define ISA plain
#define TARGET
#define WIDTH 16
#define ROWS 4
#include "both_types.h"

/* A region has all of torch's threads, though only as many as there are matrices work: a region of fewer threads ends
   the others, and the next operation of torch starts them again. A single matrix needs no region. */
#define FOR_EACH_MATRIX(evaluate)                                                                                      \
    long next = 0, workers = batch < threads ? batch : threads;                                                        \
    _Pragma("omp parallel num_threads(batch > 1 ? threads : 1) reduction(+ : products)")                               \
    if (THREAD < workers)                                                                                              \
        for (;;) {                                                                                                     \
            long k, own = 0;                                                                                           \
            _Pragma("omp atomic capture") k = next++;                                                                  \
            if (k >= batch)                                                                                            \
                break;                                                                                                 \
            evaluate;                                                                                                  \
            products += own;                                                                                           \
        }

/* For each type: `batch` matrices of S and R are contiguous, either may be NULL; strides of A, GS and GR are those of
   the batch, the row and the column; `max_shift`, relative to the largest eigenvalue, is the last that is tried on a
   singular matrix; `work` holds a workspace for each of `threads` threads, or for each matrix where these are fewer,
   aligned to 64 bytes. Return the number of products of all matrices together. */
#define EXPORT(real)                                                                                                   \
    long matroot_roots_##real(const real *A, const long *strides, real *S, real *R, long batch, long n, double ridge,  \
                              double max_shift, const struct schedule *schedules, int count, real *work,               \
                              int threads) {                                                                           \
        long products = 0, ld = leading(n), space = matroot_workspace(n, sizeof(real));                                \
        __typeof__(roots_##real##_plain) *roots = DISPATCH(roots_##real);                                              \
        FOR_EACH_MATRIX(roots(n, ld, A + k * strides[0], strides, S ? S + k * n * n : NULL, R ? R + k * n * n : NULL,  \
                              ridge, max_shift, schedules, count, work + THREAD * space, &own))                        \
        return products;                                                                                               \
    }                                                                                                                  \
    long matroot_solve_##real(const real *S, const real *R, const real *GS, const long *strides_s, const real *GR,     \
                              const long *strides_r, real *out, long batch, long n, double ridge, real *work,          \
                              int threads) {                                                                           \
        long products = 0, ld = leading(n), space = matroot_workspace(n, sizeof(real));                                \
        __typeof__(solve_##real##_plain) *solve = DISPATCH(solve_##real);                                              \
        FOR_EACH_MATRIX(solve(n, ld, S + k * n * n, R + k * n * n, GS ? GS + k * strides_s[0] : NULL, strides_s,       \
                              GR ? GR + k * strides_r[0] : NULL, strides_r, out + k * n * n, ridge,                    \
                              work + THREAD * space, &own))                                                            \
        return products;                                                                                               \
    }

#ifdef _OPENMP
extern int omp_get_thread_num(void);
#define THREAD omp_get_thread_num()
#else
#define THREAD 0
#endif

EXPORT(float)
EXPORT(double)
