/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives with neighbours on ranks that have none: in a graph in which all send to rank 0, and
 * in one without edges. Arrays that have no element are NULL.
 * Usage: mpi_neighbors cuda|rocm|none CASE
 */
#include "support.h"

enum { COUNT = 5, MOST_RANKS = 64 };

/* An element for each neighbour, or NULL. */
struct side {
    int           neighbors;
    int          *memory;
    int          *counts;
    int          *displs; /* in integers */
    MPI_Aint     *bytes;
    MPI_Datatype *types;
};

static struct side side_make(int neighbors, int filled, int salt)
{
    static int          counts[MOST_RANKS], displs[MOST_RANKS];
    static MPI_Aint     bytes[MOST_RANKS];
    static MPI_Datatype types[MOST_RANKS];
    int                *memory = mt_ints_make(MT_DEVICE, COUNT * MOST_RANKS, filled, salt);

    for (int i = 0; i < MOST_RANKS; i++) {
        counts[i] = COUNT;
        displs[i] = i * COUNT;
        bytes[i] = displs[i] * (MPI_Aint)sizeof(int);
        types[i] = MPI_INT;
    }
    return (neighbors == 0) ? (struct side){.memory = memory}
                            : (struct side){neighbors, memory, counts, displs, bytes, types};
}

/* From ranks 1, 2, 3, ..., of which each sends its first values. */
static void expect(const struct side *to, int salt, const char *what)
{
    int host[COUNT * MOST_RANKS], wrong = 0;

    mt_get(host, to->memory, MT_DEVICE, sizeof(host));
    for (int i = 0; i < COUNT * MOST_RANKS; i++) {
        int from = i / COUNT;
        int value = (from < to->neighbors) ? mt_value(from + 1, salt, i % COUNT) : MT_UNTOUCHED;
        wrong += (host[i] != value);
    }
    mt_expect(wrong == 0, "%s: %d integers are wrong", what, wrong);
}

static void call_all(MPI_Comm comm, const struct side *from, struct side *to, int which)
{
    MPI_Request request = MPI_REQUEST_NULL;

    switch (which) {
    case 0:
        MPI_Neighbor_alltoallw(from->memory, from->counts, from->bytes, from->types, to->memory,
                               to->counts, to->bytes, to->types, comm);
        break;
    case 1:
        MPI_Ineighbor_alltoallw(from->memory, from->counts, from->bytes, from->types, to->memory,
                                to->counts, to->bytes, to->types, comm, &request);
        break;
    default:
        MPI_Neighbor_alltoallv(from->memory, from->counts, from->displs, MPI_INT, to->memory,
                               to->counts, to->displs, MPI_INT, comm);
        break;
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void exchange(MPI_Comm comm, int in, int out)
{
    static const char *const names[] = {"MPI_Neighbor_alltoallw", "MPI_Ineighbor_alltoallw",
                                        "MPI_Neighbor_alltoallv"};

    for (int which = 0; which < 3; which++) {
        /* The arrays are the same for both sides. */
        struct side from = side_make(out, COUNT, which), to = side_make(in, 0, 0);
        call_all(comm, &from, &to, which);
        expect(&to, which, names[which]);
        mt_free(MT_DEVICE, from.memory);
        mt_free(MT_DEVICE, to.memory);
    }
}

/* Rank 0 has no one to send to, and the others no one to receive from. */
static void case_funnel(void)
{
    int      others[MOST_RANKS], first[] = {0};
    int      in = (mt_rank() == 0) ? mt_size() - 1 : 0, out = (mt_rank() == 0) ? 0 : 1;
    MPI_Comm comm;

    for (int i = 0; i < MOST_RANKS; i++) {
        others[i] = i + 1;
    }
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, in, others, MPI_UNWEIGHTED, out, first,
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
    exchange(comm, in, out);
    MPI_Comm_free(&comm);
}

static void case_nobody(void)
{
    MPI_Comm comm;

    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, NULL, MPI_WEIGHTS_EMPTY, 0, NULL,
                                   MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, 0, &comm);
    exchange(comm, 0, 0);
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    const struct mt_named_case cases[] = {
        {"funnel", case_funnel}, {"nobody", case_nobody}, {NULL, NULL}};

    mt_begin(&argc, &argv, true);
    return mt_run_to_end(cases, argc, argv);
}
