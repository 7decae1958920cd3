/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls of the collectives. */
#include "measure/measure.h"

static int call_reduction(const struct perf_run *run, const struct perf_case *pc)
{
    bool        at_root = run->rank == run->opt.root;
    const void *send = pc->in_place ? MPI_IN_PLACE : pc->sendbuf;
    int         count = (int)pc->count;

    switch (pc->test) {
    case PERF_ALLREDUCE:
        return MPI_Allreduce(send, pc->recvbuf, count, run->type->mpi, run->op->mpi, run->comm);
    case PERF_REDUCE:
        return MPI_Reduce(at_root ? send : pc->sendbuf, pc->recvbuf, count, run->type->mpi,
                          run->op->mpi, run->opt.root, run->comm);
    case PERF_REDUCE_SCATTER:
        return MPI_Reduce_scatter(send, pc->recvbuf, pc->recvcounts, run->type->mpi, run->op->mpi,
                                  run->comm);
    case PERF_SCAN:
        return MPI_Scan(send, pc->recvbuf, count, run->type->mpi, run->op->mpi, run->comm);
    case PERF_EXSCAN:
        return MPI_Exscan(send, pc->recvbuf, count, run->type->mpi, run->op->mpi, run->comm);
    default:
        return MPI_Reduce_scatter_block(send, pc->recvbuf, count, run->type->mpi, run->op->mpi,
                                        run->comm);
    }
}

static int call_rooted(const struct perf_run *run, const struct perf_case *pc)
{
    MPI_Datatype type = run->type->mpi;
    int          root = run->opt.root, count = (int)pc->count;
    bool         swap = pc->in_place && (run->rank == root);
    const void  *send = swap ? MPI_IN_PLACE : pc->sendbuf;
    void        *recv = swap ? MPI_IN_PLACE : pc->recvbuf;

    switch (pc->test) {
    case PERF_BCAST:
        return MPI_Bcast(pc->recvbuf, count, type, root, run->comm);
    case PERF_GATHER:
        return MPI_Gather(send, count, type, pc->recvbuf, count, type, root, run->comm);
    case PERF_GATHERV:
        return MPI_Gatherv(send, pc->sendcounts[0], type, pc->recvbuf, pc->recvcounts, pc->rdispls,
                           type, root, run->comm);
    case PERF_SCATTER:
        return MPI_Scatter(pc->sendbuf, count, type, recv, count, type, root, run->comm);
    default:
        return MPI_Scatterv(pc->sendbuf, pc->sendcounts, pc->sdispls, type, recv, pc->recvcounts[0],
                            type, root, run->comm);
    }
}

static int call_exchange(const struct perf_run *run, const struct perf_case *pc)
{
    MPI_Datatype type = run->type->mpi;
    const void  *send = pc->in_place ? MPI_IN_PLACE : pc->sendbuf;
    int          count = (int)pc->count;

    switch (pc->test) {
    case PERF_ALLGATHER:
        return MPI_Allgather(send, count, type, pc->recvbuf, count, type, run->comm);
    case PERF_ALLGATHERV:
        return MPI_Allgatherv(send, pc->sendcounts[0], type, pc->recvbuf, pc->recvcounts,
                              pc->rdispls, type, run->comm);
    case PERF_ALLTOALL:
        return MPI_Alltoall(send, count, type, pc->recvbuf, count, type, run->comm);
    default:
        return MPI_Alltoallv(send, pc->sendcounts, pc->sdispls, type, pc->recvbuf, pc->recvcounts,
                             pc->rdispls, type, run->comm);
    }
}

int perf_coll_call(const struct perf_run *run, const struct perf_case *pc)
{
    if (perf_test_reduces(pc->test)) {
        return call_reduction(run, pc);
    }
    return perf_test_rooted(pc->test) ? call_rooted(run, pc) : call_exchange(run, pc);
}
