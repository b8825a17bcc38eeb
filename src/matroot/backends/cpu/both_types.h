/* The kernel for one instruction set, whose definitions end here. */

#define real float
#define EPSILON FLT_EPSILON
#include "kernel.h"
#undef real
#undef EPSILON
#define real double
#define EPSILON DBL_EPSILON
#include "kernel.h"
#undef real
#undef EPSILON
#undef ISA
#undef TARGET
#undef WIDTH
#undef ROWS
