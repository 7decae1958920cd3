/* SPDX-License-Identifier: BSD-3-Clause */
#include "flatten_types.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "data/types.h"
#include "support.h"

enum { MOST_BLOCKS = 5, MANY_BLOCKS = 60, MOST_DIMS = 3 };

/* MPICH 4.0.2 packs elements that go backwards in another order than the standard's. */
#ifdef MPICH_VERSION
enum { LOWEST_EXTENT = 0 };
#else
enum { LOWEST_EXTENT = -8 };
#endif

/* low <= number <= high */
static int between(uint64_t *state, int low, int high)
{
    return low + (int)((mt_next(state) >> 11) % (uint64_t)(high - low + 1));
}

/* Not MPI_LONG_DOUBLE: what lies between two of them need not be copied, and MPICH does not. */
static MPI_Datatype named(uint64_t *state)
{
    const MPI_Datatype types[] = {MPI_BYTE,   MPI_CHAR,      MPI_SHORT,     MPI_INT,
                                  MPI_DOUBLE, MPI_FLOAT_INT, MPI_SHORT_INT, MPI_DOUBLE_INT};

    return types[between(state, 0, (int)(sizeof(types) / sizeof(types[0])) - 1)];
}

/*
 * Blocks of indexed types: how many, how long, and where, in elements or in bytes. The first is not
 * empty: with types without data both MPIs pack wrongly, and MPICH 4.0.2 divides by their size.
 */
struct blocks {
    int       n;
    int       lengths[MANY_BLOCKS], displs[MANY_BLOCKS];
    MPI_Aint  bytes[MANY_BLOCKS];
    MPI_Count large_lengths[MANY_BLOCKS], large_displs[MANY_BLOCKS], large_bytes[MANY_BLOCKS];
};

/* One in six has many blocks, apart from each other as a rule. */
static struct blocks draw_blocks(uint64_t *state, int most)
{
    bool          many = (most > MOST_BLOCKS) && (between(state, 0, 5) == 0);
    struct blocks b = {.n = many ? between(state, MOST_BLOCKS, most)
                                 : between(state, 1, MOST_BLOCKS)};
    int           regular = between(state, 0, 3), step = between(state, -6, 6);
    int           jitter = many ? between(state, 0, 3) : 0;

    for (int i = 0; i < b.n; i++) {
        b.lengths[i] = (regular == 0) ? 1 : between(state, (i == 0), 3);
        bool step_by_step = many || (regular <= 1);
        b.displs[i] = step_by_step ? i * step + between(state, 0, jitter) : between(state, -8, 12);
        b.bytes[i] =
            step_by_step ? i * 7 * step + between(state, 0, jitter) : between(state, -50, 100);
        b.large_lengths[i] = b.lengths[i];
        b.large_displs[i] = b.displs[i];
        b.large_bytes[i] = b.bytes[i];
    }
    return b;
}

static MPI_Datatype draw_indexed(uint64_t *state, int which, MPI_Datatype inner)
{
    struct blocks b = draw_blocks(state, MANY_BLOCKS);
    MPI_Datatype  type = MPI_DATATYPE_NULL;
    int           length = between(state, 1, 3);

#if MPI_VERSION >= 4
    if (between(state, 0, 1) == 0) {
        switch (which) {
        case 0:
            MPI_Type_indexed_c(b.n, b.large_lengths, b.large_displs, inner, &type);
            return type;
        case 1:
            MPI_Type_create_hindexed_c(b.n, b.large_lengths, b.large_bytes, inner, &type);
            return type;
        case 2:
            MPI_Type_create_indexed_block_c(b.n, length, b.large_displs, inner, &type);
            return type;
        default:
            MPI_Type_create_hindexed_block_c(b.n, length, b.large_bytes, inner, &type);
            return type;
        }
    }
#endif
    switch (which) {
    case 0:
        MPI_Type_indexed(b.n, b.lengths, b.displs, inner, &type);
        break;
    case 1:
        MPI_Type_create_hindexed(b.n, b.lengths, b.bytes, inner, &type);
        break;
    case 2:
        MPI_Type_create_indexed_block(b.n, length, b.displs, inner, &type);
        break;
    default:
        MPI_Type_create_hindexed_block(b.n, length, b.bytes, inner, &type);
        break;
    }
    return type;
}

static MPI_Datatype draw_struct(uint64_t *state, int depth)
{
    struct blocks b = draw_blocks(state, MOST_BLOCKS);
    MPI_Datatype  type, inner[MOST_BLOCKS];

    for (int i = 0; i < b.n; i++) {
        inner[i] = ft_draw(state, between(state, 1, depth));
        if ((i > 0) && (between(state, 0, 2) == 0)) {
            MPI_Type_free(&inner[i]);
            MPI_Type_dup(inner[i - 1], &inner[i]);
        }
    }
#if MPI_VERSION >= 4
    if (between(state, 0, 1) == 0) {
        MPI_Type_create_struct_c(b.n, b.large_lengths, b.large_bytes, inner, &type);
    } else
#endif
    {
        MPI_Type_create_struct(b.n, b.lengths, b.bytes, inner, &type);
    }
    for (int i = 0; i < b.n; i++) {
        MPI_Type_free(&inner[i]);
    }
    return type;
}

static MPI_Datatype draw_subarray(uint64_t *state, MPI_Datatype inner)
{
    int          dims = between(state, 1, MOST_DIMS);
    int          sizes[MOST_DIMS], subsizes[MOST_DIMS], starts[MOST_DIMS];
    int          order = (between(state, 0, 1) == 0) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
    MPI_Datatype type;

    for (int i = 0; i < dims; i++) {
        sizes[i] = between(state, 1, 5);
        subsizes[i] = between(state, 1, sizes[i]);
        starts[i] = between(state, 0, sizes[i] - subsizes[i]);
    }
#if MPI_VERSION >= 4
    if (between(state, 0, 1) == 0) {
        MPI_Count large[3][MOST_DIMS];
        for (int i = 0; i < dims; i++) {
            large[0][i] = sizes[i];
            large[1][i] = subsizes[i];
            large[2][i] = starts[i];
        }
        MPI_Type_create_subarray_c(dims, large[0], large[1], large[2], order, inner, &type);
        return type;
    }
#endif
    MPI_Type_create_subarray(dims, sizes, subsizes, starts, order, inner, &type);
    return type;
}

static MPI_Datatype draw_vector(uint64_t *state, MPI_Datatype inner)
{
    int          count = between(state, 1, 4), length = between(state, 1, 3);
    int          stride = between(state, -2, 6), bytes = between(state, -9, 90);
    bool         in_bytes = (between(state, 0, 1) == 0);
    MPI_Aint     low, extent;
    MPI_Datatype type;

    /* Backwards without overlapping: of that Open MPI 4.1 has the wrong bounds. */
    MPI_Type_get_extent(inner, &low, &extent);
    stride -= (stride < 0) ? length : 0;
    bytes -= (bytes < 0) ? length * abs((int)extent) : 0;
#if MPI_VERSION >= 4
    if (between(state, 0, 1) == 0) {
        if (in_bytes) {
            MPI_Type_create_hvector_c(count, length, bytes, inner, &type);
        } else {
            MPI_Type_vector_c(count, length, stride, inner, &type);
        }
        return type;
    }
#endif
    if (in_bytes) {
        MPI_Type_create_hvector(count, length, bytes, inner, &type);
    } else {
        MPI_Type_vector(count, length, stride, inner, &type);
    }
    return type;
}

static MPI_Datatype draw_simple(uint64_t *state, int which, MPI_Datatype inner)
{
    int          number = between(state, 1, 4), low = between(state, -16, 16);
    int          extent = between(state, LOWEST_EXTENT, 64);
    bool         large = (MPI_VERSION >= 4) && (between(state, 0, 1) == 0);
    MPI_Datatype type;

    if (which == 0) {
        MPI_Type_dup(inner, &type);
    } else if (which == 1) {
#if MPI_VERSION >= 4
        if (large) {
            MPI_Type_contiguous_c(number, inner, &type);
            return type;
        }
#endif
        MPI_Type_contiguous(number, inner, &type);
    } else {
#if MPI_VERSION >= 4
        if (large) {
            MPI_Type_create_resized_c(inner, low, extent, &type);
            return type;
        }
#endif
        MPI_Type_create_resized(inner, low, extent, &type);
    }
    (void)large;
    return type;
}

MPI_Datatype ft_draw(uint64_t *state, int depth)
{
    int          which = between(state, 0, 10);
    MPI_Datatype inner, type;

    if ((which == 10) && (depth > 1)) {
        return draw_struct(state, depth - 1);
    }
    inner = (depth > 1) ? ft_draw(state, depth - 1) : named(state);
    if (which < 3) {
        type = draw_simple(state, which, inner);
    } else if (which < 7) {
        type = draw_indexed(state, which - 3, inner);
    } else if (which < 9) {
        type = draw_vector(state, inner);
    } else {
        type = draw_subarray(state, inner);
    }
    if (depth > 1) {
        MPI_Type_free(&inner);
    }
    return type;
}

void ft_begin(int argc, char **argv)
{
    void (*const none[XM_NUM_FUNCTIONS])(void) = {NULL};

    mt_begin(&argc, &argv, false);
    if ((argc < 4) || (xm_mpi_open(dlopen(NULL, RTLD_LAZY), none) != xcclSuccess)) {
        fprintf(stderr, "usage: %s none SEED TYPES\n", argv[0]);
        MPI_Abort(MPI_COMM_WORLD, 64);
    }
    xm_types_init();
}

void ft_check_random(char **argv, ft_check *check)
{
    uint64_t seed = strtoull(argv[2], NULL, 10);
    int      types = atoi(argv[3]);
    char     what[64];

    for (int i = 0; i < types; i++) {
        uint64_t     state = seed + 0x9e3779b97f4a7c15u * (uint64_t)i;
        MPI_Datatype type = ft_draw(&state, 1 + i % 4);

        snprintf(what, sizeof(what), "seed %" PRIu64 ", type %d", seed, i);
        MPI_Type_commit(&type);
        check(type, i, state, what);
        MPI_Type_free(&type);
    }
}
