/* SPDX-License-Identifier: BSD-3-Clause */
/* Datatypes and operations of random calls: predefined ones, and derived ones built from each. */
#include "random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BASES = 128, MOST_OPS = 16 };

static struct rx_type made[MOST_BASES][RX_SHAPES];
static struct rx_type mixed;
static struct rx_op   user_sum, user_affine;
static int            num_bases;
static bool           defined[MOST_BASES][MOST_OPS];

int rx_below(uint64_t *state, int limit)
{
    return (limit < 1) ? 0 : (int)((mt_next(state) >> 11) % (uint64_t)limit);
}

uint64_t rx_hash(uint64_t seed, uint64_t a, uint64_t b)
{
    uint64_t state = seed ^ (a * 0xd6e8feb86659fd93u) ^ (b * 0xa5a3564e27f8865bu);

    mt_next(&state);
    return mt_next(&state);
}

static const struct {
    const char *name;
    int         per;
    int         places[RX_MAX_PLACES];
    int         low, high;
} shapes[RX_SHAPES] = {
    {"plain", 1, {0}, 0, 1},
    {"contiguous", 3, {0, 1, 2}, 0, 3},
    {"vector", 6, {0, 1, 4, 5, 8, 9}, 0, 10},
    {"indexed", 4, {4, 5, 0, 2}, 0, 6},
    {"struct", 3, {0, 3, 4}, 0, 8},
    {"below", 3, {-2, 0, 1}, -2, 2},
};

static MPI_Datatype make_struct(MPI_Datatype base, MPI_Aint extent)
{
    int          lengths[2] = {1, 1};
    MPI_Aint     displs[2] = {0, 3 * extent};
    MPI_Datatype parts[2] = {base, MPI_DATATYPE_NULL};
    MPI_Datatype inner, made_type;

    MPI_Type_contiguous(2, base, &parts[1]);
    MPI_Type_create_struct(2, lengths, displs, parts, &inner);
    MPI_Type_create_resized(inner, 0, 8 * extent, &made_type);
    MPI_Type_free(&inner);
    MPI_Type_free(&parts[1]);
    return made_type;
}

static MPI_Datatype make_handle(int shape, MPI_Datatype base, MPI_Aint extent)
{
    static int   lengths[3] = {2, 1, 1}, displs[3] = {4, 0, 2};
    static int   below_lengths[2] = {1, 2}, below_displs[2] = {-2, 0};
    MPI_Datatype type = base;

    switch (shape) {
    case 0:
        return base;
    case 1:
        MPI_Type_contiguous(3, base, &type);
        break;
    case 2:
        MPI_Type_vector(3, 2, 4, base, &type);
        break;
    case 3:
        MPI_Type_indexed(3, lengths, displs, base, &type);
        break;
    case 4:
        type = make_struct(base, extent);
        break;
    default:
        MPI_Type_indexed(2, below_lengths, below_displs, base, &type);
        break;
    }
    MPI_Type_commit(&type);
    return type;
}

static void make_type(struct rx_type *type, const struct mt_type *base, int shape)
{
    MPI_Aint low, extent;

    MPI_Type_get_extent(base->type, &low, &extent);
    *type = (struct rx_type){.handle = make_handle(shape, base->type, extent),
                             .base = base,
                             .shape = shapes[shape].name,
                             .per = shapes[shape].per,
                             .low = shapes[shape].low,
                             .high = shapes[shape].high,
                             .size = (size_t)extent};
    type->extent = type->high - type->low;
    memcpy(type->places, shapes[shape].places, sizeof(type->places));
}

/* Fields of several types with holes between them; to the comparison they are bytes. */
static void make_mixed(void)
{
    int          lengths[3] = {1, 1, 3};
    MPI_Aint     displs[3] = {0, 8, 20};
    MPI_Datatype parts[3] = {MPI_INT, MPI_DOUBLE, MPI_CHAR};
    MPI_Datatype inner;

    MPI_Type_create_struct(3, lengths, displs, parts, &inner);
    MPI_Type_create_resized(inner, 0, 24, &mixed.handle);
    MPI_Type_commit(&mixed.handle);
    MPI_Type_free(&inner);
    mixed.base = mt_type_find(MPI_BYTE);
    mixed.shape = "struct of several types";
    mixed.per = 1;
    mixed.high = mixed.extent = 24;
    mixed.size = 1;
}

static const struct rx_type *find_type(MPI_Datatype handle)
{
    for (int i = 0; i < num_bases; i++) {
        for (int shape = 0; shape < RX_SHAPES; shape++) {
            if (made[i][shape].handle == handle) {
                return &made[i][shape];
            }
        }
    }
    fprintf(stderr, "mpi_random: an operation was called with a datatype that nobody passed\n");
    abort();
}

/* Sums that wrap around. */
static void add(void *in, void *inout, int *count, MPI_Datatype *handle)
{
    const struct rx_type *type = find_type(*handle);

    for (int i = 0; i < *count; i++) {
        for (int p = 0; p < type->per; p++) {
            long at = (long)i * type->extent + type->places[p];
            ((unsigned *)inout)[at] += ((const unsigned *)in)[at];
        }
    }
}

/* (a, b) stands for the function x -> a x + b: composing them is associative, not commutative. */
static void compose(void *in, void *inout, int *count, MPI_Datatype *handle)
{
    const struct rx_type *type = find_type(*handle);

    for (int i = 0; i < *count; i++) {
        for (int p = 0; p < type->per; p++) {
            long            at = 2 * ((long)i * type->extent + type->places[p]);
            const unsigned *first = (const unsigned *)in + at;
            unsigned       *second = (unsigned *)inout + at;
            second[1] = first[0] * second[1] + first[1];
            second[0] = first[0] * second[0];
        }
    }
}

/* Which pairs this MPI has: the standard leaves some Fortran types and operations open. */
static void find_defined(void)
{
    int                 num_ops;
    const struct mt_op *ops = mt_ops(&num_ops);
    static char         in[64], out[64];

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (int i = 0; i < num_bases; i++) {
        const struct mt_type *base = made[i][0].base;
        for (int o = 0; o < num_ops; o++) {
            defined[i][o] = ((ops[o].classes >> base->class) & 1) &&
                            (PMPI_Reduce_local(in, out, 1, base->type, ops[o].op) == MPI_SUCCESS);
        }
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

static int index_of(const struct mt_type *base)
{
    for (int i = 0; i < num_bases; i++) {
        if (made[i][0].base->type == base->type) {
            return i;
        }
    }
    abort();
}

void rx_types_make(void)
{
    const struct mt_type *bases = mt_types(&num_bases);

    num_bases = (num_bases < MOST_BASES) ? num_bases : MOST_BASES;
    for (int i = 0; i < num_bases; i++) {
        for (int shape = 0; shape < RX_SHAPES; shape++) {
            make_type(&made[i][shape], &bases[i], shape);
        }
    }
    find_defined();
    make_mixed();
    user_sum.name = "user's, commutative";
    MPI_Op_create(add, 1, &user_sum.op);
    user_affine.name = "user's, not commutative";
    MPI_Op_create(compose, 0, &user_affine.op);
}

void rx_types_free(void)
{
    for (int i = 0; i < num_bases; i++) {
        for (int shape = 1; shape < RX_SHAPES; shape++) {
            MPI_Type_free(&made[i][shape].handle);
        }
    }
    MPI_Type_free(&mixed.handle);
    MPI_Op_free(&user_sum.op);
    MPI_Op_free(&user_affine.op);
}

const struct rx_type *rx_type_get(const struct mt_type *base, int shape)
{
    return &made[index_of(base)][shape];
}

const struct rx_type *rx_type_mixed(void)
{
    return &mixed;
}

/* Half of the calls have one of the types that programs have most. */
const struct mt_type *rx_draw_base(uint64_t *state)
{
    static const MPI_Datatype common[] = {MPI_CHAR,  MPI_BYTE,   MPI_SHORT,
                                          MPI_INT,   MPI_LONG,   MPI_UINT64_T,
                                          MPI_FLOAT, MPI_DOUBLE, MPI_C_DOUBLE_COMPLEX};
    int which = rx_below(state, 2 * (int)(sizeof(common) / sizeof(common[0])));
    int any = rx_below(state, num_bases);

    if (which < (int)(sizeof(common) / sizeof(common[0]))) {
        return mt_type_find(common[which]);
    }
#ifndef MPICH_VERSION
    /* Open MPI 4.1 overruns a buffer of its own when a message ends within an element this long. */
    if (made[any][0].size > 16) {
        return mt_type_find(MPI_DOUBLE);
    }
#endif
    return made[any][0].base;
}

/*
 * Products of small values must fit: see mt_fill(). Those of complex numbers have zeros, whose sign
 * depends on the order of the factors, which MPI leaves open.
 */
static bool fits(MPI_Op op, const struct mt_type *base, int ranks)
{
    if (op != MPI_PROD) {
        return true;
    }
    return (base->class != MT_COMPLEX) && ((base->field[0].size > 2) || (ranks <= 4));
}

/* MPICH 4.0.2 writes too far when it reduces types with holes. */
#ifdef MPICH_VERSION
enum { USER_SHAPES = 2 };
#else
enum { USER_SHAPES = RX_SHAPES - 1 }; /* Open MPI 4.1.4 does with those that begin below */
#endif

void rx_draw_reduction(uint64_t *state, int ranks, const struct mt_type **base_p,
                       const struct rx_type **type_p, struct rx_op *op_p)
{
    int                 num_ops;
    const struct mt_op *ops = mt_ops(&num_ops);
    int                 kind = rx_below(state, 10);
    int                 shape = rx_below(state, RX_SHAPES - rx_options.without[RX_HAS_BELOW]);

    if ((kind < 2) && !rx_options.without[RX_HAS_USER_OPS]) {
        *op_p = (kind == 0) ? user_sum : user_affine;
        *base_p = mt_type_find((kind == 0) ? MPI_INT : MPI_2INT);
        *type_p =
            rx_type_get(*base_p, rx_options.without[RX_HAS_DERIVED] ? 0 : shape % USER_SHAPES);
        return;
    }
    do {
        int                 which = (kind < 5) ? 0 : rx_below(state, num_ops);
        const struct mt_op *op = &ops[which];
        *base_p = (kind == 9) ? mt_type_find(MPI_DOUBLE_INT) : rx_draw_base(state);
        *op_p = (struct rx_op){op->name, op->op};
        if (defined[index_of(*base_p)][which] && fits(op->op, *base_p, ranks)) {
            break;
        }
    } while (true);
    *type_p = rx_type_get(*base_p, 0);
}
