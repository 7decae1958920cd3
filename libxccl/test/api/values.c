/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Integers are reduced exactly, modulo their width. Floating-point operands are multiples of 1/4 up
 * to 2, which every type has, and products are of powers of two: only sums in the small types are
 * rounded at all, and the tolerance is theirs.
 */
#include "values.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { SIGNED, UNSIGNED, FLOATING };

static const struct {
    const char *name;
    size_t      size;
    enum kind   kind;
    int         exponent, mantissa; /* bits */
} types[xcclNumTypes] = {
    [xcclInt8] = {"int8", 1, SIGNED, 0, 0},
    [xcclUint8] = {"uint8", 1, UNSIGNED, 0, 0},
    [xcclInt32] = {"int32", 4, SIGNED, 0, 0},
    [xcclUint32] = {"uint32", 4, UNSIGNED, 0, 0},
    [xcclInt64] = {"int64", 8, SIGNED, 0, 0},
    [xcclUint64] = {"uint64", 8, UNSIGNED, 0, 0},
    [xcclFloat16] = {"float16", 2, FLOATING, 5, 10},
    [xcclFloat32] = {"float32", 4, FLOATING, 8, 23},
    [xcclFloat64] = {"float64", 8, FLOATING, 11, 52},
    [xcclBfloat16] = {"bfloat16", 2, FLOATING, 8, 7},
    [xcclFloat8e4m3] = {"float8e4m3", 1, FLOATING, 4, 3},
    [xcclFloat8e5m2] = {"float8e5m2", 1, FLOATING, 5, 2},
};

size_t xt_size(xcclDataType_t type)
{
    return types[type].size;
}

const char *xt_type_name(xcclDataType_t type)
{
    return types[type].name;
}

const char *xt_op_name(xcclRedOp_t op)
{
    static const char *const names[] = {"sum", "prod", "max", "min", "avg"};
    return ((unsigned)op < xcclNumOps) ? names[op] : "own";
}

uint64_t xt_mix(uint64_t seed, uint64_t a, uint64_t b)
{
    uint64_t x = seed * 0x9e3779b97f4a7c15ULL + a * 0xbf58476d1ce4e5b9ULL + b;

    x ^= x >> 31;
    x *= 0x94d049bb133111ebULL;
    x ^= x >> 29;
    x *= 0xd6e8feb86659fd93ULL;
    return x ^ (x >> 32);
}

void xt_fill_bytes(void *out, size_t bytes, uint64_t seed, int from)
{
    unsigned char *to = out;

    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t word = xt_mix(seed, (uint64_t)from, i);
        memcpy(to + i, &word, (bytes - i < 8) ? bytes - i : 8);
    }
}

static uint64_t load(const void *element, size_t size)
{
    uint64_t word = 0;

    memcpy(&word, element, size); /* little-endian: the low bytes */
    return word;
}

double xt_decode(xcclDataType_t type, const void *element)
{
    int      m = types[type].mantissa;
    int      e = types[type].exponent;
    uint64_t word = load(element, types[type].size);
    int64_t  bias = ((int64_t)1 << (e - 1)) - 1;
    int64_t  exponent = (int64_t)((word >> m) & (((uint64_t)1 << e) - 1));
    double   fraction = (double)(word & (((uint64_t)1 << m) - 1));
    double   sign = ((word >> (m + e)) != 0) ? -1 : 1;

    if (exponent == 0) {
        return sign * ldexp(fraction, (int)(1 - bias - m));
    }
    return sign * ldexp(fraction + ldexp(1, m), (int)(exponent - bias - m));
}

void xt_encode(xcclDataType_t type, double value, void *element)
{
    int      m = types[type].mantissa;
    int      e = types[type].exponent;
    int      power;
    uint64_t word = 0;

    if (value != 0) {
        double significand = frexp(fabs(value), &power); /* in [0.5, 1) */
        int    exponent = power - 1 + (1 << (e - 1)) - 1;
        word = (uint64_t)ldexp(significand * 2 - 1, m) | ((uint64_t)exponent << m);
    }
    if (signbit(value)) {
        word |= (uint64_t)1 << (m + e);
    }
    memcpy(element, &word, types[type].size);
}

/* Operand of one rank at element i. Averages of integers are of numbers that do not overflow. */
static int64_t integer_operand(xcclDataType_t type, xcclRedOp_t op, uint64_t hash)
{
    if (op == xcclAvg) {
        return (int64_t)(hash % 13) - ((types[type].kind == SIGNED) ? 6 : 0);
    }
    return (int64_t)hash;
}

static double floating_operand(xcclRedOp_t op, uint64_t hash)
{
    static const double factors[] = {0.5, 1, 2, -1};

    if (op == xcclProd) {
        return factors[hash % 4];
    }
    return ((double)(hash % 17) - 8) / 4;
}

void xt_fill_operands(void *out, xcclDataType_t type, xcclRedOp_t op, size_t count, size_t first,
                      uint64_t seed, int rank)
{
    unsigned char *to = out;
    size_t         size = types[type].size;

    for (size_t i = 0; i < count; i++) {
        uint64_t hash = xt_mix(seed, (uint64_t)rank, first + i);
        if (types[type].kind == FLOATING) {
            xt_encode(type, floating_operand(op, hash), to + i * size);
        } else {
            int64_t value = integer_operand(type, op, hash);
            memcpy(to + i * size, &value, size);
        }
    }
}

/* To the type's width and back to 64 bits, with its sign. */
static int64_t narrow(xcclDataType_t type, int64_t value)
{
    unsigned shift = (unsigned)(64 - 8 * types[type].size);
    uint64_t high = (uint64_t)value << shift;

    return (types[type].kind == SIGNED) ? (int64_t)high >> shift : (int64_t)(high >> shift);
}

static bool less(xcclDataType_t type, int64_t a, int64_t b)
{
    return (types[type].kind == SIGNED) ? (a < b) : ((uint64_t)a < (uint64_t)b);
}

static int64_t reduce_integers(xcclDataType_t type, xcclRedOp_t op, uint64_t seed, size_t i,
                               int nranks)
{
    int64_t acc = 0;

    for (int r = 0; r < nranks; r++) {
        int64_t x = narrow(type, integer_operand(type, op, xt_mix(seed, (uint64_t)r, i)));
        if (r == 0) {
            acc = x;
        } else if (op == xcclProd) {
            acc = (int64_t)((uint64_t)acc * (uint64_t)x);
        } else if (op == xcclMax) {
            acc = less(type, acc, x) ? x : acc;
        } else if (op == xcclMin) {
            acc = less(type, x, acc) ? x : acc;
        } else {
            acc = (int64_t)((uint64_t)acc + (uint64_t)x);
        }
    }
    return (op == xcclAvg) ? acc / nranks : narrow(type, acc);
}

static double reduce_floats(xcclDataType_t type, xcclRedOp_t op, uint64_t seed, size_t i,
                            int nranks, double *tolerance_p)
{
    double acc = 0;
    double sum = 0;

    for (int r = 0; r < nranks; r++) {
        double x = floating_operand(op, xt_mix(seed, (uint64_t)r, i));
        sum += fabs(x);
        if (r == 0) {
            acc = x;
        } else if (op == xcclProd) {
            acc *= x;
        } else if (op == xcclMax) {
            acc = fmax(acc, x);
        } else if (op == xcclMin) {
            acc = fmin(acc, x);
        } else {
            acc += x;
        }
    }
    bool rounds = (op == xcclSum) || (op == xcclAvg);
    *tolerance_p = rounds ? ldexp(sum, -types[type].mantissa) : 0;
    if (op == xcclAvg) {
        acc /= nranks;
        *tolerance_p /= nranks;
    }
    return acc;
}

long xt_check_reduction(const void *result, xcclDataType_t type, xcclRedOp_t op, size_t count,
                        size_t first, uint64_t seed, int nranks, char *text, size_t len)
{
    const unsigned char *from = result;
    size_t               size = types[type].size;

    for (size_t i = 0; i < count; i++) {
        if (types[type].kind == FLOATING) {
            double tolerance;
            double want = reduce_floats(type, op, seed, first + i, nranks, &tolerance);
            double have = xt_decode(type, from + i * size);
            if (!(fabs(have - want) <= tolerance)) {
                snprintf(text, len, "%.17g instead of %.17g +- %.3g", have, want, tolerance);
                return (long)i;
            }
        } else {
            int64_t want = reduce_integers(type, op, seed, first + i, nranks);
            int64_t have = narrow(type, (int64_t)load(from + i * size, size));
            int64_t off = (op == xcclAvg) ? llabs((long long)(have - want)) : (have != want);
            if (off > ((op == xcclAvg) ? 1 : 0)) {
                snprintf(text, len, "%lld instead of %lld", (long long)have, (long long)want);
                return (long)i;
            }
        }
    }
    return -1;
}
