/* SPDX-License-Identifier: BSD-3-Clause */
/* The side of the receiver of a message in pieces. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "transfers/fetch.h"
#include "transfers/landing.h"
#include "transfers/pieces.h"
#include "transfers/pipeline.h"
#include "transfers/transfer.h"
#include "transfers/watcher.h"

/* Bytes with holes between them on a device are collected in host memory, and scattered at last. */
static xcclResult_t find_target(struct xm_transfer *t, struct xm_pieces *p)
{
    struct xm_rendezvous *r = &t->rendezvous;
    xcclResult_t          res = xm_fetch_host_target(t, &p->to);

    if ((res == xcclSuccess) && (p->to == NULL) && !r->receive.plain) {
        p->to = p->whole = malloc((size_t)p->bytes);
        res = (p->to != NULL)
                  ? res
                  : xc_fail(xcclSystemError, "out of memory for a message of %llu bytes",
                            (unsigned long long)p->bytes);
    }
    if ((res == xcclSuccess) && r->early && xm_landing_is_in_place(t)) {
        p->head = malloc(xm_pieces_bytes(p, 0));
        res = (p->head != NULL) ? res : xc_fail(xcclSystemError, "out of memory for a message");
    }
    return res;
}

void xm_pieces_receive(struct xm_transfer *t)
{
    struct xm_rendezvous *r = &t->rendezvous;
    struct xm_pieces     *p = calloc(1, sizeof(*p));

    r->from.bytes = r->got.bytes;
    r->offer = NULL;
    r->event = NULL;
    r->head_kept = false;
    r->came_in_pieces = true;
    r->incoming = p;
    if (p == NULL) {
        xm_rendezvous_fail(r, xc_fail(xcclSystemError, "out of memory for a message"));
        xm_fetch_end(r);
        return;
    }
    p->peer = r->got.pid;
    p->tag = r->got.slot;
    p->number = r->got.number;
    p->bytes = r->got.bytes;
    p->piece = r->got.piece;
    p->count = (p->bytes + p->piece - 1) / p->piece;
    p->at_once = (p->count < XM_PIECES_AT_ONCE) ? (unsigned)p->count : XM_PIECES_AT_ONCE;
    if (p->bytes > (uint64_t)r->receive.bytes) {
        r->code = MPI_ERR_TRUNCATE;
        p->refused = true;
    } else {
        xcclResult_t res = find_target(t, p);
        if (res != xcclSuccess) {
            xm_pieces_fail(r, r->incoming, res);
            p->refused = true;
        }
    }
    __atomic_store_n(&r->fetch, XM_FETCH_PIECES, __ATOMIC_RELEASE);
    xm_watch_moved();
}

/* The place that MPI receives a piece into. */
static char *place_of(const struct xm_pieces *p, uint64_t i)
{
    if ((i == 0) && (p->head != NULL)) {
        return p->head;
    }
    return (p->to != NULL) ? p->to + i * p->piece : p->pinned + (i % p->at_once) * p->piece;
}

static void receive_more(struct xm_rendezvous *r)
{
    struct xm_pieces *p = r->incoming;

    while ((p->first < p->count) && (p->first - p->third < p->at_once)) {
        uint64_t i = p->first++;
        if (xm_pmpi.Irecv(place_of(p, i), (int)xm_pieces_bytes(p, i), XM_HANDLE(MPI_BYTE), p->peer,
                          p->tag, xm_pipeline_comm(),
                          &p->requests[i % p->at_once]) != MPI_SUCCESS) {
            p->requests[i % p->at_once] = XM_HANDLE(MPI_REQUEST_NULL);
            xm_pieces_fail_in_mpi(r, r->incoming);
        }
    }
}

/* Before the first copy, as for every message: see stream_after_default. */
static xcclResult_t after_program(const struct xm_rendezvous *r)
{
    const struct xc_device_ops *dev = xc_device_active();
    void                       *saved;
    xcclResult_t                res = dev->enter(r->incoming->device, &saved);

    if (res == xcclSuccess) {
        res = xm_fetch_after_program(r, dev, r->incoming->stream);
        dev->leave(saved);
    }
    return res;
}

/* MPI may not be out of the memcpy that wrote the descriptor there: see xm_landing_put_head(). */
static void keep_first(struct xm_rendezvous *r)
{
    struct xm_pieces *p = r->incoming;

    memcpy(r->head, p->head, sizeof(r->head));
    r->head_kept = true;
    memcpy(p->to, p->head, xm_pieces_bytes(p, 0));
}

static void deliver(struct xm_rendezvous *r, uint64_t i)
{
    struct xm_pieces *p = r->incoming;
    xcclResult_t      res = xcclSuccess;

    if (p->broken) {
        return;
    }
    if (p->to == NULL) {
        res = (i == 0) ? after_program(r) : res;
        if (res == xcclSuccess) {
            res = xm_pieces_copy(p, i, r->receive.buf + r->receive.low + i * p->piece,
                                 place_of(p, i), xm_pieces_bytes(p, i));
        }
    } else if ((i == 0) && (p->head != NULL)) {
        keep_first(r);
    }
    if (res != xcclSuccess) {
        xm_pieces_fail(r, r->incoming, res);
    }
}

static void take_come(struct xm_rendezvous *r)
{
    struct xm_pieces *p = r->incoming;
    int               flag = 1;

    while (p->second < p->first) {
        MPI_Status status;
        int        code = xm_pmpi.Test(&p->requests[p->second % p->at_once], &flag, &status);
        if ((code == MPI_SUCCESS) && !flag) {
            return;
        }
        uint64_t i = p->second++;
        if (code != MPI_SUCCESS) {
            xm_pieces_fail_in_mpi(r, r->incoming);
        } else if ((uint64_t)xm_transfer_bytes(&status) != xm_pieces_bytes(p, i)) {
            xm_pieces_fail(
                r, r->incoming,
                xc_fail(xcclSystemError,
                        "rank %d of MPI_COMM_WORLD could not read a message from its device",
                        p->peer));
        }
        deliver(r, i);
    }
}

static void collect_copied(struct xm_rendezvous *r)
{
    struct xm_pieces *p = r->incoming;
    xcclResult_t      res = xcclSuccess;

    while ((p->third < p->second) && ((p->to != NULL) || xm_pieces_copied(p, p->third, &res))) {
        p->third++;
        if (res != xcclSuccess) {
            xm_pieces_fail(r, r->incoming, res);
        }
    }
}

/* With memory for the first pieces, and these in MPI's hands. */
static bool answer(struct xm_rendezvous *r)
{
    struct xm_pieces *p = r->incoming;

    if (p->begun) {
        return true;
    }
    if (!p->refused && !xm_pieces_place(p, r->receive.mem.device)) {
        return false;
    }
    if (!p->refused) {
        receive_more(r);
    }
    p->begun = true;
    p->answer = (struct xm_answer){p->number, p->tag, !p->refused};
    if (xm_pipeline_answer(&p->answer, p->peer, &p->answer_request) != MPI_SUCCESS) {
        p->answer_request = XM_HANDLE(MPI_REQUEST_NULL);
        xm_pieces_fail_in_mpi(r, r->incoming);
    }
    return true;
}

static bool has_answered(struct xm_pieces *p)
{
    int flag = 0;

    if (!p->answered) {
        int code = xm_pmpi.Test(&p->answer_request, &flag, MPI_STATUS_IGNORE);
        p->answered = flag || (code != MPI_SUCCESS);
    }
    return p->answered;
}

static void end(struct xm_transfer *t)
{
    struct xm_rendezvous *r = &t->rendezvous;
    struct xm_pieces     *p = r->incoming;

    if ((p->whole != NULL) && !p->refused && !p->broken) {
        xcclResult_t res = xm_fetch_copy(t, p->whole);
        if (res != xcclSuccess) {
            xm_pieces_fail(r, r->incoming, res);
        }
    }
    xm_pieces_free(p);
    r->incoming = NULL;
    xm_fetch_end(r);
}

bool xm_pieces_advance(struct xm_transfer *t)
{
    struct xm_rendezvous *r = &t->rendezvous;
    struct xm_pieces     *p = r->incoming;

    if (!answer(r)) {
        return false;
    }
    if (!p->refused) {
        uint64_t before = p->first + p->second + p->third;
        take_come(r);
        collect_copied(r);
        receive_more(r);
        if (p->first + p->second + p->third != before) {
            xm_watch_moved();
        }
        if (p->third < p->count) {
            return false;
        }
    }
    if (!has_answered(p)) {
        return false;
    }
    end(t);
    return true;
}
