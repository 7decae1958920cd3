/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Entry points of the collectives that move parts of their own size. In all but Allgatherv a rank
 * does not know what the others pass, so none of them may go straight to MPI alone.
 */
#include "intercept/entry.h"

int xm_MPI_Allgatherv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                      const int recvcounts[], const int rdispls[], MPI_Datatype recvtype,
                      MPI_Comm comm)
{
    if (!xm_started() || xm_call_is_plain(sendbuf, recvbuf)) {
        return xm_pmpi.Allgatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, rdispls,
                                  recvtype, comm);
    }
    struct xm_call call = {.coll = XM_ALLGATHERV,
                           .sendbuf = sendbuf,
                           .sendcount = sendcount,
                           .sendtype = sendtype,
                           .recvbuf = recvbuf,
                           .recvcounts = recvcounts,
                           .rdispls = rdispls,
                           .recvtype = recvtype,
                           .comm = comm};
    return xm_serve(&call);
}

int xm_MPI_Alltoallv(const void *sendbuf, const int sendcounts[], const int sdispls[],
                     MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
                     const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm)
{
    if (!xm_started()) {
        return xm_pmpi.Alltoallv(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts,
                                 rdispls, recvtype, comm);
    }
    struct xm_call call = {.coll = XM_ALLTOALLV,
                           .sendbuf = sendbuf,
                           .sendcounts = sendcounts,
                           .sdispls = sdispls,
                           .sendtype = sendtype,
                           .recvbuf = recvbuf,
                           .recvcounts = recvcounts,
                           .rdispls = rdispls,
                           .recvtype = recvtype,
                           .comm = comm};
    return xm_serve(&call);
}

int xm_MPI_Gatherv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                   const int recvcounts[], const int rdispls[], MPI_Datatype recvtype, int root,
                   MPI_Comm comm)
{
    if (!xm_started()) {
        return xm_pmpi.Gatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, rdispls, recvtype,
                               root, comm);
    }
    struct xm_call call = {.coll = XM_GATHERV,
                           .sendbuf = sendbuf,
                           .sendcount = sendcount,
                           .sendtype = sendtype,
                           .recvbuf = recvbuf,
                           .recvcounts = recvcounts,
                           .rdispls = rdispls,
                           .recvtype = recvtype,
                           .root = root,
                           .comm = comm};
    return xm_serve(&call);
}

int xm_MPI_Scatterv(const void *sendbuf, const int sendcounts[], const int sdispls[],
                    MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype,
                    int root, MPI_Comm comm)
{
    if (!xm_started()) {
        return xm_pmpi.Scatterv(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcount,
                                recvtype, root, comm);
    }
    struct xm_call call = {.coll = XM_SCATTERV,
                           .sendbuf = sendbuf,
                           .sendcounts = sendcounts,
                           .sdispls = sdispls,
                           .sendtype = sendtype,
                           .recvbuf = recvbuf,
                           .recvcount = recvcount,
                           .recvtype = recvtype,
                           .root = root,
                           .comm = comm};
    return xm_serve(&call);
}

int xm_MPI_Allgatherv_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                        void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[],
                        MPI_Datatype recvtype, MPI_Comm comm)
{
    struct xm_call call = {.coll = XM_ALLGATHERV,
                           .large = true,
                           .sendbuf = sendbuf,
                           .sendcount = sendcount,
                           .sendtype = sendtype,
                           .recvbuf = recvbuf,
                           .recvcounts = recvcounts,
                           .rdispls = rdispls,
                           .recvtype = recvtype,
                           .comm = comm};
    return (!xm_started() || xm_call_is_plain(sendbuf, recvbuf)) ? xm_to_mpi(&call)
                                                                 : xm_serve(&call);
}

int xm_MPI_Alltoallv_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
                       MPI_Datatype sendtype, void *recvbuf, const MPI_Count recvcounts[],
                       const MPI_Aint rdispls[], MPI_Datatype recvtype, MPI_Comm comm)
{
    struct xm_call call = {.coll = XM_ALLTOALLV,
                           .large = true,
                           .sendbuf = sendbuf,
                           .sendcounts = sendcounts,
                           .sdispls = sdispls,
                           .sendtype = sendtype,
                           .recvbuf = recvbuf,
                           .recvcounts = recvcounts,
                           .rdispls = rdispls,
                           .recvtype = recvtype,
                           .comm = comm};
    return (!xm_started()) ? xm_to_mpi(&call) : xm_serve(&call);
}

int xm_MPI_Gatherv_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                     const MPI_Count recvcounts[], const MPI_Aint rdispls[], MPI_Datatype recvtype,
                     int root, MPI_Comm comm)
{
    struct xm_call call = {.coll = XM_GATHERV,
                           .large = true,
                           .sendbuf = sendbuf,
                           .sendcount = sendcount,
                           .sendtype = sendtype,
                           .recvbuf = recvbuf,
                           .recvcounts = recvcounts,
                           .rdispls = rdispls,
                           .recvtype = recvtype,
                           .root = root,
                           .comm = comm};
    return (!xm_started()) ? xm_to_mpi(&call) : xm_serve(&call);
}

int xm_MPI_Scatterv_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
                      MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
                      MPI_Datatype recvtype, int root, MPI_Comm comm)
{
    struct xm_call call = {.coll = XM_SCATTERV,
                           .large = true,
                           .sendbuf = sendbuf,
                           .sendcounts = sendcounts,
                           .sdispls = sdispls,
                           .sendtype = sendtype,
                           .recvbuf = recvbuf,
                           .recvcount = recvcount,
                           .recvtype = recvtype,
                           .root = root,
                           .comm = comm};
    return (!xm_started()) ? xm_to_mpi(&call) : xm_serve(&call);
}
