/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "base/log.h"
#include "base/params.h"
#include "comms/wait.h"
#include "data/events.h"
#include "paths/buffers.h"
#include "paths/ccl.h"

/* Can the device work on the buffer's memory as it is? */
static bool usable(const struct xm_op *op, const struct xm_buffer *buffer)
{
    return buffer->plain && !buffer->absolute &&
           ((buffer->mem.kind == XC_MEM_MANAGED) ||
            ((buffer->mem.kind == XC_MEM_DEVICE) && (buffer->mem.device == op->home)));
}

/* Displacements from ptr, which is the lowest byte: negative ones are MPI's affair. */
static xcclResult_t make_vectors(const struct xm_op *op, struct xm_usable *b)
{
    size_t n = (size_t)b->buffer->blocks, at = 0;

    b->counts = calloc(2 * n + 1, sizeof(*b->counts));
    if (b->counts == NULL) {
        return xc_fail(xcclSystemError, "out of memory for %zu blocks", n);
    }
    b->displs = b->counts + n;
    for (size_t i = 0; i < n; i++) {
        struct xm_block block = xm_block_at(&op->call, b->buffer, (int)i);
        b->counts[i] = (size_t)(block.count * block.layout->size);
        if (b->counts[i] > 0) { /* in MPI the offset of no data may be anything */
            b->displs[i] = b->packed ? at : (size_t)(block.offset - b->buffer->low);
        }
        at += b->counts[i];
    }
    return xcclSuccess;
}

/* A root's buffer that goes in pieces is not copied as a whole. */
static bool copied_in_pieces(const struct xm_op *op, const struct xm_buffer *buffer)
{
    bool gathers = (op->call.coll == XM_GATHER) || (op->call.coll == XM_GATHERV);

    return (op->path == &xm_path_ccl) && buffer->plain && !buffer->absolute &&
           xm_ccl_in_pieces(op) && (buffer == (gathers ? &op->buffers.recv : &op->buffers.send));
}

static xcclResult_t prepare(struct xm_op *op, struct xm_usable *b, const struct xm_buffer *buffer)
{
    void        *packed;
    xcclResult_t res = xcclSuccess;

    b->buffer = buffer;
    b->filled = false;
    b->ptr = buffer->buf + ((buffer->displs != NULL) ? buffer->low : 0);
    if (buffer->used && !usable(op, buffer) && !copied_in_pieces(op, buffer)) {
        b->packed = true;
        res = xm_scratch_take(&op->scratch, XM_POOL_DEVICE, (size_t)buffer->bytes, &packed);
        if (res != xcclSuccess) {
            return res;
        }
        b->ptr = packed;
        if (buffer->in && !buffer->plain) {
            res = xm_pack(&op->copier, buffer, packed);
            if (res == xcclSuccess) {
                res = xm_stream_wait(op->dev, op->copier.stream);
            }
        }
    }
    if ((res == xcclSuccess) && (buffer->displs != NULL)) {
        res = make_vectors(op, b);
    }
    return res;
}

static xcclResult_t prepare_both(struct xm_op *op)
{
    xcclResult_t res = prepare(op, &op->send, &op->buffers.send);

    return (res == xcclSuccess) ? prepare(op, &op->recv, &op->buffers.recv) : res;
}

static xcclResult_t pack(struct xm_op *op, struct xm_usable *b)
{
    struct xm_copier copier = op->copier;

    if (!b->packed || !b->buffer->in || !b->buffer->plain || b->filled) {
        return xcclSuccess;
    }
    copier.stream = op->stream;
    b->filled = true;
    return xm_pack(&copier, b->buffer, b->ptr);
}

xcclResult_t xm_usable_pack(struct xm_op *op)
{
    xcclResult_t res = pack(op, &op->send);

    return (res == xcclSuccess) ? pack(op, &op->recv) : res;
}

xcclResult_t xm_usable_copy_back(struct xm_op *op)
{
    const struct xm_usable *b = &op->recv; /* nothing writes the send buffer */
    bool                    unpacks = b->packed && b->buffer->out;

    if (!unpacks && (op->apart == NULL)) {
        return xcclSuccess;
    }
    op->stage = XM_STAGE_COPY;
    xcclResult_t res =
        unpacks ? xm_unpack(&op->copier, b->buffer, b->ptr)
                : op->dev->copy_async(b->ptr, op->apart, op->apart_bytes, op->copier.stream);
    if ((res == xcclSuccess) && (op->event == NULL)) {
        res = xm_event_take(op->dev, op->home, &op->event);
    }
    if (res == xcclSuccess) {
        res = op->dev->event_record(op->event, op->copier.stream);
    }
    return (res == xcclSuccess) ? xcclInProgress : res;
}

xcclResult_t xm_usable_set_apart(struct xm_op *op, size_t bytes)
{
    void        *apart;
    xcclResult_t res = xcclSuccess;

    if (!op->buffers.in_place || op->recv.packed || !op->buffers.recv.out || (bytes == 0)) {
        return xcclSuccess; /* a packed copy is one that may be written over */
    }
    if (bytes > (size_t)xc_params()->scratch << 20) {
        return xc_fail(xcclUnsupported, "a copy of %zu bytes is more than XCCL_SCRATCH", bytes);
    }
    if (op->copier.stream == NULL) {
        res = xm_copy_stream(op->dev, op->home, &op->copier.stream);
    }
    if (res == xcclSuccess) {
        res = xm_scratch_take(&op->scratch, XM_POOL_DEVICE, bytes, &apart);
    }
    if (res == xcclSuccess) {
        op->apart = apart;
        op->apart_bytes = bytes;
    }
    return res;
}

void xm_usable_free(struct xm_op *op)
{
    free(op->send.counts);
    free(op->recv.counts);
}

bool xm_copies_host_memory(const struct xm_op *op)
{
    return (op->buffers.send.used && (op->buffers.send.mem.kind == XC_MEM_HOST)) ||
           (op->buffers.recv.used && (op->buffers.recv.mem.kind == XC_MEM_HOST));
}

/*
 * The program may free a type as soon as a non-blocking call has returned. Where data is not
 * unpacked on the device, from what the type was taken apart to, MPI unpacks it, by the type.
 */
static void keep_type(struct xm_op *op, struct xm_buffer *buffer)
{
    if (buffer->used && buffer->out && !buffer->plain && (op->call.form == XM_NONBLOCKING) &&
        !xm_packs_well(&op->copier, buffer, true)) {
        xm_buffer_hold_type(buffer);
    }
}

xcclResult_t xm_usable_begin(struct xm_op *op)
{
    xcclResult_t res = xcclSuccess;

    xm_scratch_begin(&op->scratch, op->dev, op->home);
    op->copier = (struct xm_copier){&op->call, op->dev, NULL, &op->scratch, 0};
    bool copies = !op->buffers.send.plain || !op->buffers.recv.plain || xm_copies_host_memory(op);
    if (copies) {
        res = xm_copy_stream(op->dev, op->home, &op->copier.stream);
    }
    if ((res == xcclSuccess) && copies && !op->ordered) {
        res = op->dev->stream_after_default(op->copier.stream);
    }
    if ((res == xcclSuccess) && !op->ordered) {
        res = op->dev->stream_after_default(op->stream);
    }
    keep_type(op, &op->buffers.recv);
    return (res == xcclSuccess) ? prepare_both(op) : res;
}
