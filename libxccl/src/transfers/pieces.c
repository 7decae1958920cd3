/* SPDX-License-Identifier: BSD-3-Clause */
/* What both sides of a message in pieces have, and the side of the sender. */
#include "transfers/pieces.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "data/events.h"
#include "transfers/pipeline.h"
#include "transfers/watcher.h"

/* ---- both sides ---- */

size_t xm_pieces_bytes(const struct xm_pieces *p, uint64_t i)
{
    uint64_t left = p->bytes - i * p->piece;

    return (size_t)((left < p->piece) ? left : p->piece);
}

/* Where there is no memory for all, there may be for some. */
static xcclResult_t take_memory(struct xm_pieces *p, const struct xc_device_ops *dev)
{
    void        *pinned;
    xcclResult_t res = xcclSystemError;

    xm_scratch_begin(&p->scratch, dev, p->device);
    p->at_once = (p->count < XM_PIECES_AT_ONCE) ? (unsigned)p->count : XM_PIECES_AT_ONCE;
    for (;;) {
        size_t bytes = (p->count == 1) ? (size_t)p->bytes : (size_t)p->piece * p->at_once;
        res = xm_scratch_take(&p->scratch, XM_POOL_HOST, bytes, &pinned);
        if ((res == xcclSuccess) || (p->at_once == 1)) {
            break;
        }
        p->at_once /= 2;
    }
    if (res == xcclSuccess) {
        p->pinned = pinned;
        res = xm_next_copy_stream(dev, p->device, &p->stream);
    }
    return res;
}

static xcclResult_t take_memory_of(struct xm_pieces *p)
{
    const struct xc_device_ops *dev = xc_device_active();
    void                       *saved;
    xcclResult_t                res = dev->enter(p->device, &saved);

    if (res == xcclSuccess) {
        res = take_memory(p, dev);
        dev->leave(saved);
    }
    if (res != xcclSuccess) {
        xm_scratch_end(&p->scratch);
    }
    return res;
}

bool xm_pieces_place(struct xm_pieces *p, int device)
{
    if (p->placed || !xm_pipeline_enter(p->sends)) {
        return p->placed;
    }
    p->device = device;
    p->placed = (p->to != NULL) || (take_memory_of(p) == xcclSuccess);
    if (!p->placed) { /* others have it, and give it back */
        xm_pipeline_leave(p->sends);
    }
    return p->placed;
}

void xm_pieces_free(struct xm_pieces *p)
{
    if (p->pinned != NULL) {
        xm_scratch_end(&p->scratch);
    }
    if (p->placed) {
        xm_pipeline_leave(p->sends);
    }
    free(p->head);
    free(p->whole);
    free(p);
}

void xm_pieces_fail(struct xm_rendezvous *r, struct xm_pieces *p, xcclResult_t res)
{
    if (!p->broken) {
        xm_rendezvous_fail(r, res);
    }
    p->broken = true;
}

void xm_pieces_fail_in_mpi(struct xm_rendezvous *r, struct xm_pieces *p)
{
    xm_pieces_fail(
        r, p,
        xc_fail(xcclInternalError, "MPI failed on a message in pieces; set XCCL_PIPELINE=off"));
}

xcclResult_t xm_pieces_copy(struct xm_pieces *p, uint64_t i, void *to, const void *from,
                            size_t bytes)
{
    const struct xc_device_ops *dev = xc_device_active();
    void                      **event = &p->events[i % p->at_once];
    void                       *saved;
    xcclResult_t                res = dev->enter(p->device, &saved);

    if (res != xcclSuccess) {
        return res;
    }
    res = xm_event_take(dev, p->device, event);
    if (res == xcclSuccess) {
        res = dev->copy_async(to, from, bytes, p->stream);
    }
    if (res == xcclSuccess) {
        res = dev->event_record(*event, p->stream);
    }
    if (res != xcclSuccess) { /* perhaps it is being copied: the event is lost */
        *event = NULL;
    }
    dev->leave(saved);
    return res;
}

bool xm_pieces_copied(struct xm_pieces *p, uint64_t i, xcclResult_t *res_p)
{
    const struct xc_device_ops *dev = xc_device_active();
    void                      **event = &p->events[i % p->at_once];

    *res_p = (*event != NULL) ? dev->event_query(*event) : xcclSuccess;
    if (*res_p == xcclInProgress) {
        return false;
    }
    if (*res_p == xcclSuccess) { /* else it may be gone with a reset of the device */
        xm_event_give(dev, p->device, *event);
    }
    *event = NULL;
    return true;
}

/* ---- the sender ---- */

bool xm_pieces_offer(struct xm_rendezvous *r, uint64_t bytes)
{
    struct xm_pieces *p = calloc(1, sizeof(*p));
    int               tag = (p != NULL) ? xm_pipeline_take_tag(&p->number) : -1;

    if (tag < 0) {
        free(p);
        return false;
    }
    xm_pipeline_describe(&r->out, tag, p->number, bytes);
    p->sends = true;
    p->peer = r->peer;
    p->tag = tag;
    p->bytes = bytes;
    p->piece = r->out.piece;
    p->count = (bytes + p->piece - 1) / p->piece;
    r->outgoing = p;
    r->in_pieces = true;
    r->file = -1;
    r->pushed = NULL;
    __atomic_store_n(&r->offered, true, __ATOMIC_RELEASE);
    xc_trace("%llu bytes from device memory go to rank %d of MPI_COMM_WORLD in %llu pieces",
             (unsigned long long)bytes, p->peer, (unsigned long long)p->count);
    return true;
}

static void collect_gone(struct xm_rendezvous *r)
{
    struct xm_pieces *p = r->outgoing;
    int               flag = 1;

    while ((p->third < p->second) && flag) {
        if (xm_pmpi.Test(&p->requests[p->third % p->at_once], &flag, MPI_STATUS_IGNORE) !=
            MPI_SUCCESS) {
            xm_pieces_fail_in_mpi(r, r->outgoing);
            flag = 1;
        }
        p->third += flag ? 1 : 0;
    }
}

/*
 * The last one is gone when the receiver has given MPI the receives of all: then another message
 * may have the tag.
 */
static int send_piece(struct xm_pieces *p, uint64_t i, int bytes)
{
    const char  *from = p->pinned + (i % p->at_once) * p->piece;
    MPI_Request *request = &p->requests[i % p->at_once];
    bool         last = (i == p->count - 1);

    *request = XM_HANDLE(MPI_REQUEST_NULL);
    return last ? xm_pmpi.Issend(from, bytes, XM_HANDLE(MPI_BYTE), p->peer, p->tag,
                                 xm_pipeline_comm(), request)
                : xm_pmpi.Isend(from, bytes, XM_HANDLE(MPI_BYTE), p->peer, p->tag,
                                xm_pipeline_comm(), request);
}

/* One that could not be copied goes without bytes: its receiver waits, and learns it so. */
static void send_copied(struct xm_rendezvous *r)
{
    struct xm_pieces *p = r->outgoing;
    xcclResult_t      res = xcclSuccess;

    while ((p->second < p->first) && xm_pieces_copied(p, p->second, &res)) {
        uint64_t i = p->second++;
        if (res != xcclSuccess) {
            xm_pieces_fail(r, r->outgoing, res);
        }
        if (send_piece(p, i, p->broken ? 0 : (int)xm_pieces_bytes(p, i)) != MPI_SUCCESS) {
            xm_pieces_fail_in_mpi(r, r->outgoing);
        }
    }
}

static void copy_more(struct xm_rendezvous *r)
{
    struct xm_pieces *p = r->outgoing;

    while ((p->first < p->count) && (p->first - p->third < p->at_once)) {
        uint64_t     i = p->first++;
        xcclResult_t res = xcclSuccess;
        if (!p->broken) {
            res = xm_pieces_copy(p, i, p->pinned + (i % p->at_once) * p->piece,
                                 r->sent + i * p->piece, xm_pieces_bytes(p, i));
        }
        if (res != xcclSuccess) {
            xm_pieces_fail(r, r->outgoing, res);
        }
    }
}

static void end(struct xm_rendezvous *r)
{
    int tag = r->outgoing->tag;

    xm_pieces_free(r->outgoing);
    r->outgoing = NULL;
    xm_pipeline_give_tag(tag);
    __atomic_store_n(&r->offered, false, __ATOMIC_RELEASE);
}

bool xm_pieces_send(struct xm_rendezvous *r)
{
    struct xm_pieces *p = r->outgoing;

    if (!p->answered) {
        bool takes;
        p->answered = xm_pipeline_answered(p->tag, &takes);
        p->refused = p->answered && !takes;
    }
    if (!p->answered) {
        return false;
    }
    if (!p->refused) {
        if (!xm_pieces_place(p, r->sent_device)) {
            return false;
        }
        uint64_t before = p->first + p->second + p->third;
        collect_gone(r);
        copy_more(r);
        send_copied(r);
        if (p->first + p->second + p->third != before) {
            xm_watch_moved();
        }
        if (p->third < p->count) {
            return false;
        }
    }
    end(r);
    return true;
}

void xm_pieces_drop(struct xm_rendezvous *r, bool sent)
{
    if (!sent) {
        end(r);
    }
    r->outgoing = NULL; /* else the receiver may still ask for it */
    __atomic_store_n(&r->offered, false, __ATOMIC_RELEASE);
}
