/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A copy engine that writes to another device takes 2.5 us less than one that reads from it, and
 * two that write in either direction fill the links better: 767 GB/s, and 730 where both read; if
 * some read while others write, 600 (2 H200s). So a receiver whose sender looks at the message just
 * now asks for it to be written, and reads it only if the sender does not come to that. The
 * question and the answer take the most of 2 us, so shorter messages gain nothing, nor do long ones
 * that go one way only.
 */
#include "transfers/push.h"

#include "base/log.h"
#include "base/params.h"
#include "comms/wait.h"
#include "data/events.h"
#include "data/mappings.h"
#include "transfers/question.h"
#include "transfers/transfer.h"
#include "transfers/watcher.h"

enum { ALONE_FROM = 512 << 10, ALONE_TO = 4 << 20 };
/*
 * A sender that looked so long ago has most likely other things to do. So has one that does not
 * answer for so long: then some messages are read before another is asked for. Of several it takes
 * long to look at all; and some that are read while others are written would share an engine.
 */
enum { PATIENCE_NS = 20 * 1000, BYTES_PER_NS = 200, LONG_PATIENCE_NS = 100 * 1000 * 1000 };
/*
 * The sender of a long one has messages of this process to look at, too, and may be posting a
 * window of them: that alone takes 300 us.
 */
enum { BOTH_WAYS_NS = 1000 * 1000, BOTH_WAYS = 5 /* times as long */ };
/* Who looks at what it is asked gets longer: it may have many others to write. */
enum { BUSY_PATIENCE_NS = 20 * 1000 * 1000 };
enum { SKIPS = 32 };

static bool refused; /* atomic: this process could not map a receiver's memory */
static int  skips;   /* atomic: messages that are not asked for */

/* ---- by the receiver ---- */

static uint64_t patience(const struct xm_rendezvous *r)
{
    uint64_t takes = r->from.bytes / BYTES_PER_NS;

    if (xc_params()->p2p_push == XC_P2P_PUSH_ON) {
        return LONG_PATIENCE_NS;
    }
    return (r->from.bytes >= XM_LONG_BYTES) ? BOTH_WAYS_NS + BOTH_WAYS * takes
                                            : PATIENCE_NS + takes;
}

bool xm_push_depends(uint64_t bytes)
{
    return bytes >= XM_LONG_BYTES;
}

static bool is_worth_it(const struct xm_rendezvous *r, bool several)
{
    uint64_t bytes = r->from.bytes;

    if (xc_params()->p2p_push != XC_P2P_PUSH_AUTO) {
        return xc_params()->p2p_push == XC_P2P_PUSH_ON;
    }
    if (bytes >= XM_LONG_BYTES) {
        return xm_offers_any_long();
    }
    return !several && (bytes >= ALONE_FROM) && (bytes < ALONE_TO);
}

/* Has the sender looked lately at what it is asked, or is it at that? */
static bool is_looking(const struct xm_rendezvous *r)
{
    const struct xm_mailbox *m = xm_offer_mailbox(r->offer, r->got.slot);
    uint64_t                 looked = __atomic_load_n(&m->looked_ns, __ATOMIC_RELAXED);

    return (int64_t)(xm_now_ns() - looked) < (int64_t)patience(r);
}

static bool is_attended(const struct xm_rendezvous *r)
{
    if (xc_params()->p2p_push == XC_P2P_PUSH_ON) {
        return true;
    }
    if (__atomic_load_n(&skips, __ATOMIC_RELAXED) > 0) {
        __atomic_sub_fetch(&skips, 1, __ATOMIC_RELAXED);
        return false;
    }
    /* One of many that is read while others are written costs more than to wait for the sender. */
    return (r->from.bytes >= XM_LONG_BYTES) || is_looking(r);
}

static bool has_patience(const struct xm_rendezvous *r)
{
    uint64_t waited = xm_now_ns() - r->came_ns;

    return (waited < patience(r)) || ((waited < BUSY_PATIENCE_NS) && is_looking(r));
}

/* The thread that watches has entered no device of its own, and only there memory has a handle. */
static bool export_target(const struct xc_device_ops *dev, const struct xm_rendezvous *r,
                          const char *to)
{
    void *saved;

    if (dev->enter(r->receive.mem.device, &saved) != xcclSuccess) {
        return false;
    }
    xcclResult_t res = xm_export(dev, to, 0, &r->offer->target);
    dev->leave(saved);
    return res == xcclSuccess;
}

bool xm_push_ask(struct xm_rendezvous *r, const struct xc_device_ops *dev, bool several)
{
    struct xm_board_address own;
    const char             *to = r->receive.buf + r->receive.low;
    struct xm_offer        *offer = r->offer;

    if (!is_worth_it(r, several) || !is_attended(r) || !export_target(dev, r, to)) {
        return false;
    }
    xm_board_address_of(xm_board_own(), &own);
    offer->target_nonce = own.nonce;
    offer->target_offset = (uint64_t)(uintptr_t)to - offer->target.base;
    if (!xm_offer_move(offer, r->got.number, XM_OFFER_TAKEN, XM_OFFER_ASKED)) {
        return false;
    }
    __atomic_add_fetch(&xm_offer_mailbox(offer, r->got.slot)->asks, 1, __ATOMIC_RELEASE);
    return true;
}

enum xm_push xm_push_look(struct xm_rendezvous *r)
{
    uint64_t state = __atomic_load_n(&r->offer->state, __ATOMIC_ACQUIRE);

    switch (state - xm_offer_word(r->got.number, 0)) {
    case XM_OFFER_ASKED:
        if (has_patience(r)) {
            return XM_PUSH_WAITS;
        }
        if (!xm_offer_move(r->offer, r->got.number, XM_OFFER_ASKED, XM_OFFER_TAKEN)) {
            return XM_PUSH_WAITS;
        }
        __atomic_store_n(&skips, SKIPS, __ATOMIC_RELAXED);
        return XM_PUSH_NOT;
    case XM_OFFER_PUSHING:
        return XM_PUSH_WAITS;
    case XM_OFFER_TAKEN:
        return XM_PUSH_NOT;
    default: /* and the sender may have used the offer again */
        xc_trace("%llu bytes were written by their sender", (unsigned long long)r->from.bytes);
        return XM_PUSH_DONE;
    }
}

/* ---- by the sender ---- */

/* Has it been asked since the last time? */
bool xm_push_attend(void)
{
    static uint64_t seen; /* atomic */

    if (__atomic_load_n(&refused, __ATOMIC_RELAXED)) {
        return false;
    }
    uint64_t asks = xm_mailbox_looked();
    return __atomic_exchange_n(&seen, asks, __ATOMIC_RELAXED) != asks;
}

static xcclResult_t enqueue_held(struct xm_rendezvous *r, const struct xc_device_ops *dev)
{
    const struct xm_offer *offer = xm_offer_own(r->slot);
    char                  *base = NULL;
    xcclStream_t           stream;

    if (__atomic_load_n(&refused, __ATOMIC_RELAXED)) {
        return xcclUnsupported;
    }
    xcclResult_t res =
        xm_mapping_of(offer->target_nonce, &offer->target, dev, r->sent_device, &base);
    if (res == xcclSuccess) {
        res = (xm_offer_own(r->slot)->source.bytes >= ALONE_TO)
                  ? xm_next_copy_stream(dev, r->sent_device, &stream)
                  : xm_copy_stream(dev, r->sent_device, &stream);
    } else if (res != xcclInProgress) {
        __atomic_store_n(&refused, true, __ATOMIC_RELAXED);
    }
    if (res == xcclSuccess) {
        res = xm_event_take(dev, r->sent_device, &r->pushed);
    }
    if (res == xcclSuccess) {
        res = dev->copy_async(base + offer->target_offset, r->sent,
                              (size_t)xm_offer_own(r->slot)->source.bytes, stream);
    }
    if (res == xcclSuccess) {
        res = dev->event_record(r->pushed, stream);
        if (res != xcclSuccess) { /* no copy is under way when the receiver reads it itself */
            xm_stream_wait_apart(dev, stream);
        }
    }
    if (res == xcclSuccess) {
        xm_question_begin(r);
    }
    return res;
}

static xcclResult_t enqueue(struct xm_rendezvous *r, const struct xc_device_ops *dev)
{
    xm_mappings_hold();
    xcclResult_t res = enqueue_held(r, dev);
    xm_mappings_let_go();
    return res;
}

/* The receiver is to read it. */
static void give_up(struct xm_rendezvous *r, const struct xc_device_ops *dev)
{
    xm_event_give(dev, r->sent_device, r->pushed);
    r->pushed = NULL;
    xm_offer_move(xm_offer_own(r->slot), r->number, XM_OFFER_PUSHING, XM_OFFER_TAKEN);
}

void xm_push_begin(struct xm_rendezvous *r)
{
    const struct xc_device_ops *dev = xc_device_active();
    void                       *saved;

    if (!xm_offer_move(xm_offer_own(r->slot), r->number, XM_OFFER_ASKED, XM_OFFER_PUSHING)) {
        return;
    }
    xcclResult_t res = dev->enter(r->sent_device, &saved);
    if (res == xcclSuccess) {
        xm_mailbox_looks_for(BUSY_PATIENCE_NS); /* to map the receiver's memory takes its time */
        res = enqueue(r, dev);
        dev->leave(saved);
        xm_mailbox_looked(); /* each takes microseconds */
    }
    if (res != xcclSuccess) {
        give_up(r, dev);
    }
}

void xm_push_advance(struct xm_rendezvous *r)
{
    const struct xc_device_ops *dev = xc_device_active();
    xcclResult_t                res = xm_question_ask(r, dev, r->pushed);

    if (res == xcclInProgress) {
        return;
    }
    if (res != xcclSuccess) {
        give_up(r, dev);
        return;
    }
    xm_event_give(dev, r->sent_device, r->pushed);
    r->pushed = NULL;
    xm_offer_move(xm_offer_own(r->slot), r->number, XM_OFFER_PUSHING, XM_OFFER_DONE);
}
