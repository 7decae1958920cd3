/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The vendors' integers wrap around, and compare as their type says. MPI libraries do not always:
 * Open MPI's AVX code saturates 8-bit sums, Open MPI 4.1.4 compares MPI_UNSIGNED_LONG as signed and
 * MPICH 4.0.2 MPI_UINT64_T too, and whether MPI_CHAR is a number at all is each library's own
 * choice. So each integer type is tried out once with MPI_Reduce_local on values that tell these
 * apart, long enough for vector code and its remainder. What matches neither of the vendors' types
 * of that size stays with MPI.
 */
#include "data/reduction.h"

#include <pthread.h>
#include <string.h>

#include <xccl/xccl.h>

#include "data/types.h"

enum { NUM_OPS = 4, MAX_INTEGERS = 64, ELEMENTS = 141, NO_TYPE = -1 };

static struct {
    MPI_Datatype type;
    int          vendor[NUM_OPS]; /* xcclDataType_t, or NO_TYPE */
} integers[MAX_INTEGERS];
static int            num_integers;
static uint64_t       arithmetic;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static MPI_Op op_at(int i)
{
    const MPI_Op ops[NUM_OPS] = {XM_HANDLE(MPI_SUM), XM_HANDLE(MPI_PROD), XM_HANDLE(MPI_MAX),
                                 XM_HANDLE(MPI_MIN)};

    return ops[i];
}

/* Mixed signs, the ends of the range, and sums and products that leave it. */
static uint64_t value_at(int i, int which)
{
    static const uint64_t values[] = {1,           (uint64_t)-1,   0x7f,      0x80, 100,
                                      (uint64_t)3, (uint64_t)-100, 0,         0xff, 0x7fffffff,
                                      0x80000000u, UINT64_MAX / 2, 1ull << 63};
    const int             n = sizeof(values) / sizeof(values[0]);

    return values[(which == 0) ? (i % n) : (i / n + 3 * i + 5) % n];
}

static void put(void *array, int i, MPI_Count size, uint64_t value)
{
    memcpy((char *)array + i * size, &value, (size_t)size); /* little end first */
}

static uint64_t get(const void *array, int i, MPI_Count size)
{
    uint64_t value = 0;

    memcpy(&value, (const char *)array + i * size, (size_t)size);
    return value;
}

static int64_t signed_value(uint64_t value, MPI_Count size)
{
    int shift = 64 - 8 * (int)size;

    return (int64_t)(value << shift) >> shift;
}

/* The vendors' result. */
static uint64_t expected(int op, bool is_signed, uint64_t a, uint64_t b, MPI_Count size)
{
    bool less = is_signed ? (signed_value(a, size) < signed_value(b, size)) : (a < b);

    switch (op) {
    case 0:
        return a + b;
    case 1:
        return a * b;
    case 2:
        return less ? b : a;
    default:
        return less ? a : b;
    }
}

static bool behaves(MPI_Count size, int op, bool is_signed, const void *in, const void *before,
                    const void *after)
{
    uint64_t mask = (size == 8) ? UINT64_MAX : ((1ull << (8 * size)) - 1);

    for (int i = 0; i < ELEMENTS; i++) {
        uint64_t want = expected(op, is_signed, get(in, i, size), get(before, i, size), size);
        if ((want & mask) != get(after, i, size)) {
            return false;
        }
    }
    return true;
}

static int vendor_integer(MPI_Count size, bool is_signed)
{
    switch (size) {
    case 1:
        return is_signed ? xcclInt8 : xcclUint8;
    case 4:
        return is_signed ? xcclInt32 : xcclUint32;
    case 8:
        return is_signed ? xcclInt64 : xcclUint64;
    default:
        return NO_TYPE;
    }
}

static int try_out(MPI_Datatype type, MPI_Count size, bool prefer_signed, int op)
{
    uint64_t in[ELEMENTS], before[ELEMENTS], after[ELEMENTS];

    for (int i = 0; i < ELEMENTS; i++) {
        put(in, i, size, value_at(i, 0));
        put(before, i, size, value_at(i, 1));
    }
    memcpy(after, before, sizeof(after));
    if (xm_pmpi.Reduce_local(in, after, ELEMENTS, type, op_at(op)) != MPI_SUCCESS) {
        return NO_TYPE;
    }
    for (int i = 0; i < 2; i++) {
        bool is_signed = (i == 0) ? prefer_signed : !prefer_signed;
        if (behaves(size, op, is_signed, in, before, after)) {
            return vendor_integer(size, is_signed);
        }
    }
    return NO_TYPE;
}

static void look(void)
{
    enum xm_nature nature;
    MPI_Count      size;

    arithmetic = 14695981039346656037u;
    for (int i = 0; (i < MAX_INTEGERS) && xm_type_integer(i, &integers[i].type, &nature, &size);
         i++) {
        num_integers = i + 1;
        for (int op = 0; op < NUM_OPS; op++) {
            bool usable = (vendor_integer(size, true) != NO_TYPE);
            integers[i].vendor[op] =
                usable ? try_out(integers[i].type, size, nature != XM_UNSIGNED, op) : NO_TYPE;
            arithmetic = (arithmetic ^ (uint64_t)(integers[i].vendor[op] + 2)) * 1099511628211u;
        }
    }
}

/* A type that this MPI does not reduce is an error, which must not reach the program. */
static void look_quietly(void)
{
    const MPI_Comm comms[2] = {XM_HANDLE(MPI_COMM_WORLD), XM_HANDLE(MPI_COMM_SELF)};
    MPI_Errhandler before[2];
    int            initialized = 0;

    if ((xm_pmpi.Initialized(&initialized) != MPI_SUCCESS) || !initialized) {
        return; /* sessions alone: no handler to set, so integers stay with MPI */
    }
    for (int i = 0; i < 2; i++) {
        xm_pmpi.Comm_get_errhandler(comms[i], &before[i]);
        xm_pmpi.Comm_set_errhandler(comms[i], XM_HANDLE(MPI_ERRORS_RETURN));
    }
    look();
    for (int i = 0; i < 2; i++) {
        xm_pmpi.Comm_set_errhandler(comms[i], before[i]);
        xm_pmpi.Errhandler_free(&before[i]);
    }
}

uint64_t xm_reduction_arithmetic(void)
{
    pthread_once(&once, look_quietly);
    return arithmetic;
}

static bool integer_of(MPI_Datatype type, int op, struct xm_reduction *reduction)
{
    pthread_once(&once, look_quietly);
    for (int i = 0; i < num_integers; i++) {
        if (integers[i].type == type) {
            reduction->type = (xcclDataType_t)integers[i].vendor[op];
            reduction->integer = true;
            return integers[i].vendor[op] != NO_TYPE;
        }
    }
    return false;
}

const char *xm_reduction_of(MPI_Datatype type, MPI_Op op, struct xm_reduction *reduction_p)
{
    static const xcclRedOp_t ops[NUM_OPS] = {xcclSum, xcclProd, xcclMax, xcclMin};
    enum xm_nature           nature;
    MPI_Count                size;
    int                      at = 0;

    while ((at < NUM_OPS) && (op != op_at(at))) {
        at++;
    }
    if (at == NUM_OPS) {
        return "user-defined operation, or one that the vendors' libraries lack";
    }
    *reduction_p = (struct xm_reduction){.op = ops[at], .factor = 1};
    if (!xm_type_named(type, &nature, &size)) {
        return "type that the vendors' libraries do not reduce";
    }
    if ((nature == XM_REAL) && ((size == 4) || (size == 8))) {
        reduction_p->type = (size == 4) ? xcclFloat32 : xcclFloat64;
        return NULL;
    }
    if ((nature == XM_COMPLEX) && ((size == 8) || (size == 16))) {
        reduction_p->type = (size == 8) ? xcclFloat32 : xcclFloat64;
        reduction_p->factor = 2;
        return (at == 0) ? NULL : "product of complex numbers";
    }
    if (integer_of(type, at, reduction_p)) {
        return NULL;
    }
    return "type or operation that this MPI reduces otherwise than the vendors' libraries";
}
