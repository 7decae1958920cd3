/* SPDX-License-Identifier: BSD-3-Clause */
/* Complete requests by each of MPI's calls, mixed with null and inactive ones. */
#include <sched.h>
#include <string.h>

#include "messages.h"

/* Some requests of the worker, from one slot on. */
struct range {
    const char  *call;
    int          first, count;
    MPI_Request *requests;
    MPI_Status   statuses[MG_SLOTS];
    MPI_Status  *wanted; /* those, or MPI_STATUSES_IGNORE */
};

void mg_keep(struct mg_worker *w, struct mg_side *side, MPI_Request request)
{
    int slot;

    do {
        slot = rx_below(&w->own, MG_SLOTS);
    } while (w->owners[slot] != NULL);
    mg_expect(w, side, request != MPI_REQUEST_NULL, "the call gave a null request");
    w->owners[slot] = side;
    w->requests[slot] = request;
    side->slot = slot;
}

static void check_received(struct mg_worker *w, struct mg_side *side, const MPI_Status *status)
{
    int cancelled;

    if (status != NULL) {
        side->status = *status;
        side->known = true;
        MPI_Test_cancelled(status, &cancelled);
        mg_expect(w, side, (cancelled != 0) == (side->message.kind == MG_CANCELLED),
                  "MPI_Test_cancelled says %d", cancelled);
    }
    if (side->message.wild == MG_ANY) {
        return; /* looked at when all are over */
    }
    if ((status != NULL) && (side->message.kind != MG_CANCELLED)) {
        mg_status_check(w, side, status, mg_expected(side));
    }
    if (rx_below(&w->own, 2) == 0) {
        mg_side_check(w, side, mg_expected(side));
    }
}

/* The side is over. A receive's data has to be there, and a send's buffer may be used again. */
void mg_done(struct mg_worker *w, struct mg_side *side, const MPI_Status *status)
{
    side->active = false;
    if (!side->sends) {
        check_received(w, side, status);
        if ((side->pair != NULL) && (side->form == MG_PAIRED)) {
            mg_done(w, side->pair, NULL);
        }
    } else if (rx_below(&w->own, 4) == 0) {
        mg_side_reuse(w, side);
    }
}

static bool is_active(const struct mg_worker *w, int slot)
{
    return (w->owners[slot] != NULL) && w->owners[slot]->active;
}

static bool any_active(const struct mg_worker *w, const struct range *r)
{
    for (int i = 0; i < r->count; i++) {
        if (is_active(w, r->first + i)) {
            return true;
        }
    }
    return false;
}

/* Where a receive with any source is among them, its status is needed. */
static void make_range(struct mg_worker *w, struct range *r, const char *call, bool one)
{
    bool needed = rx_below(&w->own, 3) > 0;

    memset(r, 0, sizeof(*r));
    r->call = call;
    r->first = rx_below(&w->own, MG_SLOTS);
    r->count = one ? 1 : 1 + rx_below(&w->own, MG_SLOTS - r->first);
    r->requests = w->requests + r->first;

    for (int i = 0; i < r->count; i++) {
        const struct mg_side *side = w->owners[r->first + i];
        needed = needed || ((side != NULL) && (side->message.wild == MG_ANY));
    }
    r->wanted = needed ? r->statuses : MPI_STATUSES_IGNORE;
}

static void check_empty(struct mg_worker *w, const struct range *r, int at)
{
    const MPI_Status *status = &r->statuses[at];
    int               count = -1, cancelled = -1;

    if (r->wanted == MPI_STATUSES_IGNORE) {
        return;
    }
    MPI_Get_count(status, MPI_INT, &count);
    MPI_Test_cancelled(status, &cancelled);
    mg_expect(w, w->owners[r->first + at],
              (status->MPI_SOURCE == MPI_ANY_SOURCE) && (status->MPI_TAG == MPI_ANY_TAG) &&
                  (count == 0) && !cancelled,
              "%s: an inactive request's status is not empty: source %d, tag %d, count %d", r->call,
              status->MPI_SOURCE, status->MPI_TAG, count);
}

/* The call says that a request of the range is over. */
static void take(struct mg_worker *w, const struct range *r, int at, int status_at)
{
    int             slot = r->first + at;
    struct mg_side *side = w->owners[slot];
    bool            none = r->wanted == MPI_STATUSES_IGNORE;

    if ((at < 0) || (at >= r->count) || !is_active(w, slot)) {
        mg_expect(w, NULL, false, "%s: request %d of %d is over that was not active", r->call, at,
                  r->count);
        return;
    }
    bool persistent = (side->form == MG_PERSISTENT);
    mg_expect(w, side, (w->requests[slot] == MPI_REQUEST_NULL) != persistent,
              "%s: the request is%s null when it is over", r->call, persistent ? "" : " not");
    if (!persistent) {
        w->requests[slot] = MPI_REQUEST_NULL;
        w->owners[slot] = NULL;
        side->slot = -1;
    }
    mg_done(w, side, none ? NULL : &r->statuses[status_at]);
}

/* All of them are over. */
static void take_all(struct mg_worker *w, const struct range *r)
{
    for (int i = 0; i < r->count; i++) {
        if (is_active(w, r->first + i)) {
            take(w, r, i, i);
        } else {
            check_empty(w, r, i);
        }
    }
}

/* One of them is, or none was active. */
static void take_any(struct mg_worker *w, const struct range *r, int which)
{
    if (which == MPI_UNDEFINED) {
        mg_expect(w, NULL, !any_active(w, r), "%s: no request is active, says the call", r->call);
#ifndef MPICH_VERSION /* 4.0.2: MPI_Testany leaves the status as it was */
        check_empty(w, r, 0);
#endif
    } else {
        take(w, r, which, 0);
    }
}

static void take_some(struct mg_worker *w, const struct range *r, int count, const int *places)
{
    if (count == MPI_UNDEFINED) {
        mg_expect(w, NULL, !any_active(w, r), "%s: no request is active, says the call", r->call);
        return;
    }
    for (int i = 0; i < count; i++) {
        take(w, r, places[i], i);
    }
}

/* MPICH 4.2 to 5.0 complete a persistent request that is looked at. */
static bool completes_by_looking(const struct mg_worker *w, int slot)
{
#if defined MPICH_NUMVERSION && (MPICH_NUMVERSION >= 40200000)
    return is_active(w, slot) && (w->owners[slot]->form == MG_PERSISTENT);
#else
    (void)w;
    (void)slot;
    return false;
#endif
}

/* Looking leaves the request as it is; then it can be completed at once. */
static void get_status(struct mg_worker *w, struct range *r)
{
    MPI_Status  seen;
    MPI_Request before = r->requests[0];
    int         flag = 0;

    if (completes_by_looking(w, r->first)) {
        return;
    }
    MPI_Request_get_status(r->requests[0], &flag, &seen);
    mg_expect(w, w->owners[r->first], before == r->requests[0],
              "MPI_Request_get_status changed the request");
    if (!flag) {
        mg_expect(w, w->owners[r->first], is_active(w, r->first),
                  "MPI_Request_get_status says that a request is active that is not");
        return;
    }
    r->wanted = r->statuses;
    MPI_Wait(&r->requests[0], r->statuses);
    if (is_active(w, r->first) && !w->owners[r->first]->sends) {
        mg_expect(w, w->owners[r->first],
                  (seen.MPI_SOURCE == r->statuses[0].MPI_SOURCE) &&
                      (seen.MPI_TAG == r->statuses[0].MPI_TAG),
                  "MPI_Request_get_status says source %d and tag %d, MPI_Wait %d and %d",
                  seen.MPI_SOURCE, seen.MPI_TAG, r->statuses[0].MPI_SOURCE, r->statuses[0].MPI_TAG);
    }
    take_all(w, r);
}

static void test(struct mg_worker *w, int way)
{
    static const char *const calls[] = {"MPI_Request_get_status", "MPI_Test", "MPI_Testall",
                                        "MPI_Testany", "MPI_Testsome"};
    struct range             r;
    int                      flag = 0, which = MPI_UNDEFINED, count = 0, places[MG_SLOTS];

    make_range(w, &r, calls[way], way < 2);
    switch (way) {
    case 0:
        get_status(w, &r);
        break;
    case 1:
        MPI_Test(r.requests, &flag, r.wanted);
        mg_expect(w, w->owners[r.first], flag || is_active(w, r.first),
                  "MPI_Test says that a request is active that is not");
        if (flag) {
            take_all(w, &r);
        }
        break;
    case 2:
        MPI_Testall(r.count, r.requests, &flag, r.wanted);
        if (flag) {
            take_all(w, &r);
        }
        break;
    case 3:
        MPI_Testany(r.count, r.requests, &which, &flag, r.wanted);
        if (flag) {
            take_any(w, &r, which);
        }
        break;
    default:
        MPI_Testsome(r.count, r.requests, &count, places, r.wanted);
        take_some(w, &r, count, places);
        break;
    }
}

static void wait(struct mg_worker *w, int way)
{
    static const char *const calls[] = {"MPI_Wait", "MPI_Waitall", "MPI_Waitany", "MPI_Waitsome"};
    struct range             r;
    int                      which = MPI_UNDEFINED, count = 0, places[MG_SLOTS];

    make_range(w, &r, calls[way], way == 0);
    switch (way) {
    case 0:
        MPI_Wait(r.requests, r.wanted);
        take_all(w, &r);
        break;
    case 1:
        MPI_Waitall(r.count, r.requests, r.wanted);
        take_all(w, &r);
        break;
    case 2:
        MPI_Waitany(r.count, r.requests, &which, r.wanted);
        take_any(w, &r, which);
        break;
    default:
        MPI_Waitsome(r.count, r.requests, &count, places, r.wanted);
        mg_expect(w, NULL, count != 0, "MPI_Waitsome found none that is over");
        take_some(w, &r, count, places);
        break;
    }
}

void mg_try_some(struct mg_worker *w)
{
    while (rx_below(&w->own, 3) == 0) {
        test(w, rx_below(&w->own, 5));
    }
}

void mg_complete_all(struct mg_worker *w)
{
    struct range all = {.count = MG_SLOTS};

    while (any_active(w, &all)) {
        if (rx_below(&w->own, 2) == 0) {
            wait(w, rx_below(&w->own, 4));
        } else {
            test(w, rx_below(&w->own, 5));
            sched_yield();
        }
    }
}
