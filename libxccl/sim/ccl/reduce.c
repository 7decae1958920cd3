/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reductions, block by block: the elements of one rank after another, in rank order, into an
 * accumulator that is wider than the small types: results are the same on every run, and rounded
 * once.
 */
#include <math.h>
#include <string.h>

#include "ccl/ccl.h"
#include "ccl/floats.h"

#define BLOCK 2048

/* int64 and uint64 also hold the narrower integers: sums and products wrap alike. */
union block {
    int64_t  i[BLOCK];
    uint64_t u[BLOCK];
    float    f[BLOCK];
    double   d[BLOCK];
};

enum wide { WIDE_SIGNED, WIDE_UNSIGNED, WIDE_FLOAT, WIDE_DOUBLE };

static enum wide wide_of(int type)
{
    switch (type) {
    case XS_INT8:
    case XS_INT32:
    case XS_INT64:
        return WIDE_SIGNED;
    case XS_UINT8:
    case XS_UINT32:
    case XS_UINT64:
        return WIDE_UNSIGNED;
    case XS_FLOAT64:
        return WIDE_DOUBLE;
    default:
        return WIDE_FLOAT;
    }
}

static const struct xs_format *format_of(int type)
{
    switch (type) {
    case XS_FLOAT16:
        return &xs_half;
    case XS_BFLOAT16:
        return &xs_bfloat16;
    case XS_FLOAT8E4M3:
        return &xs_e4m3;
    default:
        return &xs_e5m2;
    }
}

static void load_integers(int type, const void *from, size_t n, union block *to)
{
    for (size_t k = 0; k < n; k++) {
        switch (type) {
        case XS_INT8:
            to->i[k] = ((const int8_t *)from)[k];
            break;
        case XS_UINT8:
            to->u[k] = ((const uint8_t *)from)[k];
            break;
        case XS_INT32:
            to->i[k] = ((const int32_t *)from)[k];
            break;
        default:
            to->u[k] = ((const uint32_t *)from)[k];
            break;
        }
    }
}

static void load(int type, const void *from, size_t n, union block *to)
{
    const struct xs_format *format = format_of(type);

    switch (type) {
    case XS_INT64:
    case XS_UINT64:
    case XS_FLOAT64:
        memcpy(to, from, n * 8);
        break;
    case XS_FLOAT32:
        memcpy(to, from, n * 4);
        break;
    case XS_FLOAT16:
    case XS_BFLOAT16:
        for (size_t k = 0; k < n; k++) {
            to->f[k] = xs_decode(format, ((const uint16_t *)from)[k], 16);
        }
        break;
    case XS_FLOAT8E4M3:
    case XS_FLOAT8E5M2:
        for (size_t k = 0; k < n; k++) {
            to->f[k] = xs_decode(format, ((const uint8_t *)from)[k], 8);
        }
        break;
    default:
        load_integers(type, from, n, to);
        break;
    }
}

static void store(int type, const union block *from, size_t n, void *to)
{
    const struct xs_format *format = format_of(type);

    switch (xs_type_bytes(type)) {
    case 8:
        memcpy(to, from, n * 8);
        break;
    case 4:
        if (type == XS_FLOAT32) {
            memcpy(to, from, n * 4);
            break;
        }
        for (size_t k = 0; k < n; k++) {
            ((uint32_t *)to)[k] = (uint32_t)from->u[k];
        }
        break;
    case 2:
        for (size_t k = 0; k < n; k++) {
            ((uint16_t *)to)[k] = (uint16_t)xs_encode(format, from->f[k], 16);
        }
        break;
    default:
        for (size_t k = 0; k < n; k++) {
            ((uint8_t *)to)[k] = (type <= XS_UINT8) ? (uint8_t)from->u[k]
                                                    : (uint8_t)xs_encode(format, from->f[k], 8);
        }
        break;
    }
}

static void combine_signed(int op, const union block *in, size_t n, union block *acc)
{
    for (size_t k = 0; k < n; k++) {
        if (op == XS_MAX) {
            acc->i[k] = (in->i[k] > acc->i[k]) ? in->i[k] : acc->i[k];
        } else {
            acc->i[k] = (in->i[k] < acc->i[k]) ? in->i[k] : acc->i[k];
        }
    }
}

/* Sums and products of signed numbers too: they wrap. */
static void combine_unsigned(int op, const union block *in, size_t n, union block *acc)
{
    switch (op) {
    case XS_PROD:
        for (size_t k = 0; k < n; k++) {
            acc->u[k] *= in->u[k];
        }
        break;
    case XS_MAX:
        for (size_t k = 0; k < n; k++) {
            acc->u[k] = (in->u[k] > acc->u[k]) ? in->u[k] : acc->u[k];
        }
        break;
    case XS_MIN:
        for (size_t k = 0; k < n; k++) {
            acc->u[k] = (in->u[k] < acc->u[k]) ? in->u[k] : acc->u[k];
        }
        break;
    default:
        for (size_t k = 0; k < n; k++) {
            acc->u[k] += in->u[k];
        }
        break;
    }
}

static void combine_float(int op, const union block *in, size_t n, union block *acc)
{
    switch (op) {
    case XS_PROD:
        for (size_t k = 0; k < n; k++) {
            acc->f[k] *= in->f[k];
        }
        break;
    case XS_MAX:
        for (size_t k = 0; k < n; k++) {
            acc->f[k] = fmaxf(acc->f[k], in->f[k]);
        }
        break;
    case XS_MIN:
        for (size_t k = 0; k < n; k++) {
            acc->f[k] = fminf(acc->f[k], in->f[k]);
        }
        break;
    default:
        for (size_t k = 0; k < n; k++) {
            acc->f[k] += in->f[k];
        }
        break;
    }
}

static void combine_double(int op, const union block *in, size_t n, union block *acc)
{
    switch (op) {
    case XS_PROD:
        for (size_t k = 0; k < n; k++) {
            acc->d[k] *= in->d[k];
        }
        break;
    case XS_MAX:
        for (size_t k = 0; k < n; k++) {
            acc->d[k] = fmax(acc->d[k], in->d[k]);
        }
        break;
    case XS_MIN:
        for (size_t k = 0; k < n; k++) {
            acc->d[k] = fmin(acc->d[k], in->d[k]);
        }
        break;
    default:
        for (size_t k = 0; k < n; k++) {
            acc->d[k] += in->d[k];
        }
        break;
    }
}

static void combine(enum wide wide, int op, const union block *in, size_t n, union block *acc)
{
    if (wide == WIDE_FLOAT) {
        combine_float(op, in, n, acc);
    } else if (wide == WIDE_DOUBLE) {
        combine_double(op, in, n, acc);
    } else if ((wide == WIDE_SIGNED) && ((op == XS_MAX) || (op == XS_MIN))) {
        combine_signed(op, in, n, acc);
    } else {
        combine_unsigned(op, in, n, acc);
    }
}

static void multiply(enum wide wide, const union block *scalar, size_t n, union block *acc)
{
    for (size_t k = 0; k < n; k++) {
        if (wide == WIDE_FLOAT) {
            acc->f[k] *= scalar->f[0];
        } else if (wide == WIDE_DOUBLE) {
            acc->d[k] *= scalar->d[0];
        } else {
            acc->u[k] *= scalar->u[0];
        }
    }
}

static void divide(enum wide wide, int by, size_t n, union block *acc)
{
    for (size_t k = 0; k < n; k++) {
        if (wide == WIDE_FLOAT) {
            acc->f[k] /= (float)by;
        } else if (wide == WIDE_DOUBLE) {
            acc->d[k] /= by;
        } else if (wide == WIDE_SIGNED) {
            acc->i[k] /= by;
        } else {
            acc->u[k] /= (uint64_t)by;
        }
    }
}

static void reduce_block(const struct xs_reduction *red, size_t at, size_t n, union block *acc)
{
    size_t      size = xs_type_bytes(red->type);
    enum wide   wide = wide_of(red->type);
    union block in;
    union block scalar;

    for (int i = 0; i < red->nranks; i++) {
        union block *into = (i == 0) ? acc : &in;

        load(red->type, red->from[i] + at * size, n, into);
        if (red->scalars != NULL) {
            load(red->type, red->scalars[i], 1, &scalar);
            multiply(wide, &scalar, n, into);
        }
        if (i > 0) {
            combine(wide, red->op, &in, n, acc);
        }
    }
    if (red->op == XS_AVG) {
        divide(wide, red->nranks, n, acc);
    }
}

void xs_reduce(const struct xs_reduction *red, size_t first, size_t count,
               unsigned char *const *targets, int target_count)
{
    size_t      size = xs_type_bytes(red->type);
    union block acc;

    for (size_t done = 0; done < count; done += BLOCK) {
        size_t n = (count - done < BLOCK) ? count - done : BLOCK;

        reduce_block(red, first + done, n, &acc);
        for (int t = 0; t < target_count; t++) {
            store(red->type, &acc, n, targets[t] + done * size);
        }
    }
}
