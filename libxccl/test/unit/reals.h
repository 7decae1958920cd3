/* SPDX-License-Identifier: BSD-3-Clause */
/* The real types of the kernels, and what a rounded result is. */
#ifndef XT_REALS_H
#define XT_REALS_H

#include <math.h>

#include "vectors.h"

/* Digits of the significand, the exponent of the least number, and that of the greatest. */
static const struct real {
    uint32_t    type;
    int         digits, least, greatest;
    const char *name;
} reals[] = {
    {XK_FLOAT16, 11, -24, 15, "float16"},
    {XK_BFLOAT16, 8, -133, 127, "bfloat16"},
    {XK_FLOAT32, 24, -149, 127, "float32"},
    {XK_FLOAT64, 53, -1074, 1023, "float64"},
};
enum { NUM_REALS = sizeof(reals) / sizeof(reals[0]) };

/* Element i, as the definition of its type says. */
static inline double value_of(const struct xk_16 *v, unsigned i, const struct real *real)
{
    uint64_t bits = 0;
    size_t   bytes = xk_type_bytes(real->type);

    memcpy(&bits, (const char *)v + i * bytes, bytes);
    int      fraction = real->digits - 1, exponents = 8 * (int)bytes - real->digits;
    uint64_t exponent = (bits >> fraction) & ((1ull << exponents) - 1);
    uint64_t rest = bits & ((1ull << fraction) - 1);
    double   sign = (bits >> (8 * bytes - 1)) ? -1.0 : 1.0;
    if (exponent == (1ull << exponents) - 1) {
        return (rest == 0) ? sign * INFINITY : NAN;
    }
    if (exponent == 0) {
        return sign * ldexp((double)rest, real->least);
    }
    return sign * ldexp((double)(rest | 1ull << fraction), real->least + (int)exponent - 1);
}

/* Half the distance of the numbers around a value: what rounding may add. */
static inline long double half_place(long double value, const struct real *real)
{
    int exponent = (value == 0) ? real->least : ilogbl(fabsl(value)) - (real->digits - 1);

    return ldexpl(0.5L, (exponent < real->least) ? real->least : exponent);
}

/* Is it the exact value rounded, or as near as that and a little more? */
static inline int is_rounded(double found, long double exact, const struct real *real,
                             long double more)
{
    long double greatest = ldexpl(2.0L - ldexpl(1.0L, 1 - real->digits), real->greatest);

    if (isnan(exact)) {
        return isnan(found);
    }
    if (isinf(found) && !isinf(exact)) { /* too great, to the last half place */
        return (fabsl(exact) + more >= greatest + half_place(greatest, real)) &&
               (!signbit(found) == !signbit(exact));
    }
    return (found == exact) ||
           (fabsl(found - exact) <= half_place(exact, real) * (1 + 0x1p-9L) + more);
}

/* Numbers of all sizes; three vectors of four of like sizes, so that sums cancel and round. */
static inline struct xk_16 draw(const struct real *real)
{
    struct xk_16 v = {random_word(), random_word()};
    size_t       bytes = xk_type_bytes(real->type);
    int          near = (random_word() % 4 != 0);

    for (unsigned i = 0; near && (i < 16 / bytes); i++) {
        uint64_t bits = random_word(),
                 one = (1ull << (8 * bytes - 2)) - (1ull << (real->digits - 1));
        uint64_t spread = (1ull << (real->digits + 2)) - 1;
        bits = (one + (bits & spread)) | (bits >> 63) << (8 * bytes - 1);
        put(&v, i, &bits, bytes);
    }
    return v;
}

#endif
