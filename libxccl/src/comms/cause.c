/* SPDX-License-Identifier: BSD-3-Clause */
#include "comms/cause.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "comms/agree.h"

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
