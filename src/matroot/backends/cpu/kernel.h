/* Roots and gradients of one matrix, for one instruction set and one real type.

   The file is included once for each pair of them, after definitions of

     real          float or double
     integer       the signed integer of the same size
     DIGITS        binary, of its mantissa
     EPSILON       its machine epsilon
     LEAST         its smallest positive number, which is the spacing of subnormal ones
     MAX_EXPONENT  two to this overflows
     WIDEST        for double, which comes first: float matrices that are hard are computed by its code
     NAME(x)       x with a suffix of its own
     TARGET        the function attribute that selects the instruction set
     WIDTH         bytes of a vector register
     ROWS          rows of a tile of a product; up to three vectors wide, a tile must fit the registers

   Matrices are stored in HEIGHT(n) rows of `ld` numbers, multiples of ROWS and of a vector, with zeros
   beyond row and column n. */

typedef real NAME(vector) __attribute__((vector_size(WIDTH), may_alias));
typedef integer NAME(bits) __attribute__((vector_size(WIDTH), may_alias));
typedef real NAME(quad) __attribute__((vector_size(4 * sizeof(real)), may_alias));
typedef integer NAME(quad_bits) __attribute__((vector_size(4 * sizeof(real))));
#define VECTOR NAME(vector)
#define BITS NAME(bits)
#define QUAD NAME(quad)
#define QUAD_BITS NAME(quad_bits)
#define LANES ((long)(WIDTH / sizeof(real)))
#define AT(M, i, j) (M)[(i) * ld + (j)]

#include "matrix.h"
#include "scaling.h"
#include "minimax.h"
#ifdef WIDEST
#include "robust.h"
#endif
#include "roots.h"
#include "smith.h"

#undef VECTOR
#undef BITS
#undef QUAD
#undef QUAD_BITS
#undef LANES
#undef AT
