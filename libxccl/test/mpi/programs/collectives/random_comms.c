/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators of random calls: a slot for each kind, made anew from time to time. */
#include "random.h"

#include <stdlib.h>

enum { PARENT, GRID, GRAPH, DUP, SPLIT };

/* Periodic only where a rank's two neighbours differ: MPI libraries do not agree on the rest. */
static void make_grid(struct rx_comm *c, MPI_Comm parent)
{
    int size;
    int dims[2] = {0, 0};
    int periods[2];

    MPI_Comm_size(parent, &size);
    MPI_Dims_create(size, 2, dims);
    periods[0] = dims[0] > 2;
    periods[1] = dims[1] > 2;
    MPI_Cart_create(parent, 2, dims, periods, 0, &c->comm);
    c->kind = "a grid";
    c->num_in = c->num_out = 4;
    for (int i = 0; i < 2; i++) {
        MPI_Cart_shift(c->comm, i, 1, &c->in[2 * i], &c->in[2 * i + 1]);
    }
    for (int i = 0; i < 4; i++) {
        c->out[i] = c->in[i];
    }
}

/* Each pair of ranks has an edge or none, a rank perhaps one to itself. */
static bool edge(uint64_t seed, int from, int to)
{
    return rx_hash(seed, (uint64_t)from, (uint64_t)to) % 5 < 3;
}

static void make_graph(struct rx_comm *c, MPI_Comm parent, uint64_t seed)
{
    int me, size;

    MPI_Comm_rank(parent, &me);
    MPI_Comm_size(parent, &size);
    c->num_in = c->num_out = 0;
    for (int other = 0; other < size; other++) {
        if (edge(seed, other, me)) {
            c->in[c->num_in++] = other;
        }
        if (edge(seed, me, size - 1 - other)) {
            c->out[c->num_out++] = size - 1 - other;
        }
    }
    MPI_Dist_graph_create_adjacent(parent, c->num_in, c->in, MPI_UNWEIGHTED, c->num_out, c->out,
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &c->comm);
    c->kind = "a graph";
}

void rx_comm_make(struct rx_comm *c, int slot, MPI_Comm parent, uint64_t seed)
{
    int rank;

    *c = (struct rx_comm){.kind = "a duplicate"};
    MPI_Comm_rank(parent, &rank);
    switch (slot) {
    case GRID:
        make_grid(c, parent);
        break;
    case GRAPH:
        make_graph(c, parent, seed);
        break;
    case SPLIT:
        c->kind = "a part";
        MPI_Comm_split(parent, (int)(rx_hash(seed, (uint64_t)rank, 1) % 2),
                       (int)(rx_hash(seed, (uint64_t)rank, 2) % 1000), &c->comm);
        break;
    default:
        MPI_Comm_dup(parent, &c->comm);
        break;
    }
    MPI_Comm_rank(c->comm, &c->rank);
    MPI_Comm_size(c->comm, &c->size);
}

void rx_comm_free(struct rx_comm *c)
{
    MPI_Comm_free(&c->comm);
}
