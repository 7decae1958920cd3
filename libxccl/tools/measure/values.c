/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random input that every rank can compute for every other rank, and the reference that results are
 * compared with. Integers are computed with in 64 bits and cut to the type (exact), floats in
 * double with the bound below.
 *
 * Tolerance of floats: a sum of n values in any order is off by at most (n - 1) u S, where S is the
 * sum of their magnitudes and u half of epsilon; n * epsilon * S covers it and the reference's own
 * error. A product: n * epsilon * |product| (complex: four times that). Min and max are exact.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "measure/measure.h"

enum { BLOCK = 512 }; /* elements worked on at a time, so that they stay in the first cache */

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

static uint64_t stream_of(const struct perf_case *pc, int rank)
{
    return mix(pc->seed ^ mix((uint64_t)rank + 1));
}

/* Cut to the type's width, as the type would read it. */
static int64_t cut(const struct perf_type *type, uint64_t x)
{
    unsigned shift = 64 - 8 * (unsigned)type->size;

    return (type->class == PERF_SIGNED) ? (int64_t)(x << shift) >> shift
                                        : (int64_t)((x << shift) >> shift);
}

/* Factors that cannot overflow: the n-th root of the largest value, or ones and a few twos. */
static int64_t shape_factor(const struct perf_run *run, int rank, unsigned bits, uint64_t raw)
{
    int64_t root = (int64_t)pow(ldexp(1, (int)bits - 1) - 1, 1.0 / run->nranks);

    if (root < 2) {
        return (rank < (int)bits - 2) ? 1 + (int64_t)(raw & 1) : 1;
    }
    root = (root < (1 << 30)) ? root : (1 << 30); /* beyond it a double's root is not exact */
    return 1 + (int64_t)(raw % (uint64_t)root);
}

/*
 * A random integer fit for the operation. Sums and products never overflow: C leaves that undefined
 * for signed ones, and for unsigned ones MPI does not say either (Open MPI 4.1 saturates 8 and 16
 * bits where the processor has vector instructions, and wraps where it has none).
 */
static int64_t shape_integer(const struct perf_run *run, int rank, uint64_t raw)
{
    unsigned bits = 8 * (unsigned)run->type->size;
    bool     is_signed = run->type->class == PERF_SIGNED;
    uint64_t limit = (UINT64_MAX >> (64 - bits + is_signed)) / (uint64_t)run->nranks;

    switch (run->op->id) {
    case PERF_SUM:
        limit = (limit > 0) ? limit : 1;
        if (is_signed) {
            return (int64_t)(raw % (2 * limit + 1)) - (int64_t)limit;
        }
        return (int64_t)(raw % limit);
    case PERF_PROD:
        return shape_factor(run, rank, bits, raw >> 1) * ((is_signed && ((raw & 1) != 0)) ? -1 : 1);
    case PERF_LAND:
        return ((raw & 7) != 0) ? (int64_t)(1 + ((raw >> 8) & 63)) : 0;
    case PERF_LOR:
        return ((raw & 7) == 0) ? (int64_t)(1 + ((raw >> 8) & 63)) : 0;
    case PERF_LXOR:
        return ((raw & 1) != 0) ? (int64_t)(1 + ((raw >> 8) & 63)) : 0;
    case PERF_BAND:
        return cut(run->type, raw | (raw >> 17) | (raw << 47));
    case PERF_BOR:
        return cut(run->type, raw & ((raw >> 17) | (raw << 47)));
    default:
        return cut(run->type, raw);
    }
}

static void draw_integers(const struct perf_run *run, const struct perf_case *pc, int rank,
                          size_t first, size_t n, int64_t *out)
{
    uint64_t base = stream_of(pc, rank);
    bool     reduces = perf_test_reduces(pc->test);

    for (size_t i = 0; i < n; i++) {
        uint64_t raw = mix(base + first + i);
        out[i] = reduces ? shape_integer(run, rank, raw) : cut(run->type, raw);
    }
}

static int lanes_of(const struct perf_type *type)
{
    return (type->class == PERF_COMPLEX) ? 2 : 1;
}

static bool is_single(const struct perf_type *type)
{
    return type->size == sizeof(float) * (size_t)lanes_of(type);
}

/* In [-1, 1), or for a product of magnitude about 1, and exact in the type. */
static void draw_floats(const struct perf_run *run, const struct perf_case *pc, int rank,
                        size_t first, size_t n, double *out)
{
    uint64_t base = stream_of(pc, rank);
    bool     product = perf_test_reduces(pc->test) && (run->op->id == PERF_PROD);
    double   scale = (run->type->class == PERF_COMPLEX) ? 0.70710678118654752 : 1.0;
    bool     single = is_single(run->type);

    for (size_t i = 0; i < n; i++) {
        uint64_t raw = mix(base + first + i);
        double   x = (double)((int64_t)(raw >> 11) - (1LL << 52)) * 0x1p-52;
        if (product) {
            x = copysign(0.75 + 0.5 * fabs(x), x) * scale;
        }
        out[i] = single ? (double)(float)x : x;
    }
}

static void store_integers(const struct perf_type *type, const int64_t *in, size_t n, void *out)
{
    for (size_t i = 0; i < n; i++) {
        /* Little end first, as on every machine with these devices. */
        memcpy((char *)out + i * type->size, &in[i], type->size);
    }
}

static void store_floats(bool single, const double *in, size_t n, void *out)
{
    if (!single) {
        memcpy(out, in, n * sizeof(double));
        return;
    }
    float *to = out;
    for (size_t i = 0; i < n; i++) {
        to[i] = (float)in[i];
    }
}

static bool is_integer(const struct perf_type *type)
{
    return (type->class == PERF_SIGNED) || (type->class == PERF_UNSIGNED);
}

void perf_values_make(const struct perf_run *run, const struct perf_case *pc, int rank,
                      size_t first, size_t n, void *out)
{
    union {
        int64_t integers[BLOCK];
        double  floats[2 * BLOCK];
    } work;
    size_t lanes = (size_t)lanes_of(run->type);

    for (size_t done = 0; done < n; done += BLOCK) {
        size_t part = (n - done < BLOCK) ? n - done : BLOCK;
        char  *to = (char *)out + done * run->type->size;
        if (is_integer(run->type)) {
            draw_integers(run, pc, rank, first + done, part, work.integers);
            store_integers(run->type, work.integers, part, to);
        } else {
            draw_floats(run, pc, rank, lanes * (first + done), lanes * part, work.floats);
            store_floats(is_single(run->type), work.floats, lanes * part, to);
        }
    }
}

static int64_t combine_integer(const struct perf_run *run, int64_t a, int64_t b)
{
    bool below = (run->type->class == PERF_SIGNED) ? a < b : (uint64_t)a < (uint64_t)b;

    switch (run->op->id) {
    case PERF_SUM:
        return (int64_t)((uint64_t)a + (uint64_t)b);
    case PERF_PROD:
        return (int64_t)((uint64_t)a * (uint64_t)b);
    case PERF_MAX:
        return below ? b : a;
    case PERF_MIN:
        return below ? a : b;
    case PERF_LAND:
        return (a != 0) && (b != 0);
    case PERF_LOR:
        return (a != 0) || (b != 0);
    case PERF_LXOR:
        return (a != 0) != (b != 0);
    case PERF_BAND:
        return a & b;
    case PERF_BOR:
        return a | b;
    default:
        return a ^ b;
    }
}

static void note(struct perf_mismatch *mismatch, const struct perf_type *type, const void *got,
                 const char *expected)
{
    if (mismatch->wrong++ == 0) {
        perf_value_text(type, got, mismatch->got, sizeof(mismatch->got));
        snprintf(mismatch->expected, sizeof(mismatch->expected), "%s", expected);
    }
}

static size_t compare_integers(const struct perf_run *run, const struct perf_case *pc, int ranks,
                               size_t first, size_t n, const void *got,
                               struct perf_mismatch *mismatch)
{
    int64_t acc[BLOCK], next[BLOCK];
    char    text[64];
    size_t  size = run->type->size, found = n;

    draw_integers(run, pc, 0, first, n, acc);
    for (int rank = 1; rank < ranks; rank++) {
        draw_integers(run, pc, rank, first, n, next);
        for (size_t i = 0; i < n; i++) {
            acc[i] = combine_integer(run, acc[i], next[i]);
        }
    }
    for (size_t i = 0; i < n; i++) {
        const char *value = (const char *)got + i * size;
        if (memcmp(value, &acc[i], size) != 0) {
            found = (found == n) ? i : found;
            perf_value_text(run->type, &acc[i], text, sizeof(text));
            note(mismatch, run->type, value, text);
        }
    }
    return found;
}

/* acc = acc op next, and in size what the tolerance is a multiple of. */
static void combine_floats(const struct perf_run *run, size_t lanes, double *acc, double *size,
                           const double *next)
{
    if ((run->op->id == PERF_PROD) && (run->type->class == PERF_COMPLEX)) {
        for (size_t i = 0; i < lanes; i += 2) {
            double re = acc[i] * next[i] - acc[i + 1] * next[i + 1];
            double im = acc[i] * next[i + 1] + acc[i + 1] * next[i];
            acc[i] = re;
            acc[i + 1] = im;
            size[i] = size[i + 1] = 4 * hypot(re, im);
        }
        return;
    }
    for (size_t i = 0; i < lanes; i++) {
        switch (run->op->id) {
        case PERF_SUM:
            acc[i] += next[i];
            size[i] += fabs(next[i]);
            break;
        case PERF_PROD:
            acc[i] *= next[i];
            size[i] = fabs(acc[i]);
            break;
        case PERF_MAX:
            acc[i] = fmax(acc[i], next[i]);
            break;
        default:
            acc[i] = fmin(acc[i], next[i]);
            break;
        }
    }
}

static double lane_value(const struct perf_type *type, const void *got, size_t lane)
{
    return is_single(type) ? (double)((const float *)got)[lane] : ((const double *)got)[lane];
}

static void expected_text(const struct perf_type *type, const double *value, double tolerance,
                          char *text, size_t len)
{
    if (type->class == PERF_COMPLEX) {
        snprintf(text, len, "(%.9g, %.9g) +- %.2g", value[0], value[1], tolerance);
    } else {
        snprintf(text, len, "%.*g +- %.2g", is_single(type) ? 9 : 17, value[0], tolerance);
    }
}

static size_t compare_floats(const struct perf_run *run, const struct perf_case *pc, int ranks,
                             size_t first, size_t n, const void *got,
                             struct perf_mismatch *mismatch)
{
    double acc[2 * BLOCK], size[2 * BLOCK], next[2 * BLOCK];
    char   text[96];
    size_t per = (size_t)lanes_of(run->type), lanes = n * per, found = n;
    bool   exact = (run->op->id == PERF_MAX) || (run->op->id == PERF_MIN);

    draw_floats(run, pc, 0, first * per, lanes, acc);
    for (size_t i = 0; i < lanes; i++) {
        size[i] = exact ? 0 : fabs(acc[i]);
    }
    for (int rank = 1; rank < ranks; rank++) {
        draw_floats(run, pc, rank, first * per, lanes, next);
        combine_floats(run, lanes, acc, size, next);
    }
    for (size_t i = 0; i < lanes; i++) {
        double tolerance = ranks * run->type->epsilon * size[i];
        /* Written so that a NaN is wrong. */
        if (!(fabs(lane_value(run->type, got, i) - acc[i]) <= tolerance)) {
            size_t element = i / per;
            found = (found == n) ? element : found;
            expected_text(run->type, &acc[element * per], tolerance, text, sizeof(text));
            note(mismatch, run->type, (const char *)got + element * run->type->size, text);
            i = element * per + per - 1; /* an element counts once */
        }
    }
    return found;
}

size_t perf_values_compare(const struct perf_run *run, const struct perf_case *pc, int ranks,
                           size_t first, size_t n, const void *got, struct perf_mismatch *mismatch)
{
    size_t found = n;

    for (size_t done = 0; done < n; done += BLOCK) {
        size_t      part = (n - done < BLOCK) ? n - done : BLOCK;
        const char *at = (const char *)got + done * run->type->size;
        size_t      i = is_integer(run->type)
                            ? compare_integers(run, pc, ranks, first + done, part, at, mismatch)
                            : compare_floats(run, pc, ranks, first + done, part, at, mismatch);
        if ((i < part) && (found == n)) {
            found = done + i;
        }
    }
    return found;
}

void perf_value_text(const struct perf_type *type, const void *value, char *text, size_t len)
{
    double lanes[2] = {0, 0};

    if (is_integer(type)) {
        uint64_t raw = 0;
        memcpy(&raw, value, type->size);
        int64_t x = cut(type, raw);
        if (type->class == PERF_SIGNED) {
            snprintf(text, len, "%" PRId64, x);
        } else {
            snprintf(text, len, "%" PRIu64, (uint64_t)x);
        }
        return;
    }
    for (int i = 0; i < lanes_of(type); i++) {
        lanes[i] = lane_value(type, value, (size_t)i);
    }
    if (type->class == PERF_COMPLEX) {
        snprintf(text, len, "(%.9g, %.9g)", lanes[0], lanes[1]);
    } else {
        snprintf(text, len, "%.*g", is_single(type) ? 9 : 17, lanes[0]);
    }
}
