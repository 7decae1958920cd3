/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The block that a rank keeps for itself goes as a send and a receive to itself in the same group,
 * not as a copy on the stream: a group may be open around us, and its operations start when it
 * ends, so that a copy issued now would run before them; and the vendor moves it in the kernel
 * that it launches for the group anyway, where a copy would be one launch more.
 */
#include "backends/composed.h"

#include "base/params.h"

struct job {
    const struct xc_backend_ops *ops;
    const struct xc_coll_args   *args;
    void                        *comm;
    int                          nranks;
    int                          rank;
    size_t                       size; /* of an element */
};

static bool failed(xcclResult_t rc)
{
    return (rc != xcclSuccess) && (rc != xcclInProgress);
}

static const char *at(const void *base, size_t element, const struct job *job)
{
    return (const char *)base + element * job->size;
}

static xcclResult_t send_block(const struct job *job, size_t element, size_t count, int peer)
{
    struct xc_coll_args args = {.coll = XC_SEND,
                                .count = count,
                                .datatype = job->args->datatype,
                                .root = peer,
                                .stream = job->args->stream};

    if (count == 0) {
        return xcclSuccess;
    }
    args.sendbuff = at(job->args->sendbuff, element, job);
    return job->ops->collective(&args, job->comm, job->nranks, job->rank);
}

static xcclResult_t recv_block(const struct job *job, size_t element, size_t count, int peer)
{
    struct xc_coll_args args = {.coll = XC_RECV,
                                .count = count,
                                .datatype = job->args->datatype,
                                .root = peer,
                                .stream = job->args->stream};

    if (count == 0) {
        return xcclSuccess;
    }
    args.recvbuff = (char *)job->args->recvbuff + element * job->size;
    return job->ops->collective(&args, job->comm, job->nranks, job->rank);
}

/* alltoall and alltoallv: one exchange with every rank, oneself included. */
static xcclResult_t exchange(const struct job *job)
{
    const struct xc_coll_args *a = job->args;
    bool                       v = (a->coll == XC_ALLTOALLV);
    xcclResult_t               rc = xcclSuccess;

    for (int r = 0; (r < job->nranks) && !failed(rc); r++) {
        size_t i = (size_t)r;
        rc = send_block(job, v ? a->sdispls[r] : i * a->count, v ? a->sendcounts[r] : a->count, r);
        if (!failed(rc)) {
            rc = recv_block(job, v ? a->rdispls[r] : i * a->count, v ? a->recvcounts[r] : a->count,
                            r);
        }
    }
    return rc;
}

/* gather and gatherv. In place, the root's own block lies where it belongs already. */
static xcclResult_t gather(const struct job *job)
{
    const struct xc_coll_args *a = job->args;
    bool                       v = (a->coll == XC_GATHERV);
    bool                       is_root = (job->rank == a->root);
    size_t                     own = 0;

    if (is_root) {
        own = v ? a->rdispls[a->root] : (size_t)a->root * a->count;
    }
    bool         in_place = is_root && (at(a->recvbuff, own, job) == (const char *)a->sendbuff);
    xcclResult_t rc = in_place ? xcclSuccess : send_block(job, 0, a->count, a->root);

    for (int r = 0; is_root && (r < job->nranks) && !failed(rc); r++) {
        if (!in_place || (r != job->rank)) {
            rc = recv_block(job, v ? a->rdispls[r] : (size_t)r * a->count,
                            v ? a->recvcounts[r] : a->count, r);
        }
    }
    return rc;
}

static xcclResult_t scatter(const struct job *job)
{
    const struct xc_coll_args *a = job->args;
    bool                       v = (a->coll == XC_SCATTERV);
    bool                       is_root = (job->rank == a->root);
    size_t                     own = 0;

    if (is_root) {
        own = v ? a->sdispls[a->root] : (size_t)a->root * a->count;
    }
    bool         in_place = is_root && (at(a->sendbuff, own, job) == (const char *)a->recvbuff);
    xcclResult_t rc = in_place ? xcclSuccess : recv_block(job, 0, a->count, a->root);

    for (int r = 0; is_root && (r < job->nranks) && !failed(rc); r++) {
        if (!in_place || (r != job->rank)) {
            rc = send_block(job, v ? a->sdispls[r] : (size_t)r * a->count,
                            v ? a->sendcounts[r] : a->count, r);
        }
    }
    return rc;
}

/* Blocks of one size, one after another, on all ranks alike: a plain allgather. */
static bool is_plain_allgather(const struct job *job)
{
    const struct xc_coll_args *a = job->args;

    if (a->rdispls != NULL) {
        return false; /* displacements may differ by rank, and then so would the answer */
    }
    for (int r = 1; r < job->nranks; r++) {
        if (a->recvcounts[r] != a->recvcounts[0]) {
            return false;
        }
    }
    return true;
}

/*
 * A broadcast from each rank, in one group. A block then crosses each link of the ring once, where
 * sends would carry it to every rank of another node one by one; and it is the pattern that NCCL
 * from 2.29.2 (RCCL on request) fuses into one kernel of its own.
 */
static xcclResult_t allgatherv(const struct job *job)
{
    const struct xc_coll_args *a = job->args;
    struct xc_coll_args part = {.coll = XC_BROADCAST, .datatype = a->datatype, .stream = a->stream};
    xcclResult_t        rc = xcclSuccess;
    size_t              packed = 0;

    for (int r = 0; (r < job->nranks) && !failed(rc); r++) {
        size_t displ = (a->rdispls != NULL) ? a->rdispls[r] : packed;
        packed += a->recvcounts[r];
        if (a->recvcounts[r] == 0) {
            continue;
        }
        part.recvbuff = (char *)a->recvbuff + displ * job->size;
        part.sendbuff = (r == job->rank) ? a->sendbuff : part.recvbuff;
        part.count = a->recvcounts[r];
        part.root = r;
        rc = job->ops->collective(&part, job->comm, job->nranks, job->rank);
    }
    return rc;
}

static xcclResult_t (*const issue[XC_NUM_COLLS])(const struct job *job) = {
    [XC_ALLGATHERV] = allgatherv, [XC_ALLTOALL] = exchange, [XC_ALLTOALLV] = exchange,
    [XC_GATHER] = gather,         [XC_GATHERV] = gather,    [XC_SCATTER] = scatter,
    [XC_SCATTERV] = scatter,
};

bool xc_composed_can(enum xc_coll coll)
{
    return issue[coll] != NULL;
}

bool xc_composed_forced(enum xc_coll coll)
{
    return xc_composed_can(coll) && (xc_params()->ccl_native == XC_CCL_NATIVE_OFF);
}

xcclResult_t xc_composed_run(const struct xc_backend_ops *ops, const struct xc_coll_args *args,
                             void *comm, int nranks, int rank)
{
    struct job job = {ops, args, comm, nranks, rank, xc_type_size(args->datatype)};

    if ((args->coll == XC_ALLGATHERV) && is_plain_allgather(&job)) {
        struct xc_coll_args plain = *args;
        plain.coll = XC_ALLGATHER;
        plain.count = args->recvcounts[0];
        if (plain.count == 0) {
            return xcclSuccess;
        }
        return ops->collective(&plain, comm, nranks, rank);
    }
    xcclResult_t rc = ops->group_start();
    if (rc != xcclSuccess) {
        return rc;
    }
    rc = issue[args->coll](&job);
    /* Also after a failure: the group must not stay open. */
    xcclResult_t end = ops->group_end();
    return failed(rc) ? rc : end;
}
