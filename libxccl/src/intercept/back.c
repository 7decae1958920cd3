/* SPDX-License-Identifier: BSD-3-Clause */
/* The way back to MPI: as the program called it, or staged through host memory. */
#include "base/log.h"
#include "intercept/call.h"
#include "intercept/complete.h"
#include "intercept/copy.h"

int xm_to_mpi(const struct xm_call *c)
{
    int n = (int)c->sendcount, m = (int)c->recvcount;

    if (c->large) {
        return xm_to_mpi_large(c);
    }
    switch (c->coll) {
    case XM_ALLREDUCE:
        return xm_pmpi.Allreduce(c->sendbuf, c->recvbuf, n, c->sendtype, c->op, c->comm);
    case XM_BCAST:
        return xm_pmpi.Bcast(c->recvbuf, m, c->recvtype, c->root, c->comm);
    case XM_REDUCE:
        return xm_pmpi.Reduce(c->sendbuf, c->recvbuf, n, c->sendtype, c->op, c->root, c->comm);
    case XM_REDUCE_SCATTER:
        return xm_pmpi.Reduce_scatter(c->sendbuf, c->recvbuf, c->recvcounts, c->sendtype, c->op,
                                      c->comm);
    case XM_REDUCE_SCATTER_BLOCK:
        return xm_pmpi.Reduce_scatter_block(c->sendbuf, c->recvbuf, m, c->sendtype, c->op, c->comm);
    case XM_ALLGATHER:
        return xm_pmpi.Allgather(c->sendbuf, n, c->sendtype, c->recvbuf, m, c->recvtype, c->comm);
    case XM_ALLGATHERV:
        return xm_pmpi.Allgatherv(c->sendbuf, n, c->sendtype, c->recvbuf, c->recvcounts, c->rdispls,
                                  c->recvtype, c->comm);
    case XM_ALLTOALL:
        return xm_pmpi.Alltoall(c->sendbuf, n, c->sendtype, c->recvbuf, m, c->recvtype, c->comm);
    case XM_ALLTOALLV:
        return xm_pmpi.Alltoallv(c->sendbuf, c->sendcounts, c->sdispls, c->sendtype, c->recvbuf,
                                 c->recvcounts, c->rdispls, c->recvtype, c->comm);
    case XM_GATHER:
        return xm_pmpi.Gather(c->sendbuf, n, c->sendtype, c->recvbuf, m, c->recvtype, c->root,
                              c->comm);
    case XM_GATHERV:
        return xm_pmpi.Gatherv(c->sendbuf, n, c->sendtype, c->recvbuf, c->recvcounts, c->rdispls,
                               c->recvtype, c->root, c->comm);
    case XM_SCATTER:
        return xm_pmpi.Scatter(c->sendbuf, n, c->sendtype, c->recvbuf, m, c->recvtype, c->root,
                               c->comm);
    case XM_SCATTERV:
        return xm_pmpi.Scatterv(c->sendbuf, c->sendcounts, c->sdispls, c->sendtype, c->recvbuf, m,
                                c->recvtype, c->root, c->comm);
    default:
        return MPI_ERR_OTHER;
    }
}

/* Replace a device side by host memory; the pointer for MPI goes to *buf_p. */
static xcclResult_t replace(const struct xm_copier *copier, const struct xm_side *side,
                            char **span_p, void **buf_p)
{
    void *span;

    xcclResult_t res =
        xm_scratch_take(copier->scratch, XM_POOL_HOST, (size_t)(side->high - side->low), &span);
    if (res == xcclSuccess) {
        res = xm_stage_in(copier, side, span);
    }
    if (res == xcclSuccess) {
        *span_p = span;
        *buf_p = (char *)span - side->low;
    }
    return res;
}

static bool on_device(const struct xm_side *side)
{
    return side->used && (side->mem.kind == XC_MEM_DEVICE);
}

static xcclResult_t staged(const struct xm_copier *copier, const struct xm_sides *sides,
                           int *mpi_res_p)
{
    struct xm_call call = *sides->call;
    char          *send_span = NULL, *recv_span = NULL;
    void          *buf;
    xcclResult_t   res = xcclSuccess;

    if (on_device(&sides->send)) {
        res = replace(copier, &sides->send, &send_span, &buf);
        if (call.coll == XM_BCAST) {
            call.recvbuf = buf; /* the root's only buffer */
        } else {
            call.sendbuf = buf;
        }
    }
    if ((res == xcclSuccess) && on_device(&sides->recv)) {
        res = replace(copier, &sides->recv, &recv_span, &buf);
        call.recvbuf = buf;
    }
    if (res == xcclSuccess) {
        res = xm_complete(copier->dev, copier->stream, NULL);
    }
    if (res != xcclSuccess) {
        return res;
    }
    *mpi_res_p = xm_to_mpi(&call);
    if ((*mpi_res_p == MPI_SUCCESS) && (recv_span != NULL)) {
        res = xm_stage_out(copier, &sides->recv, recv_span);
        if (res == xcclSuccess) {
            res = xm_complete(copier->dev, copier->stream, NULL);
        }
    }
    return res;
}

int xm_to_mpi_staged(const struct xm_call *call, struct xm_sides *sides,
                     const struct xc_device_ops *dev)
{
    struct xm_scratch scratch;
    struct xm_copier  copier = {call, dev, NULL, &scratch};
    void             *saved;
    int device = on_device(&sides->send) ? sides->send.mem.device : sides->recv.mem.device;
    int mpi_res = MPI_SUCCESS;

    xcclResult_t res = dev->enter(device, &saved);
    if (res != xcclSuccess) {
        return xm_raise(call->comm, res, xc_last_detail());
    }
    xm_scratch_begin(&scratch, dev, device);
    res = xm_copy_stream(dev, device, &copier.stream);
    if (res == xcclSuccess) {
        res = dev->stream_after_default(copier.stream);
    }
    if (res == xcclSuccess) {
        res = staged(&copier, sides, &mpi_res);
    }
    if (res == xcclSuccess) {
        xm_scratch_end(&scratch);
    } /* else copies may still be running: the memory is lost rather than reused under them */
    dev->leave(saved);
    return (res == xcclSuccess) ? mpi_res : xm_raise(call->comm, res, xc_last_detail());
}
