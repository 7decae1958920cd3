/* SPDX-License-Identifier: BSD-3-Clause */
#include "intercept/sides.h"

#include <string.h>

MPI_Count xm_block_count(const struct xm_call *call, const struct xm_side *side, int i)
{
    return (side->counts != NULL) ? xm_count_at(call, side->counts, i) : side->count;
}

MPI_Aint xm_block_offset(const struct xm_call *call, const struct xm_side *side, int i)
{
    return (side->displs != NULL)
               ? xm_displ_at(call, side->displs, i) * (MPI_Aint)side->layout.extent
               : 0;
}

static void widen(struct xm_side *side, MPI_Aint offset, MPI_Count count)
{
    const struct xm_layout *l = &side->layout;
    /* Extents may be negative: the last element may lie before the first. */
    MPI_Aint last = offset + (MPI_Aint)((count - 1) * l->extent);
    MPI_Aint low = ((last < offset) ? last : offset) + (MPI_Aint)l->true_lb;
    MPI_Aint high =
        ((last < offset) ? offset : last) + (MPI_Aint)l->true_lb + (MPI_Aint)l->true_extent;

    if ((side->low == side->high) || (low < side->low)) {
        side->low = low;
    }
    if (high > side->high) {
        side->high = high;
    }
}

/* Totals, span and memory kind of a side whose blocks are set. False for MPI to complain. */
static bool finish(const struct xm_call *call, struct xm_side *side)
{
    if (!xm_layout_of(side->type, &side->layout)) {
        return false;
    }
    side->mem = (struct xc_mem_info){XC_MEM_HOST, -1};
    for (int i = 0; i < side->blocks; i++) {
        MPI_Count count = xm_block_count(call, side, i);
        if (count < 0) {
            return false;
        }
        if ((count > 0) && (side->layout.size > 0)) {
            bool first = (side->elements == 0);
            if (first) {
                side->high = side->low = 0;
            }
            side->elements += count;
            widen(side, xm_block_offset(call, side, i), count);
        }
    }
    side->bytes = side->elements * side->layout.size;
    side->used = (side->bytes > 0);
    if (side->used) {
        side->mem = xc_mem_query(side->buf + side->low);
    }
    return true;
}

static bool single(const struct xm_call *call, struct xm_side *side, const void *buf,
                   MPI_Count count, MPI_Datatype type)
{
    side->buf = (char *)(uintptr_t)buf;
    side->type = type;
    side->blocks = 1;
    side->count = count;
    return finish(call, side);
}

static bool vector(const struct xm_call *call, struct xm_side *side, const void *buf,
                   const void *counts, const void *displs, MPI_Datatype type, int blocks)
{
    side->buf = (char *)(uintptr_t)buf;
    side->type = type;
    side->blocks = blocks;
    side->counts = counts;
    side->displs = displs;
    if ((blocks > 0) && ((counts == NULL) || (displs == NULL))) {
        return false;
    }
    return finish(call, side);
}

/* Who this rank is in a rooted collective, on either kind of communicator. */
struct role {
    bool root;
    bool leaf; /* contributes to, or receives from, a root */
};

static bool role_of(const struct xm_call *call, const struct xm_comm *xm, struct role *role)
{
    if (xm->inter) {
        role->root = (call->root == MPI_ROOT);
        role->leaf = (call->root >= 0);
        return role->root || role->leaf || (call->root == MPI_PROC_NULL);
    }
    role->root = (call->root == xm->rank);
    role->leaf = true; /* the root too has a part of its own */
    return (call->root >= 0) && (call->root < xm->size);
}

/* Ranks that the other buffer of an all-to-all or rooted collective holds blocks of. */
static int partners_of(const struct xm_comm *xm)
{
    int size = xm->size;

    if (xm->inter) {
        xm_pmpi.Comm_remote_size(xm->comm, &size);
    }
    return size;
}

static MPI_Count sum_counts(const struct xm_call *call, const void *counts, int n)
{
    MPI_Count sum = 0;

    for (int i = 0; i < n; i++) {
        MPI_Count count = xm_count_at(call, counts, i);
        if (count < 0) {
            return -1;
        }
        sum += count;
    }
    return sum;
}

/* Allreduce, Reduce and the two Reduce_scatters: n elements in, m out. */
static bool reduction(const struct xm_call *call, struct xm_sides *sides, MPI_Count in,
                      MPI_Count out, bool receives)
{
    bool in_place = (call->sendbuf == MPI_IN_PLACE);

    sides->in_place = in_place;
    sides->recv.in = in_place;
    sides->recv.out = receives;
    sides->send.in = true;
    if (in_place) {
        /* The input lies in the receive buffer: of Reduce_scatter it is the longer part. */
        return single(call, &sides->recv, call->recvbuf, (in > out) ? in : out, call->sendtype);
    }
    return single(call, &sides->send, call->sendbuf, in, call->sendtype) &&
           (!receives || single(call, &sides->recv, call->recvbuf, out, call->sendtype));
}

static bool bcast(const struct xm_call *call, const struct xm_comm *xm, struct xm_sides *sides)
{
    struct role role;

    if (!role_of(call, xm, &role)) {
        return false;
    }
    struct xm_side *side = role.root ? &sides->send : &sides->recv;
    side->in = role.root;
    side->out = !role.root;
    return (!role.root && !role.leaf) ||
           single(call, side, call->recvbuf, call->recvcount, call->recvtype);
}

static bool reduce(const struct xm_call *call, const struct xm_comm *xm, struct xm_sides *sides)
{
    struct role role;

    if (!role_of(call, xm, &role)) {
        return false;
    }
    if (xm->inter && role.root) { /* receives only */
        sides->recv.out = true;
        return single(call, &sides->recv, call->recvbuf, call->sendcount, call->sendtype);
    }
    if (!role.leaf) {
        return true;
    }
    if ((call->sendbuf == MPI_IN_PLACE) && !role.root) {
        return false;
    }
    return reduction(call, sides, call->sendcount, call->sendcount, role.root);
}

/* Gather(v): a part from each leaf, all parts at the root. */
static bool gather(const struct xm_call *call, const struct xm_comm *xm, struct xm_sides *sides)
{
    struct role role;
    int         n = partners_of(xm);

    if (!role_of(call, xm, &role)) {
        return false;
    }
    sides->in_place = role.root && (call->sendbuf == MPI_IN_PLACE);
    sides->send.in = true;
    sides->recv.out = true;
    sides->recv.in = sides->in_place;
    if (role.root) {
        bool fine =
            (call->coll == XM_GATHERV)
                ? vector(call, &sides->recv, call->recvbuf, call->recvcounts, call->rdispls,
                         call->recvtype, n)
                : single(call, &sides->recv, call->recvbuf, call->recvcount * n, call->recvtype);
        if (!fine || xm->inter) {
            return fine;
        }
    }
    return !role.leaf || sides->in_place ||
           single(call, &sides->send, call->sendbuf, call->sendcount, call->sendtype);
}

static bool scatter(const struct xm_call *call, const struct xm_comm *xm, struct xm_sides *sides)
{
    struct role role;
    int         n = partners_of(xm);

    if (!role_of(call, xm, &role)) {
        return false;
    }
    sides->in_place = role.root && (call->recvbuf == MPI_IN_PLACE);
    sides->send.in = true;
    sides->recv.out = true;
    if (role.root) {
        bool fine =
            (call->coll == XM_SCATTERV)
                ? vector(call, &sides->send, call->sendbuf, call->sendcounts, call->sdispls,
                         call->sendtype, n)
                : single(call, &sides->send, call->sendbuf, call->sendcount * n, call->sendtype);
        if (!fine || xm->inter) {
            return fine;
        }
    }
    return !role.leaf || sides->in_place ||
           single(call, &sides->recv, call->recvbuf, call->recvcount, call->recvtype);
}

/* Allgather(v), Alltoall(v): all ranks alike. */
static bool everyone(const struct xm_call *call, const struct xm_comm *xm, struct xm_sides *sides)
{
    int  n = partners_of(xm);
    bool in_place = (call->sendbuf == MPI_IN_PLACE);
    bool vectors = (call->coll == XM_ALLGATHERV) || (call->coll == XM_ALLTOALLV);
    bool fine = true;

    sides->in_place = in_place;
    sides->recv.out = true;
    sides->recv.in = in_place;
    sides->send.in = true;
    if (vectors) {
        fine = vector(call, &sides->recv, call->recvbuf, call->recvcounts, call->rdispls,
                      call->recvtype, n);
    } else {
        fine = single(call, &sides->recv, call->recvbuf, call->recvcount * n, call->recvtype);
    }
    if (!fine || in_place) {
        return fine;
    }
    if (call->coll == XM_ALLTOALLV) {
        return vector(call, &sides->send, call->sendbuf, call->sendcounts, call->sdispls,
                      call->sendtype, n);
    }
    return single(call, &sides->send, call->sendbuf,
                  (call->coll == XM_ALLTOALL) ? call->sendcount * n : call->sendcount,
                  call->sendtype);
}

bool xm_sides_of(const struct xm_call *call, const struct xm_comm *xm, struct xm_sides *sides_p)
{
    MPI_Count total;

    memset(sides_p, 0, sizeof(*sides_p));
    sides_p->call = call;
    switch (call->coll) {
    case XM_ALLREDUCE:
        return reduction(call, sides_p, call->sendcount, call->sendcount, true);
    case XM_REDUCE:
        return reduce(call, xm, sides_p);
    case XM_REDUCE_SCATTER:
        if (call->recvcounts == NULL) {
            return false;
        }
        total = sum_counts(call, call->recvcounts, xm->size);
        return (total >= 0) &&
               reduction(call, sides_p, total, xm_count_at(call, call->recvcounts, xm->rank), true);
    case XM_REDUCE_SCATTER_BLOCK:
        return (call->recvcount >= 0) &&
               reduction(call, sides_p, call->recvcount * xm->size, call->recvcount, true);
    case XM_BCAST:
        return bcast(call, xm, sides_p);
    case XM_GATHER:
    case XM_GATHERV:
        return gather(call, xm, sides_p);
    case XM_SCATTER:
    case XM_SCATTERV:
        return scatter(call, xm, sides_p);
    default:
        return everyone(call, xm, sides_p);
    }
}
