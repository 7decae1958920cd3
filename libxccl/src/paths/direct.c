/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kernels of our own carry the operation: the ranks of a node write into each other's memory.
 *
 * A kernel waits for those of the other ranks, as the vendor's do; nothing here waits on the host
 * but for the buffers of a large collective to be shown, and that is polled for.
 */
#include "paths/direct.h"

#include <string.h>

#include "base/log.h"
#include "base/params.h"
#include "comms/wait.h"
#include "data/events.h"
#include "data/lingering.h"
#include "paths/ccl.h"

/* A kernel that failed says nothing; its stream does, asked every so many polls. */
enum { POLLS_PER_LOOK = 4096 };

static xcclResult_t enter(struct xm_op *op, void **saved_p)
{
    *saved_p = NULL;
    return op->entered ? xcclSuccess : op->dev->enter(op->home, saved_p);
}

static void leave(const struct xm_op *op, void *saved)
{
    if (!op->entered) {
        op->dev->leave(saved);
    }
}

/*
 * AGAIN: something has to be unmapped first. TAKEN: the vendor's library has it, and its order.
 * TOLD: it keeps its turn, since the kernel that was told may leave without it.
 */
enum enqueued { ENQUEUED_AGAIN, ENQUEUED, ENQUEUED_TAKEN, ENQUEUED_TOLD };

/* All ranks see the same of the buffers, and what cannot be mapped they all do otherwise. */
static enum enqueued enqueue(struct xm_op *op)
{
    xcclResult_t res = (op->counts_later || op->counts_shown) ? xm_direct_later(op)
                       : op->mapped                           ? xm_direct_mapped(op, false)
                                                              : xcclUnsupported;

    if (res == xcclInProgress) {
        return ENQUEUED_AGAIN;
    }
    if ((res == xcclUnsupported) && (op->vendor != NULL)) {
        xm_direct_release(op->direct);
        xm_ccl_take_over(op);
        return ENQUEUED_TAKEN;
    }
    if (res == xcclUnsupported) {
        op->mapped = false;
        op->rounds += op->instead;
        res = xm_usable_pack(op);
        res = (res == xcclSuccess) ? xm_direct_exchange(op, true) : res;
    }
    op->result = (res == xcclSuccess) ? res : xm_op_fail(op, res);
    op->keeps_turn = op->in_turn && op->told;
    enum enqueued how = op->keeps_turn ? ENQUEUED_TOLD : ENQUEUED;
    __atomic_store_n(&op->launched, XM_LAUNCHED, __ATOMIC_RELEASE);
    return how;
}

/* What was told is over, or on its stream. */
static void give_turn(struct xm_op *op)
{
    if (op->keeps_turn) {
        op->keeps_turn = false;
        xm_order_enqueued();
    }
}

/* The operation that was enqueued in its turn, on a device that ranks share. */
static struct {
    struct xm_direct *direct;
    uint32_t          number;
} alone;

static bool alone_is_over(void)
{
    bool over = xm_direct_lost(alone.direct) || xm_direct_is_broken(alone.direct) ||
                xm_direct_done(alone.direct, alone.number);

    if (over) {
        xm_direct_release(alone.direct);
    }
    return over;
}

static struct xm_op *op_of(struct xm_turn *turn)
{
    return (struct xm_op *)((char *)turn - offsetof(struct xm_op, turn));
}

/* Whoever sees that this rank has come may look at its buffers. */
static bool come(struct xm_turn *turn)
{
    struct xm_op *op = op_of(turn);
    void         *saved;
    xcclResult_t  res = op->dev->enter(op->home, &saved);

    if (res == xcclSuccess) {
        res = xm_direct_show(op);
        op->dev->leave(saved);
    }
    return res == xcclSuccess;
}

/* From whatever thread comes first to see that it is the operation's turn. */
static bool go(struct xm_turn *turn)
{
    struct xm_op *op = op_of(turn);
    enum enqueued how = ENQUEUED;
    bool          shared = op->direct->shared;
    void         *saved;
    xcclResult_t  res = op->dev->enter(op->home, &saved);

    if (shared) {
        alone.direct = op->direct;
        alone.number = op->number_there;
        xm_direct_keep(alone.direct);
    }
    if (res == xcclSuccess) {
        const struct xc_device_ops *dev = op->dev;
        how = enqueue(op); /* the operation may be gone now */
        dev->leave(saved);
    } else {
        op->result = xm_op_fail(op, res);
        __atomic_store_n(&op->launched, XM_LAUNCHED, __ATOMIC_RELEASE);
    }
    if (shared && (how == ENQUEUED)) {
        xm_order_enqueued_until(alone_is_over);
    } else if (how == ENQUEUED) {
        xm_order_enqueued();
    } else if (shared) {
        xm_direct_release(alone.direct);
    }
    return how != ENQUEUED_AGAIN;
}

static void launch_in_turn(struct xm_op *op)
{
    struct xm_comm *xm = op->comm;
    bool            gated = xm_order_wanted_direct(xm->slots, op->blocking);
    bool            comes = !gated && op->direct->shared;

    xm->ordered_calls++;
    op->in_turn = gated;
    op->turn = (struct xm_turn){
        xm->slots, xm->order_id, xm->ordered_calls, op->mapped ? come : NULL, go, NULL,
        0,         op->blocking};
    xm_order_arrive(xm->slots, xm->ordered_calls, gated ? &op->turn : NULL);
    if (comes) {
        op->stage = XM_STAGE_COME;
    } else if (!gated) {
        (void)enqueue(op);
    }
}

/*
 * Does a large blocking call wait until nothing comes before it on the device? So it does where
 * ranks take turns on that; and where all wait for their turn, since its kernels wait for nobody
 * then, and need none.
 */
bool xm_direct_rests(const struct xm_op *op)
{
    return op->direct->in_turns || xm_order_always(op->comm->slots);
}

/* All of this rank's work before the call is over. */
static xcclResult_t come_to_rest(struct xm_op *op)
{
    xcclResult_t res = xcclSuccess;

    if (op->event == NULL) {
        op->rested = op->rested || xm_direct_may_tell(op);
    }
    if (op->rested) {
        return xcclSuccess;
    }
    if (op->event == NULL) {
        res = xm_event_take(op->dev, op->home, &op->event);
        if (res == xcclSuccess) {
            res = op->dev->event_record(op->event, op->stream);
        }
    }
    if (res == xcclSuccess) {
        res = op->dev->event_query(op->event);
    }
    if (res == xcclSuccess) {
        xm_event_give(op->dev, op->home, op->event);
        op->event = NULL;
        op->rested = true;
    }
    return res;
}

/* Packed and shown; not yet, if it comes after others that are only waiting for their turn. */
static xcclResult_t show_soon(struct xm_op *op)
{
    if (xm_order_behind(op->comm->slots, xm_direct_rests(op))) {
        xm_order_poll();
        return xcclSuccess;
    }
    xcclResult_t res = ((op->event == NULL) && !op->rested) ? xm_usable_pack(op) : xcclSuccess;
    if ((res == xcclSuccess) && xm_direct_rests(op)) {
        res = come_to_rest(op);
    }
    if (res == xcclSuccess) {
        res = xm_direct_show(op);
    }
    return (res == xcclInProgress) ? xcclSuccess : res;
}

/*
 * How many numbers the operation has. One that the vendor's library may carry instead leaves them
 * unused: two, so that the slots go on to take turns. Else nothing keeps a rank from writing over
 * what another still reads of the operation before.
 */
static uint32_t numbers_of(const struct xm_op *op)
{
    uint32_t rounds = op->rounds + op->instead; /* one of them is 0 */

    if (op->counts_later) {
        return xm_direct_later_numbers(op->direct);
    }
    if (op->mapped && !op->blocking && (op->otherwise == &xm_path_ccl)) {
        return 2;
    }
    return (rounds > 0) ? rounds : 1;
}

/*
 * For buffers that may turn out not to be mapped: what will take its place then. A mapped one has
 * the last of its numbers, which is to be one that there is.
 */
static xcclResult_t prepare_instead(struct xm_op *op)
{
    if (!xm_direct_has_numbers(op->direct, numbers_of(op))) {
        op->mapped = false;
        op->rounds = op->instead;
        op->instead = 0;
    } else if (op->otherwise == &xm_path_ccl) {
        op->vendor = xm_comm_hold_vendor(op->comm);
        if (op->vendor == NULL) {
            return xc_fail(xcclInvalidUsage, "%s", op->comm->reason);
        }
    }
    return ((op->vendor == NULL) || op->ordered)
               ? xcclSuccess
               : op->dev->stream_after_default(op->vendor->stream);
}

/*
 * What MPI may have to do over finds its inputs as they were; or the kernel itself does. A rank
 * without room for that hides its buffers, so that all ranks do otherwise: a blocking call begins
 * anew, and the vendor's library has room of its own. Else the workspaces remain, where a kernel
 * would write over what it has not sent yet: the operation fails, and all ranks hear of it.
 */
static xcclResult_t spare_inputs(struct xm_op *op)
{
    xcclResult_t res = xm_usable_set_apart(op, (size_t)xm_direct_result_bytes(op));

    if ((res != xcclSuccess) && op->mapped && (op->blocking || (op->vendor != NULL))) {
        op->hidden = true;
        return xcclSuccess;
    }
    return res;
}

static xcclResult_t begin(struct xm_op *op)
{
    xcclResult_t res = xm_usable_begin(op);

    if ((res == xcclSuccess) && op->mapped && !op->blocking) {
        res = prepare_instead(op);
    }
    if ((res == xcclSuccess) && (xm_direct_is_checked(op) || xm_direct_overwrites(op))) {
        res = spare_inputs(op);
    }
    if (res != xcclSuccess) {
        return res;
    }
    op->number_there = xm_direct_next(op->direct, numbers_of(op));
    if (op->mapped) {
        op->hidden = op->hidden || ((op->call.coll == XM_REDUCE_SCATTER) && op->buffers.in_place);
    }
    if (op->mapped && op->blocking) {
        op->stage = XM_STAGE_MEET;
        return show_soon(op);
    }
    op->stage = XM_STAGE_WORK;
    launch_in_turn(op);
    return op->in_turn ? xcclSuccess : op->result;
}

static xcclResult_t start(struct xm_op *op)
{
    void *saved;

    op->direct = xm_direct_hold(op->comm);
    op->home = op->direct->device;
    op->stream = op->direct->queue.stream;
    xcclResult_t res = op->dev->enter(op->home, &saved);
    if (res != xcclSuccess) {
        return xm_op_fail(op, res);
    }
    op->entered = op->blocking;
    op->saved = saved;
    res = begin(op);
    leave(op, saved);
    return (res == xcclSuccess) ? res : xm_op_fail(op, res);
}

/* Nothing of it is on the device. */
static xcclResult_t launch_again(struct xm_op *op)
{
    xm_op_waits_no_more(op);
    xcclResult_t res = op->mapped ? xm_direct_mapped(op, false) : xm_direct_exchange(op, false);

    op->again = (res == xcclInProgress); /* a mapping has to be made anew */
    return (res == xcclSuccess) ? xcclInProgress : res;
}

/* Where the kernel has left before it saw the command, another is launched. */
static xcclResult_t query_told(struct xm_op *op)
{
    struct xm_lingering *l = xm_kernels_attendant(op->direct->kernels);
    enum xm_told         how = XM_TOLD_DONE;
    xcclResult_t         res = xm_linger_query(l, &how);

    op->in_trouble = (how == XM_TOLD_IN_TROUBLE);
    if (how == XM_TOLD_LOST) {
        op->told = false;
        op->again = true;
        res = launch_again(op);
        if (!op->again) {
            give_turn(op);
        }
        return res;
    }
    if (res != xcclInProgress) {
        give_turn(op);
    }
    if ((res == xcclInProgress) && ((++op->polls % POLLS_PER_LOOK) == 0)) {
        return xm_linger_look(l);
    }
    return res;
}

static xcclResult_t query(struct xm_op *op)
{
    if (op->event != NULL) {
        return op->dev->event_query(op->event);
    }
    if (op->by_copies) {
        return xm_direct_query_copies(op);
    }
    if (op->told) {
        return query_told(op);
    }
    if (op->again) {
        return launch_again(op);
    }
    if (xm_direct_done(op->direct, op->number_there)) {
        op->in_trouble =
            xm_direct_is_checked(op) && xm_direct_in_trouble(op->direct, op->number_there);
        return xcclSuccess;
    }
    if ((++op->polls % POLLS_PER_LOOK) == 0) {
        xcclResult_t res = op->dev->stream_query(op->stream);
        return (res == xcclSuccess) ? xcclInProgress : res;
    }
    return xcclInProgress;
}

static xcclResult_t copy_back(struct xm_op *op)
{
    if (op->told || op->by_copies) {
        xm_direct_set_done(op->direct, op->number_there);
    }
    return op->in_trouble ? xcclUnsupported : xm_usable_copy_back(op);
}

static xcclResult_t all_done(struct xm_op *op)
{
    return xm_slots_ended(op->comm->slots, op->show, &op->in_trouble) ? copy_back(op)
                                                                      : xcclInProgress;
}

/* Nobody's buffer is used after its call has ended: kernels that did not meet leave it to us. */
static xcclResult_t work_done(struct xm_op *op)
{
    if (!op->mapped || op->meets) {
        return copy_back(op);
    }
    xm_slots_end(op->comm->slots, op->show, op->in_trouble);
    op->stage = XM_STAGE_PART;
    return all_done(op);
}

static xcclResult_t progress_entered(struct xm_op *op)
{
    xcclResult_t res;

    if ((op->stage == XM_STAGE_MEET) && (op->show == 0)) {
        res = show_soon(op);
        res = (res == xcclSuccess) ? xcclInProgress : res;
    } else if (op->stage == XM_STAGE_MEET) {
        res = xm_direct_mapped(op, true);
        if (res == xcclSuccess) {
            xm_order_arrive(op->comm->slots, ++op->comm->ordered_calls, NULL);
            op->launched = XM_LAUNCHED;
            op->stage = XM_STAGE_WORK;
            res = xcclInProgress;
        }
    } else if (op->stage == XM_STAGE_PART) {
        res = all_done(op);
    } else if (op->stage == XM_STAGE_COME) {
        res = xcclInProgress;
        if (xm_order_all_came(op->comm->slots, op->turn.number)) {
            op->stage = XM_STAGE_WORK;
            (void)enqueue(op);
        }
    } else {
        res = query(op);
        if ((res == xcclSuccess) && (op->stage == XM_STAGE_WORK)) {
            res = work_done(op);
        }
    }
    return res;
}

static void say_once(void)
{
    static bool said; /* atomic */

    if (!__atomic_exchange_n(&said, true, __ATOMIC_RELAXED)) {
        xc_info("a sum of integers of 8 or 16 bits may have left their range: MPI does such calls "
                "over, since MPI libraries differ in what comes of it");
    }
}

/*
 * Some rank's memory cannot be mapped, and all see that: through the workspaces, in rounds if it
 * does not fit and the vendor's library is not there. Another path, the same on all ranks, if some
 * rank's part of a checked sum may have left its range.
 */
static xcclResult_t change_path(struct xm_op *op)
{
    bool fits = (op->block_bytes <= xk_slot_data((uint32_t)op->comm->size));

    if (op->in_trouble) {
        say_once();
    } else {
        xm_direct_unused(op->direct); /* slots take turns by it */
        op->rounds = (fits || (op->otherwise == &xm_path_ccl)) ? 0 : xm_direct_rounds_of(op);
    }
    bool waits = op->direct->in_turns && (xc_params()->direct != XC_DIRECT_ON);
    bool stays = !op->in_trouble && !waits && (fits || (op->rounds > 0));
    op->path->release(op, false);
    op->direct = NULL;
    op->event = NULL;
    op->apart = NULL;
    op->entered = false;
    op->rested = false;
    op->stage = XM_STAGE_NEW;
    op->mapped = false;
    op->path = stays ? &xm_path_direct : op->otherwise;
    xcclResult_t res = op->path->start(op);
    return (res == xcclSuccess) ? xcclInProgress : res;
}

static xcclResult_t progress(struct xm_op *op)
{
    void *saved;

    if ((op->stage == XM_STAGE_WORK) &&
        (__atomic_load_n(&op->launched, __ATOMIC_ACQUIRE) == XM_LAUNCH_WAITS)) {
        xm_order_poll_for(&op->turn, op->blocking);
        return xm_op_look_for_broken(op);
    }
    if (op->taken) {
        return xm_path_ccl.progress(op);
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
    if ((res == xcclUnsupported) && ((op->stage == XM_STAGE_MEET) || op->in_trouble)) {
        return change_path(op);
    }
    if (res == xcclInProgress) {
        return xm_op_look_for_broken(op);
    }
    return (res == xcclSuccess) ? res : xm_op_fail(op, res);
}

static void release(struct xm_op *op, bool failed)
{
    xm_direct_unpin(op);
    if (failed && op->in_turn) {
        xm_order_withdraw(&op->turn);
        give_turn(op);
    }
    if (op->taken) {
        xm_path_ccl.release(op, failed);
        return;
    }
    xm_op_waits_no_more(op);
    if (op->vendor != NULL) {
        xm_vendor_release(op->vendor);
    }
    if (op->direct == NULL) {
        return;
    }
    if (failed) {
        if (op->told) {
            xm_linger_leave(xm_kernels_attendant(op->direct->kernels));
        }
        xm_direct_break(op->direct);
    } else {
        xm_usable_free(op);
        xm_scratch_end(&op->scratch);
        xm_event_give(op->dev, op->home, op->event);
    }
    if (op->in_turn && op->direct->shared) {
        (void)xm_order_idle(); /* it may hold the communicator's last share in the device */
    }
    if (op->entered) {
        op->dev->leave(op->saved);
    }
    xm_direct_release(op->direct);
}

const struct xm_path xm_path_direct = {"direct", start, progress, release, false};
