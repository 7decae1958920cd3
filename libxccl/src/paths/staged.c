/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI serves the call on copies in host memory, for an MPI that cannot read the device's. The
 * copies in are done when MPI is called, so that MPI sees calls in the program's order and needs
 * nothing more of this rank.
 */
#include "base/log.h"
#include "comms/wait.h"
#include "paths/path.h"

enum { APART = 64 };

/*
 * Host memory for a device buffer; the pointer for MPI goes to *buf_p. Not `other`, the pointer of
 * the other buffer: behind displacements two pointers may be equal although the data lies apart,
 * and the non-blocking collectives of Open MPI 4.1 take equal pointers for MPI_IN_PLACE.
 */
static xcclResult_t replace(struct xm_op *op, const struct xm_buffer *buffer, const void *other,
                            char **span_p, void **buf_p)
{
    size_t       bytes = (size_t)(buffer->high - buffer->low);
    void        *span;
    xcclResult_t res = xm_scratch_take(&op->scratch, XM_POOL_HOST, bytes, &span);

    if ((res == xcclSuccess) && ((char *)span - buffer->low == other)) {
        res = xm_scratch_take(&op->scratch, XM_POOL_HOST, bytes + APART, &span);
        if ((res == xcclSuccess) && ((char *)span - buffer->low == other)) {
            span = (char *)span + APART;
        }
    }
    if (res != xcclSuccess) {
        return res;
    }
    res = xm_stage_in(&op->copier, buffer, span);
    if (res != xcclSuccess) {
        return res;
    }
    *span_p = span;
    *buf_p = (char *)span - buffer->low;
    return xcclSuccess;
}

static xcclResult_t copy_in(struct xm_op *op, void **send_p, void **recv_p)
{
    xcclResult_t res = xcclSuccess;

    *send_p = (void *)(uintptr_t)op->call.sendbuf;
    *recv_p = op->call.recvbuf;
    if (xm_on_device(&op->buffers.send)) {
        /* The root of a broadcast has one buffer only, and sends it. */
        res = (op->call.coll == XM_BCAST)
                  ? replace(op, &op->buffers.send, NULL, &op->send_span, recv_p)
                  : replace(op, &op->buffers.send, *recv_p, &op->send_span, send_p);
    }
    if ((res == xcclSuccess) && xm_on_device(&op->buffers.recv)) {
        res = replace(op, &op->buffers.recv, *send_p, &op->recv_span, recv_p);
    }
    return (res == xcclSuccess) ? xm_stream_wait(op->dev, op->copier.stream) : res;
}

static xcclResult_t begin(struct xm_op *op, void **send_p, void **recv_p)
{
    xm_scratch_begin(&op->scratch, op->dev, op->device);
    op->copier = (struct xm_copier){&op->call, op->dev, NULL, &op->scratch};
    xcclResult_t res = xm_copy_stream(op->dev, op->device, &op->copier.stream);
    if (res != xcclSuccess) {
        return res;
    }
    if (!op->ordered) {
        res = op->dev->stream_after_default(op->copier.stream);
        if (res != xcclSuccess) {
            return res;
        }
    }
    return copy_in(op, send_p, recv_p);
}

static xcclResult_t start(struct xm_op *op)
{
    void *saved, *send, *recv;

    xcclResult_t res = op->dev->enter(op->device, &saved);
    if (res != xcclSuccess) {
        return xm_op_fail(op, res);
    }
    res = begin(op, &send, &recv);
    op->dev->leave(saved);
    if (res != xcclSuccess) {
        return xm_op_fail(op, res);
    }
    op->inner = XM_HANDLE(MPI_REQUEST_NULL);
    op->code = op->blocking ? xm_call_mpi_with(&op->call, send, recv)
                            : xm_call_mpi_start(&op->call, send, recv, &op->inner);
    op->stage = XM_STAGE_WORK;
    return xcclSuccess;
}

static xcclResult_t copy_out(struct xm_op *op)
{
    void        *saved;
    xcclResult_t res = op->dev->enter(op->device, &saved);

    if (res != xcclSuccess) {
        return res;
    }
    res = xm_stage_out(&op->copier, &op->buffers.recv, op->recv_span);
    if ((res == xcclSuccess) && !op->blocking) {
        res = xm_event_take(op->dev, op->device, &op->event);
        if (res == xcclSuccess) {
            res = op->dev->event_record(op->event, op->copier.stream);
        }
    }
    op->dev->leave(saved);
    return res;
}

static xcclResult_t query(struct xm_op *op)
{
    void        *saved;
    xcclResult_t res = op->dev->enter(op->device, &saved);

    if (res != xcclSuccess) {
        return res;
    }
    res = (op->event != NULL) ? op->dev->event_query(op->event)
                              : op->dev->stream_query(op->copier.stream);
    op->dev->leave(saved);
    return res;
}

static xcclResult_t progress(struct xm_op *op)
{
    xcclResult_t res = xcclSuccess;
    int          over = 1;

    if (op->stage == XM_STAGE_WORK) {
        if (!op->blocking && (op->code == MPI_SUCCESS)) {
            op->code = xm_pmpi.Test(&op->inner, &over, MPI_STATUS_IGNORE);
        }
        if (!over && (op->code == MPI_SUCCESS)) {
            return xcclInProgress;
        }
        if ((op->code != MPI_SUCCESS) || (op->recv_span == NULL)) {
            return xcclSuccess;
        }
        res = copy_out(op);
        op->stage = XM_STAGE_COPY;
    }
    if (res == xcclSuccess) {
        res = query(op);
    }
    return ((res == xcclSuccess) || (res == xcclInProgress)) ? res : xm_op_fail(op, res);
}

static void release(struct xm_op *op, bool failed)
{
    if (!failed) {
        xm_scratch_end(&op->scratch);
        xm_event_give(op->dev, op->device, op->event);
    }
}

const struct xm_path xm_path_staged = {"mpi-staged", start, progress, release};
