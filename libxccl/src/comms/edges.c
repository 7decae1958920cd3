/* SPDX-License-Identifier: BSD-3-Clause */
#include "comms/edges.h"

#include <stdlib.h>

#include "comms/topology.h"

/* MPICH has room for 2048 communicators in all: so many at most are made for messages. */
enum { MOST_OWNED = 64 };
static int num_owned; /* atomic */

void xm_edges_free(struct xm_edges *edges)
{
    if (edges != NULL) {
        free(edges->sources);
        free(edges);
    }
}

/* From every rank to every rank, this one too. */
static int complete_edges(const struct xm_comm *xm, struct xm_edges *edges)
{
    edges->in = edges->out = xm->size;
    edges->sources = malloc(2 * (size_t)xm->size * sizeof(int));
    if (edges->sources == NULL) {
        return MPI_ERR_NO_MEM;
    }
    edges->targets = edges->sources + xm->size;
    for (int i = 0; i < xm->size; i++) {
        edges->sources[i] = edges->targets[i] = i;
    }
    return MPI_SUCCESS;
}

struct xm_edges *xm_edges_find(const struct xm_comm *xm, enum xm_pairs pairs)
{
    struct xm_edges *edges = calloc(1, sizeof(*edges));

    if (edges == NULL) {
        return NULL;
    }
    int code =
        (pairs == XM_PAIRS_ALL) ? complete_edges(xm, edges) : xm_topology_edges(xm->comm, edges);
    if (code != MPI_SUCCESS) {
        xm_edges_free(edges);
        return NULL;
    }
    return edges;
}

bool xm_edges_have_room(void)
{
    return __atomic_load_n(&num_owned, __ATOMIC_RELAXED) < MOST_OWNED;
}

void xm_edges_take(struct xm_comm *xm, enum xm_pairs pairs, struct xm_edges *edges,
                   MPI_Comm messages, bool owned)
{
    edges->comm = messages;
    edges->owned = owned;
    __atomic_add_fetch(&num_owned, owned, __ATOMIC_RELAXED);
    xm->pairs[pairs].edges = edges;
}

/* Calls number 1, 4, 16, ... */
static bool asks_at(uint64_t n)
{
    return ((n & (n - 1)) == 0) && ((__builtin_ctzll(n) & 1) == 0);
}

bool xm_edges_are_ours(const struct xm_comm *xm, enum xm_pairs pairs)
{
    const struct xm_edges *edges = xm->pairs[pairs].edges;

    return (edges != NULL) && (edges->comm != XM_HANDLE(MPI_COMM_NULL));
}

bool xm_edges_are_mpis(const struct xm_comm *xm, enum xm_pairs pairs, bool blocking)
{
    /* In one that does not block no rank waits for another; and see xm_comm.quiet. */
    return !xm_edges_are_ours(xm, pairs) &&
           (!blocking || xm->quiet || xm->shut || !asks_at(xm->pairs[pairs].calls + 1));
}

void xm_edges_count(struct xm_comm *xm, enum xm_pairs pairs, bool blocking)
{
    xm->pairs[pairs].calls += (blocking && !xm->quiet && (xm->pairs[pairs].edges == NULL));
}

void xm_edges_let_go(struct xm_comm *xm)
{
    for (int i = 0; i < XM_PAIRS_KINDS; i++) {
        struct xm_edges *edges = xm->pairs[i].edges;
        if ((edges != NULL) && edges->owned) {
            edges->owned = false;
            xm_pmpi.Comm_free(&edges->comm);
            __atomic_sub_fetch(&num_owned, 1, __ATOMIC_RELAXED);
        }
    }
}
