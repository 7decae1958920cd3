/* SPDX-License-Identifier: BSD-3-Clause */
#include "comms/votes.h"

#include <stdlib.h>

#include "base/log.h"
#include "comms/cause.h"
#include "comms/orphans.h"
#include "comms/wait.h"

/*
 * DISTANCE: of the first votes, in operations; later it is a part of what went by, so that there
 * are not many of them. MARGIN: so many distances after a vote its result counts. CLOSE: so many
 * times in a row all ranks had come to the vote before, when this one says yes.
 */
enum { DISTANCE = 32, PART = 8, MARGIN = 4, CLOSE = 3 };

/* For the last steps of a vote to which all ranks have come; no wait for a rank that has not. */
static const uint64_t patience_ns = 20000000u;

struct xm_vote {
    MPI_Request     request;
    uint64_t        due; /* the operation from which on the result would count */
    int             mine, all;
    bool            waited_for;
    struct xm_vote *next; /* the one after it */
};

static bool is_over(struct xm_vote *v)
{
    int over = 1;

    xm_pmpi.Test(&v->request, &over, MPI_STATUS_IGNORE);
    return over;
}

static uint64_t distance(const struct xm_comm *xm)
{
    uint64_t part = (xm->device_calls - xm->votes_since) / PART;

    return (part > DISTANCE) ? part : DISTANCE;
}

void xm_votes_begin(struct xm_comm *xm)
{
    xm->votes_since = xm->device_calls;
    xm->next_vote = xm->device_calls + DISTANCE;
}

/* Votes whose result this rank knows stay only until MPI is done with them. */
static void free_closed(struct xm_comm *xm)
{
    for (struct xm_vote **at = &xm->votes; *at != NULL;) {
        struct xm_vote *v = *at;
        if ((v->due == 0) && (v != xm->last_vote) && is_over(v)) {
            *at = v->next;
            free(v);
        } else {
            at = &v->next;
        }
    }
}

static void append(struct xm_comm *xm, struct xm_vote *v)
{
    struct xm_vote **at = &xm->votes;

    while (*at != NULL) {
        at = &(*at)->next;
    }
    *at = xm->last_vote = v;
}

/* Counts how often in a row the others had come to the vote before this one. */
static bool is_close(struct xm_comm *xm, bool known)
{
    bool came = known && ((xm->last_vote == NULL) || is_over(xm->last_vote));

    xm->times_close = came ? xm->times_close + 1 : 0;
    return xm->times_close >= CLOSE;
}

static xcclResult_t post(struct xm_comm *xm, bool known)
{
    struct xm_vote *v = calloc(1, sizeof(*v));

    if (v == NULL) {
        return xc_fail(xcclSystemError, "out of memory for an agreement");
    }
    v->mine = is_close(xm, known);
    if (xm_pmpi.Iallreduce(&v->mine, &v->all, 1, XM_HANDLE(MPI_INT), XM_HANDLE(MPI_MIN), xm->comm,
                           &v->request) != MPI_SUCCESS) {
        free(v);
        return xm_agreement_failed("MPI_Iallreduce");
    }
    v->due = v->mine ? xm->device_calls + MARGIN * distance(xm) : 0; /* a no prevails */
    xm->next_vote = xm->device_calls + distance(xm);
    append(xm, v);
    free_closed(xm);
    return xcclSuccess;
}

static bool is_over_soon(struct xm_vote *v)
{
    struct xm_wait wait = xm_wait_begin("for the result of a vote");
    bool           over;

    wait.limit = patience_ns;
    while (!(over = is_over(v)) && !v->waited_for) {
        v->waited_for = (xm_wait_step(&wait) == XM_WAIT_EXPIRED);
    }
    return over;
}

static xcclResult_t look(struct xm_comm *xm, bool *due_p)
{
    for (struct xm_vote *v = xm->votes; v != NULL; v = v->next) {
        if ((v->due == 0) || (v->due > xm->device_calls)) {
            continue;
        }
        if (!is_over_soon(v)) {
            return xcclInProgress;
        }
        v->due = 0;
        if (v->all) {
            *due_p = true;
            return xcclSuccess;
        }
    }
    return xcclSuccess;
}

xcclResult_t xm_votes_in_operation(struct xm_comm *xm, bool known, bool *due_p)
{
    xcclResult_t res = look(xm, due_p);

    if ((res != xcclSuccess) || *due_p || xm->quiet || (xm->device_calls < xm->next_vote)) {
        return res;
    }
    return post(xm, known);
}

void xm_votes_end(struct xm_comm *xm)
{
    for (struct xm_vote *v = xm->votes; v != NULL; v = v->next) {
        v->due = 0;
    }
    free_closed(xm);
}

bool xm_votes_over(struct xm_comm *xm)
{
    bool over = true;

    for (struct xm_vote *v = xm->votes; (v != NULL) && over; v = v->next) {
        over = is_over(v);
    }
    return over;
}

void xm_votes_wait(struct xm_comm *xm)
{
    struct xm_wait wait = xm_wait_begin("for the other ranks to free a communicator");

    while (!xm_votes_over(xm) && (xm_wait_step(&wait) != XM_WAIT_EXPIRED)) {}
}

void xm_votes_forget(struct xm_comm *xm)
{
    while (xm->votes != NULL) {
        struct xm_vote *v = xm->votes;
        xm->votes = v->next;
        xm_orphans_add(v->request, v, NULL);
    }
    xm->last_vote = NULL;
}
