/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the ranks of a communicator agree on, without any of them ever waiting where MPI forbids it.
 *
 * Agreements are non-blocking collectives on the program's own communicator, posted inside
 * operations of the same number on every rank, so they stand in the same order everywhere. The
 * result of one counts at once if the operation is a blocking one, which may wait for the others;
 * else from the next blocking collective on, be it on host memory, or, on one node, from the
 * operation on that cutover.h settles: however far a rank is ahead of the others, it need not wait.
 * Starts of some persistent requests need neither (is_due()).
 *
 *   first operation on device memory      peer info: environment, library, idle
 *                                         vendor communicators
 *   the saving has paid for a creation    creation begins: id and devices are exchanged, a thread
 *                                         joins; operations are staged meanwhile
 *   then, in growing distances            the direct path: what has every rank for it? A blocking
 *                                         operation asks for as long as staging its data would take
 *   later, in growing distances           status: are all ranks done, or has one failed?
 *
 * So nobody waits for the vendor's library, and a rank whose join fails or never ends keeps no
 * other rank waiting. One that has given up the communicator goes on to answer: the others may not
 * have failed, and what they post has to meet its part.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/params.h"
#include "comms/agree.h"
#include "comms/cause.h"
#include "comms/creation.h"
#include "comms/cutover.h"
#include "comms/guarded.h"
#include "comms/node.h"
#include "comms/orphans.h"
#include "comms/peer_info.h"
#include "comms/posting.h"
#include "comms/suspicion.h"
#include "comms/wait.h"

const struct xm_join *xm_comm_join;

/* What the end of a communicator waits for a rank that has given it up. */
static const uint64_t given_up_ns = 5000000000u;

/* What a wait looks for: ranks that never come, and also those that have given up; or only such
 * that are sure not to come, or nothing. */
enum look { LOOK_FOR_BROKEN, LOOK_FOR_ALL, LOOK_FOR_SURE, LOOK_FOR_NONE };

static xcclResult_t apply_join(struct xm_comm *xm)
{
    enum xm_joining verdict = xm_comm_join->judge(xm, xm->checkin.all);

    xm->direct_full = (verdict == XM_JOIN_FULL);
    switch (verdict) {
    case XM_JOINED:
        xm->direct_state = XM_DIRECT_JOINED;
        break;
    case XM_JOIN_NEVER:
        xm->direct_state = XM_DIRECT_NEVER;
        break;
    default:
        break;
    }
    return xcclSuccess;
}

static bool joins(const struct xm_comm *xm)
{
    return (xm_comm_join != NULL) && (xm->direct_state == XM_DIRECT_UNKNOWN) &&
           (xm_comm_state_now(xm) != XM_COMM_NEW) && xm_comm_join->wanted(xm);
}

static xcclResult_t finish_checkin(struct xm_comm *xm, bool blocking);

enum { NAP_US = 200 };

static void nap(void)
{
    struct timespec t = {0, NAP_US * 1000};

    nanosleep(&t, NULL);
}

/* Operations are counted alike on all ranks, so all leave before the same one. */
static void leave_if_spent(struct xm_comm *xm)
{
    if ((xm->direct_state == XM_DIRECT_JOINED) && xm_comm_join->spent(xm)) {
        xm_comm_join->leave(xm);
        xm->direct_state = XM_DIRECT_UNKNOWN;
        xm->next_join = 0;
        xm->join_begun = xm->device_calls;
    }
}

/*
 * All ranks ask each other until all have what it takes, or long enough: with
 * XCCL_COMM_CREATE=first, or else for about as long as it takes longer to stage the operation than
 * to let the path carry it. What maps and allocates meanwhile is another thread. Times are counted,
 * and what they come from was said by all ranks, so that all stop in the same place.
 */
static xcclResult_t join_now(struct xm_comm *xm, bool at_once, const struct xc_device_ops *dev,
                             int device)
{
    enum { MOST = 10000 }; /* 2 s */
    xcclResult_t res = xcclSuccess;
    uint64_t     times = 1;

    xm->direct_full = false;
    for (uint64_t i = 0; (res == xcclSuccess) && (i < times) && joins(xm) && !xm->direct_full;
         i++) {
        if (i > 0) {
            nap();
        }
        res = xm_post_join(xm, dev, device);
        if (res == xcclSuccess) {
            res = finish_checkin(xm, true);
        }
        times = at_once ? MOST : 1 + xm->worth_us / NAP_US;
        times = (times < MOST) ? times : MOST;
    }
    return res;
}

static void keep_made(struct xm_comm *xm)
{
    struct xm_vendor *vendor = xm->creation->vendor;

    xm->creation->vendor = NULL;
    if (vendor->world_ranks == NULL) {
        vendor->world_ranks = xm_world_ranks(xm->comm, xm->size);
    }
    xm_comm_keep_vendor(xm, vendor);
}

static xcclResult_t apply_status(struct xm_comm *xm, bool blocking)
{
    const int64_t  *all = xm->checkin.all;
    enum xm_outcome outcome = (enum xm_outcome)(all[XM_STATUS_OUTCOME] >> XM_STATUS_OUTCOME_SHIFT);
    int who = (int)((all[XM_STATUS_OUTCOME] >> XM_STATUS_RANK_SHIFT) & XM_STATUS_RANK_MASK);
    xcclResult_t result = (xcclResult_t)(all[XM_STATUS_OUTCOME] & XM_STATUS_RESULT_MASK);
    double       cost = (double)-all[XM_STATUS_COST];
    char         text[sizeof(xm->reason)];

    switch (outcome) {
    case XM_DONE:
        /* From its first operation on, those of several communicators are put in order. */
        xm_node_apply(xm, all[XM_STATUS_SLOTS] != 0);
        keep_made(xm);
        xm_comm_enter(xm, XM_COMM_READY, NULL);
        xm_creation_end(xm);
        break;
    case XM_RETRY:
        xm_share_cause(xm, who, blocking, xm->creation->detail, text, sizeof(text));
        xm_comm_enter(xm, XM_COMM_KNOWN, text);
        xm->failure = result;
        xm->saved_us = -((cost > 0) ? cost : xm_creation_first_guess_us);
        xm_creation_unused(xm);
        xm_creation_end(xm);
        break;
    case XM_REFUSED:
    case XM_FAILED:
        if (outcome == XM_REFUSED) {
            xm_creation_unused(xm);
        }
        xm_share_cause(xm, who, blocking, xm->creation->detail, text, sizeof(text));
        xm_creation_end(xm);
        xm_comm_fail(xm, result, blocking ? 0 : who, text);
        break;
    default:
        break;
    }
    return xcclSuccess;
}

static const char *asks_for(const struct xm_comm *xm)
{
    return (xm->asks_for != NULL) ? xm->asks_for : "what this call makes";
}

static void describe(void *arg, char *buf, size_t len)
{
    const struct xm_comm *xm = arg;
    unsigned long long    number = xm->asks_in;

    if (!xm->compared && ((xc_params()->check != 0) || (xc_params()->memory == XC_MEMORY_MIXED))) {
        snprintf(
            buf, len,
            "for the other ranks to come to %s, number %llu of its communicator of %d ranks; a "
            "rank that runs without xccl, or without %s, never does",
            asks_for(xm), number, xm->size,
            (xc_params()->check != 0) ? "XCCL_CHECK=1" : "XCCL_MEMORY=mixed");
    } else if (xm->checkin.kind == XM_CHECKIN_PEER_INFO) {
        snprintf(
            buf, len,
            "for the other ranks to come to %s, number %llu of its communicator of %d ranks; a "
            "rank that runs without xccl never does: start the program as mpirun ... xccl-run "
            "./app, so that xccl is on all hosts; nor does one that passes host memory: that needs "
            "XCCL_MEMORY=mixed",
            asks_for(xm), number, xm->size);
    } else {
        snprintf(buf, len,
                 "for the other ranks to come to %s, number %llu of its communicator of %d ranks",
                 asks_for(xm), number, xm->size);
    }
}

struct seen {
    struct xm_suspicion suspicion;
    uint64_t            broken_ns;
};

static xcclResult_t look_around(struct xm_comm *xm, enum look look, struct seen *seen)
{
    xcclResult_t res = xcclSuccess;

    if (look != LOOK_FOR_NONE) {
        res = xm_suspicion_look(xm, look <= LOOK_FOR_ALL, &seen->suspicion);
    }
    if ((res == xcclSuccess) && (look == LOOK_FOR_BROKEN)) {
        res = xm_look_for_broken(xm, true, &seen->broken_ns);
        /* The rank that has broken it waits on: the others have come there, or do so later. */
        xm->checkin.given_up =
            xm->checkin.given_up || ((res != xcclSuccess) && !xm_comm_is_broken(xm));
    }
    return res;
}

static xcclResult_t wait_for(struct xm_comm *xm, MPI_Request *request, enum look look)
{
    struct seen    seen = {.suspicion = XM_NO_SUSPICION};
    xcclResult_t   res = xcclSuccess;
    struct xm_wait wait = xm_wait_begin(NULL);
    int            over = 0;

    wait.describe = describe;
    wait.arg = xm;
    for (;;) {
        if (xm_pmpi.Test(request, &over, MPI_STATUS_IGNORE) != MPI_SUCCESS) {
            return xm_agreement_failed("an agreement");
        }
        if (over) {
            return xcclSuccess;
        }
        switch (xm_wait_step(&wait)) {
        case XM_WAIT_EXPIRED:
            return xc_fail(
                xcclTimeout,
                "not completed within %ld s (XCCL_TIMEOUT): a rank may be missing, dead, "
                "without xccl, in a call on host memory (which needs XCCL_MEMORY=mixed), or in "
                "another call than %s, number %llu of its communicator of %d ranks",
                xc_params()->timeout, asks_for(xm), (unsigned long long)xm->asks_in, xm->size);
        case XM_WAIT_LOOK:
            res = look_around(xm, look, &seen);
            if (res != xcclSuccess) {
                return res;
            }
            break;
        default:
            break;
        }
    }
}

static void apply_digest(struct xm_comm *xm)
{
    if (xm->checkin.kind == XM_CHECKIN_VARIABLES) {
        xm_peer_digest_compare(xm, xm->checkin.all);
    } else {
        xm_peer_digest_apply(xm, xm->checkin.mine, xm->checkin.all);
    }
}

static xcclResult_t apply_checkin(struct xm_comm *xm, bool blocking)
{
    xcclResult_t res;

    if (xm->checkin.digest) {
        apply_digest(xm);
        xm_checkin_end(xm);
        return xcclSuccess;
    }
    switch (xm->checkin.kind) {
    case XM_CHECKIN_VARIABLES:
        res = xm_peer_info_compare(xm, xm->checkin.all);
        break;
    case XM_CHECKIN_PEER_INFO:
        res = xm_peer_info_apply(xm, xm->checkin.all, blocking);
        break;
    case XM_CHECKIN_JOIN:
        res = apply_join(xm);
        break;
    default:
        res = apply_status(xm, blocking);
        break;
    }
    uint64_t asked = 0;
    if ((res != xcclSuccess) && (xm_suspicion_find_asked(xm) != xcclSuccess)) {
        asked = xm->asked; /* what came is the data of a call on host memory */
        res = xcclInvalidUsage;
    }
    xm_checkin_end(xm);
    __atomic_store_n(&xm->asked, asked, __ATOMIC_RELEASE); /* who waits for it is to know, too */
    return res;
}

static xcclResult_t finish_checkin(struct xm_comm *xm, bool blocking)
{
    xcclResult_t res = wait_for(xm, &xm->checkin.request, LOOK_FOR_BROKEN);

    return (res == xcclSuccess) ? apply_checkin(xm, blocking) : res; /* MPI may still write to it */
}

xcclResult_t xm_comm_compare(struct xm_comm *xm)
{
    xcclResult_t res = xcclSuccess;

    if (xm->compared || xm->quiet || xm->inter || (xm->size == 1)) {
        return res;
    }
    do {
        if (xm->checkin.kind == XM_CHECKIN_NONE) {
            res = xm_post_peer_info(xm, XM_CHECKIN_VARIABLES, NULL, -1);
        }
        res = (res == xcclSuccess) ? finish_checkin(xm, true) : res;
    } while ((res == xcclSuccess) && !xm->compared); /* many ranks, and they are not alike */
    return res;
}

static xcclResult_t combine(struct xm_comm *xm, int mine, MPI_Op op, int *all_p)
{
    MPI_Request request;

    if (xm->quiet) {
        return (xm_pmpi.Allreduce(&mine, all_p, 1, XM_HANDLE(MPI_INT), op, xm->comm) == MPI_SUCCESS)
                   ? xcclSuccess
                   : xm_agreement_failed("MPI_Allreduce");
    }
    int *said = xm_guarded_alloc(sizeof(*said)), *all = xm_guarded_alloc(sizeof(*all));
    if ((said == NULL) || (all == NULL)) {
        xm_guarded_free(said);
        xm_guarded_free(all);
        return xc_fail(xcclSystemError, "out of memory for an agreement");
    }
    *said = mine;
    if (xm_pmpi.Iallreduce(said, all, 1, XM_HANDLE(MPI_INT), op, xm->comm, &request) !=
        MPI_SUCCESS) {
        xm_guarded_free(said);
        xm_guarded_free(all);
        return xm_agreement_failed("MPI_Iallreduce");
    }
    xcclResult_t res = wait_for(xm, &request, LOOK_FOR_ALL);
    if (res != xcclSuccess) {
        xm_orphans_add(request, said, all); /* MPI may still write to it */
        return res;
    }
    *all_p = *all;
    xm_guarded_free(said);
    xm_guarded_free(all);
    return xcclSuccess;
}

/* After MPI_Comm_idup, as combine() does. */
static xcclResult_t collect_quietly(struct xm_comm *xm, const void *mine, int bytes, void *all)
{
    return (xm_pmpi.Allgather(mine, bytes, XM_HANDLE(MPI_BYTE), all, bytes, XM_HANDLE(MPI_BYTE),
                              xm->comm) == MPI_SUCCESS)
               ? xcclSuccess
               : xm_agreement_failed("MPI_Allgather");
}

xcclResult_t xm_comm_collect(struct xm_comm *xm, const void *mine, int bytes, void **all_p)
{
    MPI_Request request = XM_HANDLE(MPI_REQUEST_NULL);
    void       *said = xm_guarded_alloc((size_t)bytes),
         *all = xm_guarded_alloc((size_t)bytes * (size_t)xm->size);
    xcclResult_t res = xcclSuccess;

    if ((said == NULL) || (all == NULL)) {
        res = xc_fail(xcclSystemError, "out of memory for %d ranks", xm->size);
        goto free_both;
    }
    memcpy(said, mine, (size_t)bytes);
    if (xm->quiet) {
        res = collect_quietly(xm, said, bytes, all);
    } else if (xm_pmpi.Iallgather(said, bytes, XM_HANDLE(MPI_BYTE), all, bytes, XM_HANDLE(MPI_BYTE),
                                  xm->comm, &request) != MPI_SUCCESS) {
        res = xm_agreement_failed("MPI_Iallgather");
    } else {
        res = wait_for(xm, &request, LOOK_FOR_NONE);
        if (res != xcclSuccess) {
            xm_orphans_add(request, said, all); /* MPI may still write to it */
            return res;
        }
    }
    if (res == xcclSuccess) {
        *all_p = all;
        all = NULL;
    }
free_both:
    xm_guarded_free(said);
    xm_guarded_free(all);
    return res;
}

xcclResult_t xm_comm_greatest(struct xm_comm *xm, int mine, int *all_p)
{
    return combine(xm, mine, XM_HANDLE(MPI_MAX), all_p);
}

xcclResult_t xm_comm_any(struct xm_comm *xm, int mine, int *all_p)
{
    return combine(xm, mine, XM_HANDLE(MPI_BOR), all_p);
}

void xm_comm_settle(struct xm_comm *xm)
{
    /* What an operation on a device has given up is for the next of those: where a rank has not
     * come to that operation, it is in MPI's call already, and does not come to the agreement. */
    if ((xm->checkin.kind != XM_CHECKIN_NONE) && !xm->checkin.given_up &&
        ((wait_for(xm, &xm->checkin.request, LOOK_FOR_SURE) != xcclSuccess) ||
         (apply_checkin(xm, true) != xcclSuccess))) {
        xc_warn("%s", xc_last_detail());
    }
}

bool xm_comm_has_given_up(const struct xm_comm *xm)
{
    return (xm->checkin.kind != XM_CHECKIN_NONE) && xm->checkin.given_up;
}

/* The rank that has broken the communicator may never come: then it is left as it is. */
static bool wait_for_given_up(struct xm_comm *xm)
{
    struct xm_wait wait = xm_wait_begin("for a rank that has given up the communicator");
    int            over = 0;

    wait.limit = given_up_ns;
    while ((xm_pmpi.Test(&xm->checkin.request, &over, MPI_STATUS_IGNORE) == MPI_SUCCESS) && !over &&
           (xm_wait_step(&wait) != XM_WAIT_EXPIRED)) {}
    return over;
}

bool xm_comm_end_agreements(struct xm_comm *xm)
{
    bool over = true;

    if (xm_comm_has_given_up(xm)) {
        over = wait_for_given_up(xm);
    } else if (xm->checkin.kind != XM_CHECKIN_NONE) {
        wait_for(xm, &xm->checkin.request, LOOK_FOR_NONE);
    }
    xm_creation_wait(xm);
    return over;
}

/* Is the result of an agreement known, if one is under way? */
static bool is_over(struct xm_comm *xm)
{
    int over = 1;

    if (xm->checkin.kind != XM_CHECKIN_NONE) {
        xm_pmpi.Test(&xm->checkin.request, &over, MPI_STATUS_IGNORE);
    }
    return over;
}

bool xm_comm_agreements_over(struct xm_comm *xm)
{
    return is_over(xm) && !xm_creation_exchanges(xm);
}

/* XCCL_COMM_CREATE=first: all ranks ask each other until all are done. */
static xcclResult_t create_now(struct xm_comm *xm, const struct xc_device_ops *dev, int device)
{
    struct xm_wait wait = xm_wait_begin("for the vendor's library to make a communicator");
    xcclResult_t   res = xcclSuccess;

    if (xm_comm_state_now(xm) == XM_COMM_KNOWN) {
        res = xm_creation_begin(xm, dev, device);
    }
    while ((res == xcclSuccess) && (xm_comm_state_now(xm) == XM_COMM_CREATING)) {
        if (xm_wait_step(&wait) == XM_WAIT_EXPIRED) {
            xm_creation_give_up(
                xm, xcclTimeout,
                "the vendor's library did not make the communicator within XCCL_TIMEOUT");
        }
        xm_comm_advance(xm);
        if (xm_creation_outcome(xm->creation) == XM_PENDING) {
            nap();
        }
        res = xm_post_status(xm);
        if (res == xcclSuccess) {
            res = finish_checkin(xm, true);
        }
    }
    return res;
}

/* The slots, as soon as this rank knows where they are. */
static void find_slots(struct xm_comm *xm)
{
    if ((xm->checkin.kind == XM_CHECKIN_PEER_INFO) && !xm->checkin.digest && is_over(xm)) {
        xm_peer_info_place(xm, xm->checkin.all);
    }
}

/*
 * Does the result of an agreement count from this operation on? Across nodes the ranks of a request
 * in lockstep have all posted it, since they have come to the operation before this one: so it is
 * waited for, which takes no more than that MPI makes progress on them.
 */
static bool is_due(struct xm_comm *xm, bool blocking)
{
    if (blocking || (xm->size == 1)) {
        return true;
    }
    find_slots(xm);
    return (xm->lockstep && !xm->neighbours) || (is_over(xm) && xm_cutover_due(xm));
}

/* at_once: the direct path, and with vendor a vendor communicator, are waited for where that
 * blocks. */
static xcclResult_t agree(struct xm_comm *xm, bool blocking, bool at_once, bool vendor,
                          const struct xc_device_ops *dev, int device)
{
    xcclResult_t res = xcclSuccess;

    xm_comm_advance(xm);
    if ((xm->checkin.kind != XM_CHECKIN_NONE) && is_due(xm, blocking)) {
        res = finish_checkin(xm, blocking);
    }
    if (xm->quiet) {
        return res;
    }
    while ((res == xcclSuccess) && (xm_comm_state_now(xm) == XM_COMM_NEW) &&
           (xm->checkin.kind == XM_CHECKIN_NONE)) { /* many ranks that are not alike: twice */
        res = xm_post_peer_info(xm, XM_CHECKIN_PEER_INFO, dev, device);
        if ((res == xcclSuccess) && blocking) {
            res = finish_checkin(xm, true);
        }
    }
    if ((res == xcclSuccess) && (xm->checkin.kind == XM_CHECKIN_NONE) && joins(xm) &&
        (xm->device_calls >= xm->next_join)) {
        res = blocking ? join_now(xm, at_once, dev, device) : xm_post_join(xm, dev, device);
    }
    if ((res == xcclSuccess) && at_once && vendor && (xm->checkin.kind == XM_CHECKIN_NONE) &&
        ((xm_comm_state_now(xm) == XM_COMM_KNOWN) || (xm_comm_state_now(xm) == XM_COMM_CREATING))) {
        if (blocking) {
            return create_now(xm, dev, device);
        }
        if (xm_comm_state_now(xm) == XM_COMM_KNOWN) {
            res = xm_creation_begin(xm, dev, device);
        }
    }
    if ((res == xcclSuccess) && (xm_comm_state_now(xm) == XM_COMM_CREATING) &&
        (xm->checkin.kind == XM_CHECKIN_NONE) && (xm->device_calls >= xm->next_checkin)) {
        res = xm_post_status(xm);
        if ((res == xcclSuccess) && blocking) {
            res = finish_checkin(xm, true);
        }
    }
    return res;
}

/* Has every rank the slots of all? Once for a communicator whose ranks are on one node. */
static xcclResult_t agree_on_slots(struct xm_comm *xm)
{
    int          all = 0;
    xcclResult_t res = combine(xm, xm->slots != NULL, XM_HANDLE(MPI_MIN), &all);

    if (res == xcclSuccess) {
        xm_node_apply(xm, all != 0);
    }
    return res;
}

/* The vendor's library. */
static bool is_offered(void)
{
    return (xc_params()->route == XC_ROUTE_XCCL) && (xc_params()->ccl != XC_CCL_NONE);
}

xcclResult_t xm_comm_agree(struct xm_comm *xm, enum xm_coll coll, bool blocking, double saving_us,
                           const struct xc_device_ops *dev, int device)
{
    enum xm_comm_state state = xm_comm_state_now(xm);
    bool               asks_slots = (state != XM_COMM_NEW) && xm->one_node && blocking;
    bool               at_once = (xc_params()->comm_create == XC_CREATE_FIRST);

    if (asks_slots) {
        xm->asks_for = xm_coll_name(coll);
        xm->asks_in = xm->device_calls;
        xcclResult_t res = agree_on_slots(xm);
        if (res != xcclSuccess) {
            return res;
        }
    }
    leave_if_spent(xm);
    state = xm_comm_state_now(xm);
    bool settled = (state == XM_COMM_READY) || (state == XM_COMM_FAILED);
    if (xm->inter || (settled && (xm->checkin.kind == XM_CHECKIN_NONE) && !joins(xm))) {
        return xcclSuccess;
    }
    xm->asks_for = xm_coll_name(coll);
    xm->asks_in = xm->device_calls;
    xm->asks_call = xm_suspicion_call(xm->calls, coll);
    xm->saving_us = (uint64_t)saving_us;
    return agree(xm, blocking, at_once, is_offered(), dev, device);
}

xcclResult_t xm_comm_agree_now(struct xm_comm *xm, const struct xc_device_ops *dev, int device)
{
    xm->device_calls++;
    xm->asks_for = NULL;
    xm->asks_in = xm->device_calls;
    xm->asks_call = 0;
    xm->saving_us = 0;
    return agree(xm, true, true, is_offered(), dev, device);
}

void xm_comm_forget(struct xm_comm *xm)
{
    find_slots(xm); /* to say that this rank leaves them */
    if (xm->checkin.kind != XM_CHECKIN_NONE) {
        xm_orphans_add(xm->checkin.request, xm->checkin.mine, xm->checkin.all);
        xm->checkin = (struct xm_checkin){.kind = XM_CHECKIN_NONE};
        xm_orphans_sweep();
    }
    xm_creation_end(xm);
}

/* The vendor's communicator becomes the program's. */
static xcclComm_t take_communicator(struct xm_comm *xm, const struct xc_device_ops *dev, int device)
{
    struct xm_vendor *vendor = xm->vendor;
    xcclComm_t        made = vendor->xcomm;
    void             *saved;

    vendor->xcomm = NULL;
    vendor->broken = true;
    if (dev->enter(device, &saved) == xcclSuccess) {
        dev->stream_destroy(vendor->stream);
        vendor->stream = NULL;
        dev->leave(saved);
    }
    xm_vendor_release(vendor);
    return made;
}

xcclResult_t xm_comm_create(MPI_Comm comm, const struct xc_device_ops *dev, int device,
                            xcclComm_t *xcomm_p)
{
    struct xm_comm  xm = {.comm = comm, .users = 1, .device_calls = 1, .slot = -1};
    struct xm_comm *known = xm_comm_known(comm);

    if ((known != NULL) && known->quiet) { /* on all ranks alike */
        return xc_fail(xcclInvalidUsage,
                       "MPI_Comm_idup was called on the communicator, and this "
                       "MPI may mix it up with what the ranks would ask each "
                       "other; pass one that MPI_Comm_dup or MPI_Comm_split made");
    }
    xm_pmpi.Comm_rank(comm, &xm.rank);
    xm_pmpi.Comm_size(comm, &xm.size);
    xcclResult_t res = agree(&xm, true, true, true, dev, device);
    if ((res == xcclSuccess) && (xm.state == XM_COMM_KNOWN)) {
        /* Another thread has taken the spare one that all ranks had agreed on. */
        res = create_now(&xm, dev, device);
    }
    if (xm.state == XM_COMM_READY) {
        *xcomm_p = take_communicator(&xm, dev, device);
        res = xcclSuccess;
    } else {
        if (res == xcclSuccess) {
            res = xc_fail((xm.failure != xcclSuccess) ? xm.failure : xcclRemoteError, "%s",
                          xm.reason);
        }
        xm_comm_forget(&xm);
    }
    xm_comm_leave_slots(&xm);
    return res;
}
