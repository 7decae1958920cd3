/* SPDX-License-Identifier: BSD-3-Clause */
/* The predefined datatypes and operations of MPI: which go together, and how to fill and compare.
 */
#ifndef MT_TYPES_H
#define MT_TYPES_H

#include <stdbool.h>
#include <stddef.h>

#include <mpi.h>

/* A datatype is one or two fields; padding between and behind them has no value to compare. */
struct mt_field {
    char kind; /* 'i' integer, 'p' one that is not negative, 'f' floating point, 'l' 0 or 1 */
    unsigned char size;
    unsigned char at;
};

/* The classes of MPI-4.0, section 6.9.2. */
enum mt_class {
    MT_CHARACTER,
    MT_INTEGER,
    MT_FLOATING,
    MT_LOGICAL,
    MT_COMPLEX,
    MT_BYTE,
    MT_MULTI, /* MPI_AINT, MPI_OFFSET, MPI_COUNT */
    MT_PAIR
};

struct mt_type {
    const char  *name;
    MPI_Datatype type;
    enum mt_class class;
    struct mt_field field[2]; /* size 0: there is none */
};

struct mt_op {
    const char *name;
    MPI_Op      op;
    unsigned    classes; /* a bit per class that it is defined for */
};

/* All of them; the ones this MPI lacks are left out. */
const struct mt_type *mt_types(int *count_p);
const struct mt_op   *mt_ops(int *count_p);

/* "MPI_SUM"; for an operation of the program "user". */
const char *mt_op_name(MPI_Op op);

/* By MPI's handle; NULL if it is not a predefined one of the table. */
const struct mt_type *mt_type_find(MPI_Datatype type);

/*
 * Fill bytes with elements of one type. The values are small, so that a sum, or a product over few
 * ranks, is exact in whatever order it is made; they depend on the seed and on the place.
 */
void mt_fill(const struct mt_type *type, void *buf, size_t bytes, unsigned seed);

/* First byte that has a value in this type and differs, or -1. */
long mt_compare(const struct mt_type *type, const void *expected, const void *actual, size_t bytes);

/* Of a matrix of ints all columns but the last: committed, as a type that cannot be taken apart. */
MPI_Datatype mt_darray_make(int rows, int columns);

#endif
