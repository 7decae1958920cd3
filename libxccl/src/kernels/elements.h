/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations on the elements of a word, or of two; what they mean is in arithmetic.h. */
#ifndef XK_KERNELS_ELEMENTS_H
#define XK_KERNELS_ELEMENTS_H

#include "kernels/numbers.h"
#include "kernels/operations.h"

/* ---- integers: all lanes of a word at once ---- */

/* 1 in each lane. */
XK_DEVICE uint64_t xk_lane_ones(uint32_t bits)
{
    switch (bits) {
    case 8:
        return 0x0101010101010101u;
    case 16:
        return 0x0001000100010001u;
    case 32:
        return 0x0000000100000001u;
    default:
        return 1;
    }
}

/* tops: the highest bit of each lane, so that no carry leaves one. */
XK_DEVICE uint64_t xk_lanes_sum(uint64_t a, uint64_t b, uint64_t tops, uint32_t bits)
{
    switch (bits) { /* what adders there are */
    case 64:
        return a + b;
    case 32:
        return (uint64_t)(uint32_t)((uint32_t)(a >> 32) + (uint32_t)(b >> 32)) << 32 |
               (uint32_t)((uint32_t)a + (uint32_t)b);
    default:
        return ((a & ~tops) + (b & ~tops)) ^ ((a ^ b) & tops);
    }
}

XK_DEVICE uint64_t xk_lanes_product(uint64_t a, uint64_t b, uint32_t bits)
{
    uint64_t lane = ~(uint64_t)0 >> (64 - bits), r = 0;

    for (uint32_t at = 0; at < 64; at += bits) {
        r |= ((a >> at) * (b >> at) & lane) << at;
    }
    return r;
}

/* All bits of those lanes where b < a, as numbers without a sign. */
XK_DEVICE uint64_t xk_lanes_less(uint64_t b, uint64_t a, uint64_t tops, uint32_t bits)
{
    uint64_t low = (b | tops) - (a & ~tops); /* the highest bit stays where nothing is borrowed */
    uint64_t less = ((~b & a) | (~(b ^ a) & ~low)) & tops;

    return less | (less - (less >> (bits - 1)));
}

/* 1 in those lanes that are not 0. */
XK_DEVICE uint64_t xk_lanes_true(uint64_t a, uint64_t tops, uint32_t bits)
{
    return ((((a & ~tops) + ~tops) | a) & tops) >> (bits - 1);
}

XK_DEVICE uint64_t xk_integers(uint64_t a, uint64_t b, uint32_t type, uint32_t op)
{
    uint32_t bits = 8u << ((type - XK_INT8) >> 1);
    uint64_t tops = xk_lane_ones(bits) << (bits - 1);
    uint64_t sign = (((type - XK_INT8) & 1) == 0) ? tops : 0; /* they compare with it flipped */

    switch (op) {
    case XK_SUM:
    case XK_SUM_CHECKED:
        return xk_lanes_sum(a, b, tops, bits);
    case XK_PROD:
        return xk_lanes_product(a, b, bits);
    case XK_MIN:
        return a ^ ((a ^ b) & xk_lanes_less(b ^ sign, a ^ sign, tops, bits));
    case XK_MAX:
        return a ^ ((a ^ b) & xk_lanes_less(a ^ sign, b ^ sign, tops, bits));
    case XK_LAND:
        return xk_lanes_true(a, tops, bits) & xk_lanes_true(b, tops, bits);
    case XK_LOR:
        return xk_lanes_true(a | b, tops, bits);
    case XK_LXOR:
        return xk_lanes_true(a, tops, bits) ^ xk_lanes_true(b, tops, bits);
    case XK_BAND:
        return a & b;
    case XK_BOR:
        return a | b;
    case XK_BXOR:
        return a ^ b;
    default:
        return a;
    }
}

/* ---- sums of small integers that may leave their range: words of 4 bytes ---- */

/*
 * What is kept beside a sum to notice it. Of unsigned numbers the highest bit of a lane says that
 * something was carried out of it; the others mean nothing. Of signed ones the lower bits are the
 * sum of the absolute values, and the highest says that they could not hold it once.
 */
XK_DEVICE uint32_t xk_lanes_left(uint32_t left, uint32_t a, uint32_t b, uint32_t sum)
{
    return left | (a & b) | ((a | b) & ~sum);
}

XK_DEVICE uint32_t xk_lanes_absolute(uint32_t a, uint32_t tops, uint32_t bits)
{
    uint32_t negative = a & tops, ones = negative >> (bits - 1);

    return (a ^ (negative | (negative - ones))) + ones;
}

XK_DEVICE uint32_t xk_lanes_distance(uint32_t distance, uint32_t a, uint32_t tops, uint32_t bits)
{
    return ((distance & ~tops) + xk_lanes_absolute(a, tops, bits)) | (distance & tops);
}

/* ---- real and complex numbers ---- */

XK_DEVICE float xk_floats_one(float a, float b, uint32_t op)
{
    switch (op) {
    case XK_SUM:
        return a + b;
    case XK_PROD:
        return a * b;
    case XK_MIN:
        return (b < a) ? b : a;
    case XK_MAX:
        return (a < b) ? b : a;
    default:
        return a;
    }
}

XK_DEVICE uint64_t xk_floats(uint64_t a, uint64_t b, uint32_t op)
{
    float low = xk_floats_one(xk_float((uint32_t)a), xk_float((uint32_t)b), op);
    float high = xk_floats_one(xk_float((uint32_t)(a >> 32)), xk_float((uint32_t)(b >> 32)), op);

    return (uint64_t)xk_float_bits(high) << 32 | xk_float_bits(low);
}

XK_DEVICE uint64_t xk_doubles(uint64_t a, uint64_t b, uint32_t op)
{
    double x = xk_double(a), y = xk_double(b);

    switch (op) {
    case XK_SUM:
        return xk_double_bits(x + y);
    case XK_PROD:
        return xk_double_bits(x * y);
    case XK_MIN:
        return (y < x) ? b : a;
    case XK_MAX:
        return (x < y) ? b : a;
    default:
        return a;
    }
}

/* The product of the textbook: infinite factors may give what is no number. */
XK_DEVICE uint64_t xk_complex_floats(uint64_t a, uint64_t b, uint32_t op)
{
    float ar = xk_float((uint32_t)a), ai = xk_float((uint32_t)(a >> 32));
    float br = xk_float((uint32_t)b), bi = xk_float((uint32_t)(b >> 32));

    if (op != XK_PROD) {
        return (op == XK_SUM) ? xk_floats(a, b, op) : a;
    }
    return (uint64_t)xk_float_bits(xk_cross_float(ar, bi, ai, br)) << 32 |
           xk_float_bits(xk_cross_float(ar, br, -ai, bi));
}

XK_DEVICE struct xk_16 xk_complex_doubles(struct xk_16 a, struct xk_16 b, uint32_t op)
{
    double       ar = xk_double(a.x), ai = xk_double(a.y);
    double       br = xk_double(b.x), bi = xk_double(b.y);
    struct xk_16 r = a;

    if (op == XK_SUM) {
        r.x = xk_doubles(a.x, b.x, op);
        r.y = xk_doubles(a.y, b.y, op);
    } else if (op == XK_PROD) {
        r.x = xk_double_bits(xk_cross_double(ar, br, -ai, bi));
        r.y = xk_double_bits(xk_cross_double(ar, bi, ai, br));
    }
    return r;
}

/* ---- floating point of 16 bits: computed as floats ---- */

/* Lane i of 8. */
XK_DEVICE float xk_wide(struct xk_16 v, uint32_t i, uint32_t type)
{
    uint32_t lane = (uint32_t)(((i < 4) ? v.x : v.y) >> (i % 4 * 16)) & 0xffff;

    return (type == XK_FLOAT16) ? xk_half_float(lane) : xk_bfloat_float(lane);
}

XK_DEVICE uint64_t xk_narrow(float value, uint32_t i, uint32_t type)
{
    uint32_t lane = (type == XK_FLOAT16) ? xk_half_bits(value) : xk_bfloat_bits(value);

    return (uint64_t)lane << (i % 4 * 16);
}

XK_DEVICE struct xk_16 xk_shorts(struct xk_16 a, struct xk_16 b, uint32_t type, uint32_t op)
{
    struct xk_16 r = {0, 0};

    XK_UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        r.x |= xk_narrow(xk_floats_one(xk_wide(a, i, type), xk_wide(b, i, type), op), i, type);
    }
    XK_UNROLL
    for (uint32_t i = 4; i < 8; i++) {
        r.y |= xk_narrow(xk_floats_one(xk_wide(a, i, type), xk_wide(b, i, type), op), i, type);
    }
    return r;
}

/* ---- pairs of a value and an index ---- */

/* Bits of a pair that are neither, in its first word; in the second word of 16 bytes. */
#define XK_HOLE(type) (((type) == XK_SHORT_INT) ? 0xffff0000u : 0)
#define XK_HOLE_BEHIND(type) (((type) == XK_2DOUBLE) ? 0 : 0xffffffff00000000u)

enum { XK_BEFORE = 1, XK_SAME = 2 };

XK_DEVICE uint32_t xk_order_reals(double x, double y)
{
    return (x < y) ? XK_BEFORE : (x == y) ? XK_SAME : 0;
}

XK_DEVICE uint32_t xk_order_integers(int64_t x, int64_t y)
{
    return (x < y) ? XK_BEFORE : (x == y) ? XK_SAME : 0;
}

XK_DEVICE uint32_t xk_order_values(uint64_t x, uint64_t y, uint32_t type)
{
    switch (type) {
    case XK_FLOAT_INT:
    case XK_2FLOAT:
        return xk_order_reals(xk_float((uint32_t)x), xk_float((uint32_t)y));
    case XK_DOUBLE_INT:
    case XK_2DOUBLE:
        return xk_order_reals(xk_double(x), xk_double(y));
    case XK_SHORT_INT:
        return xk_order_integers((int16_t)x, (int16_t)y);
    case XK_2INT:
        return xk_order_integers((int32_t)x, (int32_t)y);
    default:
        return xk_order_integers((int64_t)x, (int64_t)y);
    }
}

XK_DEVICE uint32_t xk_order_indices(uint64_t x, uint64_t y, uint32_t type)
{
    switch (type) {
    case XK_2FLOAT:
        return xk_order_reals(xk_float((uint32_t)x), xk_float((uint32_t)y));
    case XK_2DOUBLE:
        return xk_order_reals(xk_double(x), xk_double(y));
    default:
        return xk_order_integers((int32_t)x, (int32_t)y);
    }
}

/* Is it b's pair that is kept? */
XK_DEVICE uint32_t xk_pair_wins(uint64_t value_a, uint64_t index_a, uint64_t value_b,
                                uint64_t index_b, uint32_t what)
{
    uint32_t type = XK_TYPE_OF(what), op = XK_OP_OF(what);
    int      least = (op == XK_MINLOC);
    uint32_t order = xk_order_values(least ? value_b : value_a, least ? value_a : value_b, type);

    return (least || (op == XK_MAXLOC)) &&
           ((order == XK_BEFORE) ||
            ((order == XK_SAME) && (xk_order_indices(index_b, index_a, type) == XK_BEFORE)));
}

XK_DEVICE uint64_t xk_pairs(uint64_t a, uint64_t b, uint32_t what)
{
    uint64_t hole = XK_HOLE(XK_TYPE_OF(what));

    return xk_pair_wins(a, a >> 32, b, b >> 32, what) ? ((b & ~hole) | (a & hole)) : a;
}

XK_DEVICE struct xk_16 xk_long_pair(struct xk_16 a, struct xk_16 b, uint32_t what)
{
    uint64_t hole = XK_HOLE_BEHIND(XK_TYPE_OF(what));

    if (xk_pair_wins(a.x, a.y, b.x, b.y, what)) {
        a.x = b.x;
        a.y = (b.y & ~hole) | (a.y & hole);
    }
    return a;
}

#endif
