/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The vendor's call for each MPI collective. Data is moved as bytes, whatever its type: the ranks
 * may describe the same data by different types. A library that moves no single bytes is asked only
 * for what consists of words (see is_of_words() in calls/facts.c).
 */
#include "backends/backend.h"
#include "base/log.h"
#include "paths/ccl.h"

static xcclComm_t comm_of(const struct xm_op *op)
{
    return op->vendor->xcomm;
}

static xcclStream_t stream_of(const struct xm_op *op)
{
    return op->stream;
}

static size_t part_bytes(const struct xm_op *op, const struct xm_usable *b)
{
    return (size_t)b->buffer->bytes / (size_t)op->comm->size;
}

/*
 * Where the device is full, idle memory of the pools is freed for it, but only while nothing there
 * waits for other ranks. Nor does this operation yet: what it has enqueued ends by itself.
 */
xcclResult_t xm_ccl_take_scratch(struct xm_op *op, size_t bytes, char **ptr_p)
{
    bool  waits = op->waits;
    void *ptr;

    xm_op_waits_no_more(op);
    xcclResult_t res = xm_scratch_take_device(&op->scratch, bytes, &ptr);
    if (waits) {
        xm_op_waits(op);
    }
    if (res == xcclSuccess) {
        *ptr_p = ptr;
    }
    return res;
}

/* xccl elements in count MPI elements. */
static size_t elements(const struct xm_op *op, MPI_Count count)
{
    return (size_t)count * op->reduction.factor;
}

static xcclResult_t allreduce(struct xm_op *op)
{
    const struct xm_reduction *r = &op->reduction;
    const char                *in = op->buffers.in_place ? op->recv.ptr : op->send.ptr;

    return xcclAllReduce(in, op->recv.ptr, elements(op, op->call.sendcount), r->type, r->op,
                         comm_of(op), stream_of(op));
}

static xcclResult_t reduce(struct xm_op *op)
{
    const struct xm_reduction *r = &op->reduction;
    const char                *in = op->buffers.in_place ? op->recv.ptr : op->send.ptr;
    char                      *out = op->buffers.recv.used ? op->recv.ptr : NULL;

    return xcclReduce(in, out, elements(op, op->call.sendcount), r->type, r->op, op->call.root,
                      comm_of(op), stream_of(op));
}

/* Unequal parts: no vendor has a call for that, but a reduction to each rank in one group does it.
 */
static xcclResult_t reduce_to_each(struct xm_op *op, const char *in, char *out)
{
    const struct xm_reduction *r = &op->reduction;
    const struct xm_buffer    *input = op->buffers.in_place ? &op->buffers.recv : &op->buffers.send;
    xcclResult_t               res = xcclGroupStart();

    if (res != xcclSuccess) {
        return res;
    }
    for (int i = 0; (i < op->comm->size) && (res == xcclSuccess); i++) {
        MPI_Count count = xm_count_at(&op->call, op->call.recvcounts, i);
        if (count > 0) {
            res = xcclReduce(in, (i == op->comm->rank) ? out : NULL, elements(op, count), r->type,
                             r->op, i, comm_of(op), stream_of(op));
            in += count * input->layout.size;
        }
    }
    xcclResult_t end = xcclGroupEnd();
    return (res != xcclSuccess) ? res : end;
}

bool xm_ccl_parts_are_equal(const struct xm_op *op)
{
    if (op->call.coll == XM_REDUCE_SCATTER_BLOCK) {
        return true;
    }
    for (int i = 1; i < op->comm->size; i++) {
        if (xm_count_at(&op->call, op->call.recvcounts, i) !=
            xm_count_at(&op->call, op->call.recvcounts, 0)) {
            return false;
        }
    }
    return true;
}

static xcclResult_t reduce_scatter(struct xm_op *op)
{
    const struct xm_reduction *r = &op->reduction;
    bool                       in_place = op->buffers.in_place;
    MPI_Count                  own = (op->call.coll == XM_REDUCE_SCATTER_BLOCK)
                                         ? op->call.recvcount
                                         : xm_count_at(&op->call, op->call.recvcounts, op->comm->rank);
    char                      *in = in_place ? op->recv.ptr : op->send.ptr;
    char                      *out = (own > 0) ? op->recv.ptr : NULL;
    size_t                     bytes = (size_t)(own * op->recv.buffer->layout.size);
    xcclResult_t               res = xcclSuccess;

    /* In place in MPI is: input in all of the buffer, output at its beginning. To the vendors it
     * is: output at the rank's own part. So the output goes elsewhere first. */
    if (in_place && (own > 0)) {
        res = xm_ccl_take_scratch(op, bytes, &out);
    }
    if (res == xcclSuccess) {
        res = xm_ccl_parts_are_equal(op) ? xcclReduceScatter(in, out, elements(op, own), r->type,
                                                             r->op, comm_of(op), stream_of(op))
                                         : reduce_to_each(op, in, out);
    }
    if ((res == xcclSuccess) && in_place && (own > 0)) {
        res = op->dev->copy_async(op->recv.ptr, out, bytes, stream_of(op));
    }
    return res;
}

/* How the library is told to move bytes: as they are, or in words where it has nothing smaller. */
struct unit {
    xcclDataType_t type;
    size_t         bytes;
};

static struct unit unit_of_moves(void)
{
    return xc_backend_moves_bytes() ? (struct unit){xcclUint8, 1}
                                    : (struct unit){xcclBfloat16, XC_WORD_BYTES};
}

static xcclResult_t bcast(struct xm_op *op)
{
    const struct xm_usable *b = op->buffers.send.used ? &op->send : &op->recv;
    struct unit             u = unit_of_moves();

    return xcclBcast(b->ptr, (size_t)b->buffer->bytes / u.bytes, u.type, op->call.root, comm_of(op),
                     stream_of(op));
}

static xcclResult_t allgather(struct xm_op *op)
{
    size_t      bytes = part_bytes(op, &op->recv);
    const char *in =
        op->buffers.in_place ? op->recv.ptr + (size_t)op->comm->rank * bytes : op->send.ptr;

    struct unit u = unit_of_moves();
    return xcclAllGather(in, op->recv.ptr, bytes / u.bytes, u.type, comm_of(op), stream_of(op));
}

/*
 * The vendors exchange out of place only: in place the input is a copy, with the same offsets.
 */
static xcclResult_t copy_of_input(struct xm_op *op, const char **in_p)
{
    const struct xm_buffer *b = op->recv.buffer;
    size_t                  bytes = op->recv.packed ? (size_t)b->bytes : (size_t)(b->high - b->low);
    char                   *copy;
    xcclResult_t            res = xm_ccl_take_scratch(op, bytes, &copy);

    if (res == xcclSuccess) {
        res = op->dev->copy_async(copy, op->recv.ptr, bytes, stream_of(op));
    }
    if (res == xcclSuccess) {
        *in_p = copy;
    }
    return res;
}

static xcclResult_t alltoall(struct xm_op *op)
{
    const char  *in = op->send.ptr;
    xcclResult_t res = op->buffers.in_place ? copy_of_input(op, &in) : xcclSuccess;

    struct unit u = unit_of_moves();
    return (res != xcclSuccess)
               ? res
               : xcclAlltoAll(in, op->recv.ptr, part_bytes(op, &op->recv) / u.bytes, u.type,
                              comm_of(op), stream_of(op));
}

static xcclResult_t alltoallv(struct xm_op *op)
{
    const struct xm_usable *send = op->buffers.in_place ? &op->recv : &op->send;
    const char             *in = send->ptr;
    xcclResult_t            res = xcclSuccess;

    if (op->buffers.in_place && op->buffers.recv.used) {
        res = copy_of_input(op, &in);
    }
    return (res != xcclSuccess)
               ? res
               : xcclAlltoAllv(in, send->counts, send->displs, op->recv.ptr, op->recv.counts,
                               op->recv.displs, xcclUint8, comm_of(op), stream_of(op));
}

xcclResult_t xm_ccl_enqueue(struct xm_op *op)
{
    static xcclResult_t (*const calls[XM_NUM_COLLS])(struct xm_op *) = {
        [XM_ALLREDUCE] = allreduce,
        [XM_BCAST] = bcast,
        [XM_REDUCE] = reduce,
        [XM_REDUCE_SCATTER] = reduce_scatter,
        [XM_REDUCE_SCATTER_BLOCK] = reduce_scatter,
        [XM_ALLGATHER] = allgather,
        [XM_ALLGATHERV] = xm_ccl_allgatherv,
        [XM_ALLTOALL] = alltoall,
        [XM_ALLTOALLV] = alltoallv,
        [XM_GATHER] = xm_ccl_gather,
        [XM_GATHERV] = xm_ccl_gather,
        [XM_SCATTER] = xm_ccl_scatter,
        [XM_SCATTERV] = xm_ccl_scatter,
    };

    return calls[op->call.coll](op);
}
