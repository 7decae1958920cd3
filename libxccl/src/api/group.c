/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Groups are the vendor's: it collects the calls, and launches them at the end. A call that it
 * refuses makes it launch none of them. What is refused here it does not hear of, so it is given
 * a call to refuse, on a communicator that has one in the group.
 */
#include "api/group.h"

#include <stdbool.h>
#include <stdio.h>

#include "api/comm.h"
#include "backends/backend.h"
#include "base/log.h"

/* The group that a thread has open. */
struct group {
    int          depth;
    xcclResult_t failure;   /* the first */
    char         text[512]; /* its detail */
    xcclComm_t   comm;      /* of a call in it, or NULL */
    xcclStream_t stream;    /* of the same call */
};

static __thread struct group group;

xcclResult_t xc_group_note(xcclResult_t rc, xcclComm_t comm, xcclStream_t stream)
{
    struct group *g = &group;
    bool          good = (rc == xcclSuccess) || (rc == xcclInProgress);

    if (g->depth == 0) {
        return rc;
    }
    if (good && (comm != NULL)) {
        g->comm = comm;
        g->stream = stream;
    }
    if (!good && (g->failure == xcclSuccess)) {
        g->failure = rc;
        snprintf(g->text, sizeof(g->text), "%s", xc_last_detail());
    }
    return rc;
}

void xc_group_forget(xcclComm_t comm)
{
    if (group.comm == comm) {
        group.comm = NULL;
    }
}

xcclResult_t xcclGroupStart(void)
{
    const struct xc_backend_ops *ops;
    const struct xc_library     *lib;
    xcclResult_t                 rc = xc_backend_get(&ops, &lib);

    if (rc == xcclSuccess) {
        rc = ops->group_start();
    }
    if (rc == xcclSuccess) {
        if (group.depth++ == 0) {
            group.failure = xcclSuccess;
            group.comm = NULL;
        }
    }
    return rc;
}

/* The outermost group ends, in which a call had failed. */
static xcclResult_t end_failed(const struct xc_backend_ops *ops)
{
    if ((group.comm != NULL) && (ops->group_spoil != NULL)) {
        ops->group_spoil(group.comm->vendor, group.stream);
    }
    (void)ops->group_end();
    return xc_fail(group.failure, "xcclGroupEnd: a call of the group failed: %s", group.text);
}

xcclResult_t xcclGroupEnd(void)
{
    const struct xc_backend_ops *ops;
    const struct xc_library     *lib;

    if (group.depth == 0) {
        return xc_fail(xcclInvalidUsage,
                       "xcclGroupEnd: this thread has no group open; call xcclGroupStart first");
    }
    group.depth--;
    xcclResult_t rc = xc_backend_get(&ops, &lib);
    if (rc != xcclSuccess) {
        return rc;
    }
    if (group.failure == xcclSuccess) {
        return ops->group_end();
    }
    if (group.depth == 0) {
        return end_failed(ops);
    }
    (void)ops->group_end();
    return group.failure;
}
