/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernels' integers, and the vendors', wrap around, and compare as their type says; what is
 * true becomes 1. MPI libraries do not always: Open MPI's AVX code saturates 8- and 16-bit sums,
 * Open MPI 4.1.4 compares MPI_UNSIGNED_LONG as signed and MPICH 4.0.2 MPI_UINT64_T too, and whether
 * MPI_CHAR is a number at all is each library's own choice. So each pair is tried out once with
 * MPI_Reduce_local on values that tell these apart, long enough for vector code and its remainder.
 *
 * A sum of 8 or 16 bits that fails this may still be plain wherever nothing leaves the type's
 * range: then wrapping around, saturating and any order of the ranks are all the same.
 */
#include "data/integers.h"

#include <string.h>

enum { ELEMENTS = 141 };

/* Mixed signs, the ends of the range, and sums and products that leave it. */
static const uint64_t any_values[] = {1,           (uint64_t)-1,   0x7f,       0x80,   100,
                                      (uint64_t)3, (uint64_t)-100, 0,          0xff,   0x7fffffff,
                                      0x80000000u, UINT64_MAX / 2, 1ull << 63, 0x7fff, 0x8000,
                                      0,           0xffff};
static const uint64_t logicals[] = {0, 1, (uint64_t)-1}; /* compilers differ in what is true */

static uint64_t value_at(enum xm_values values, int i, int which)
{
    const uint64_t *from = (values == XM_ANY_VALUES) ? any_values : logicals;
    const int n = (values == XM_ANY_VALUES) ? (int)(sizeof(any_values) / sizeof(any_values[0]))
                  : (values == XM_BOOLS)    ? 2
                                            : 3;

    return from[(which == 0) ? (i % n) : (i / n + 3 * i + 5) % n];
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

/* The kernels' result. */
static uint64_t expected(enum xk_op op, bool is_signed, uint64_t a, uint64_t b, MPI_Count size)
{
    bool less = is_signed ? (signed_value(a, size) < signed_value(b, size)) : (a < b);

    switch (op) {
    case XK_SUM:
        return a + b;
    case XK_PROD:
        return a * b;
    case XK_MAX:
        return less ? b : a;
    case XK_MIN:
        return less ? a : b;
    case XK_LAND:
        return (a != 0) && (b != 0);
    case XK_LOR:
        return (a != 0) || (b != 0);
    case XK_LXOR:
        return (a != 0) != (b != 0);
    case XK_BAND:
        return a & b;
    case XK_BOR:
        return a | b;
    default:
        return a ^ b;
    }
}

static bool behaves(MPI_Count size, enum xk_op op, bool is_signed, const void *in,
                    const void *before, const void *after)
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

static enum xk_type integer_of(MPI_Count size, bool is_signed)
{
    switch (size) {
    case 1:
        return is_signed ? XK_INT8 : XK_UINT8;
    case 2:
        return is_signed ? XK_INT16 : XK_UINT16;
    case 4:
        return is_signed ? XK_INT32 : XK_UINT32;
    case 8:
        return is_signed ? XK_INT64 : XK_UINT64;
    default:
        return XK_NUM_TYPES;
    }
}

enum xk_type xm_integer_try(MPI_Datatype type, MPI_Count size, bool signed_first,
                            enum xm_values values, MPI_Op mpi_op, enum xk_op op)
{
    uint64_t in[ELEMENTS], before[ELEMENTS], after[ELEMENTS];

    if (integer_of(size, true) == XK_NUM_TYPES) {
        return XK_NUM_TYPES;
    }
    for (int i = 0; i < ELEMENTS; i++) {
        put(in, i, size, value_at(values, i, 0));
        put(before, i, size, value_at(values, i, 1));
    }
    memcpy(after, before, sizeof(after));
    if (xm_pmpi.Reduce_local(in, after, ELEMENTS, type, mpi_op) != MPI_SUCCESS) {
        return XK_NUM_TYPES;
    }
    for (int i = 0; i < 2; i++) {
        bool is_signed = (i == 0) ? signed_first : !signed_first;
        if (behaves(size, op, is_signed, in, before, after)) {
            return integer_of(size, is_signed);
        }
    }
    return XK_NUM_TYPES;
}

/* ---- sums that stay within the range ---- */

enum { MOST_LANES = 192 }; /* three vectors of 64 bytes */

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* Two values whose absolute values add up to the type's largest one at most; often to just that. */
static void draw_pair(uint64_t *state, int64_t largest, bool is_signed, uint64_t *a_p,
                      uint64_t *b_p)
{
    int64_t a = (int64_t)(next_random(state) % (uint64_t)(largest + 1));
    int64_t b = largest - a;

    switch (next_random(state) % 4) {
    case 0:
        b = (int64_t)(next_random(state) % (uint64_t)(b + 1));
        break;
    case 1:
        b -= (b > 0);
        break;
    case 2:
        a = largest;
        b = 0;
        break;
    default:
        break;
    }
    uint64_t signs = is_signed ? next_random(state) : 0;
    bool     swap = (next_random(state) % 2 == 0);
    a = ((signs & 1) != 0) ? -a : a;
    b = ((signs & 2) != 0) ? -b : b;
    *a_p = (uint64_t)(swap ? b : a);
    *b_p = (uint64_t)(swap ? a : b);
}

/* So many elements at such a distance from a vector's border. */
static bool sums_plainly(MPI_Datatype type, MPI_Count size, bool is_signed, MPI_Op sum, int count)
{
    uint16_t in[2 * MOST_LANES], inout[2 * MOST_LANES], want[2 * MOST_LANES];
    uint64_t state = (uint64_t)count, a, b;
    int64_t  largest = ((int64_t)1 << (8 * size - (is_signed ? 1 : 0))) - 1;
    int      first = count % 67;

    for (int i = 0; i < count; i++) {
        draw_pair(&state, largest, is_signed, &a, &b);
        put(in, first + i, size, a);
        put(inout, first + i, size, b);
        put(want, first + i, size, a + b);
    }
    size_t at = (size_t)(first * size);
    return (xm_pmpi.Reduce_local((char *)in + at, (char *)inout + at, count, type, sum) ==
            MPI_SUCCESS) &&
           (memcmp((char *)inout + at, (char *)want + at, (size_t)(count * size)) == 0);
}

enum xk_type xm_integer_try_checked(MPI_Datatype type, MPI_Count size, bool signed_first,
                                    MPI_Op sum)
{
    for (int i = 0; (size <= 2) && (i < 2); i++) {
        bool is_signed = (i == 0) ? signed_first : !signed_first;
        int  count = 1;
        while ((count <= MOST_LANES) && sums_plainly(type, size, is_signed, sum, count)) {
            count++;
        }
        if (count > MOST_LANES) {
            return integer_of(size, is_signed);
        }
    }
    return XK_NUM_TYPES;
}
