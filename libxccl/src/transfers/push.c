/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A copy engine that writes to another device takes 2.5 us less than one that reads from it, and
 * fills the link better (2 H200s). So a receiver whose sender looks at the message just now asks
 * for it to be written, and reads it only if the sender does not come to that.
 */
#include "base/log.h"
#include "base/params.h"
#include "comms/wait.h"
#include "transfers/transfer.h"

/*
 * A sender that looked so long ago has most likely other things to do. So has one that does not
 * answer for so long: then some messages are read before another is asked for.
 */
enum { SKIPS = 32 };
enum { ATTENDED_NS = 20 * 1000, PATIENCE_NS = 20 * 1000, LONG_PATIENCE_NS = 100 * 1000 * 1000 };
/* Several at once are copied by kernels if they are shorter: see fetch.c. */
enum { SEVERAL_BYTES = 8 << 20 };

static bool refused; /* atomic: this process could not map a receiver's memory */
static int  skips;   /* atomic: messages that are not asked for */

/* ---- by the receiver ---- */

static bool is_attended(const struct xm_offer *offer)
{
    if (__atomic_load_n(&skips, __ATOMIC_RELAXED) > 0) {
        __atomic_sub_fetch(&skips, 1, __ATOMIC_RELAXED);
        return false;
    }
    return xm_now_ns() - __atomic_load_n(&offer->looked_ns, __ATOMIC_RELAXED) < ATTENDED_NS;
}

bool xm_push_ask(struct xm_rendezvous *r, const struct xc_device_ops *dev, bool several)
{
    struct xm_board_address own;
    const char             *to = r->receive.buf + r->receive.low;
    struct xm_offer        *offer = r->offer;
    int                     push = xc_params()->p2p_push;

    if ((push == XC_P2P_PUSH_OFF) || (r->got.bytes <= XM_QUICK_BYTES) ||
        (several && (r->got.bytes < SEVERAL_BYTES)) ||
        ((push == XC_P2P_PUSH_AUTO) && !is_attended(offer)) ||
        (dev->ipc_export(to, &offer->target) != xcclSuccess)) {
        return false;
    }
    xm_board_address_of(xm_board_own(), &own);
    offer->target_nonce = own.nonce;
    offer->target_offset = (uint64_t)(uintptr_t)to - offer->target.base;
    return xm_offer_move(offer, r->got.number, XM_OFFER_TAKEN, XM_OFFER_ASKED);
}

enum xm_push xm_push_look(struct xm_rendezvous *r)
{
    bool     patient = (xc_params()->p2p_push == XC_P2P_PUSH_ON);
    uint64_t state = __atomic_load_n(&r->offer->state, __ATOMIC_ACQUIRE);

    switch (state - r->got.number * 8) {
    case XM_OFFER_ASKED:
        if (xm_now_ns() - r->came_ns < (patient ? LONG_PATIENCE_NS : PATIENCE_NS)) {
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
        xc_trace("%llu bytes were written by their sender", (unsigned long long)r->got.bytes);
        return XM_PUSH_DONE;
    }
}

/* ---- by the sender ---- */

void xm_push_attend(struct xm_rendezvous *r)
{
    if (!__atomic_load_n(&refused, __ATOMIC_RELAXED)) {
        __atomic_store_n(&xm_offer_own(r->slot)->looked_ns, xm_now_ns(), __ATOMIC_RELAXED);
    }
}

static xcclResult_t enqueue(struct xm_rendezvous *r, const struct xc_device_ops *dev)
{
    const struct xm_offer *offer = xm_offer_own(r->slot);
    char                  *base = NULL;
    xcclStream_t           stream;

    xcclResult_t res =
        xm_mapping_of(offer->target_nonce, &offer->target, dev, r->sent_device, &base);
    if (res == xcclSuccess) {
        res = xm_next_copy_stream(dev, r->sent_device, &stream);
    } else if (res != xcclInProgress) {
        __atomic_store_n(&refused, true, __ATOMIC_RELAXED);
    }
    if (res == xcclSuccess) {
        res = xm_event_take(dev, r->sent_device, &r->pushed);
    }
    if (res == xcclSuccess) {
        res = dev->copy_async(base + offer->target_offset, r->sent, (size_t)r->out.bytes, stream);
    }
    return (res == xcclSuccess) ? dev->event_record(r->pushed, stream) : res;
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
        res = enqueue(r, dev);
        dev->leave(saved);
    }
    if (res != xcclSuccess) {
        give_up(r, dev);
    }
}

void xm_push_advance(struct xm_rendezvous *r)
{
    const struct xc_device_ops *dev = xc_device_active();
    xcclResult_t                res = dev->event_query(r->pushed);

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
