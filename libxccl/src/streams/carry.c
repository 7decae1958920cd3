/* SPDX-License-Identifier: BSD-3-Clause */
/* A collective by a kernel of our own, or by the vendor's library, on the program's stream. */
#include <stdio.h>

#include "base/log.h"
#include "comms/wait.h"
#include "paths/ccl.h"
#include "paths/direct.h"
#include "streams/carry.h"

/* ---- buffers: plain memory of this device, or a packed copy ---- */

/* Why this rank's data cannot be reached on the stream, or NULL. */
static const char *fault_of(const struct xm_buffer *b)
{
    if ((b->mem.kind == XC_MEM_HOST) || b->mixed) {
        return "an enqueued collective on device memory has a buffer in host memory on this rank: "
               "pass device memory";
    }
    return (!b->plain && (b->layout.flat == NULL))
               ? "an enqueued collective with a datatype in device memory that cannot be packed there"
               : NULL;
}

static xcclResult_t make_usable(struct xm_enqueued *e, struct xm_usable *u,
                                const struct xm_buffer *b)
{
    struct xm_lane lane = {.copier = &e->op.copier, .buffer = b};
    void          *packed;

    u->buffer = b;
    u->ptr = b->buf;
    if (!b->used || (b->plain && !b->absolute &&
                     ((b->mem.kind == XC_MEM_MANAGED) ||
                      ((b->mem.kind == XC_MEM_DEVICE) && (b->mem.device == e->op.home))))) {
        return xcclSuccess;
    }
    const char  *fault = fault_of(b);
    xcclResult_t res = xm_scratch_take(&e->op.scratch, XM_POOL_DEVICE, (size_t)b->bytes, &packed);
    if (res != xcclSuccess) {
        return res;
    }
    u->packed = true;
    u->ptr = lane.other = packed;
    if (fault != NULL) {
        e->fault = fault;
        return xcclSuccess;
    }
    return b->in ? xm_enqueue(&lane) : xcclSuccess;
}

xcclResult_t xm_carry_pack(struct xm_enqueued *e)
{
    xm_buffer_take_apart(&e->op.buffers.send);
    xm_buffer_take_apart(&e->op.buffers.recv);
    xcclResult_t res = make_usable(e, &e->op.send, &e->op.buffers.send);

    return (res == xcclSuccess) ? make_usable(e, &e->op.recv, &e->op.buffers.recv) : res;
}

xcclResult_t xm_carry_unpack(struct xm_enqueued *e)
{
    const struct xm_usable *u = &e->op.recv;
    struct xm_lane          lane = {
                 .copier = &e->op.copier, .buffer = u->buffer, .other = u->ptr, .out = true};

    if (e->fault != NULL) {
        return xc_fail(xcclUnsupported, "%s", e->fault);
    }
    return (u->packed && u->buffer->out) ? xm_enqueue(&lane) : xcclSuccess;
}

bool xm_carry_can_pack(struct xm_enqueued *e)
{
    xm_buffer_take_apart(&e->op.buffers.send);
    xm_buffer_take_apart(&e->op.buffers.recv);
    return (fault_of(&e->op.buffers.send) == NULL) && (fault_of(&e->op.buffers.recv) == NULL);
}

xcclResult_t xm_carry_copy(const struct xm_enqueued *e)
{
    const struct xm_op *op = &e->op;

    return op->dev->copy_async(op->recv.ptr, op->send.ptr, (size_t)op->buffers.send.bytes,
                               op->stream);
}

/* ---- direct ---- */

static uint32_t larger(uint32_t a, uint32_t b)
{
    return (a > b) ? a : b;
}

static void fill_parts(const struct xm_op *op, struct xk_exchange *what)
{
    struct xm_direct_form form = {.form = XK_BARRIER, .what = XK_NO_REDUCTION};

    if (op->call.coll != XM_BARRIER) {
        xm_direct_form_of(op, &form);
    }
    what->in = form.in;
    what->out = form.out;
    what->what = form.what;
    for (int i = 0; i < op->comm->size; i++) {
        struct xk_part *part = &what->parts[i];
        struct xk_span  span = xm_direct_span(op, &form, i);
        *part = xk_part_of(&span);
        what->most = larger(what->most, larger(part->send, part->receive));
    }
}

xcclResult_t xm_carry_direct(struct xm_enqueued *e)
{
    const struct xm_stream_comm *sc = e->sc;
    struct xm_direct            *d = sc->xm->direct;
    struct xk_enqueued           what = {.exchange.ranks = d->words->ranks,
                                         .last = sc->last,
                                         .sweep = sc->sweep,
                                         .counter = sc->counter};
    /* By what is equal on all ranks: block b of one waits for what block b of another writes. */
    unsigned blocks = xk_short_blocks(d->words->ranks.size, e->op.block_bytes);

    blocks = (blocks < d->most_blocks) ? blocks : d->most_blocks;
    fill_parts(&e->op, &what.exchange);
    return xm_kernel_enqueued(d->kernels, &what, blocks, e->op.stream);
}

/* ---- the vendor's library ---- */

struct launch_job {
    struct xm_job job;
    struct xm_op *op;
    xcclResult_t  result;
    char          detail[256];
};

static void run_launch(struct xm_job *base)
{
    struct launch_job *job = (struct launch_job *)base;
    void              *saved;

    job->result = job->op->dev->enter(job->op->home, &saved);
    if (job->result == xcclSuccess) {
        job->result = xm_ccl_enqueue(job->op);
        job->op->dev->leave(saved);
    }
    if (job->result != xcclSuccess) {
        snprintf(job->detail, sizeof(job->detail), "%s", xc_last_detail());
    }
}

/*
 * The library connects at the first use of an algorithm, and waits for the other ranks: then a
 * thread calls it while this one lets MPI progress. Not in a capture, which may be this thread's
 * alone.
 */
static xcclResult_t launch(const struct xm_enqueue *q, struct xm_enqueued *e)
{
    struct launch_job job = {.job = {.run = run_launch}, .op = &e->op};

    bool may_block = xm_ccl_may_block(&e->op);
    if (q->capturing || !may_block) {
        return xm_ccl_enqueue(&e->op);
    }
    xcclResult_t res = xm_offload(&job.job, "for the vendor's library to connect");
    if ((res == xcclSuccess) && (job.result != xcclSuccess)) {
        res = xc_fail(job.result, "%s", job.detail);
    }
    return res;
}

xcclResult_t xm_carry_ccl(const struct xm_enqueue *q, struct xm_enqueued *e)
{
    e->op.path = &xm_path_ccl;
    e->op.vendor = xm_comm_hold_vendor(e->sc->xm);
    if (e->op.vendor == NULL) { /* another thread broke the communicator */
        return xc_fail(xcclInvalidUsage, "%s", e->sc->xm->reason);
    }
    xcclResult_t res = launch(q, e);
    xm_vendor_release(e->op.vendor);
    e->op.vendor = NULL;
    return res;
}
