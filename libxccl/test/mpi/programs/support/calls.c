/* SPDX-License-Identifier: BSD-3-Clause */
#include "calls.h"

#include "reference.h"

#define REAL(name) ((__typeof__(&PMPI_##name))mt_reference("PMPI_" #name))
#define CALL(name, ...) (reference ? REAL(name)(__VA_ARGS__) : MPI_##name(__VA_ARGS__))

struct ints {
    int sendcounts[MT_MAX_RANKS];
    int senddispls[MT_MAX_RANKS];
    int recvcounts[MT_MAX_RANKS];
    int recvdispls[MT_MAX_RANKS];
};

static struct ints to_ints(const struct mt_args *a)
{
    struct ints i;

    for (int rank = 0; rank < MT_MAX_RANKS; rank++) {
        i.sendcounts[rank] = (int)a->sendcounts[rank];
        i.senddispls[rank] = (int)a->senddispls[rank];
        i.recvcounts[rank] = (int)a->recvcounts[rank];
        i.recvdispls[rank] = (int)a->recvdispls[rank];
    }
    return i;
}

static int call_int(enum mt_coll coll, bool reference, const struct mt_args *a)
{
    struct ints i = to_ints(a);
    int         sent = (int)a->sendcount;
    int         received = (int)a->recvcount;

    switch (coll) {
    case MT_ALLREDUCE:
        return CALL(Allreduce, a->send, a->recv, received, a->recvtype, a->op, a->comm);
    case MT_BCAST:
        return CALL(Bcast, a->recv, received, a->recvtype, a->root, a->comm);
    case MT_REDUCE:
        return CALL(Reduce, a->send, a->recv, received, a->recvtype, a->op, a->root, a->comm);
    case MT_REDUCE_SCATTER:
        return CALL(Reduce_scatter, a->send, a->recv, i.recvcounts, a->recvtype, a->op, a->comm);
    case MT_REDUCE_SCATTER_BLOCK:
        return CALL(Reduce_scatter_block, a->send, a->recv, received, a->recvtype, a->op, a->comm);
    case MT_ALLGATHER:
        return CALL(Allgather, a->send, sent, a->sendtype, a->recv, received, a->recvtype, a->comm);
    case MT_ALLGATHERV:
        return CALL(Allgatherv, a->send, sent, a->sendtype, a->recv, i.recvcounts, i.recvdispls,
                    a->recvtype, a->comm);
    case MT_ALLTOALL:
        return CALL(Alltoall, a->send, sent, a->sendtype, a->recv, received, a->recvtype, a->comm);
    case MT_ALLTOALLV:
        return CALL(Alltoallv, a->send, i.sendcounts, i.senddispls, a->sendtype, a->recv,
                    i.recvcounts, i.recvdispls, a->recvtype, a->comm);
    case MT_GATHER:
        return CALL(Gather, a->send, sent, a->sendtype, a->recv, received, a->recvtype, a->root,
                    a->comm);
    case MT_GATHERV:
        return CALL(Gatherv, a->send, sent, a->sendtype, a->recv, i.recvcounts, i.recvdispls,
                    a->recvtype, a->root, a->comm);
    case MT_SCATTER:
        return CALL(Scatter, a->send, sent, a->sendtype, a->recv, received, a->recvtype, a->root,
                    a->comm);
    case MT_SCATTERV:
        return CALL(Scatterv, a->send, i.sendcounts, i.senddispls, a->sendtype, a->recv, received,
                    a->recvtype, a->root, a->comm);
    default:
        return MPI_ERR_OTHER;
    }
}

#if MPI_VERSION >= 4
struct aints {
    MPI_Aint senddispls[MT_MAX_RANKS];
    MPI_Aint recvdispls[MT_MAX_RANKS];
};

static struct aints to_aints(const struct mt_args *a)
{
    struct aints d;

    for (int rank = 0; rank < MT_MAX_RANKS; rank++) {
        d.senddispls[rank] = (MPI_Aint)a->senddispls[rank];
        d.recvdispls[rank] = (MPI_Aint)a->recvdispls[rank];
    }
    return d;
}

static int call_large(enum mt_coll coll, bool reference, const struct mt_args *a)
{
    struct aints d = to_aints(a);

    switch (coll) {
    case MT_ALLREDUCE:
        return CALL(Allreduce_c, a->send, a->recv, a->recvcount, a->recvtype, a->op, a->comm);
    case MT_BCAST:
        return CALL(Bcast_c, a->recv, a->recvcount, a->recvtype, a->root, a->comm);
    case MT_REDUCE:
        return CALL(Reduce_c, a->send, a->recv, a->recvcount, a->recvtype, a->op, a->root, a->comm);
    case MT_REDUCE_SCATTER:
        return CALL(Reduce_scatter_c, a->send, a->recv, a->recvcounts, a->recvtype, a->op, a->comm);
    case MT_REDUCE_SCATTER_BLOCK:
        return CALL(Reduce_scatter_block_c, a->send, a->recv, a->recvcount, a->recvtype, a->op,
                    a->comm);
    case MT_ALLGATHER:
        return CALL(Allgather_c, a->send, a->sendcount, a->sendtype, a->recv, a->recvcount,
                    a->recvtype, a->comm);
    case MT_ALLGATHERV:
        return CALL(Allgatherv_c, a->send, a->sendcount, a->sendtype, a->recv, a->recvcounts,
                    d.recvdispls, a->recvtype, a->comm);
    case MT_ALLTOALL:
        return CALL(Alltoall_c, a->send, a->sendcount, a->sendtype, a->recv, a->recvcount,
                    a->recvtype, a->comm);
    case MT_ALLTOALLV:
        return CALL(Alltoallv_c, a->send, a->sendcounts, d.senddispls, a->sendtype, a->recv,
                    a->recvcounts, d.recvdispls, a->recvtype, a->comm);
    case MT_GATHER:
        return CALL(Gather_c, a->send, a->sendcount, a->sendtype, a->recv, a->recvcount,
                    a->recvtype, a->root, a->comm);
    case MT_GATHERV:
        return CALL(Gatherv_c, a->send, a->sendcount, a->sendtype, a->recv, a->recvcounts,
                    d.recvdispls, a->recvtype, a->root, a->comm);
    case MT_SCATTER:
        return CALL(Scatter_c, a->send, a->sendcount, a->sendtype, a->recv, a->recvcount,
                    a->recvtype, a->root, a->comm);
    case MT_SCATTERV:
        return CALL(Scatterv_c, a->send, a->sendcounts, d.senddispls, a->sendtype, a->recv,
                    a->recvcount, a->recvtype, a->root, a->comm);
    default:
        return MPI_ERR_OTHER;
    }
}
#endif

bool mt_has_large(void)
{
    return MPI_VERSION >= 4;
}

int mt_call(enum mt_coll coll, bool reference, bool large, const struct mt_args *a)
{
#if MPI_VERSION >= 4
    if (large) {
        return call_large(coll, reference, a);
    }
#endif
    (void)large;
    return call_int(coll, reference, a);
}
