/* SPDX-License-Identifier: BSD-3-Clause */
#include "comms/cause.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "comms/agree.h"
#include "comms/wait.h"

xcclResult_t xm_agreement_failed(const char *what)
{
    return xc_fail(xcclInternalError, "%s failed while the ranks of a communicator agreed", what);
}

void xm_share_cause(struct xm_comm *xm, int who, bool blocking, const char *own, char *text,
                    size_t len)
{
    char detail[sizeof(xm->reason)] = "its messages say why";

    if (who == xm->rank) {
        snprintf(detail, sizeof(detail), "%s", own);
        xc_info("no vendor communicator: %s", detail);
    }
    if (blocking) {
        xm_pmpi.Bcast(detail, (int)sizeof(detail), XM_HANDLE(MPI_BYTE), who, xm->comm);
    }
    if (strncmp(detail, "rank", 4) == 0) {
        snprintf(text, len, "%s", detail); /* it names the ranks itself */
    } else {
        snprintf(text, len, "rank %d: %s", who, detail);
    }
}

/* How long a wait may go on when a rank has given up the communicator. */
static const uint64_t grace_ns = 50000000u;

xcclResult_t xm_look_for_broken(const struct xm_comm *xm, bool own, uint64_t *since_p)
{
    const char *why;
    bool        broken = own && xm_comm_is_broken(xm);
    int         rank = (xm->slots != NULL) ? xm_slots_broken(xm->slots, &why) : -1;

    if (!broken && ((rank < 0) || (rank == xm->rank))) {
        return xcclSuccess;
    }
    uint64_t now = xm_now_ns();
    if (*since_p == 0) {
        *since_p = now;
    }
    if (now - *since_p < grace_ns) {
        return xcclSuccess;
    }
    return broken
               ? xc_fail(xcclInvalidUsage, "%s", xm->reason)
               : xc_fail(xcclRemoteError, "rank %d has given up the communicator: %s", rank, why);
}

/* Do kernels of our own carry its collectives, or may they once the ranks have agreed? */
static bool may_be_direct(const struct xm_comm *xm)
{
    return (xm->direct_state == XM_DIRECT_JOINED) ||
           ((xm->direct_state == XM_DIRECT_UNKNOWN) && (xm_comm_join != NULL) &&
            xm_comm_join->wanted(xm));
}

void xm_comm_fail(struct xm_comm *xm, xcclResult_t result, int speaker, const char *text)
{
    static bool warned;

    xm->failure = result;
    xm_comm_enter(xm, XM_COMM_FAILED, text);
    if (xm->rank == speaker) {
        bool first = !xm->doubled && !__atomic_exchange_n(&warned, true, __ATOMIC_ACQ_REL);
        xc_log(first ? XC_LOG_WARN : XC_LOG_INFO,
               may_be_direct(xm) ? "all %d ranks do without the vendor's library: %s"
                                 : "all %d ranks leave collectives on device memory to MPI: %s",
               xm->size, text);
    }
}
