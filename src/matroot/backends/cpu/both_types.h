/* The kernel for one instruction set, whose definitions end here. */

#define real double
#define integer int64_t
#define DIGITS DBL_MANT_DIG
#define EPSILON DBL_EPSILON
#define LEAST DBL_TRUE_MIN
#define MAX_EXPONENT DBL_MAX_EXP
#define WIDEST
#include "kernel.h"
#undef real
#undef integer
#undef DIGITS
#undef EPSILON
#undef LEAST
#undef MAX_EXPONENT
#undef WIDEST
#define real float
#define integer int32_t
#define DIGITS FLT_MANT_DIG
#define EPSILON FLT_EPSILON
#define LEAST FLT_TRUE_MIN
#define MAX_EXPONENT FLT_MAX_EXP
#include "kernel.h"
#undef real
#undef integer
#undef DIGITS
#undef EPSILON
#undef LEAST
#undef MAX_EXPONENT
#undef ISA
#undef TARGET
#undef WIDTH
#undef ROWS
