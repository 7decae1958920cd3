/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A collective by a kernel of our own, or by the vendor's library, on the program's stream.
 *
 * A rank whose data cannot be reached there takes part all the same, as the streams of the others
 * wait for it. Where it has no device memory for a packed copy, pinned memory serves. Without that
 * too the kernel has a block in the communicator's workspace, but the vendor's library has nothing.
 */
#include <stdio.h>
#include <string.h>

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

/* This rank's data is not there, for such a reason; others want it, if the call reads it. */
static void miss(struct xm_enqueued *e, const struct xm_buffer *b, xcclResult_t why)
{
    if (e->op.missed == xcclSuccess) {
        e->op.missed = xm_op_fail(&e->op, why);
    }
    e->misleads = e->misleads || b->in;
}

/* Where there is no memory for a packed copy, the pointer is NULL. */
static void make_usable(struct xm_enqueued *e, struct xm_usable *u, const struct xm_buffer *b)
{
    struct xm_lane lane = {.copier = &e->op.copier, .buffer = b};
    void          *packed;

    u->buffer = b;
    u->ptr = b->buf;
    if (!b->used || (b->plain && !b->absolute &&
                     ((b->mem.kind == XC_MEM_MANAGED) ||
                      ((b->mem.kind == XC_MEM_DEVICE) && (b->mem.device == e->op.home))))) {
        return;
    }
    const char  *fault = fault_of(b);
    xcclResult_t res = xm_scratch_take_device(&e->op.scratch, (size_t)b->bytes, &packed);

    u->packed = true;
    u->ptr = lane.other = (res == xcclSuccess) ? packed : NULL;
    if (fault != NULL) {
        res = xc_fail(xcclUnsupported, "%s", fault);
    } else if ((res == xcclSuccess) && b->in) {
        res = xm_enqueue(&lane);
    }
    if (res != xcclSuccess) {
        miss(e, b, res);
    }
}

/*
 * Let the other ranks of the node know that what they receive is not this rank's data: before it is
 * under way. Of a captured call they hear once, as no launch of the graph is seen.
 */
static void warn_others(struct xm_enqueued *e)
{
    struct xm_stream_comm *sc = e->sc;
    size_t                 n = strlen(e->op.detail);

    if (sc->xm->slots != NULL) {
        xm_slots_say_missed(sc->xm->slots, XM_MISS_CARRIED | sc->carried);
    } else {
        snprintf(e->op.detail + n, sizeof(e->op.detail) - n,
                 "; the other ranks cannot be told, and their results may be wrong");
    }
}

void xm_carry_pack(struct xm_enqueued *e)
{
    xm_buffer_take_apart(&e->op.buffers.send);
    xm_buffer_take_apart(&e->op.buffers.recv);
    make_usable(e, &e->op.send, &e->op.buffers.send);
    make_usable(e, &e->op.recv, &e->op.buffers.recv);
    if (e->misleads && (e->sc->xm->size > 1)) {
        warn_others(e);
    }
}

xcclResult_t xm_carry_unpack(struct xm_enqueued *e)
{
    const struct xm_usable *u = &e->op.recv;
    struct xm_lane          lane = {
                 .copier = &e->op.copier, .buffer = u->buffer, .other = u->ptr, .out = true};

    return ((e->op.missed == xcclSuccess) && u->packed && u->buffer->out) ? xm_enqueue(&lane)
                                                                          : xcclSuccess;
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

    if (op->missed != xcclSuccess) {
        return xcclSuccess; /* nobody else waits */
    }
    return op->dev->copy_async(op->recv.ptr, op->send.ptr, (size_t)op->buffers.send.bytes,
                               op->stream);
}

/* ---- direct ---- */

static uint32_t larger(uint32_t a, uint32_t b)
{
    return (a > b) ? a : b;
}

static bool is_missing(const struct xm_usable *u)
{
    return (u->buffer != NULL) && u->buffer->used && (u->ptr == NULL);
}

/*
 * What is sent from, and received in, memory that is missing is a block of whatever lies in memory
 * of the communicator's own: each rank waits for as much as it does else.
 */
static void fill_parts(const struct xm_enqueued *e, struct xk_exchange *what)
{
    const struct xm_op   *op = &e->op;
    struct xm_direct_form form = {.form = XK_BARRIER, .what = XK_NO_REDUCTION};
    bool                  sends = false, receives = false; /* from there, and to there */

    if (op->call.coll != XM_BARRIER) {
        xm_direct_form_of(op, &form);
        /* The only buffer of a call is its input and its output. */
        sends = is_missing(op->buffers.send.used ? &op->send : &op->recv);
        receives = is_missing(op->buffers.recv.used ? &op->recv : &op->send);
    }
    uint64_t spare = (sends || receives) ? (uint64_t)(uintptr_t)xm_stream_comm_soil(e->sc) : 0;
    what->in = sends ? spare : form.in;
    what->out = receives ? spare : form.out;
    what->what = form.what;
    for (int i = 0; i < op->comm->size; i++) {
        struct xk_part *part = &what->parts[i];
        struct xk_span  span = xm_direct_span(op, &form, i);
        span.send_at = sends ? 0 : span.send_at;
        span.receive_at = receives ? 0 : span.receive_at;
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
    fill_parts(e, &what.exchange);
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

    if (is_missing(&e->op.send) || is_missing(&e->op.recv)) {
        /* The library reads or writes all of it, however long it is. */
        return xc_fail(e->op.missed,
                       "%s; the vendor's library cannot do without, so the streams of the other "
                       "ranks wait for this one",
                       e->op.detail);
    }
    bool may_block = xm_ccl_may_block(&e->op);
    if (q->capturing || !may_block) {
        return xm_ccl_enqueue(&e->op);
    }
    xcclResult_t res = xm_offload(&job.job, "for the vendor's library to connect");
    if (res != xcclSuccess) { /* there is no thread: rather without progress than not at all */
        return xm_ccl_enqueue(&e->op);
    }
    return (job.result != xcclSuccess) ? xc_fail(job.result, "%s", job.detail) : xcclSuccess;
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
