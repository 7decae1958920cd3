/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reductions of 16 bytes at a time, with MPI's meaning. Included where XK_DEVICE and struct xk_16
 * are known. What is reduced is the same for all threads; where it is a constant, as in loops of
 * their own in exchange.h and mapped.h, little remains of this. No combination of bits traps.
 *
 * - a is the lower rank's and b the higher one's.
 * - Integers wrap around, in a checked sum too: the accumulator says whether they may have.
 * - XK_MIN is (b < a) ? b : a and XK_MAX is (a < b) ? b : a: a stays where one of them is no
 * number.
 * - XK_MINLOC and XK_MAXLOC: of equal values the one of the smaller index. a stays where one of the
 *   values is no number. Holes keep the bytes of a.
 */
#ifndef XK_KERNELS_ARITHMETIC_H
#define XK_KERNELS_ARITHMETIC_H

#include "kernels/elements.h"
#include "kernels/operations.h"

XK_DEVICE struct xk_16 xk_combine(struct xk_16 a, struct xk_16 b, uint32_t what)
{
    uint32_t     type = XK_TYPE_OF(what), op = XK_OP_OF(what);
    struct xk_16 r = a;

    if (type <= XK_UINT64) {
        r.x = xk_integers(a.x, b.x, type, op);
        r.y = xk_integers(a.y, b.y, type, op);
        return r;
    }
    switch (type) {
    case XK_FLOAT16:
    case XK_BFLOAT16:
        return xk_shorts(a, b, type, op);
    case XK_FLOAT32:
        r.x = xk_floats(a.x, b.x, op);
        r.y = xk_floats(a.y, b.y, op);
        return r;
    case XK_FLOAT64:
        r.x = xk_doubles(a.x, b.x, op);
        r.y = xk_doubles(a.y, b.y, op);
        return r;
    case XK_COMPLEX32:
        r.x = xk_complex_floats(a.x, b.x, op);
        r.y = xk_complex_floats(a.y, b.y, op);
        return r;
    case XK_COMPLEX64:
        return xk_complex_doubles(a, b, op);
    case XK_FLOAT_INT:
    case XK_2INT:
    case XK_SHORT_INT:
    case XK_2FLOAT:
        r.x = xk_pairs(a.x, b.x, what);
        r.y = xk_pairs(a.y, b.y, what);
        return r;
    default:
        return xk_long_pair(a, b, what);
    }
}

/*
 * An accumulator for many ranks, the lowest first. Sums and products of 16-bit floating point are
 * floats meanwhile and rounded once, at the end; all else is 16 bytes as they are, in the first 4.
 * The last 4 are what a checked sum keeps beside it.
 */
struct xk_sum {
    uint32_t word[8]; /* indexed by constants, or they would not be registers */
};

XK_DEVICE uint32_t xk_sum_is_wide(uint32_t what)
{
    uint32_t type = XK_TYPE_OF(what);

    return ((type == XK_FLOAT16) || (type == XK_BFLOAT16)) && (XK_OP_OF(what) <= XK_PROD);
}

XK_DEVICE uint32_t xk_sum_is_checked(uint32_t what)
{
    return XK_OP_OF(what) == XK_SUM_CHECKED;
}

XK_DEVICE struct xk_16 xk_sum_narrow(const struct xk_sum *s)
{
    struct xk_16 v;

    v.x = (uint64_t)s->word[1] << 32 | s->word[0];
    v.y = (uint64_t)s->word[3] << 32 | s->word[2];
    return v;
}

XK_DEVICE void xk_sum_set(struct xk_sum *s, struct xk_16 v)
{
    s->word[0] = (uint32_t)v.x;
    s->word[1] = (uint32_t)(v.x >> 32);
    s->word[2] = (uint32_t)v.y;
    s->word[3] = (uint32_t)(v.y >> 32);
}

/* Of the lanes of a checked sum. */
XK_DEVICE uint32_t xk_checked_bits(uint32_t what)
{
    return 8u << ((XK_TYPE_OF(what) - XK_INT8) >> 1);
}

XK_DEVICE uint32_t xk_checked_tops(uint32_t what)
{
    uint32_t bits = xk_checked_bits(what);

    return (uint32_t)xk_lane_ones(bits) << (bits - 1);
}

XK_DEVICE uint32_t xk_checked_signed(uint32_t what)
{
    return ((XK_TYPE_OF(what) - XK_INT8) & 1) == 0;
}

XK_DEVICE void xk_checked_begin(struct xk_sum *s, struct xk_16 v, uint32_t what)
{
    uint32_t bits = xk_checked_bits(what), tops = xk_checked_tops(what);

    xk_sum_set(s, v);
    XK_UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        s->word[i + 4] = xk_checked_signed(what) ? xk_lanes_absolute(s->word[i], tops, bits) : 0;
    }
}

XK_DEVICE void xk_checked_add(struct xk_sum *s, struct xk_16 v, uint32_t what)
{
    uint32_t bits = xk_checked_bits(what), tops = xk_checked_tops(what);
    uint32_t word[4] = {(uint32_t)v.x, (uint32_t)(v.x >> 32), (uint32_t)v.y, (uint32_t)(v.y >> 32)};

    XK_UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t a = s->word[i], b = word[i];
        s->word[i] = ((a & ~tops) + (b & ~tops)) ^ ((a ^ b) & tops);
        s->word[i + 4] = xk_checked_signed(what) ? xk_lanes_distance(s->word[i + 4], b, tops, bits)
                                                 : xk_lanes_left(s->word[i + 4], a, b, s->word[i]);
    }
}

/* Might a checked sum have left the range in some order of the ranks? Of any element. */
XK_DEVICE int xk_sum_overflowed(const struct xk_sum *s, uint32_t what)
{
    uint32_t any = s->word[4] | s->word[5] | s->word[6] | s->word[7];

    return xk_sum_is_checked(what) && ((any & xk_checked_tops(what)) != 0);
}

XK_DEVICE void xk_sum_begin(struct xk_sum *s, struct xk_16 v, uint32_t what)
{
    if (xk_sum_is_checked(what)) {
        xk_checked_begin(s, v, what);
        return;
    }
    if (!xk_sum_is_wide(what)) {
        xk_sum_set(s, v);
        return;
    }
    XK_UNROLL
    for (uint32_t i = 0; i < 8; i++) {
        s->word[i] = xk_float_bits(xk_wide(v, i, XK_TYPE_OF(what)));
    }
}

XK_DEVICE void xk_sum_add(struct xk_sum *s, struct xk_16 v, uint32_t what)
{
    if (xk_sum_is_checked(what)) {
        xk_checked_add(s, v, what);
        return;
    }
    if (!xk_sum_is_wide(what)) {
        xk_sum_set(s, xk_combine(xk_sum_narrow(s), v, what));
        return;
    }
    XK_UNROLL
    for (uint32_t i = 0; i < 8; i++) {
        float wide = xk_wide(v, i, XK_TYPE_OF(what));
        s->word[i] = xk_float_bits(xk_floats_one(xk_float(s->word[i]), wide, XK_OP_OF(what)));
    }
}

XK_DEVICE struct xk_16 xk_sum_end(const struct xk_sum *s, uint32_t what)
{
    struct xk_16 v = {0, 0};

    if (!xk_sum_is_wide(what)) {
        return xk_sum_narrow(s);
    }
    XK_UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        v.x |= xk_narrow(xk_float(s->word[i]), i, XK_TYPE_OF(what));
        v.y |= xk_narrow(xk_float(s->word[i + 4]), i, XK_TYPE_OF(what));
    }
    return v;
}

#endif
