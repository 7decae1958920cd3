/* SPDX-License-Identifier: BSD-3-Clause */
#include "comms/topology.h"

#include <stdlib.h>
#include <string.h>

/* MPI's function of this name; what a call needs is a prototype, which is that of its declaration.
 */
#define FIND(name) ((__typeof__(&PMPI_##name))find("PMPI_" #name))

static xm_function_t find(const char *name)
{
    xm_function_t found;

    *(void **)&found = xm_mpi_symbol(name);
    return found;
}

/* MPICH 5.0 never returns from MPI_Comm_create on a grid that was made of a part of the ranks. */
static bool must_split(MPI_Comm from)
{
    int inter = 0;

    return XM_STANDARD_ABI && (xm_pmpi.Comm_test_inter(from, &inter) == MPI_SUCCESS) && !inter;
}

int xm_topology_plain(MPI_Comm from, MPI_Comm *plain_p)
{
    MPI_Group group;

    if (must_split(from)) {
        return FIND(Comm_split)(from, 0, 0, plain_p);
    }
    int code = xm_pmpi.Comm_group(from, &group);
    if (code == MPI_SUCCESS) {
        code = xm_pmpi.Comm_create(from, group, plain_p);
        xm_pmpi.Group_free(&group);
    }
    return code;
}

static int copy_grid(MPI_Comm from, MPI_Comm plain, MPI_Comm *comm_p)
{
    int dims = 0;

    xm_pmpi.Cartdim_get(from, &dims);
    int *room = calloc(3 * (size_t)dims + 1, sizeof(*room));
    if (room == NULL) {
        return MPI_ERR_NO_MEM;
    }
    int *periods = room + dims, *place = room + 2 * dims;
    int  code = FIND(Cart_get)(from, dims, room, periods, place);
    if (code == MPI_SUCCESS) {
        code = FIND(Cart_create)(plain, dims, room, periods, 0, comm_p);
    }
    free(room);
    return code;
}

static int copy_graph(MPI_Comm from, MPI_Comm plain, MPI_Comm *comm_p)
{
    int nodes = 0, edges = 0;

    int  code = FIND(Graphdims_get)(from, &nodes, &edges);
    int *index = calloc((size_t)nodes + (size_t)edges + 1, sizeof(*index));
    if (index == NULL) {
        return MPI_ERR_NO_MEM;
    }
    if (code == MPI_SUCCESS) {
        code = FIND(Graph_get)(from, nodes, edges, index, index + nodes);
    }
    if (code == MPI_SUCCESS) {
        code = FIND(Graph_create)(plain, nodes, index, index + nodes, 0, comm_p);
    }
    free(index);
    return code;
}

/* Room for the neighbours, of which there are so many. */
static bool make_room(struct xm_edges *edges)
{
    edges->sources = calloc((size_t)edges->in + (size_t)edges->out + 1, sizeof(int));
    edges->targets = edges->sources + edges->in;
    return edges->sources != NULL;
}

static int distributed_edges(MPI_Comm comm, struct xm_edges *edges)
{
    int weighted = 0;
    int code = xm_pmpi.Dist_graph_neighbors_count(comm, &edges->in, &edges->out, &weighted);

    if ((code == MPI_SUCCESS) && !make_room(edges)) {
        return MPI_ERR_NO_MEM;
    }
    int *weights = calloc((size_t)edges->in + (size_t)edges->out + 1, sizeof(*weights));
    if (weights == NULL) {
        return MPI_ERR_NO_MEM;
    }
    if (code == MPI_SUCCESS) {
        code = FIND(Dist_graph_neighbors)(comm, edges->in, edges->sources, weights, edges->out,
                                          edges->targets, weights + edges->in);
    }
    free(weights);
    return code;
}

/* Each rank says its own neighbours. Weights are for placing ranks, which is done. */
static int copy_distributed(MPI_Comm from, MPI_Comm plain, MPI_Comm *comm_p)
{
    struct xm_edges edges = {0};
    int             code = distributed_edges(from, &edges);
    int             n = edges.in + edges.out;
    int            *weights = (code == MPI_SUCCESS) ? calloc((size_t)n + 1, sizeof(int)) : NULL;

    for (int i = 0; (weights != NULL) && (i < n); i++) {
        weights[i] = 1;
    }
    if ((code == MPI_SUCCESS) && (weights == NULL)) {
        code = MPI_ERR_NO_MEM;
    }
    if (code == MPI_SUCCESS) {
        code = FIND(Dist_graph_create_adjacent)(plain, edges.in, edges.sources, weights, edges.out,
                                                edges.targets, weights + edges.in,
                                                XM_HANDLE(MPI_INFO_NULL), 0, comm_p);
    }
    free(weights);
    free(edges.sources);
    return code;
}

int xm_topology_copy(MPI_Comm from, MPI_Comm plain, MPI_Comm *comm_p)
{
    int kind = MPI_UNDEFINED;

    int code = xm_pmpi.Topo_test(from, &kind);
    if (code != MPI_SUCCESS) {
        return code;
    }
    switch (kind) {
    case MPI_CART:
        return copy_grid(from, plain, comm_p);
    case MPI_GRAPH:
        return copy_graph(from, plain, comm_p);
    case MPI_DIST_GRAPH:
        return copy_distributed(from, plain, comm_p);
    default:
        xm_pmpi.Comm_call_errhandler(from, MPI_ERR_TOPOLOGY);
        return MPI_ERR_TOPOLOGY;
    }
}

/* Of each dimension the neighbour below, then that above. */
static int grid_edges(MPI_Comm comm, struct xm_edges *edges)
{
    int dims = 0, code = xm_pmpi.Cartdim_get(comm, &dims);

    edges->grid = true;
    edges->in = edges->out = 2 * dims;
    if ((code == MPI_SUCCESS) && !make_room(edges)) {
        return MPI_ERR_NO_MEM;
    }
    for (int i = 0; (code == MPI_SUCCESS) && (i < dims); i++) {
        int *pair = edges->sources + 2 * (ptrdiff_t)i;
        code = FIND(Cart_shift)(comm, i, 1, &pair[0], &pair[1]);
        edges->targets[2 * i] = pair[0];
        edges->targets[2 * i + 1] = pair[1];
    }
    return code;
}

static int graph_edges(MPI_Comm comm, struct xm_edges *edges)
{
    int rank = 0;

    xm_pmpi.Comm_rank(comm, &rank);
    int code = xm_pmpi.Graph_neighbors_count(comm, rank, &edges->in);
    edges->out = edges->in;
    if ((code == MPI_SUCCESS) && !make_room(edges)) {
        return MPI_ERR_NO_MEM;
    }
    if (code == MPI_SUCCESS) {
        code = FIND(Graph_neighbors)(comm, rank, edges->in, edges->sources);
    }
    if ((code == MPI_SUCCESS) && (edges->in > 0)) {
        memcpy(edges->targets, edges->sources, (size_t)edges->in * sizeof(int));
    }
    return code;
}

int xm_topology_edges(MPI_Comm comm, struct xm_edges *edges)
{
    int kind = MPI_UNDEFINED;
    int code = xm_pmpi.Topo_test(comm, &kind);

    if (code != MPI_SUCCESS) {
        return code;
    }
    switch (kind) {
    case MPI_CART:
        return grid_edges(comm, edges);
    case MPI_GRAPH:
        return graph_edges(comm, edges);
    case MPI_DIST_GRAPH:
        return distributed_edges(comm, edges);
    default:
        return MPI_ERR_TOPOLOGY;
    }
}
