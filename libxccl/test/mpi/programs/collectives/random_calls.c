/* SPDX-License-Identifier: BSD-3-Clause */
/* Every collective in every form, from one description. */
#include "random.h"

#include <dlfcn.h>
#include <stdio.h>

#include "reference.h"

/* The arguments of each kind of call; persistent ones are not in every MPI's header. */
#define SIGNATURE(name, ...)                                                                       \
    typedef int name##_call(__VA_ARGS__);                                                          \
    typedef int name##_init(__VA_ARGS__, MPI_Info, MPI_Request *)

SIGNATURE(reduce, const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
SIGNATURE(rooted, const void *, void *, int, MPI_Datatype, MPI_Op, int, MPI_Comm);
SIGNATURE(parts, const void *, void *, const int *, MPI_Datatype, MPI_Op, MPI_Comm);
SIGNATURE(bcast, void *, int, MPI_Datatype, int, MPI_Comm);
SIGNATURE(gather, const void *, int, MPI_Datatype, void *, int, MPI_Datatype, int, MPI_Comm);
SIGNATURE(gatherv, const void *, int, MPI_Datatype, void *, const int *, const int *, MPI_Datatype,
          int, MPI_Comm);
SIGNATURE(scatterv, const void *, const int *, const int *, MPI_Datatype, void *, int, MPI_Datatype,
          int, MPI_Comm);
SIGNATURE(all, const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm);
SIGNATURE(allv, const void *, int, MPI_Datatype, void *, const int *, const int *, MPI_Datatype,
          MPI_Comm);
SIGNATURE(exchange, const void *, const int *, const int *, MPI_Datatype, void *, const int *,
          const int *, MPI_Datatype, MPI_Comm);
SIGNATURE(exchangew, const void *, const int *, const int *, const MPI_Datatype *, void *,
          const int *, const int *, const MPI_Datatype *, MPI_Comm);
SIGNATURE(neighborw, const void *, const int *, const MPI_Aint *, const MPI_Datatype *, void *,
          const int *, const MPI_Aint *, const MPI_Datatype *, MPI_Comm);
SIGNATURE(barrier, MPI_Comm);
typedef int local_call(const void *, void *, int, MPI_Datatype, MPI_Op);

static void *references[RX_NUM_COLLS];
static void *inits[RX_NUM_COLLS];

bool rx_has_persistent(void)
{
#define LOOK_UP(NAME, name, iname)                                                                 \
    references[RX_##NAME] = mt_reference("PMPI_" #name);                                           \
    inits[RX_##NAME] = mt_find("MPI_" #name "_init");
    static bool all = false;

    if (references[0] != NULL) {
        return all;
    }
    all = true;
    RX_COLLS(LOOK_UP)
    references[RX_REDUCE_LOCAL] = mt_reference("PMPI_Reduce_local");
    for (int i = 0; i < RX_REDUCE_LOCAL; i++) {
        all = all && (inits[i] != NULL);
    }
    return all;
}

void rx_crowd_make(void *memory, int count, MPI_Request *requests)
{
    for (int i = 0; i < count; i++) {
        ((bcast_init *)inits[RX_BCAST])(memory, 1, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL,
                                        &requests[i]);
    }
}

/* One row of the switch: the collective, its kind of arguments, and they themselves. */
#define ROW(NAME, name, iname, kind, ...)                                                          \
    case RX_##NAME:                                                                                \
        switch (mode) {                                                                            \
        case RX_REFERENCE:                                                                         \
            return ((kind##_call *)references[RX_##NAME])(__VA_ARGS__);                            \
        case RX_BLOCKING:                                                                          \
            return MPI_##name(__VA_ARGS__);                                                        \
        case RX_NONBLOCKING:                                                                       \
            return MPI_##iname(__VA_ARGS__, request);                                              \
        default:                                                                                   \
            return ((kind##_init *)inits[RX_##NAME])(__VA_ARGS__, MPI_INFO_NULL, request);         \
        }

static int make_reduction(const struct rx_call *c, enum rx_mode mode, const void *in, void *out,
                          MPI_Request *request)
{
    int          n = c->units;
    MPI_Datatype type = c->recv.types[0];
    MPI_Op       op = c->op.op;
    MPI_Comm     comm = c->where.comm;

    switch (c->coll) {
        ROW(ALLREDUCE, Allreduce, Iallreduce, reduce, in, out, n, type, op, comm)
        ROW(SCAN, Scan, Iscan, reduce, in, out, n, type, op, comm)
        ROW(EXSCAN, Exscan, Iexscan, reduce, in, out, n, type, op, comm)
        ROW(REDUCE, Reduce, Ireduce, rooted, in, out, n, type, op, c->root, comm)
        ROW(REDUCE_SCATTER_BLOCK, Reduce_scatter_block, Ireduce_scatter_block, reduce, in, out, n,
            type, op, comm)
        ROW(REDUCE_SCATTER, Reduce_scatter, Ireduce_scatter, parts, in, out, c->parts, type, op,
            comm)
    default:
        if (mode == RX_REFERENCE) {
            return ((local_call *)references[RX_REDUCE_LOCAL])(in, out, n, type, op);
        }
        return MPI_Reduce_local(in, out, n, type, op);
    }
}

static int make_rooted(const struct rx_call *c, enum rx_mode mode, const void *in, void *out,
                       MPI_Request *request)
{
    const struct rx_side *s = &c->send;
    const struct rx_side *r = &c->recv;
    MPI_Datatype          sent = s->types[0];
    MPI_Datatype          got = r->types[0];
    MPI_Comm              comm = c->where.comm;

    switch (c->coll) {
        ROW(BCAST, Bcast, Ibcast, bcast, out, r->counts[0], got, c->root, comm)
        ROW(GATHER, Gather, Igather, gather, in, s->counts[0], sent, out, r->counts[0], got,
            c->root, comm)
        ROW(GATHERV, Gatherv, Igatherv, gatherv, in, s->counts[0], sent, out, r->counts, r->displs,
            got, c->root, comm)
        ROW(SCATTER, Scatter, Iscatter, gather, in, s->counts[0], sent, out, r->counts[0], got,
            c->root, comm)
        ROW(SCATTERV, Scatterv, Iscatterv, scatterv, in, s->counts, s->displs, sent, out,
            r->counts[0], got, c->root, comm)
    default:
        return MPI_ERR_OTHER;
    }
}

static int make_all(const struct rx_call *c, enum rx_mode mode, const void *in, void *out,
                    MPI_Request *request)
{
    const struct rx_side *s = &c->send;
    const struct rx_side *r = &c->recv;
    MPI_Datatype          sent = s->types[0];
    MPI_Datatype          got = r->types[0];
    MPI_Comm              comm = c->where.comm;

    switch (c->coll) {
        ROW(ALLGATHER, Allgather, Iallgather, all, in, s->counts[0], sent, out, r->counts[0], got,
            comm)
        ROW(ALLGATHERV, Allgatherv, Iallgatherv, allv, in, s->counts[0], sent, out, r->counts,
            r->displs, got, comm)
        ROW(ALLTOALL, Alltoall, Ialltoall, all, in, s->counts[0], sent, out, r->counts[0], got,
            comm)
        ROW(ALLTOALLV, Alltoallv, Ialltoallv, exchange, in, s->counts, s->displs, sent, out,
            r->counts, r->displs, got, comm)
        ROW(ALLTOALLW, Alltoallw, Ialltoallw, exchangew, in, s->counts, s->displs, s->types, out,
            r->counts, r->displs, r->types, comm)
        ROW(BARRIER, Barrier, Ibarrier, barrier, comm)
    default:
        return MPI_ERR_OTHER;
    }
}

static int make_neighbor(const struct rx_call *c, enum rx_mode mode, const void *in, void *out,
                         MPI_Request *request)
{
    const struct rx_side *s = &c->send;
    const struct rx_side *r = &c->recv;
    MPI_Datatype          sent = s->types[0];
    MPI_Datatype          got = r->types[0];
    MPI_Comm              comm = c->where.comm;

    switch (c->coll) {
        ROW(NEIGHBOR_ALLGATHER, Neighbor_allgather, Ineighbor_allgather, all, in, s->counts[0],
            sent, out, r->counts[0], got, comm)
        ROW(NEIGHBOR_ALLGATHERV, Neighbor_allgatherv, Ineighbor_allgatherv, allv, in, s->counts[0],
            sent, out, r->counts, r->displs, got, comm)
        ROW(NEIGHBOR_ALLTOALL, Neighbor_alltoall, Ineighbor_alltoall, all, in, s->counts[0], sent,
            out, r->counts[0], got, comm)
        ROW(NEIGHBOR_ALLTOALLV, Neighbor_alltoallv, Ineighbor_alltoallv, exchange, in, s->counts,
            s->displs, sent, out, r->counts, r->displs, got, comm)
        ROW(NEIGHBOR_ALLTOALLW, Neighbor_alltoallw, Ineighbor_alltoallw, neighborw, in, s->counts,
            s->byte_displs, s->types, out, r->counts, r->byte_displs, r->types, comm)
    default:
        return MPI_ERR_OTHER;
    }
}

/* What is passed for a side whose buffer begins at `buffer`; it may point outside of that. */
static void *passed(const struct rx_side *side, char *buffer)
{
    return side->null ? NULL : (void *)((uintptr_t)buffer + (uintptr_t)side->origin);
}

int rx_make(const struct rx_call *c, enum rx_mode mode, char *send, char *recv,
            MPI_Request *request)
{
    void *in = passed(&c->send, send);
    void *out = passed(&c->recv, recv);
    bool  scatters = (c->coll == RX_SCATTER) || (c->coll == RX_SCATTERV);

    if (c->in_place && scatters) {
        out = MPI_IN_PLACE;
    } else if (c->in_place) {
        in = MPI_IN_PLACE;
    }
    if ((c->coll <= RX_EXSCAN) || (c->coll == RX_REDUCE_LOCAL)) {
        return make_reduction(c, mode, in, out, request);
    }
    if (c->coll <= RX_SCATTERV) {
        return make_rooted(c, mode, in, out, request);
    }
    if ((c->coll >= RX_NEIGHBOR_ALLGATHER) && (c->coll <= RX_NEIGHBOR_ALLTOALLW)) {
        return make_neighbor(c, mode, in, out, request);
    }
    return make_all(c, mode, in, out, request);
}
