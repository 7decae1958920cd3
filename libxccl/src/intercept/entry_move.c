/* SPDX-License-Identifier: BSD-3-Clause */
/* Entry points of the collectives that move equal parts. */
#include "intercept/entry.h"

int xm_MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    if (!xm_started() || xm_call_is_plain(MPI_IN_PLACE, buffer)) {
        return xm_pmpi.Bcast(buffer, count, type, root, comm);
    }
    struct xm_call call = {.coll = XM_BCAST,
                           .recvbuf = buffer,
                           .recvcount = count,
                           .recvtype = type,
                           .root = root,
                           .comm = comm};
    return xm_serve(&call);
}

int xm_MPI_Allgather(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                     int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    if (!xm_started() || xm_call_is_plain(sendbuf, recvbuf)) {
        return xm_pmpi.Allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
    }
    struct xm_call call = {.coll = XM_ALLGATHER,
                           .sendbuf = sendbuf,
                           .sendcount = sendcount,
                           .sendtype = sendtype,
                           .recvbuf = recvbuf,
                           .recvcount = recvcount,
                           .recvtype = recvtype,
                           .comm = comm};
    return xm_serve(&call);
}

int xm_MPI_Alltoall(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                    int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    if (!xm_started() || xm_call_is_plain(sendbuf, recvbuf)) {
        return xm_pmpi.Alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
    }
    struct xm_call call = {.coll = XM_ALLTOALL,
                           .sendbuf = sendbuf,
                           .sendcount = sendcount,
                           .sendtype = sendtype,
                           .recvbuf = recvbuf,
                           .recvcount = recvcount,
                           .recvtype = recvtype,
                           .comm = comm};
    return xm_serve(&call);
}

int xm_MPI_Gather(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                  int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm)
{
    if (!xm_started() || xm_call_is_plain(sendbuf, recvbuf)) {
        return xm_pmpi.Gather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root,
                              comm);
    }
    struct xm_call call = {.coll = XM_GATHER,
                           .sendbuf = sendbuf,
                           .sendcount = sendcount,
                           .sendtype = sendtype,
                           .recvbuf = recvbuf,
                           .recvcount = recvcount,
                           .recvtype = recvtype,
                           .root = root,
                           .comm = comm};
    return xm_serve(&call);
}

int xm_MPI_Scatter(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                   int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm)
{
    if (!xm_started() || xm_call_is_plain(sendbuf, recvbuf)) {
        return xm_pmpi.Scatter(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root,
                               comm);
    }
    struct xm_call call = {.coll = XM_SCATTER,
                           .sendbuf = sendbuf,
                           .sendcount = sendcount,
                           .sendtype = sendtype,
                           .recvbuf = recvbuf,
                           .recvcount = recvcount,
                           .recvtype = recvtype,
                           .root = root,
                           .comm = comm};
    return xm_serve(&call);
}

int xm_MPI_Bcast_c(void *buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm)
{
    struct xm_call call = {.coll = XM_BCAST,
                           .large = true,
                           .recvbuf = buffer,
                           .recvcount = count,
                           .recvtype = type,
                           .root = root,
                           .comm = comm};
    return (!xm_started() || xm_call_is_plain(MPI_IN_PLACE, buffer)) ? xm_to_mpi(&call)
                                                                     : xm_serve(&call);
}

int xm_MPI_Allgather_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                       void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    struct xm_call call = {.coll = XM_ALLGATHER,
                           .large = true,
                           .sendbuf = sendbuf,
                           .sendcount = sendcount,
                           .sendtype = sendtype,
                           .recvbuf = recvbuf,
                           .recvcount = recvcount,
                           .recvtype = recvtype,
                           .comm = comm};
    return (!xm_started() || xm_call_is_plain(sendbuf, recvbuf)) ? xm_to_mpi(&call)
                                                                 : xm_serve(&call);
}

int xm_MPI_Alltoall_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                      void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    struct xm_call call = {.coll = XM_ALLTOALL,
                           .large = true,
                           .sendbuf = sendbuf,
                           .sendcount = sendcount,
                           .sendtype = sendtype,
                           .recvbuf = recvbuf,
                           .recvcount = recvcount,
                           .recvtype = recvtype,
                           .comm = comm};
    return (!xm_started() || xm_call_is_plain(sendbuf, recvbuf)) ? xm_to_mpi(&call)
                                                                 : xm_serve(&call);
}

int xm_MPI_Gather_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                    MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm)
{
    struct xm_call call = {.coll = XM_GATHER,
                           .large = true,
                           .sendbuf = sendbuf,
                           .sendcount = sendcount,
                           .sendtype = sendtype,
                           .recvbuf = recvbuf,
                           .recvcount = recvcount,
                           .recvtype = recvtype,
                           .root = root,
                           .comm = comm};
    return (!xm_started() || xm_call_is_plain(sendbuf, recvbuf)) ? xm_to_mpi(&call)
                                                                 : xm_serve(&call);
}

int xm_MPI_Scatter_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                     MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm)
{
    struct xm_call call = {.coll = XM_SCATTER,
                           .large = true,
                           .sendbuf = sendbuf,
                           .sendcount = sendcount,
                           .sendtype = sendtype,
                           .recvbuf = recvbuf,
                           .recvcount = recvcount,
                           .recvtype = recvtype,
                           .root = root,
                           .comm = comm};
    return (!xm_started() || xm_call_is_plain(sendbuf, recvbuf)) ? xm_to_mpi(&call)
                                                                 : xm_serve(&call);
}
