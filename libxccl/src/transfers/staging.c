/* SPDX-License-Identifier: BSD-3-Clause */
#include "transfers/staging.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "comms/packing.h"
#include "comms/wait.h"

/* Transfers have no arrays of counts or types. */
static const struct xm_call nowhere;

/* MPI_Pack and MPI_Unpack of this machine's own representation. */
static bool is_packing(const struct xm_transfer *t)
{
    return (strcmp(t->kinds, "sntrz..") == 0) || (strcmp(t->kinds, "sz.rnt.") == 0);
}

bool xm_part_may_go_packed(const struct xm_transfer *t, const struct xm_part *part)
{
    const struct xm_buffer *b = &part->buffer;

    return !b->plain && (xm_transfer_is_message(t->function) || is_packing(t)) &&
           (t->partitions == 0) && (b->blocks == 1) && (b->bytes > 0) && (b->bytes <= INT32_MAX) &&
           (b->layout.flat != NULL);
}

/*
 * Messages of derived types are packed where that is fast, and go as the bytes that they consist
 * of: MPI would gather them from, and scatter them to, a copy of everything around them.
 */
static bool goes_packed(const struct xm_transfer *t, const struct xm_part *part)
{
    char kind = t->kinds[part->argument];

    if (!xm_part_may_go_packed(t, part) || part->buffer.absolute) {
        return xm_part_may_go_packed(t, part); /* around absolute addresses there may be anything */
    }
    return (kind != 'b') && !t->whole && !is_packing(t) &&
           xm_packs_well(&part->copier, &part->buffer, kind == 'r');
}

static xcclResult_t open_part(struct xm_transfer *t, struct xm_part *part,
                              const struct xc_device_ops *dev)
{
    struct xm_buffer *b = &part->buffer;
    void             *span;

    xm_scratch_begin(&part->scratch, dev, b->mem.device);
    part->open = true;
    MPI_Comm comm = b->plain ? XM_HANDLE(MPI_COMM_SELF) : xm_packing_comm(); /* plain: unused */
    part->copier = (struct xm_copier){&nowhere, dev, NULL, &part->scratch, comm};
    xcclResult_t res = xm_copy_stream(dev, b->mem.device, &part->copier.stream);
    if (res != xcclSuccess) {
        return res;
    }
    part->packed = goes_packed(t, part);
    res = xm_scratch_take(&part->scratch, part->lazy ? XM_POOL_LAZY : XM_POOL_HOST,
                          part->packed ? (size_t)b->bytes : (size_t)(b->high - b->low), &span);
    part->span = span;
    return res;
}

/* As most often, with what the last one had, and without a call of the driver's. */
static bool reopen_part(struct xm_part *part, const struct xc_device_ops *dev)
{
    const struct xm_buffer *b = &part->buffer;
    xcclStream_t            stream;
    void                   *span;

    if (part->open || !b->plain) {
        return part->open;
    }
    xm_scratch_begin(&part->scratch, dev, b->mem.device);
    if (!xm_scratch_reuse(&part->scratch, part->lazy ? XM_POOL_LAZY : XM_POOL_HOST,
                          (size_t)(b->high - b->low), &span, &stream)) {
        return false;
    }
    part->open = true;
    part->copier =
        (struct xm_copier){&nowhere, dev, stream, &part->scratch, XM_HANDLE(MPI_COMM_SELF)};
    part->packed = false;
    part->span = span;
    return true;
}

typedef xcclResult_t part_fn(struct xm_part *part, MPI_Count bytes);

/* fn for each part, with its device entered. */
static xcclResult_t each_part(struct xm_transfer *t, part_fn *fn, MPI_Count bytes)
{
    const struct xc_device_ops *dev = xc_device_active();
    xcclResult_t                res = xcclSuccess;

    for (int i = 0; (i < t->num_parts) && (res == xcclSuccess); i++) {
        struct xm_part *part = &t->parts[i];
        void           *saved;
        res = dev->enter(part->buffer.mem.device, &saved);
        if (res == xcclSuccess) {
            if (!part->open) {
                res = open_part(t, part, dev);
            }
            res = (res == xcclSuccess) ? fn(part, bytes) : res;
            dev->leave(saved);
        }
    }
    return res;
}

static xcclResult_t nothing(struct xm_part *part, MPI_Count bytes)
{
    (void)part;
    (void)bytes;
    return xcclSuccess;
}

xcclResult_t xm_transfer_open(struct xm_transfer *t)
{
    const struct xc_device_ops *dev = xc_device_active();
    bool                        again = true;

    xm_pools_age();
    for (int i = 0; i < t->num_parts; i++) {
        t->parts[i].lazy = xm_rendezvous_is_likely(t, t->parts[i].argument);
        again = reopen_part(&t->parts[i], dev) && again;
    }
    xcclResult_t res = again ? xcclSuccess : each_part(t, nothing, 0);

    if ((res == xcclSuccess) && (t->partitions > 0)) {
        t->delivery = calloc((size_t)t->partitions, sizeof(*t->delivery));
        res = (t->delivery != NULL) ? res : xc_fail(xcclSystemError, "out of memory for a request");
    }
    for (int i = 0; (i < t->num_parts) && (res == xcclSuccess); i++) {
        const struct xm_part *part = &t->parts[i];
        t->args[part->argument] = (long)(part->packed ? part->span : xm_part_base(part));
        if (part->packed) {
            t->args[part->argument + 1] = (long)part->buffer.bytes;
            t->args[part->argument + 2] = (long)XM_HANDLE(MPI_BYTE);
        }
    }
    return (res == xcclSuccess) ? xm_rendezvous_expect(t) : res;
}

xcclResult_t xm_part_after_program(const struct xm_part *part)
{
    const struct xc_device_ops *dev = part->copier.dev;
    const struct xm_buffer     *b = &part->buffer;

    if (b->mem.synchronous) {
        return xcclSuccess;
    }
    dev->mem_make_synchronous(b->buf + b->low); /* what was given before is on its way this once */
    return dev->stream_after_default(part->copier.stream);
}

/* The first bytes of a part go to its span, or come from there: done, or is it to be enqueued? */
static bool copy_quickly(const struct xm_part *part, MPI_Count bytes, bool out)
{
    const struct xm_buffer *b = &part->buffer;
    struct xm_lane          lane = {&part->copier, b, part->span, false, out};

    if (part->packed && !b->plain) {
        bool all = !out || (bytes < 0) || (bytes >= b->bytes);
        return all && b->mem.synchronous && xm_move_quickly(&lane, !out);
    }
    return b->mem.synchronous && (out ? xm_stage_out_quickly(&part->copier, b, part->span, bytes)
                                      : xm_stage_in_quickly(&part->copier, b, part->span));
}

static xcclResult_t part_in(struct xm_part *part, MPI_Count bytes)
{
    (void)bytes;
    if (!part->buffer.in || copy_quickly(part, XM_WHOLE, false)) {
        return xcclSuccess;
    }
    xcclResult_t res = xm_part_after_program(part);
    if (res == xcclSuccess) {
        res = part->packed ? xm_pack(&part->copier, &part->buffer, part->span)
                           : xm_stage_in(&part->copier, &part->buffer, part->span);
    }
    return (res == xcclSuccess) ? xm_stream_wait(part->copier.dev, part->copier.stream) : res;
}

xcclResult_t xm_transfer_copy_in(struct xm_transfer *t)
{
    if (t->partitions > 0) { /* in MPI_Pready */
        for (int i = 0; i < t->partitions; i++) {
            t->delivery[i] = XM_STAGED;
        }
        return xcclSuccess;
    }
    bool any = false;
    for (int i = 0; i < t->num_parts; i++) {
        any = any || t->parts[i].buffer.in;
    }
    return any ? each_part(t, part_in, XM_WHOLE) : xcclSuccess; /* no call of the driver's */
}

static xcclResult_t part_out(struct xm_part *part, MPI_Count bytes)
{
    if (!part->buffer.out || (bytes == 0) || copy_quickly(part, bytes, true)) {
        return xcclSuccess;
    }
    part->scratch.filled = true;
    /* The program's own fills of the buffer from before the call are not to win over the data. */
    xcclResult_t res = xm_part_after_program(part);
    if ((res == xcclSuccess) && part->packed) {
        struct xm_lane lane = {&part->copier, &part->buffer, part->span, false, true};
        res = xm_enqueue_bytes(&lane, bytes);
    } else if (res == xcclSuccess) {
        res = xm_stage_out_bytes(&part->copier, &part->buffer, part->span, bytes);
    }
    return (res == xcclSuccess) ? xm_stream_wait(part->copier.dev, part->copier.stream) : res;
}

xcclResult_t xm_transfer_part_out(struct xm_part *part, MPI_Count bytes)
{
    const struct xc_device_ops *dev = part->copier.dev;
    void                       *saved;
    xcclResult_t                res = dev->enter(part->buffer.mem.device, &saved);

    if (res == xcclSuccess) {
        res = part_out(part, bytes);
        dev->leave(saved);
    }
    return res;
}

/* Of a file, and copied in: see take_uncounted() in transfer.c. */
static bool is_read_whole(const struct xm_transfer *t)
{
    return (t->num_parts == 1) && t->parts[0].buffer.in && t->parts[0].buffer.out &&
           (xm_transfer_argument(t->function, 'h') >= 0);
}

xcclResult_t xm_transfer_copy_out(struct xm_transfer *t, MPI_Count bytes)
{
    xcclResult_t res = xcclSuccess;

    if (is_read_whole(t)) {
        bytes = XM_WHOLE;
    }
    if (t->partitions == 0) {
        return each_part(t, part_out, bytes);
    }
    for (int i = 0; (i < t->partitions) && (res == xcclSuccess); i++) {
        res = xm_transfer_partition_out(t, i);
    }
    return res;
}

bool xm_transfer_land(struct xm_transfer *t, MPI_Count bytes, struct xm_kernel_copy *copy)
{
    const struct xm_part *part = &t->parts[0];

    return (t->num_parts == 1) && (t->partitions == 0) && !is_read_whole(t) && part->open &&
           part->buffer.out && part->buffer.mem.synchronous &&
           xm_stage_out_start(&part->copier, &part->buffer, part->span, bytes, copy);
}

void xm_transfer_close(struct xm_transfer *t)
{
    xm_rendezvous_close(t);
    free(t->delivery);
    t->delivery = NULL;
    for (int i = 0; i < t->num_parts; i++) {
        if (t->parts[i].open) {
            xm_scratch_end(&t->parts[i].scratch);
            t->parts[i].open = false;
        }
        xm_buffer_free(&t->parts[i].buffer);
    }
}
