/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The vendor's library carries the operation.
 *
 * It connects at the first use of an algorithm or of a peer, and waits for the other ranks
 * meanwhile. So a call of a kind that this communicator has not seen is enqueued on a thread, and
 * the caller lets MPI progress; calls of a kind known to be connected (ccl_known.c) go to the
 * stream at once.
 */
#include "paths/ccl.h"

#include <string.h>

#include "base/log.h"
#include "comms/wait.h"
#include "data/events.h"
#include "paths/buffers.h"

/* A blocking call has its device current from beginning to end. */
static xcclResult_t enter(struct xm_op *op, void **saved_p)
{
    *saved_p = NULL;
    return op->entered ? xcclSuccess : op->dev->enter(op->vendor->device, saved_p);
}

static void leave(const struct xm_op *op, void *saved)
{
    if (!op->entered) {
        op->dev->leave(saved);
    }
}

static xcclResult_t enqueue(struct xm_op *op)
{
    xcclResult_t res = xm_usable_pack(op);

    if (res != xcclSuccess) {
        return res;
    }
    res = xm_ccl_enqueue(op);
    if ((res != xcclSuccess) || op->blocking) {
        return res;
    }
    res = xm_event_take(op->dev, op->vendor->device, &op->event);
    return (res == xcclSuccess) ? op->dev->event_record(op->event, op->vendor->stream) : res;
}

static void launch(struct xm_launch *base)
{
    struct xm_op *op = (struct xm_op *)((char *)base - offsetof(struct xm_op, launch));
    int           mode = xc_device_relax(op->dev);

    xm_op_waits(op);
    op->result = enqueue(op);
    xc_device_restore(op->dev, mode);
    if (op->result != xcclSuccess) {
        xm_op_fail(op, op->result);
    }
    bool              in_turn = op->in_turn;
    struct xm_vendor *vendor = op->vendor;
    /* Now the operation may be gone. */
    if (__atomic_exchange_n(&op->launched, XM_LAUNCHED, __ATOMIC_ACQ_REL) == XM_LAUNCH_LOST) {
        xm_outstanding_end();
        xm_vendor_release(vendor);
    }
    if (in_turn) {
        xm_order_enqueued();
    }
}

/*
 * An operation that fails before it was launched must not be launched any more. If a thread is at
 * it just now, that may go on for as long as the vendor's library blocks: then the operation's
 * memory is left to it for good.
 */
static bool was_lost(struct xm_op *op)
{
    int waiting = XM_LAUNCH_WAITS;

    if ((op->launch.run == NULL) || (op->in_turn && xm_order_withdraw(&op->turn))) {
        return false;
    }
    if (xm_vendor_withdraw(op->vendor, &op->launch)) {
        if (op->in_turn) {
            xm_order_enqueued();
        }
        return false;
    }
    return __atomic_compare_exchange_n(&op->launched, &waiting, XM_LAUNCH_LOST, false,
                                       __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* From whatever thread comes first to see that it is the operation's turn. */
static bool go(struct xm_turn *turn)
{
    struct xm_op               *op = (struct xm_op *)((char *)turn - offsetof(struct xm_op, turn));
    const struct xc_device_ops *dev = op->dev;
    void                       *saved;
    bool                        entered = (dev->enter(op->vendor->device, &saved) == xcclSuccess);

    xm_vendor_launch(op->vendor, &op->launch, op->may_block); /* the operation may be gone now */
    if (entered) {
        dev->leave(saved);
    }
    return true;
}

void xm_ccl_take_over(struct xm_op *op)
{
    op->taken = true;
    op->apart = NULL; /* the result goes where it belongs */
    op->stream = op->vendor->stream;
    op->launch.run = launch;
    op->may_block = xm_ccl_may_block(op);
    xm_vendor_launch(op->vendor, &op->launch, op->may_block); /* the operation may be gone now */
}

static void launch_in_turn(struct xm_op *op)
{
    struct xm_comm *xm = op->comm;
    bool            on_board = xm->slots_agreed;
    bool            gated = on_board && xm_order_wanted(xm->slots, op->blocking);

    xm->ordered_calls++;
    op->in_turn = gated;
    op->turn = (struct xm_turn){xm->slots, xm->order_id, xm->ordered_calls, NULL, go, NULL,
                                0,         op->blocking};
    if (on_board) {
        xm_order_arrive(xm->slots, xm->ordered_calls, gated ? &op->turn : NULL);
    }
    if (!gated) {
        xm_vendor_launch(op->vendor, &op->launch, op->may_block);
    }
}

static xcclResult_t start(struct xm_op *op)
{
    void *saved;

    op->vendor = xm_comm_hold_vendor(op->comm);
    if (op->vendor == NULL) {
        return xm_op_fail(op, xc_fail(xcclInvalidUsage, "%s", op->comm->reason));
    }
    xcclResult_t res = op->dev->enter(op->vendor->device, &saved);
    if (res != xcclSuccess) {
        return xm_op_fail(op, res);
    }
    op->entered = op->blocking;
    op->saved = saved;
    op->home = op->vendor->device;
    op->stream = op->vendor->stream;
    res = xm_usable_begin(op);
    if (res == xcclSuccess) {
        op->launch.run = launch;
        op->stage = XM_STAGE_WORK;
        op->may_block = xm_ccl_may_block(op);
        launch_in_turn(op);
    }
    leave(op, saved);
    return (res == xcclSuccess) ? res : xm_op_fail(op, res);
}

static xcclResult_t query(const struct xm_op *op)
{
    if (op->event != NULL) {
        return op->dev->event_query(op->event);
    }
    return op->dev->stream_query((op->stage == XM_STAGE_COPY) ? op->copier.stream
                                                              : op->vendor->stream);
}

static xcclResult_t async_error(const struct xm_op *op)
{
    xcclResult_t state = xcclSuccess;
    xcclResult_t res = xcclCommGetAsyncError(op->vendor->xcomm, &state);

    if ((res != xcclSuccess) || (state == xcclSuccess) || (state == xcclInProgress)) {
        return res;
    }
    const char *detail = xcclGetLastError(op->vendor->xcomm);
    return xc_fail(state, "asynchronous error: %s%s%s", xcclGetErrorString(state),
                   (detail[0] != '\0') ? ": " : "", detail);
}

/* Errors of the library show there alone; asking costs little, but not nothing. */
static xcclResult_t look_for_failure(struct xm_op *op)
{
    enum { POLLS_PER_LOOK = 1024 };

    if ((++op->polls % POLLS_PER_LOOK) != 0) {
        return xcclInProgress;
    }
    return (async_error(op) != xcclSuccess) ? xm_op_fail(op, xcclRemoteError)
                                            : xm_op_look_for_broken(op);
}

/* With the device entered. The vendor's work is over. */
static xcclResult_t copy_back(struct xm_op *op)
{
    xcclResult_t res = async_error(op);

    return (res == xcclSuccess) ? xm_usable_copy_back(op) : res;
}

static xcclResult_t progress_entered(struct xm_op *op)
{
    xcclResult_t res = query(op);

    if (res == xcclInProgress) {
        return look_for_failure(op);
    }
    if ((res == xcclSuccess) && (op->stage == XM_STAGE_WORK)) {
        res = copy_back(op);
    }
    return ((res == xcclSuccess) || (res == xcclInProgress)) ? res : xm_op_fail(op, res);
}

static xcclResult_t progress(struct xm_op *op)
{
    void *saved;

    if (__atomic_load_n(&op->launched, __ATOMIC_ACQUIRE) == XM_LAUNCH_WAITS) {
        xm_order_poll_for(&op->turn, op->blocking);
        return look_for_failure(op);
    }
    if (op->result != xcclSuccess) {
        return op->result; /* with its detail */
    }
    xcclResult_t res = enter(op, &saved);
    if (res != xcclSuccess) {
        return xm_op_fail(op, res);
    }
    res = progress_entered(op);
    leave(op, saved);
    return res;
}

static void release(struct xm_op *op, bool failed)
{
    if (op->vendor == NULL) {
        return;
    }
    if (!failed) {
        xm_usable_free(op);
        xm_scratch_end(&op->scratch);
        xm_event_give(op->dev, op->vendor->device, op->event);
    }
    if (op->entered) {
        op->dev->leave(op->saved);
    }
    op->lost = failed && was_lost(op);
    if (!op->lost) {
        xm_op_waits_no_more(op);
        xm_vendor_release(op->vendor);
    }
}

const struct xm_path xm_path_ccl = {"ccl", start, progress, release, false};
