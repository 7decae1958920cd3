/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernels' arithmetic (src/kernels/arithmetic.h, as the simulation compiles it) and what MPI's
 * types and operations are to it (src/data/kernel_reduction.c, which is compiled into this
 * program), against MPI_Reduce_local of random values. What is left to this MPI is printed. Usage:
 * mpi_arithmetic none SEED
 */
#include <dlfcn.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XK_DEVICE static inline
struct xk_16 {
    uint64_t x, y;
};
#include "data/kernel_reduction.h"
#include "data/lists.h"
#include "data/types.h"
#include "kernels/arithmetic.h"
#include "support.h"
#include "types.h"

/* No device has any. */
void xm_lists_free(struct xm_list *lists)
{
    (void)lists;
}

enum { BYTES = 16 * 331 }; /* of each buffer: no multiple of what vector code takes at once */

static uint64_t state;

/* Few of them, so that many are equal; or any integer, and real numbers of like sizes. */
static void draw_field(struct mt_field field, char *at, bool few)
{
    uint64_t bits = mt_next(&state);
    int      small = (int)(bits >> 32) % 4;
    float    single = few ? (float)small : (float)((int32_t)bits) * 0x1p-30f;
    double   wide = few ? small : (double)((int64_t)bits) * 0x1p-62;

    if (field.kind == 'f') {
        memcpy(at, (field.size == 4) ? (void *)&single : (void *)&wide, (field.size == 4) ? 4 : 8);
        return;
    }
    if ((field.kind == 'l') || few) {
        bits = (field.kind == 'l') ? bits >> 63 : (uint64_t)(small - 1);
    }
    memcpy(at, &bits, field.size);
}

static void draw(const struct mt_type *type, size_t extent, char *buffer)
{
    mt_fill_noise(buffer, BYTES, mt_next(&state));
    for (size_t at = 0; at < BYTES; at += extent) {
        bool few = (mt_next(&state) >> 40) % 3 == 0;
        draw_field(type->field[0], buffer + at, few);
        if (type->field[1].size > 0) {
            draw_field(type->field[1], buffer + at + type->field[1].at, few);
        }
    }
}

/*
 * Where the processor multiplies and adds at once, as on AArch64, compilers make an MPI do so in a
 * product of complex numbers. The kernels never do: the last bits differ.
 */
#if defined(__FP_FAST_FMA)
enum { FUSES = true };
#else
enum { FUSES = false };
#endif

/* The largest absolute value of real numbers. */
static double largest(const struct mt_type *type, size_t extent, const char *buffer)
{
    struct mt_field field = type->field[0];
    double          most = 0, d;
    float           f;

    for (size_t at = 0; at < BYTES; at += extent / 2) {
        memcpy(&f, buffer + at, sizeof(f));
        memcpy(&d, buffer + at, (field.size == sizeof(d)) ? sizeof(d) : 0);
        most = fmax(most, fabs((field.size == sizeof(d)) ? d : f));
    }
    return most;
}

/*
 * A zero may have another sign: MPI_MIN of two zeros may be either. size: of the numbers that were
 * rounded otherwise, or 0.
 */
static bool same_field(struct mt_field field, const char *a, const char *b, double size)
{
    float  fa, fb;
    double da, db;

    if ((field.kind == 'f') && (field.size == 4)) {
        memcpy(&fa, a, sizeof(fa));
        memcpy(&fb, b, sizeof(fb));
        return (fa == fb) || (fabsf(fa - fb) <= 2 * FLT_EPSILON * size);
    }
    if (field.kind == 'f') {
        memcpy(&da, a, sizeof(da));
        memcpy(&db, b, sizeof(db));
        return (da == db) || (fabs(da - db) <= 2 * DBL_EPSILON * size);
    }
    return memcmp(a, b, field.size) == 0;
}

static size_t first_difference(const struct mt_type *type, size_t extent, const char *a,
                               const char *b, double size)
{
    for (size_t at = 0; at < BYTES; at += extent) {
        for (int f = 0; f < 2; f++) {
            struct mt_field field = type->field[f];
            if ((field.size > 0) &&
                !same_field(field, a + at + field.at, b + at + field.at, size)) {
                return at / extent;
            }
        }
    }
    return BYTES;
}

static void combine(const char *low, char *high, uint32_t what)
{
    for (size_t at = 0; at < BYTES; at += 16) {
        struct xk_16 a, b;
        memcpy(&a, low + at, 16);
        memcpy(&b, high + at, 16);
        a = xk_combine(a, b, what);
        memcpy(high + at, &a, 16);
    }
}

static bool is_complex_product(uint32_t what)
{
    return (XK_OP_OF(what) == XK_PROD) &&
           ((XK_TYPE_OF(what) == XK_COMPLEX32) || (XK_TYPE_OF(what) == XK_COMPLEX64));
}

static void compare(const struct mt_type *type, const struct mt_op *op,
                    const struct xm_kernel_reduction *reduction)
{
    static char low[BYTES], high[BYTES], found[BYTES];
    size_t      extent = xk_type_bytes(XK_TYPE_OF(reduction->what));
    MPI_Aint    lb, step;

    MPI_Type_get_extent(type->type, &lb, &step);
    mt_expect((reduction->element == extent) && (extent == (size_t)step), "%s: %zu bytes",
              type->name, reduction->element);
    draw(type, extent, low);
    draw(type, extent, high);
    memcpy(found, high, BYTES);
    bool   fused = FUSES && is_complex_product(reduction->what);
    double size = fused ? largest(type, extent, low) * largest(type, extent, high) : 0;
    combine(low, found, reduction->what);
    int    res = MPI_Reduce_local(low, high, (int)(BYTES / extent), type->type, op->op);
    size_t at = first_difference(type, extent, found, high, size);
    mt_expect((res == MPI_SUCCESS) && (at == BYTES), "%s of %s (%#x): element %zu", op->name,
              type->name, reduction->what, at);
}

/* Every other stretch of 256 bytes has halves of what was drawn, whose sums stay in the range. */
static void halve(char *buffer, uint32_t type)
{
    for (size_t at = 0; at < BYTES; at += xk_type_bytes(type)) {
        int8_t  *byte = (int8_t *)buffer + at;
        int16_t *word = (int16_t *)(void *)(buffer + at);
        if ((at / 256) % 2 == 0) {
            continue;
        }
        if (type == XK_INT8) {
            *byte = (int8_t)(*byte / 2);
        } else if (type == XK_UINT8) {
            *(uint8_t *)byte = *(uint8_t *)byte / 2;
        } else if (type == XK_INT16) {
            *word = (int16_t)(*word / 2);
        } else {
            *(uint16_t *)word = *(uint16_t *)word / 2;
        }
    }
}

/* A checked sum: where it says nothing of an overflow it is what this MPI makes of it. */
static void compare_checked(const struct mt_type *type, const struct mt_op *op,
                            const struct xm_kernel_reduction *reduction)
{
    static char low[BYTES], high[BYTES], result[BYTES];
    size_t      noticed = 0, wrong = 0;

    draw(type, reduction->element, low);
    draw(type, reduction->element, high);
    halve(low, XK_TYPE_OF(reduction->what));
    halve(high, XK_TYPE_OF(reduction->what));
    memcpy(result, high, BYTES);
    int res = MPI_Reduce_local(low, result, (int)(BYTES / reduction->element), type->type, op->op);
    for (size_t at = 0; at < BYTES; at += 16) {
        struct xk_sum sum;
        struct xk_16  a, b;
        memcpy(&a, low + at, 16);
        memcpy(&b, high + at, 16);
        xk_sum_begin(&sum, a, reduction->what);
        xk_sum_add(&sum, b, reduction->what);
        a = xk_sum_end(&sum, reduction->what);
        if (xk_sum_overflowed(&sum, reduction->what)) {
            noticed++;
        } else {
            wrong += (memcmp(&a, result + at, 16) != 0);
        }
    }
    mt_expect((res == MPI_SUCCESS) && (wrong == 0), "checked %s of %s: %zu units", op->name,
              type->name, wrong);
    mt_expect((noticed > 0) && (noticed < BYTES / 16 * 3 / 4), "%s of %s: noticed in %zu units",
              op->name, type->name, noticed);
}

/* Without it a program would be left to MPI for no reason; integers may differ. */
static bool must_translate(const struct mt_type *type, const struct mt_op *op)
{
    bool integers = (type->class == MT_INTEGER) || (type->class == MT_LOGICAL) ||
                    (type->class == MT_BYTE) || (type->class == MT_MULTI);

    return ((op->classes >> type->class & 1) != 0) && !integers && (type->field[0].size <= 8);
}

static void one_pair(const struct mt_type *type, const struct mt_op *op)
{
    struct xm_kernel_reduction reduction;
    const char                *reason = xm_kernel_reduction_of(type->type, op->op, &reduction);

    mt_expect((reason == NULL) || !must_translate(type, op), "%s of %s: %s", op->name, type->name,
              (reason == NULL) ? "" : reason);
    if ((reason == NULL) && (XK_OP_OF(reduction.what) == XK_SUM_CHECKED)) {
        printf("checked: %s of %s as type %u\n", op->name, type->name, XK_TYPE_OF(reduction.what));
        compare_checked(type, op, &reduction);
    } else if (reason == NULL) {
        compare(type, op, &reduction);
    } else if ((op->classes >> type->class & 1) != 0) {
        printf("left to MPI: %s of %s: %s\n", op->name, type->name, reason);
    }
}

static void add(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *count; i++) {
        ((int *)inout)[i] += ((int *)in)[i];
    }
}

static void refused(MPI_Datatype type, MPI_Op op, const char *what)
{
    struct xm_kernel_reduction reduction = {.what = 77};

    mt_expect((xm_kernel_reduction_of(type, op, &reduction) != NULL) && (reduction.what == 77),
              "%s", what);
}

int main(int argc, char **argv)
{
    void (*const none[XM_NUM_FUNCTIONS])(void) = {NULL};
    int                 num_types, num_ops;
    const struct mt_op *ops = mt_ops(&num_ops);
    MPI_Datatype        two;
    MPI_Op              own;

    mt_begin(&argc, &argv, false);
    if ((argc < 3) || (xm_mpi_open(dlopen(NULL, RTLD_LAZY), none) != xcclSuccess)) {
        fprintf(stderr, "usage: %s none SEED\n", argv[0]);
        MPI_Abort(MPI_COMM_WORLD, 64);
    }
    state = strtoull(argv[2], NULL, 10) + 88172645463325252u;
    xm_types_init();
    mt_expect(xm_kernel_reduction_arithmetic() != 0, "no number");
    const struct mt_type *types = mt_types(&num_types);
    for (int t = 0; t < num_types; t++) {
        for (int o = 0; o < num_ops; o++) {
            one_pair(&types[t], &ops[o]);
        }
    }
    MPI_Op_create(add, 1, &own);
    MPI_Type_contiguous(2, MPI_INT, &two);
    refused(MPI_INT, own, "an operation of the program");
    refused(MPI_INT, MPI_REPLACE, "MPI_REPLACE");
    refused(two, MPI_SUM, "a derived type");
    refused(MPI_LONG_DOUBLE, MPI_SUM, "long double");
    refused(MPI_FLOAT, MPI_BAND, "bits of real numbers");
    MPI_Type_free(&two);
    MPI_Op_free(&own);
    mt_summary();
    MPI_Finalize();
    return mt_status();
}
