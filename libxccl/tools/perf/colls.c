/* SPDX-License-Identifier: BSD-3-Clause */
/* The collectives: names, what their bytes mean, nccl-tests' bandwidth factors, and the calls. */
#include "perf.h"

struct coll {
    const char *name;
    const char *bytes;
    bool        reduces, rooted;
    bool        per_rank; /* bytes are one rank's part: all ranks together move nranks times that */
    double      bus;      /* bus per algorithm bandwidth in units of (n - 1) / n; 0: equal */
};

static const struct coll colls[PERF_NUM_COLLS] = {
    [PERF_ALLREDUCE] = {"allreduce", "count * size", true, false, false, 2},
    [PERF_BCAST] = {"bcast", "count * size", false, true, false, 0},
    [PERF_REDUCE] = {"reduce", "count * size", true, true, false, 0},
    [PERF_REDUCE_SCATTER] = {"reduce_scatter", "received per rank", true, false, true, 1},
    [PERF_REDUCE_SCATTER_BLOCK] = {"reduce_scatter_block", "received per rank", true, false, true,
                                   1},
    [PERF_ALLGATHER] = {"allgather", "sent per rank", false, false, true, 1},
    [PERF_ALLGATHERV] = {"allgatherv", "sent per rank, average", false, false, true, 1},
    [PERF_ALLTOALL] = {"alltoall", "per pair of ranks", false, false, true, 1},
    [PERF_ALLTOALLV] = {"alltoallv", "per pair of ranks, average", false, false, true, 1},
    [PERF_GATHER] = {"gather", "sent per rank", false, true, true, 1},
    [PERF_GATHERV] = {"gatherv", "sent per rank, average", false, true, true, 1},
    [PERF_SCATTER] = {"scatter", "received per rank", false, true, true, 1},
    [PERF_SCATTERV] = {"scatterv", "received per rank, average", false, true, true, 1},
};

const char *perf_coll_name(enum perf_coll coll)
{
    return colls[coll].name;
}

const char *perf_coll_bytes(enum perf_coll coll)
{
    return colls[coll].bytes;
}

bool perf_coll_reduces(enum perf_coll coll)
{
    return colls[coll].reduces;
}

bool perf_coll_rooted(enum perf_coll coll)
{
    return colls[coll].rooted;
}

double perf_coll_volume(enum perf_coll coll, int nranks)
{
    return colls[coll].per_rank ? nranks : 1;
}

double perf_coll_bus(enum perf_coll coll, int nranks)
{
    return (colls[coll].bus == 0) ? 1 : colls[coll].bus * (nranks - 1) / nranks;
}

static int call_reduction(const struct perf_run *run, const struct perf_case *pc)
{
    bool        at_root = run->rank == run->opt.root;
    const void *send = pc->in_place ? MPI_IN_PLACE : pc->sendbuf;
    int         count = (int)pc->count;

    switch (pc->coll) {
    case PERF_ALLREDUCE:
        return MPI_Allreduce(send, pc->recvbuf, count, run->type->mpi, run->op->mpi,
                             MPI_COMM_WORLD);
    case PERF_REDUCE:
        return MPI_Reduce(at_root ? send : pc->sendbuf, pc->recvbuf, count, run->type->mpi,
                          run->op->mpi, run->opt.root, MPI_COMM_WORLD);
    case PERF_REDUCE_SCATTER:
        return MPI_Reduce_scatter(send, pc->recvbuf, pc->recvcounts, run->type->mpi, run->op->mpi,
                                  MPI_COMM_WORLD);
    default:
        return MPI_Reduce_scatter_block(send, pc->recvbuf, count, run->type->mpi, run->op->mpi,
                                        MPI_COMM_WORLD);
    }
}

static int call_rooted(const struct perf_run *run, const struct perf_case *pc)
{
    MPI_Datatype type = run->type->mpi;
    int          root = run->opt.root, count = (int)pc->count;
    bool         swap = pc->in_place && (run->rank == root);
    const void  *send = swap ? MPI_IN_PLACE : pc->sendbuf;
    void        *recv = swap ? MPI_IN_PLACE : pc->recvbuf;

    switch (pc->coll) {
    case PERF_BCAST:
        return MPI_Bcast(pc->recvbuf, count, type, root, MPI_COMM_WORLD);
    case PERF_GATHER:
        return MPI_Gather(send, count, type, pc->recvbuf, count, type, root, MPI_COMM_WORLD);
    case PERF_GATHERV:
        return MPI_Gatherv(send, pc->sendcounts[0], type, pc->recvbuf, pc->recvcounts, pc->rdispls,
                           type, root, MPI_COMM_WORLD);
    case PERF_SCATTER:
        return MPI_Scatter(pc->sendbuf, count, type, recv, count, type, root, MPI_COMM_WORLD);
    default:
        return MPI_Scatterv(pc->sendbuf, pc->sendcounts, pc->sdispls, type, recv, pc->recvcounts[0],
                            type, root, MPI_COMM_WORLD);
    }
}

static int call_exchange(const struct perf_run *run, const struct perf_case *pc)
{
    MPI_Datatype type = run->type->mpi;
    const void  *send = pc->in_place ? MPI_IN_PLACE : pc->sendbuf;
    int          count = (int)pc->count;

    switch (pc->coll) {
    case PERF_ALLGATHER:
        return MPI_Allgather(send, count, type, pc->recvbuf, count, type, MPI_COMM_WORLD);
    case PERF_ALLGATHERV:
        return MPI_Allgatherv(send, pc->sendcounts[0], type, pc->recvbuf, pc->recvcounts,
                              pc->rdispls, type, MPI_COMM_WORLD);
    case PERF_ALLTOALL:
        return MPI_Alltoall(send, count, type, pc->recvbuf, count, type, MPI_COMM_WORLD);
    default:
        return MPI_Alltoallv(send, pc->sendcounts, pc->sdispls, type, pc->recvbuf, pc->recvcounts,
                             pc->rdispls, type, MPI_COMM_WORLD);
    }
}

int perf_coll_call(const struct perf_run *run, const struct perf_case *pc)
{
    if (colls[pc->coll].reduces) {
        return call_reduction(run, pc);
    }
    return colls[pc->coll].rooted ? call_rooted(run, pc) : call_exchange(run, pc);
}
