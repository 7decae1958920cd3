/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/missing.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/params.h"
#include "comms/suspicion.h"
#include "ops/record.h"

enum { MOST_NAMED = 8 }; /* of the ranks that are waited for */

/* How long an operation may take before the ranks' calls are compared, and until the next time. */
static const uint64_t look_ns = 500000000u;

/* "1", "1, 3 and others": the ranks that have not come to it; false where none is known of. */
static bool absent_text(const struct xm_op *op, char *buf, size_t len)
{
    const struct xm_slots *slots = (op->comm != NULL) ? op->comm->slots : NULL;
    int                    told = 0;
    size_t                 n = 0;

    if ((slots == NULL) || (op->number == 0)) {
        return false;
    }
    for (int rank = xm_slots_absent(slots, op->number, 0); (rank >= 0) && (told <= MOST_NAMED);
         rank = xm_slots_absent(slots, op->number, rank + 1), told++) {
        if (told == MOST_NAMED) {
            n += (size_t)snprintf(buf + n, len - n, " and others");
        } else {
            n += (size_t)snprintf(buf + n, len - n, "%s%d", (told > 0) ? ", " : "", rank);
        }
    }
    return told > 0;
}

/* Is it known that all ranks have come to it? */
static bool all_have_come(const struct xm_op *op)
{
    const struct xm_slots *slots = (op->comm != NULL) ? op->comm->slots : NULL;

    return (slots != NULL) && (op->number != 0) && (xm_slots_absent(slots, op->number, 0) < 0);
}

/* Non-blocking calls are not checked. */
static const char *remedy(const struct xm_op *op)
{
    return ((op->call.form == XM_BLOCKING) && !xc_params()->check) ? ": XCCL_CHECK=1 names the rank"
                                                                   : "";
}

static bool is_one(const char *ranks)
{
    return strpbrk(ranks, ", ") == NULL;
}

/* The ranks of a node see each other's calls. */
xcclResult_t xm_missing_expired(struct xm_op *op)
{
    char who[160], place[80], what[160];

    xm_record_place(op, place, sizeof(place));
    snprintf(what, sizeof(what), "%s, %s", xm_coll_name(op->call.coll), place);
    if (absent_text(op, who, sizeof(who))) {
        return xm_op_fail(op, xc_fail(xcclTimeout,
                                      "not completed within %ld s (XCCL_TIMEOUT): rank%s %s %s not "
                                      "come to %s",
                                      xc_params()->timeout, is_one(who) ? "" : "s", who,
                                      is_one(who) ? "has" : "have", what));
    }
    if (all_have_come(op)) {
        return xm_op_fail(op,
                          xc_fail(xcclTimeout,
                                  "not completed within %ld s (XCCL_TIMEOUT): all ranks have "
                                  "come to %s; they may pass different counts, types or roots%s",
                                  xc_params()->timeout, what, remedy(op)));
    }
    return xm_op_fail(
        op, xc_fail(xcclTimeout,
                    "not completed within %ld s (XCCL_TIMEOUT): a rank may be missing, dead, in "
                    "a call on host memory (which needs XCCL_MEMORY=mixed), in another call than "
                    "%s, or pass another count to it",
                    xc_params()->timeout, what));
}

/* MPI carries it, as it would with host memory on other ranks. */
static bool is_mpis(const struct xm_op *op)
{
    return (op->path == &xm_path_staged) || (op->path == &xm_path_mpi);
}

/*
 * A rank of this node that made the same call with host memory, or made another call, never comes
 * to this one: an error that names both. What a rank has written down of a call does not change, so
 * once is enough.
 */
static xcclResult_t look_at_slots(struct xm_op *op)
{
    enum xm_coll other = op->call.coll;
    int          rank = -1;

    if ((op->number != 0) && (op->comm->slots != NULL)) {
        rank = xm_slots_mismatch(op->comm->slots, op->number, op->call.coll, &other);
    }
    if (rank < 0) {
        return xcclSuccess;
    }
    if (other != op->call.coll) {
        return xc_fail(xcclInvalidUsage,
                       "rank %d calls %s where rank %d calls %s, as collective %llu of "
                       "the communicator",
                       rank, xm_coll_name(other), op->comm->rank, xm_coll_name(op->call.coll),
                       (unsigned long long)xm_record_sequence(op));
    }
    if (!op->symmetric || is_mpis(op)) {
        return xcclSuccess;
    }
    return xm_suspicion_mixed(rank, op->comm->rank, "", op->call.coll);
}

/*
 * While the ranks of a node have no slots: one that left the call to MPI, in which this one posted
 * an agreement, or which is on the device. What MPI carries and comes before it is not concerned.
 */
static xcclResult_t look_at_boards(const struct xm_op *op, uint64_t now)
{
    uint64_t asked = __atomic_load_n(&op->comm->asked, __ATOMIC_ACQUIRE);
    uint64_t call = xm_suspicion_call(op->place, op->call.coll);

    if (!op->symmetric) {
        return xcclSuccess;
    }
    if ((asked != 0) && (op->place >= xm_suspicion_number(asked))) {
        return xm_suspicion_find_host(op->comm, asked, now);
    }
    return ((op->number == 0) && !is_mpis(op)) ? xm_suspicion_find_host(op->comm, call, now)
                                               : xcclSuccess;
}

xcclResult_t xm_missing_look(struct xm_op *op, uint64_t now)
{
    if ((op->comm == NULL) || (op->comm->size == 1)) {
        return xcclInProgress;
    }
    if (op->look_at_ns == 0) {
        op->look_at_ns = now + look_ns;
    }
    if (now < op->look_at_ns) {
        return xcclInProgress;
    }
    op->look_at_ns = now + look_ns;
    xcclResult_t res = look_at_slots(op);
    if (res == xcclSuccess) {
        res = look_at_boards(op, now);
    }
    return (res == xcclSuccess) ? xcclInProgress : xm_op_fail(op, res);
}

/* "since 12:34:56" */
static size_t since_text(const struct xm_op *op, char *buf, size_t len)
{
    struct timespec started;
    struct tm       parts;

    if (!xm_record_started(op, &started) || (localtime_r(&started.tv_sec, &parts) == NULL)) {
        return 0;
    }
    return strftime(buf, len, ", since %H:%M:%S", &parts);
}

void xm_missing_describe(void *arg, char *buf, size_t len)
{
    const struct xm_op *op = arg;
    char                who[160];

    xm_record_describe(arg, buf, len);
    size_t n = strlen(buf);
    n += since_text(op, buf + n, len - n);
    if (absent_text(op, who, sizeof(who))) {
        snprintf(buf + n, len - n, "; rank%s %s %s not come to it", is_one(who) ? "" : "s", who,
                 is_one(who) ? "has" : "have");
    } else if (all_have_come(op)) {
        snprintf(buf + n, len - n,
                 "; all ranks have come to it, and may pass different counts, types or roots%s",
                 remedy(op));
    } else if ((op->comm != NULL) && (xm_comm_state_now(op->comm) == XM_COMM_NEW) &&
               (__atomic_load_n(&op->comm->asked, __ATOMIC_ACQUIRE) != 0)) {
        snprintf(buf + n, len - n,
                 "; a rank that runs without xccl never comes to it; nor does one that passes host "
                 "memory: that needs XCCL_MEMORY=mixed");
    }
}
