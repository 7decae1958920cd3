/* SPDX-License-Identifier: BSD-3-Clause */
/* Entry points of the reductions. Each asks first whether the call can go straight to MPI. */
#include "intercept/entry.h"

int xm_MPI_Allreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype type, MPI_Op op,
                     MPI_Comm comm)
{
    if (!xm_started() || xm_call_is_plain(sendbuf, recvbuf)) {
        return xm_pmpi.Allreduce(sendbuf, recvbuf, count, type, op, comm);
    }
    struct xm_call call = {.coll = XM_ALLREDUCE,
                           .sendbuf = sendbuf,
                           .recvbuf = recvbuf,
                           .sendcount = count,
                           .sendtype = type,
                           .op = op,
                           .comm = comm};
    return xm_serve(&call);
}

int xm_MPI_Reduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype type, MPI_Op op,
                  int root, MPI_Comm comm)
{
    if (!xm_started() || xm_call_is_plain(sendbuf, recvbuf)) {
        return xm_pmpi.Reduce(sendbuf, recvbuf, count, type, op, root, comm);
    }
    struct xm_call call = {.coll = XM_REDUCE,
                           .sendbuf = sendbuf,
                           .recvbuf = recvbuf,
                           .sendcount = count,
                           .sendtype = type,
                           .op = op,
                           .root = root,
                           .comm = comm};
    return xm_serve(&call);
}

int xm_MPI_Reduce_scatter(const void *sendbuf, void *recvbuf, const int counts[], MPI_Datatype type,
                          MPI_Op op, MPI_Comm comm)
{
    if (!xm_started() || xm_call_is_plain(sendbuf, recvbuf)) {
        return xm_pmpi.Reduce_scatter(sendbuf, recvbuf, counts, type, op, comm);
    }
    struct xm_call call = {.coll = XM_REDUCE_SCATTER,
                           .sendbuf = sendbuf,
                           .recvbuf = recvbuf,
                           .recvcounts = counts,
                           .sendtype = type,
                           .op = op,
                           .comm = comm};
    return xm_serve(&call);
}

int xm_MPI_Reduce_scatter_block(const void *sendbuf, void *recvbuf, int count, MPI_Datatype type,
                                MPI_Op op, MPI_Comm comm)
{
    if (!xm_started() || xm_call_is_plain(sendbuf, recvbuf)) {
        return xm_pmpi.Reduce_scatter_block(sendbuf, recvbuf, count, type, op, comm);
    }
    struct xm_call call = {.coll = XM_REDUCE_SCATTER_BLOCK,
                           .sendbuf = sendbuf,
                           .recvbuf = recvbuf,
                           .recvcount = count,
                           .sendtype = type,
                           .op = op,
                           .comm = comm};
    return xm_serve(&call);
}

int xm_MPI_Allreduce_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype type,
                       MPI_Op op, MPI_Comm comm)
{
    struct xm_call call = {.coll = XM_ALLREDUCE,
                           .large = true,
                           .sendbuf = sendbuf,
                           .recvbuf = recvbuf,
                           .sendcount = count,
                           .sendtype = type,
                           .op = op,
                           .comm = comm};
    return (!xm_started() || xm_call_is_plain(sendbuf, recvbuf)) ? xm_to_mpi(&call)
                                                                 : xm_serve(&call);
}

int xm_MPI_Reduce_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype type,
                    MPI_Op op, int root, MPI_Comm comm)
{
    struct xm_call call = {.coll = XM_REDUCE,
                           .large = true,
                           .sendbuf = sendbuf,
                           .recvbuf = recvbuf,
                           .sendcount = count,
                           .sendtype = type,
                           .op = op,
                           .root = root,
                           .comm = comm};
    return (!xm_started() || xm_call_is_plain(sendbuf, recvbuf)) ? xm_to_mpi(&call)
                                                                 : xm_serve(&call);
}

int xm_MPI_Reduce_scatter_c(const void *sendbuf, void *recvbuf, const MPI_Count counts[],
                            MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    struct xm_call call = {.coll = XM_REDUCE_SCATTER,
                           .large = true,
                           .sendbuf = sendbuf,
                           .recvbuf = recvbuf,
                           .recvcounts = counts,
                           .sendtype = type,
                           .op = op,
                           .comm = comm};
    return (!xm_started() || xm_call_is_plain(sendbuf, recvbuf)) ? xm_to_mpi(&call)
                                                                 : xm_serve(&call);
}

int xm_MPI_Reduce_scatter_block_c(const void *sendbuf, void *recvbuf, MPI_Count count,
                                  MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    struct xm_call call = {.coll = XM_REDUCE_SCATTER_BLOCK,
                           .large = true,
                           .sendbuf = sendbuf,
                           .recvbuf = recvbuf,
                           .recvcount = count,
                           .sendtype = type,
                           .op = op,
                           .comm = comm};
    return (!xm_started() || xm_call_is_plain(sendbuf, recvbuf)) ? xm_to_mpi(&call)
                                                                 : xm_serve(&call);
}
