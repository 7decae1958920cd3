/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls of the collectives. */
#include "measure/measure.h"

/* One of two functions with the same arguments but for the request, which is NULL or not. */
#define CALL(blocking, nonblocking, ...)                                                           \
    ((request == NULL) ? MPI_##blocking(__VA_ARGS__, run->comm)                                    \
                       : MPI_##nonblocking(__VA_ARGS__, run->comm, request))

static int call_reduction(const struct perf_run *run, const struct perf_case *pc,
                          MPI_Request *request)
{
    bool        at_root = run->rank == run->opt.root;
    const void *send = pc->in_place ? MPI_IN_PLACE : pc->sendbuf;
    int         count = (int)pc->count;

    switch (pc->test) {
    case PERF_ALLREDUCE:
        return CALL(Allreduce, Iallreduce, send, pc->recvbuf, count, run->type->mpi, run->op->mpi);
    case PERF_REDUCE:
        return CALL(Reduce, Ireduce, at_root ? send : pc->sendbuf, pc->recvbuf, count,
                    run->type->mpi, run->op->mpi, run->opt.root);
    case PERF_REDUCE_SCATTER:
        return CALL(Reduce_scatter, Ireduce_scatter, send, pc->recvbuf, pc->recvcounts,
                    run->type->mpi, run->op->mpi);
    case PERF_SCAN:
        return CALL(Scan, Iscan, send, pc->recvbuf, count, run->type->mpi, run->op->mpi);
    case PERF_EXSCAN:
        return CALL(Exscan, Iexscan, send, pc->recvbuf, count, run->type->mpi, run->op->mpi);
    default:
        return CALL(Reduce_scatter_block, Ireduce_scatter_block, send, pc->recvbuf, count,
                    run->type->mpi, run->op->mpi);
    }
}

static int call_rooted(const struct perf_run *run, const struct perf_case *pc, MPI_Request *request)
{
    MPI_Datatype type = run->type->mpi;
    int          root = run->opt.root, count = (int)pc->count;
    bool         swap = pc->in_place && (run->rank == root);
    const void  *send = swap ? MPI_IN_PLACE : pc->sendbuf;
    void        *recv = swap ? MPI_IN_PLACE : pc->recvbuf;

    switch (pc->test) {
    case PERF_BCAST:
        return CALL(Bcast, Ibcast, pc->recvbuf, count, type, root);
    case PERF_GATHER:
        return CALL(Gather, Igather, send, count, type, pc->recvbuf, count, type, root);
    case PERF_GATHERV:
        return CALL(Gatherv, Igatherv, send, pc->sendcounts[0], type, pc->recvbuf, pc->recvcounts,
                    pc->rdispls, type, root);
    case PERF_SCATTER:
        return CALL(Scatter, Iscatter, pc->sendbuf, count, type, recv, count, type, root);
    default:
        return CALL(Scatterv, Iscatterv, pc->sendbuf, pc->sendcounts, pc->sdispls, type, recv,
                    pc->recvcounts[0], type, root);
    }
}

static int call_exchange(const struct perf_run *run, const struct perf_case *pc,
                         MPI_Request *request)
{
    MPI_Datatype type = run->type->mpi;
    const void  *send = pc->in_place ? MPI_IN_PLACE : pc->sendbuf;
    int          count = (int)pc->count;

    switch (pc->test) {
    case PERF_ALLGATHER:
        return CALL(Allgather, Iallgather, send, count, type, pc->recvbuf, count, type);
    case PERF_ALLGATHERV:
        return CALL(Allgatherv, Iallgatherv, send, pc->sendcounts[0], type, pc->recvbuf,
                    pc->recvcounts, pc->rdispls, type);
    case PERF_ALLTOALL:
        return CALL(Alltoall, Ialltoall, send, count, type, pc->recvbuf, count, type);
    default:
        return CALL(Alltoallv, Ialltoallv, send, pc->sendcounts, pc->sdispls, type, pc->recvbuf,
                    pc->recvcounts, pc->rdispls, type);
    }
}

static int call(const struct perf_run *run, const struct perf_case *pc, MPI_Request *request)
{
    if (perf_test_reduces(pc->test)) {
        return call_reduction(run, pc, request);
    }
    return perf_test_rooted(pc->test) ? call_rooted(run, pc, request)
                                      : call_exchange(run, pc, request);
}

int perf_coll_call_blocking(const struct perf_run *run, const struct perf_case *pc)
{
    return call(run, pc, NULL);
}

int perf_coll_call(const struct perf_run *run, const struct perf_case *pc)
{
    MPI_Request request;

    if (!run->opt.nonblocking) {
        return call(run, pc, NULL);
    }
    int code = call(run, pc, &request);
    if (code != MPI_SUCCESS) {
        return code;
    }
    perf_work(run->opt.work);
    return MPI_Wait(&request, MPI_STATUS_IGNORE);
}
