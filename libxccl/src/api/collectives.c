/* SPDX-License-Identifier: BSD-3-Clause */
/* The collectives, send and recv: gather the arguments, check them, hand them to the backend. */
#include "api/check.h"
#include "api/comm.h"
#include "api/group.h"
#include "backends/backend.h"

/* Calls with one count on all ranks have nothing to do when it is 0. */
static bool is_empty(const struct xc_coll_args *args)
{
    return (args->count == 0) && (args->sendcounts == NULL) && (args->recvcounts == NULL) &&
           (args->coll != XC_GATHERV) && (args->coll != XC_SCATTERV);
}

static xcclResult_t call(const struct xc_coll_args *args, xcclComm_t comm)
{
    xcclResult_t rc = xcclSuccess;

    if (!xc_comm_is_usual(comm)) {
        rc = xc_comm_check_slowly(comm, xc_call_name(args->coll));
    }
    if (rc == xcclSuccess) {
        rc = xc_check_args(comm, args);
    }
    if ((rc == xcclSuccess) && !is_empty(args)) {
        rc = comm->ops->collective(args, comm->vendor,
                                   atomic_load_explicit(&comm->nranks, memory_order_relaxed),
                                   comm->rank);
    }
    return xc_group_note(rc, comm, args->stream);
}

xcclResult_t xcclAllReduce(const void *sendbuff, void *recvbuff, size_t count,
                           xcclDataType_t datatype, xcclRedOp_t op, xcclComm_t comm,
                           xcclStream_t stream)
{
    struct xc_coll_args args = {.coll = XC_ALLREDUCE,
                                .sendbuff = sendbuff,
                                .recvbuff = recvbuff,
                                .count = count,
                                .datatype = datatype,
                                .op = op,
                                .stream = stream};
    return call(&args, comm);
}

xcclResult_t xcclBroadcast(const void *sendbuff, void *recvbuff, size_t count,
                           xcclDataType_t datatype, int root, xcclComm_t comm, xcclStream_t stream)
{
    struct xc_coll_args args = {.coll = XC_BROADCAST,
                                .sendbuff = sendbuff,
                                .recvbuff = recvbuff,
                                .count = count,
                                .datatype = datatype,
                                .root = root,
                                .stream = stream};
    return call(&args, comm);
}

xcclResult_t xcclBcast(void *buff, size_t count, xcclDataType_t datatype, int root, xcclComm_t comm,
                       xcclStream_t stream)
{
    return xcclBroadcast(buff, buff, count, datatype, root, comm, stream);
}

xcclResult_t xcclReduce(const void *sendbuff, void *recvbuff, size_t count, xcclDataType_t datatype,
                        xcclRedOp_t op, int root, xcclComm_t comm, xcclStream_t stream)
{
    struct xc_coll_args args = {.coll = XC_REDUCE,
                                .sendbuff = sendbuff,
                                .recvbuff = recvbuff,
                                .count = count,
                                .datatype = datatype,
                                .op = op,
                                .root = root,
                                .stream = stream};
    return call(&args, comm);
}

xcclResult_t xcclReduceScatter(const void *sendbuff, void *recvbuff, size_t recvcount,
                               xcclDataType_t datatype, xcclRedOp_t op, xcclComm_t comm,
                               xcclStream_t stream)
{
    struct xc_coll_args args = {.coll = XC_REDUCE_SCATTER,
                                .sendbuff = sendbuff,
                                .recvbuff = recvbuff,
                                .count = recvcount,
                                .datatype = datatype,
                                .op = op,
                                .stream = stream};
    return call(&args, comm);
}

xcclResult_t xcclAllGather(const void *sendbuff, void *recvbuff, size_t sendcount,
                           xcclDataType_t datatype, xcclComm_t comm, xcclStream_t stream)
{
    struct xc_coll_args args = {.coll = XC_ALLGATHER,
                                .sendbuff = sendbuff,
                                .recvbuff = recvbuff,
                                .count = sendcount,
                                .datatype = datatype,
                                .stream = stream};
    return call(&args, comm);
}

xcclResult_t xcclAllGatherv(const void *sendbuff, size_t sendcount, void *recvbuff,
                            const size_t recvcounts[], const size_t displs[],
                            xcclDataType_t datatype, xcclComm_t comm, xcclStream_t stream)
{
    struct xc_coll_args args = {.coll = XC_ALLGATHERV,
                                .sendbuff = sendbuff,
                                .recvbuff = recvbuff,
                                .count = sendcount,
                                .recvcounts = recvcounts,
                                .rdispls = displs,
                                .datatype = datatype,
                                .stream = stream};
    return call(&args, comm);
}

xcclResult_t xcclAlltoAll(const void *sendbuff, void *recvbuff, size_t count,
                          xcclDataType_t datatype, xcclComm_t comm, xcclStream_t stream)
{
    struct xc_coll_args args = {.coll = XC_ALLTOALL,
                                .sendbuff = sendbuff,
                                .recvbuff = recvbuff,
                                .count = count,
                                .datatype = datatype,
                                .stream = stream};
    return call(&args, comm);
}

xcclResult_t xcclAlltoAllv(const void *sendbuff, const size_t sendcounts[], const size_t sdispls[],
                           void *recvbuff, const size_t recvcounts[], const size_t rdispls[],
                           xcclDataType_t datatype, xcclComm_t comm, xcclStream_t stream)
{
    struct xc_coll_args args = {.coll = XC_ALLTOALLV,
                                .sendbuff = sendbuff,
                                .recvbuff = recvbuff,
                                .sendcounts = sendcounts,
                                .sdispls = sdispls,
                                .recvcounts = recvcounts,
                                .rdispls = rdispls,
                                .datatype = datatype,
                                .stream = stream};
    return call(&args, comm);
}

xcclResult_t xcclGather(const void *sendbuff, void *recvbuff, size_t count, xcclDataType_t datatype,
                        int root, xcclComm_t comm, xcclStream_t stream)
{
    struct xc_coll_args args = {.coll = XC_GATHER,
                                .sendbuff = sendbuff,
                                .recvbuff = recvbuff,
                                .count = count,
                                .datatype = datatype,
                                .root = root,
                                .stream = stream};
    return call(&args, comm);
}

xcclResult_t xcclGatherv(const void *sendbuff, size_t sendcount, void *recvbuff,
                         const size_t recvcounts[], const size_t displs[], xcclDataType_t datatype,
                         int root, xcclComm_t comm, xcclStream_t stream)
{
    struct xc_coll_args args = {.coll = XC_GATHERV,
                                .sendbuff = sendbuff,
                                .recvbuff = recvbuff,
                                .count = sendcount,
                                .recvcounts = recvcounts,
                                .rdispls = displs,
                                .datatype = datatype,
                                .root = root,
                                .stream = stream};
    return call(&args, comm);
}

xcclResult_t xcclScatter(const void *sendbuff, void *recvbuff, size_t count,
                         xcclDataType_t datatype, int root, xcclComm_t comm, xcclStream_t stream)
{
    struct xc_coll_args args = {.coll = XC_SCATTER,
                                .sendbuff = sendbuff,
                                .recvbuff = recvbuff,
                                .count = count,
                                .datatype = datatype,
                                .root = root,
                                .stream = stream};
    return call(&args, comm);
}

xcclResult_t xcclScatterv(const void *sendbuff, const size_t sendcounts[], const size_t displs[],
                          void *recvbuff, size_t recvcount, xcclDataType_t datatype, int root,
                          xcclComm_t comm, xcclStream_t stream)
{
    struct xc_coll_args args = {.coll = XC_SCATTERV,
                                .sendbuff = sendbuff,
                                .recvbuff = recvbuff,
                                .count = recvcount,
                                .sendcounts = sendcounts,
                                .sdispls = displs,
                                .datatype = datatype,
                                .root = root,
                                .stream = stream};
    return call(&args, comm);
}

xcclResult_t xcclSend(const void *sendbuff, size_t count, xcclDataType_t datatype, int peer,
                      xcclComm_t comm, xcclStream_t stream)
{
    struct xc_coll_args args = {.coll = XC_SEND,
                                .sendbuff = sendbuff,
                                .count = count,
                                .datatype = datatype,
                                .root = peer,
                                .stream = stream};
    return call(&args, comm);
}

xcclResult_t xcclRecv(void *recvbuff, size_t count, xcclDataType_t datatype, int peer,
                      xcclComm_t comm, xcclStream_t stream)
{
    struct xc_coll_args args = {.coll = XC_RECV,
                                .recvbuff = recvbuff,
                                .count = count,
                                .datatype = datatype,
                                .root = peer,
                                .stream = stream};
    return call(&args, comm);
}
