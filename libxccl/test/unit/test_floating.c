/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernels' arithmetic on floating point and complex numbers: every result is the exact one
 * rounded, sums over ranks stay within their bound, and what is infinite, no number, zero with a
 * sign or too small for the exponent comes out right.
 */
#include "check.h"
#include "reals.h"

enum { VECTORS = 3000, MOST_RANKS = 8 };

/* ---- one operation ---- */

static int is_right(double a, double b, double found, uint32_t op, const struct real *real)
{
    switch (op) {
    case XK_SUM:
        return is_rounded(found, (long double)a + b, real, 0);
    case XK_PROD:
        return is_rounded(found, (long double)a * b, real, 0);
    case XK_MIN:
        return isnan(a) ? isnan(found) : (found == ((b < a) ? b : a));
    default:
        return isnan(a) ? isnan(found) : (found == ((a < b) ? b : a));
    }
}

static void check_real(const struct real *real, uint32_t op)
{
    int wrong = 0;

    for (int n = 0; n < VECTORS; n++) {
        struct xk_16 a = draw(real), b = draw(real);
        struct xk_16 r = xk_combine(a, b, XK_REDUCES(real->type, op));
        for (unsigned i = 0; i < 16 / xk_type_bytes(real->type); i++) {
            wrong += !is_right(value_of(&a, i, real), value_of(&b, i, real), value_of(&r, i, real),
                               op, real);
        }
    }
    CHECK(wrong == 0, "operation %u of %s: %d elements", op, real->name, wrong);
}

/* ---- over ranks ---- */

/* 16-bit numbers are added as floats and rounded once. */
static long double bound(const struct real *real, int ranks, long double magnitude)
{
    int digits = (real->digits < 24) ? 24 : real->digits;

    return (ranks - 1) * ldexpl(1.001L, -digits) * magnitude;
}

static void check_ranks(const struct real *real, uint32_t op, int ranks)
{
    struct xk_16 v[MOST_RANKS];
    int          wrong = 0;

    for (int n = 0; n < VECTORS; n++) {
        for (int r = 0; r < ranks; r++) {
            v[r] = draw(real);
        }
        struct xk_16 found = accumulate(v, ranks, XK_REDUCES(real->type, op));
        for (unsigned i = 0; i < 16 / xk_type_bytes(real->type); i++) {
            long double exact = (op == XK_SUM) ? 0 : 1, magnitude = 0;
            int         usual = 1;
            for (int r = 0; r < ranks; r++) {
                double x = value_of(&v[r], i, real);
                usual = usual && (fabs(x) > 0.125) && (fabs(x) < 256);
                exact = (op == XK_SUM) ? exact + x : exact * x;
                magnitude += fabs(x);
            }
            magnitude = (op == XK_SUM) ? magnitude : fabsl(exact);
            /* In between they stay far from the ends of the range, but for halves' products. */
            wrong += usual && !is_rounded(value_of(&found, i, real), exact, real,
                                          bound(real, ranks, magnitude));
        }
    }
    CHECK(wrong == 0, "operation %u of %s on %d ranks: %d elements", op, real->name, ranks, wrong);
}

/* ---- what is special ---- */

static void check_one(const struct real *real, uint32_t op, double a, double b, double want)
{
    struct xk_16 va = {0, 0}, vb = {0, 0};
    size_t       bytes = xk_type_bytes(real->type);
    const double values[2] = {a, b};
    for (int k = 0; k < 2; k++) {
        float    narrow = (float)values[k];
        uint64_t bits = xk_double_bits(values[k]);
        if (bytes == 4) {
            bits = xk_float_bits(narrow);
        } else if (bytes == 2) {
            bits = (real->type == XK_FLOAT16) ? xk_half_bits(narrow) : xk_bfloat_bits(narrow);
        }
        put((k == 0) ? &va : &vb, 16 / (unsigned)bytes - 1, &bits, bytes);
    }
    struct xk_16 v[2] = {va, vb};
    struct xk_16 found[2] = {xk_combine(va, vb, XK_REDUCES(real->type, op)),
                             accumulate(v, 2, XK_REDUCES(real->type, op))};
    for (int k = 0; k < 2; k++) {
        double r = value_of(&found[k], 16 / (unsigned)bytes - 1, real);
        CHECK(isnan(want) ? isnan(r) : ((r == want) && (!signbit(r) == !signbit(want))),
              "operation %u of %s: %g with %g is %g", op, real->name, a, b, r);
    }
}

static void check_special(const struct real *real)
{
    double least = ldexp(1, real->least), greatest = ldexp(1, real->greatest);

    check_one(real, XK_SUM, INFINITY, -INFINITY, NAN);
    check_one(real, XK_SUM, INFINITY, -1, INFINITY);
    check_one(real, XK_SUM, NAN, 1, NAN);
    check_one(real, XK_SUM, -0.0, -0.0, -0.0);
    check_one(real, XK_SUM, -0.0, 0.0, 0.0);
    check_one(real, XK_SUM, greatest, greatest, INFINITY);
    check_one(real, XK_SUM, least, least, 2 * least);
    check_one(real, XK_SUM, -least, least, 0.0);
    check_one(real, XK_PROD, 0.0, -INFINITY, NAN);
    check_one(real, XK_PROD, -0.0, 3, -0.0);
    check_one(real, XK_PROD, least, 0.5, 0.0); /* half of the least number: to even */
    check_one(real, XK_PROD, 3 * least, 0.5, 2 * least);
    check_one(real, XK_PROD, greatest, -2, -INFINITY);
    check_one(real, XK_MIN, 1, NAN, 1);
    check_one(real, XK_MIN, NAN, 1, NAN);
    check_one(real, XK_MAX, 1, NAN, 1);
    check_one(real, XK_MAX, NAN, 1, NAN);
    check_one(real, XK_MIN, 0.0, -0.0, 0.0);
    check_one(real, XK_MAX, -0.0, 0.0, -0.0);
    check_one(real, XK_MIN, least, -INFINITY, -INFINITY);
    check_one(real, XK_MAX, -least, least, least);
}

/* ---- conversions of 16 bits ---- */

static float widened(const struct real *real, uint32_t bits)
{
    return (real->type == XK_FLOAT16) ? xk_half_float(bits) : xk_bfloat_float(bits);
}

static uint32_t narrowed(const struct real *real, float value)
{
    return (real->type == XK_FLOAT16) ? xk_half_bits(value) : xk_bfloat_bits(value);
}

/* Each number comes back, and what lies between two of them goes to the nearer, or to even. */
static int converts(const struct real *real, uint32_t bits)
{
    struct xk_16 here = {bits, 0}, next = {bits + 1, 0};
    double       low = value_of(&here, 0, real), high = value_of(&next, 0, real);
    uint32_t     infinite = (real->type == XK_FLOAT16) ? 0x7c00 : 0x7f80, sign = bits & 0x8000;

    if ((bits & 0x7fff) > infinite) {
        return isnan(widened(real, bits)) &&
               ((narrowed(real, widened(real, bits)) & 0x7fff) > infinite);
    }
    if ((widened(real, bits) != low) || (narrowed(real, (float)low) != bits)) {
        return 0;
    }
    if ((bits & 0x7fff) >= infinite) {
        return 1;
    }
    if (isinf(high)) { /* as if there were a next one */
        high = (sign != 0 ? -1 : 1) * ldexp(1, real->greatest + 1);
    }
    float middle = (float)(low / 2 + high / 2), out = (sign != 0) ? -INFINITY : INFINITY;
    return (narrowed(real, middle) == bits + (bits & 1)) &&
           (narrowed(real, nextafterf(middle, 0)) == bits) &&
           (narrowed(real, nextafterf(middle, out)) == bits + 1);
}

static void check_conversions(const struct real *real)
{
    int wrong = 0;

    for (uint32_t bits = 0; bits < 65536; bits++) {
        wrong += !converts(real, bits);
    }
    CHECK(wrong == 0, "%d of %s", wrong, real->name);
    for (uint32_t low = 0; low < 3; low++) { /* no number whose bits would be rounded away */
        uint32_t bits = narrowed(real, xk_float(0x7f800001 + 0x3fffff * low));
        CHECK(isnan(widened(real, bits)), "%x of %s", bits, real->name);
    }
    CHECK(narrowed(real, 3.4e38f) == (uint32_t)(real->type == XK_FLOAT16 ? 0x7c00 : 0x7f80), "%s",
          real->name);
}

/* ---- complex numbers ---- */

/* Both parts of a product, each to the error of its two products and its sum. */
static int is_product(const double a[2], const double b[2], const double r[2],
                      const struct real *real)
{
    long double real_part = (long double)a[0] * b[0] - (long double)a[1] * b[1];
    long double imaginary = (long double)a[0] * b[1] + (long double)a[1] * b[0];
    long double most = fabsl((long double)a[0] * b[0]) + fabsl((long double)a[1] * b[1]) +
                       fabsl((long double)a[0] * b[1]) + fabsl((long double)a[1] * b[0]);
    long double error = ldexpl(most, -real->digits);

    return is_rounded(r[0], real_part, real, error) && is_rounded(r[1], imaginary, real, error);
}

static void check_complex(uint32_t type, const struct real *real)
{
    unsigned count = 16 / (unsigned)xk_type_bytes(type);
    int      wrong = 0;

    for (int n = 0; n < VECTORS; n++) {
        struct xk_16 a = draw(real), b = draw(real);
        struct xk_16 sum = xk_combine(a, b, XK_REDUCES(type, XK_SUM));
        struct xk_16 product = xk_combine(a, b, XK_REDUCES(type, XK_PROD));
        wrong += !same(sum, xk_combine(a, b, XK_REDUCES(real->type, XK_SUM)));
        for (unsigned i = 0; i < count; i++) {
            double x[2], y[2], r[2];
            int    usual = 1;
            for (unsigned k = 0; k < 2; k++) {
                x[k] = value_of(&a, 2 * i + k, real);
                y[k] = value_of(&b, 2 * i + k, real);
                r[k] = value_of(&product, 2 * i + k, real);
                usual = usual && (fabs(x[k]) < 256) && (fabs(y[k]) < 256);
            }
            wrong += usual && !is_product(x, y, r, real);
        }
    }
    CHECK(wrong == 0, "complex %s: %d", real->name, wrong);
}

int main(void)
{
    for (int i = 0; i < NUM_REALS; i++) {
        for (uint32_t op = XK_SUM; op <= XK_MAX; op++) {
            check_real(&reals[i], op);
        }
        for (int ranks = 2; ranks <= MOST_RANKS; ranks++) {
            check_ranks(&reals[i], XK_SUM, ranks);
            check_ranks(&reals[i], XK_PROD, ranks);
        }
        check_special(&reals[i]);
    }
    check_conversions(&reals[0]);
    check_conversions(&reals[1]);
    check_complex(XK_COMPLEX32, &reals[2]);
    check_complex(XK_COMPLEX64, &reals[3]);
    return xt_done("floating");
}
