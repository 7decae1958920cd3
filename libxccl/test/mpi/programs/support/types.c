/* SPDX-License-Identifier: BSD-3-Clause */
#include "types.h"

#include <complex.h>
#include <stdint.h>
#include <string.h>

#define ONE(kind, size)                                                                            \
    {                                                                                              \
        {kind, size, 0},                                                                           \
        {                                                                                          \
            0, 0, 0                                                                                \
        }                                                                                          \
    }
#define TWO(kind, size, kind2, size2, at2)                                                         \
    {                                                                                              \
        {kind, size, 0},                                                                           \
        {                                                                                          \
            kind2, size2, at2                                                                      \
        }                                                                                          \
    }
#define INT_OF(ctype, handle) {#handle, handle, MT_INTEGER, ONE('i', sizeof(ctype))}
/* MPICH 4.0.2 compares unsigned integers as if they were signed; Open MPI shows whether xccl does.
 */
#ifdef MPICH_VERSION
#define UNSIGNED_KIND 'p'
#else
#define UNSIGNED_KIND 'i'
#endif
#define UNSIGNED_OF(ctype, handle) {#handle, handle, MT_INTEGER, ONE(UNSIGNED_KIND, sizeof(ctype))}
#define FLOAT_OF(ctype, handle) {#handle, handle, MT_FLOATING, ONE('f', sizeof(ctype))}
#define COMPLEX_OF(ctype, handle)                                                                  \
    {#handle, handle, MT_COMPLEX, TWO('f', sizeof(ctype), 'f', sizeof(ctype), sizeof(ctype))}
#define TRUTH_OF(ctype, handle) {#handle, handle, MT_LOGICAL, ONE('l', sizeof(ctype))}
#define PLAIN_OF(ctype, handle, class) {#handle, handle, class, ONE('i', sizeof(ctype))}

struct short_int {
    short value;
    int   index;
};
struct long_int {
    long value;
    int  index;
};
struct double_int {
    double value;
    int    index;
};
struct long_double_int {
    long double value;
    int         index;
};
#define PAIR_OF(kind, ctype, pair, handle)                                                         \
    {#handle, handle, MT_PAIR, TWO(kind, sizeof(ctype), 'i', sizeof(int), offsetof(pair, index))}

static const struct mt_type all_types[] = {
    PLAIN_OF(char, MPI_CHAR, MT_CHARACTER),
    PLAIN_OF(wchar_t, MPI_WCHAR, MT_CHARACTER),
    INT_OF(signed char, MPI_SIGNED_CHAR),
    UNSIGNED_OF(unsigned char, MPI_UNSIGNED_CHAR),
    INT_OF(short, MPI_SHORT),
    UNSIGNED_OF(unsigned short, MPI_UNSIGNED_SHORT),
    INT_OF(int, MPI_INT),
    UNSIGNED_OF(unsigned, MPI_UNSIGNED),
    INT_OF(long, MPI_LONG),
    /* Open MPI 4.1.4 compares it as if it were signed. */
    {"MPI_UNSIGNED_LONG", MPI_UNSIGNED_LONG, MT_INTEGER, ONE('p', sizeof(unsigned long))},
    INT_OF(long long, MPI_LONG_LONG),
    UNSIGNED_OF(unsigned long long, MPI_UNSIGNED_LONG_LONG),
    INT_OF(int8_t, MPI_INT8_T),
    UNSIGNED_OF(uint8_t, MPI_UINT8_T),
    INT_OF(int16_t, MPI_INT16_T),
    UNSIGNED_OF(uint16_t, MPI_UINT16_T),
    INT_OF(int32_t, MPI_INT32_T),
    UNSIGNED_OF(uint32_t, MPI_UINT32_T),
    INT_OF(int64_t, MPI_INT64_T),
    UNSIGNED_OF(uint64_t, MPI_UINT64_T),
    FLOAT_OF(float, MPI_FLOAT),
    FLOAT_OF(double, MPI_DOUBLE),
    FLOAT_OF(long double, MPI_LONG_DOUBLE),
    TRUTH_OF(_Bool, MPI_C_BOOL),
    COMPLEX_OF(float, MPI_C_FLOAT_COMPLEX),
    COMPLEX_OF(double, MPI_C_DOUBLE_COMPLEX),
    COMPLEX_OF(long double, MPI_C_LONG_DOUBLE_COMPLEX),
    PLAIN_OF(char, MPI_BYTE, MT_BYTE),
    PLAIN_OF(MPI_Aint, MPI_AINT, MT_MULTI),
    /* Open MPI 4.1.4 compares it as if it were unsigned. */
    {"MPI_OFFSET", MPI_OFFSET, MT_MULTI, ONE('p', sizeof(MPI_Offset))},
    PLAIN_OF(MPI_Count, MPI_COUNT, MT_MULTI),
    {"MPI_FLOAT_INT", MPI_FLOAT_INT, MT_PAIR, TWO('f', 4, 'i', 4, 4)},
    PAIR_OF('f', double, struct double_int, MPI_DOUBLE_INT),
    PAIR_OF('i', long, struct long_int, MPI_LONG_INT),
    {"MPI_2INT", MPI_2INT, MT_PAIR, TWO('i', 4, 'i', 4, 4)},
    PAIR_OF('i', short, struct short_int, MPI_SHORT_INT),
    PAIR_OF('f', long double, struct long_double_int, MPI_LONG_DOUBLE_INT),
    TRUTH_OF(_Bool, MPI_CXX_BOOL),
    COMPLEX_OF(float, MPI_CXX_FLOAT_COMPLEX),
    COMPLEX_OF(double, MPI_CXX_DOUBLE_COMPLEX),
    COMPLEX_OF(long double, MPI_CXX_LONG_DOUBLE_COMPLEX),
    PLAIN_OF(char, MPI_CHARACTER, MT_CHARACTER),
    INT_OF(int, MPI_INTEGER),
    INT_OF(int8_t, MPI_INTEGER1),
    INT_OF(int16_t, MPI_INTEGER2),
    INT_OF(int32_t, MPI_INTEGER4),
    INT_OF(int64_t, MPI_INTEGER8),
    FLOAT_OF(float, MPI_REAL),
    FLOAT_OF(float, MPI_REAL4),
    FLOAT_OF(double, MPI_REAL8),
    FLOAT_OF(double, MPI_DOUBLE_PRECISION),
    COMPLEX_OF(float, MPI_COMPLEX),
    COMPLEX_OF(double, MPI_DOUBLE_COMPLEX),
    COMPLEX_OF(float, MPI_COMPLEX8),
    COMPLEX_OF(double, MPI_COMPLEX16),
    TRUTH_OF(int, MPI_LOGICAL),
    {"MPI_2INTEGER", MPI_2INTEGER, MT_PAIR, TWO('i', 4, 'i', 4, 4)},
    {"MPI_2REAL", MPI_2REAL, MT_PAIR, TWO('f', 4, 'f', 4, 4)},
    {"MPI_2DOUBLE_PRECISION", MPI_2DOUBLE_PRECISION, MT_PAIR, TWO('f', 8, 'f', 8, 8)},
};
enum { NUM_TYPES = sizeof(all_types) / sizeof(all_types[0]) };

#define BIT(class) (1u << (class))
enum {
    ORDERED = BIT(MT_INTEGER) | BIT(MT_FLOATING) | BIT(MT_MULTI),
    NUMBERS = ORDERED | BIT(MT_COMPLEX),
    TRUTHS = BIT(MT_INTEGER) | BIT(MT_LOGICAL),
    BITS = BIT(MT_INTEGER) | BIT(MT_BYTE) | BIT(MT_MULTI)
};

static const struct mt_op all_ops[] = {
    {"MPI_SUM", MPI_SUM, NUMBERS},
    {"MPI_PROD", MPI_PROD, NUMBERS},
    {"MPI_MAX", MPI_MAX, ORDERED},
    {"MPI_MIN", MPI_MIN, ORDERED},
    {"MPI_LAND", MPI_LAND, TRUTHS},
    {"MPI_LOR", MPI_LOR, TRUTHS},
    {"MPI_LXOR", MPI_LXOR, TRUTHS},
    {"MPI_BAND", MPI_BAND, BITS},
    {"MPI_BOR", MPI_BOR, BITS},
    {"MPI_BXOR", MPI_BXOR, BITS},
    {"MPI_MAXLOC", MPI_MAXLOC, BIT(MT_PAIR)},
    {"MPI_MINLOC", MPI_MINLOC, BIT(MT_PAIR)},
};

const struct mt_op *mt_ops(int *count_p)
{
    *count_p = (int)(sizeof(all_ops) / sizeof(all_ops[0]));
    return all_ops;
}

const char *mt_op_name(MPI_Op op)
{
    for (size_t i = 0; i < sizeof(all_ops) / sizeof(all_ops[0]); i++) {
        if (all_ops[i].op == op) {
            return all_ops[i].name;
        }
    }
    return "user";
}

/* In the wheels of MPICH 4.2 and 4.3 nothing is left of what is derived from a complex of C++. */
static bool derives(MPI_Datatype type, int size)
{
    MPI_Datatype pair;
    int          both = 0;

    PMPI_Type_contiguous(2, type, &pair);
    PMPI_Type_size(pair, &both);
    PMPI_Type_free(&pair);
    return both == 2 * size;
}

/* Not every MPI has every Fortran type, and a Fortran compiler may give one another size. */
static bool available(const struct mt_type *type)
{
    int size = 0;
    int fields = type->field[0].size + type->field[1].size;

    return (type->type != MPI_DATATYPE_NULL) &&
           (PMPI_Type_size(type->type, &size) == MPI_SUCCESS) && (size == fields) &&
           derives(type->type, size);
}

const struct mt_type *mt_types(int *count_p)
{
    static struct mt_type present[NUM_TYPES];
    static int            count = 0;

    if (count == 0) {
        for (int i = 0; i < NUM_TYPES; i++) {
            if (available(&all_types[i])) {
                present[count++] = all_types[i];
            }
        }
    }
    *count_p = count;
    return present;
}

const struct mt_type *mt_type_find(MPI_Datatype type)
{
    for (int i = 0; i < NUM_TYPES; i++) {
        if (all_types[i].type == type) {
            return &all_types[i];
        }
    }
    return NULL;
}

static size_t extent_of(const struct mt_type *type)
{
    MPI_Aint low;
    MPI_Aint extent;

    PMPI_Type_get_extent(type->type, &low, &extent);
    return (size_t)extent;
}

static unsigned mix(unsigned seed, unsigned place)
{
    unsigned hash = (seed * 2654435761u) ^ (place * 2246822519u);

    hash ^= hash >> 15;
    hash *= 3266489917u;
    return hash ^ (hash >> 13);
}

static void fill_field(struct mt_field field, char *at, unsigned random)
{
    static const signed char numbers[] = {1, 2, -1, 1, -2, 3, 1, -1};
    int64_t                  integer = numbers[random % 8];

    if (field.kind == 'l') {
        integer = random & 1;
    } else if (field.kind == 'p') {
        integer = random % 5;
    } else if (field.kind == 'f' && field.size == sizeof(float)) {
        float value = (float)integer;
        memcpy(at, &value, sizeof(value));
    } else if (field.kind == 'f' && field.size == sizeof(double)) {
        double value = (double)integer;
        memcpy(at, &value, sizeof(value));
    } else if (field.kind == 'f') {
        long double value = (long double)integer;
        memcpy(at, &value, sizeof(value));
    }
    if (field.kind != 'f') {
        memcpy(at, &integer, field.size); /* little-endian, as every machine with such devices */
    }
}

void mt_fill(const struct mt_type *type, void *buf, size_t bytes, unsigned seed)
{
    size_t extent = extent_of(type);

    memset(buf, 0, bytes);
    for (size_t i = 0; (i + 1) * extent <= bytes; i++) {
        char    *element = (char *)buf + i * extent;
        unsigned random = mix(seed, (unsigned)i);
        fill_field(type->field[0], element, random);
        if (type->field[1].size > 0) {
            fill_field(type->field[1], element + type->field[1].at, random >> 8);
        }
    }
}

/* How many bytes of a field have a value: x86's long double is 10 bytes and 6 of padding. */
static size_t significant(struct mt_field field)
{
    return ((field.kind == 'f') && (field.size == 16)) ? 10 : field.size;
}

/* Does only the sign of a zero differ? In a complex product it comes from the order of factors. */
static bool zero_of_other_sign(const struct mt_type *type, const char *e, const char *a, size_t at)
{
    static const char zero[16];
    size_t            last = type->field[0].size - 1u; /* both parts are alike */

    return (type->class == MT_COMPLEX) && (at % (last + 1) == last) && (last < 8) &&
           (((e[at] ^ a[at]) & 0xff) == 0x80) && ((e[at] & 0x7f) == 0) &&
           (memcmp(e + at - last, zero, last) == 0) && (memcmp(a + at - last, zero, last) == 0);
}

long mt_compare(const struct mt_type *type, const void *expected, const void *actual, size_t bytes)
{
    size_t      extent = extent_of(type);
    const char *e = expected;
    const char *a = actual;

    if ((bytes == 0) || (memcmp(e, a, bytes) == 0)) { /* without any there may be no memory */
        return -1;
    }
    for (size_t i = 0; i < bytes; i++) {
        size_t at = i % extent;
        bool   counts = (i / extent + 1) * extent > bytes; /* behind the last element: a guard */
        for (int f = 0; f < 2; f++) {
            size_t from = type->field[f].at;
            counts = counts || ((at >= from) && (at < from + significant(type->field[f])));
        }
        if (counts && (e[i] != a[i]) && !zero_of_other_sign(type, e, a, i)) {
            return (long)i;
        }
    }
    return -1;
}

MPI_Datatype mt_darray_make(int rows, int columns)
{
    int sizes[] = {rows, columns}, distributions[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_BLOCK};
    int arguments[] = {MPI_DISTRIBUTE_DFLT_DARG, columns - 1}, processes[] = {1, 2};
    MPI_Datatype type;

    MPI_Type_create_darray(2, 0, 2, sizes, distributions, arguments, processes, MPI_ORDER_C,
                           MPI_INT, &type);
    MPI_Type_commit(&type);
    return type;
}
