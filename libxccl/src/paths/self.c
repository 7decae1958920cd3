/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The data of a communicator's only rank goes to itself: a copy on the device, or none at all. So
 * it is with every reduction too, as there is nothing to reduce with. Nobody is waited for, and MPI
 * does not see the call: what it would refuse must not come here.
 */
#include "paths/self.h"

#include <string.h>

#include "base/log.h"
#include "base/params.h"
#include "data/events.h"
#include "data/kernel_reduction.h"

static bool is_reduction(enum xm_coll coll)
{
    return strchr(xm_signatures[coll].kinds, 'o') != NULL;
}

/* Operations of MPI's own are for some types only; one of the program's is for any. */
static bool is_valid_reduction(MPI_Datatype type, MPI_Op op)
{
    struct xm_kernel_reduction known;
    bool never = (op == XM_HANDLE(MPI_OP_NULL)) || (op == XM_HANDLE(MPI_NO_OP)) ||
                 (op == XM_HANDLE(MPI_REPLACE));

    return (xm_op_name(op) != NULL) ? (xm_kernel_reduction_of(type, op, &known) == NULL) : !never;
}

/* Is the data to go from one buffer to the other? MPI_Exscan leaves the first rank's result alone.
 */
static bool has_both(const struct xm_op *op)
{
    return !op->buffers.in_place && (op->call.coll != XM_BCAST) && (op->call.coll != XM_EXSCAN);
}

const char *xm_self_obstacle(const struct xm_op *op)
{
    const struct xm_buffers *b = &op->buffers;

    if ((op->comm->size > 1) || op->comm->inter) {
        return "more than one rank";
    }
    if (xc_params()->route != XC_ROUTE_XCCL) {
        return "XCCL_ROUTE is not xccl";
    }
    if (xm_mpi_gpu_aware(op->dev->name)) {
        return "MPI takes device memory";
    }
    if (op->device < 0) {
        return "no device is current";
    }
    if (is_reduction(op->call.coll) && !is_valid_reduction(op->call.sendtype, op->call.op)) {
        return "MPI is to say whether it reduces this type by this operation";
    }
    return (has_both(op) && (b->send.bytes != b->recv.bytes))
               ? "MPI is to say what is wrong with the lengths"
               : NULL;
}

/* Memory of this device, as it is? */
static bool is_usable(const struct xm_op *op, const struct xm_buffer *b)
{
    return b->plain && !b->absolute &&
           ((b->mem.kind == XC_MEM_MANAGED) ||
            ((b->mem.kind == XC_MEM_DEVICE) && (b->mem.device == op->home)));
}

static bool is_ours(const struct xm_op *op, const struct xm_buffer *b)
{
    return is_usable(op, b) && (b->mem.kind == XC_MEM_DEVICE);
}

/* Short ones by the kernel that lingers on the device, and then they are over. */
static bool copy_quickly(const struct xm_op *op)
{
    const struct xm_buffer *send = &op->buffers.send, *recv = &op->buffers.recv;

    if (!op->ordered || (send->bytes > XM_QUICK_FETCH_BYTES) || !is_ours(op, send) ||
        !is_ours(op, recv)) {
        return false;
    }
    struct xm_kernels *k = xm_kernels_of(op->dev, op->home);
    return (k != NULL) && xm_quick_copy(k, XM_QUICK_FETCH, xm_buffer_at(recv, recv->low),
                                        xm_buffer_at(send, send->low), (size_t)send->bytes);
}

/* Where the data lies packed on its way: in either buffer, or in scratch memory. */
static xcclResult_t find_packed(struct xm_op *op, void **packed_p)
{
    const struct xm_buffer *send = &op->buffers.send, *recv = &op->buffers.recv;
    size_t                  bytes = (size_t)send->bytes;

    if (is_usable(op, send) || is_usable(op, recv)) {
        const struct xm_buffer *usable = is_usable(op, send) ? send : recv;
        *packed_p = xm_buffer_at(usable, usable->low);
        return xcclSuccess;
    }
    return (bytes > (size_t)xc_params()->scratch << 20)
               ? xc_fail(xcclUnsupported, "a copy of %zu bytes is more than XCCL_SCRATCH", bytes)
               : xm_scratch_take(&op->scratch, XM_POOL_DEVICE, bytes, packed_p);
}

static xcclResult_t move(struct xm_op *op, void *packed)
{
    const struct xm_buffer *send = &op->buffers.send, *recv = &op->buffers.recv;
    bool                    from = is_usable(op, send), to = is_usable(op, recv);
    xcclResult_t            res = xcclSuccess;

    if (from && to) {
        return op->dev->copy_async(xm_buffer_at(recv, recv->low), packed, (size_t)send->bytes,
                                   op->copier.stream);
    }
    if (!from) {
        res = xm_pack(&op->copier, send, packed);
    }
    return ((res == xcclSuccess) && !to) ? xm_unpack(&op->copier, recv, packed) : res;
}

/* So that others' copies on the stream are not waited for. */
static xcclResult_t mark_end(struct xm_op *op)
{
    xcclResult_t res = xm_event_take(op->dev, op->home, &op->event);

    return (res == xcclSuccess) ? op->dev->event_record(op->event, op->copier.stream) : res;
}

/* With the device entered. *left_p: nothing has begun, since there is no room for the copy. */
static xcclResult_t begin(struct xm_op *op, bool *left_p)
{
    void *packed;

    if (copy_quickly(op)) {
        return xcclSuccess;
    }
    xm_scratch_begin(&op->scratch, op->dev, op->home);
    if (find_packed(op, &packed) != xcclSuccess) {
        *left_p = true;
        return xcclSuccess;
    }
    op->stage = XM_STAGE_COPY;
    op->copier = (struct xm_copier){&op->call, op->dev, NULL, &op->scratch, 0};
    xcclResult_t res = xm_copy_stream(op->dev, op->home, &op->copier.stream);
    if ((res == xcclSuccess) && !op->ordered) {
        res = op->dev->stream_after_default(op->copier.stream);
    }
    if (res == xcclSuccess) {
        res = move(op, packed);
    }
    return ((res == xcclSuccess) && !op->blocking) ? mark_end(op) : res;
}

static xcclResult_t start(struct xm_op *op)
{
    const struct xm_buffer *send = &op->buffers.send, *recv = &op->buffers.recv;
    bool                    left = false;
    void                   *saved;

    op->home = op->device;
    op->stage = XM_STAGE_OVER;
    if (!has_both(op) || (xm_buffer_at(send, send->low) == xm_buffer_at(recv, recv->low))) {
        return xcclSuccess;
    }
    xcclResult_t res = op->dev->enter(op->home, &saved);
    if (res == xcclSuccess) {
        res = begin(op, &left);
        op->dev->leave(saved);
    }
    if (left) { /* host memory may have it */
        op->path = &xm_path_staged;
        return op->path->start(op);
    }
    return (res == xcclSuccess) ? res : xm_op_fail(op, res);
}

static xcclResult_t progress(struct xm_op *op)
{
    void *saved;

    if (op->stage == XM_STAGE_OVER) {
        return xcclSuccess;
    }
    xcclResult_t res = op->dev->enter(op->home, &saved);
    if (res == xcclSuccess) {
        res = (op->event != NULL) ? op->dev->event_query(op->event)
                                  : op->dev->stream_query(op->copier.stream);
        op->dev->leave(saved);
    }
    return ((res == xcclSuccess) || (res == xcclInProgress)) ? res : xm_op_fail(op, res);
}

static void release(struct xm_op *op, bool failed)
{
    if (!failed) {
        xm_scratch_end(&op->scratch);
        xm_event_give(op->dev, op->home, op->event);
    }
}

const struct xm_path xm_path_self = {"self", start, progress, release, false};
