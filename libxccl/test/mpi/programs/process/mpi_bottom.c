/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_BOTTOM: datatypes whose absolute addresses lead to several allocations of a device, and to
 * host memory. Usage: mpi_bottom cuda|rocm|none messages|collectives apart|mixed
 */
#include <stdlib.h>
#include <string.h>

#include "support.h"

/*
 * So many integers in each piece: less than a message that is fetched, and more; whole units of
 * allocation, so that pieces lie side by side.
 */
static const int sizes[] = {128, 32768};

enum { SIZES = 2, PIECES = 3, TAG = 5, MAX_RANKS = 8 };

/* Data in pieces that were allocated one by one. */
struct spread {
    int           count; /* of each piece */
    enum mt_where where[PIECES];
    int          *piece[PIECES];
    MPI_Datatype  type;
};

static enum mt_where middle; /* where the second piece is */

static void spread_make(struct spread *s, int count)
{
    int          lengths[PIECES];
    MPI_Aint     at[PIECES];
    MPI_Datatype types[PIECES];

    s->count = count;
    for (int i = 0; i < PIECES; i++) {
        s->where[i] = (i == 1) ? middle : MT_DEVICE;
        s->piece[i] = mt_ints_make(s->where[i], count, 0, 0);
        lengths[i] = count;
        types[i] = MPI_INT;
        MPI_Get_address(s->piece[i], &at[i]);
    }
    MPI_Type_create_struct(PIECES, lengths, at, types, &s->type);
    MPI_Type_commit(&s->type);
}

static void spread_free(struct spread *s)
{
    for (int i = 0; i < PIECES; i++) {
        mt_free(s->where[i], s->piece[i]);
    }
    MPI_Type_free(&s->type);
}

static void spread_fill(const struct spread *s, int salt)
{
    for (int i = 0; i < PIECES; i++) {
        int *values = mt_ints_make(MT_HOST, s->count, s->count, salt + i);
        mt_put(s->piece[i], s->where[i], values, sizeof(int) * (size_t)s->count);
        mt_free(MT_HOST, values);
    }
}

static void spread_expect(const struct spread *s, int from, int salt, const char *what)
{
    for (int i = 0; i < PIECES; i++) {
        mt_ints_expect(s->piece[i], s->where[i], s->count, s->count, from, salt + i, what);
    }
}

static void check_replace(struct spread *s, int next, int previous)
{
    MPI_Status status;

    spread_fill(s, 70);
    MPI_Sendrecv_replace(MPI_BOTTOM, 1, s->type, next, TAG, previous, TAG, MPI_COMM_WORLD, &status);
    spread_expect(s, previous, 70, "MPI_Sendrecv_replace");
    mt_expect_status(&status, previous, TAG, PIECES * s->count, "MPI_Sendrecv_replace");
}

/* Less than there is room for: the first piece, and none of the others. */
static void check_short(struct spread *from, struct spread *to, int next, int previous)
{
    MPI_Status status;

    spread_fill(from, 20);
    spread_fill(to, 40);
    MPI_Sendrecv(from->piece[0], from->count, MPI_INT, next, TAG, MPI_BOTTOM, 1, to->type, previous,
                 TAG, MPI_COMM_WORLD, &status);
    mt_ints_expect(to->piece[0], to->where[0], to->count, to->count, previous, 20, "a short one");
    mt_ints_expect(to->piece[1], to->where[1], to->count, to->count, mt_rank(), 41, "untouched");
    mt_ints_expect(to->piece[2], to->where[2], to->count, to->count, mt_rank(), 42, "untouched");
    mt_expect_status(&status, previous, TAG, to->count, "a short one");
}

static void check_packing(struct spread *s)
{
    int   bytes = (int)sizeof(int) * PIECES * s->count, position = 0;
    char *packed = malloc((size_t)bytes);

#ifdef MPICH_VERSION
    if (strcmp(mt_runtime(), "none") == 0) { /* MPICH 4.0.2 takes MPI_BOTTOM for a wrong pointer */
        free(packed);
        return;
    }
#endif
    spread_fill(s, 30);
    MPI_Pack(MPI_BOTTOM, 1, s->type, packed, bytes, &position, MPI_COMM_WORLD);
    mt_expect(position == bytes, "MPI_Pack: the position is %d of %d", position, bytes);
    spread_fill(s, 60);
    position = 0;
    MPI_Unpack(packed, bytes, &position, MPI_BOTTOM, 1, s->type, MPI_COMM_WORLD);
    spread_expect(s, mt_rank(), 30, "MPI_Unpack");
    free(packed);
}

static void case_messages(void)
{
    int           next = (mt_rank() + 1) % mt_size();
    int           previous = (mt_rank() + mt_size() - 1) % mt_size();
    struct spread from, to;
    MPI_Request   requests[2];

    for (int size = 0; size < SIZES; size++) {
        spread_make(&from, sizes[size]);
        spread_make(&to, sizes[size]);
        spread_fill(&from, 1);
        MPI_Irecv(MPI_BOTTOM, 1, to.type, previous, TAG, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(MPI_BOTTOM, 1, from.type, next, TAG, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        spread_expect(&to, previous, 1, "MPI_Irecv");
        check_replace(&from, next, previous);
        check_short(&from, &to, next, previous);
        check_packing(&from);
        spread_free(&from);
        spread_free(&to);
    }
}

static void check_bcast(struct spread *s, int root, int salt)
{
    MPI_Request request;

    spread_fill(s, salt);
    MPI_Bcast(MPI_BOTTOM, 1, s->type, root, MPI_COMM_WORLD);
    spread_expect(s, root, salt, "MPI_Bcast");
    spread_fill(s, salt + 3);
    MPI_Ibcast(MPI_BOTTOM, 1, s->type, root, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    spread_expect(s, root, salt + 3, "MPI_Ibcast");
}

/* Spread at the leaves, side by side at the root, and back. */
static void check_rooted(struct spread *s, int root)
{
    int  each = PIECES * s->count;
    int *all = mt_ints_make(MT_DEVICE, each * mt_size(), 0, 0);

    spread_fill(s, 11);
    MPI_Gather(MPI_BOTTOM, 1, s->type, all, each, MPI_INT, root, MPI_COMM_WORLD);
    spread_fill(s, 55);
    MPI_Scatter(all, each, MPI_INT, MPI_BOTTOM, 1, s->type, root, MPI_COMM_WORLD);
    spread_expect(s, mt_rank(), 11, "MPI_Gather and MPI_Scatter");
    MPI_Allgather(MPI_BOTTOM, 1, s->type, all, each, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < mt_size() * PIECES; i++) {
        mt_ints_expect(all + i * s->count, MT_DEVICE, s->count, s->count, i / PIECES,
                       11 + i % PIECES, "MPI_Allgather");
    }
    mt_free(MT_DEVICE, all);
}

/* A block of its own for each rank, in allocations of its own. */
static void check_alltoallw(int count)
{
    struct spread from[MAX_RANKS], to[MAX_RANKS];
    MPI_Datatype  sent[MAX_RANKS], received[MAX_RANKS];
    int           ones[MAX_RANKS], zeros[MAX_RANKS] = {0};
    MPI_Request   request;

    for (int i = 0; i < mt_size(); i++) {
        spread_make(&from[i], count);
        spread_make(&to[i], count);
        spread_fill(&from[i], i * PIECES);
        sent[i] = from[i].type;
        received[i] = to[i].type;
        ones[i] = 1;
    }
    MPI_Alltoallw(MPI_BOTTOM, ones, zeros, sent, MPI_BOTTOM, ones, zeros, received, MPI_COMM_WORLD);
    for (int i = 0; i < mt_size(); i++) {
        spread_expect(&to[i], i, mt_rank() * PIECES, "MPI_Alltoallw");
        spread_fill(&to[i], 99);
    }
    MPI_Ialltoallw(MPI_BOTTOM, ones, zeros, sent, MPI_BOTTOM, ones, zeros, received, MPI_COMM_WORLD,
                   &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < mt_size(); i++) {
        spread_expect(&to[i], i, mt_rank() * PIECES, "MPI_Ialltoallw");
        spread_free(&from[i]);
        spread_free(&to[i]);
    }
}

/* Halos in arrays of their own: the displacements are addresses. */
static void check_halo(int count)
{
    int           ranks = mt_size(), periodic = 1, left, right;
    struct spread s[2];
    MPI_Aint      from[2], to[2];
    MPI_Datatype  types[2] = {MPI_INT, MPI_INT};
    int           counts[2] = {count, count};
    MPI_Comm      ring;

    MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &periodic, 0, &ring);
    MPI_Cart_shift(ring, 0, 1, &left, &right);
    for (int i = 0; i < 2; i++) {
        spread_make(&s[i], count);
        spread_fill(&s[i], 10 * i);
        MPI_Get_address(s[i].piece[0], &from[i]);
        MPI_Get_address(s[i].piece[1], &to[i]);
    }
    MPI_Neighbor_alltoallw(MPI_BOTTOM, counts, from, types, MPI_BOTTOM, counts, to, types, ring);
    if (ranks > 2) { /* with two it is open which of both messages of a rank comes from where */
        mt_ints_expect(s[0].piece[1], middle, count, count, left, 10, "from the left");
        mt_ints_expect(s[1].piece[1], middle, count, count, right, 0, "from the right");
    }
    spread_free(&s[0]);
    spread_free(&s[1]);
    MPI_Comm_free(&ring);
}

static void case_collectives(void)
{
    struct spread s;

    for (int size = 0; size < SIZES; size++) {
        spread_make(&s, sizes[size]);
        check_bcast(&s, mt_size() - 1, size);
        check_rooted(&s, mt_size() - 1);
        check_alltoallw(sizes[size]);
        check_halo(sizes[size]);
        spread_free(&s);
    }
}

int main(int argc, char **argv)
{
    static const struct mt_named_case cases[] = {
        {"messages", case_messages}, {"collectives", case_collectives}, {NULL, NULL}};

    mt_begin(&argc, &argv, true);
    middle = ((argc > 3) && (strcmp(argv[3], "mixed") == 0)) ? MT_HOST : MT_DEVICE;
    return mt_run_to_end(cases, argc, argv);
}
