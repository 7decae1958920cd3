/* SPDX-License-Identifier: BSD-3-Clause */
#include "calls/later.h"

#include "base/log.h"
#include "base/params.h"
#include "calls/calls.h"
#include "calls/facts.h"
#include "calls/handles.h"
#include "calls/observed.h"
#include "comms/wait.h"
#include "data/types.h"

static int in_use; /* atomic */

bool xm_later_in_use(void)
{
    return __atomic_load_n(&in_use, __ATOMIC_ACQUIRE) > 0;
}

bool xm_later_possible(const struct xm_op *op)
{
    return (op->call.form == XM_NONBLOCKING) && !op->invalid;
}

/* When it has a request: from here on it is sure to come to its turn. */
static xcclResult_t start(struct xm_op *op)
{
    if (!xm_handles_keep(op)) {
        return xc_fail(xcclSystemError, "out of memory for a call that begins later");
    }
    __atomic_add_fetch(&in_use, 1, __ATOMIC_RELEASE);
    op->later = __atomic_add_fetch(&op->comm->later, 1, __ATOMIC_RELAXED);
    return xcclSuccess;
}

/* Those behind it need not wait for it any more. */
static void leave(struct xm_op *op)
{
    op->begun = true;
    __atomic_add_fetch(&op->comm->began_later, 1, __ATOMIC_RELEASE);
    __atomic_sub_fetch(&in_use, 1, __ATOMIC_RELEASE);
}

/* Its turn has come: by the path that all ranks choose, or with the error that stands in its way.
 */
static xcclResult_t begin(struct xm_op *op)
{
    const struct xm_path *path = NULL;
    xcclResult_t          res = xm_collective_choose(op, &path);

    if (res == xcclInProgress) {
        return res;
    }
    if ((res == xcclSuccess) && (op->code == MPI_SUCCESS)) {
        xm_collective_take_path(op, path);
        res = path->start(op);
    } else if (res != xcclSuccess) {
        xm_op_fail(op, res);
    }
    xm_handles_let_go(op);
    leave(op);
    return ((res == xcclSuccess) && (op->code == MPI_SUCCESS)) ? xcclInProgress : res;
}

static xcclResult_t progress(struct xm_op *op)
{
    if (op->comm->later_lost) {
        return xm_op_fail(op, xc_fail(xcclInvalidUsage, "%s", op->comm->reason));
    }
    bool next = (op->later == __atomic_load_n(&op->comm->began_later, __ATOMIC_ACQUIRE) + 1);

    return next ? begin(op) : xcclInProgress;
}

static void release(struct xm_op *op, bool failed)
{
    (void)failed;
    xm_handles_let_go(op);
    if ((op->later != 0) && !op->begun) {
        /* Given up before its turn, while other ranks may carry it out: no path is equal now. */
        op->comm->later_lost = true;
        xm_comm_break(op->comm, op->detail);
        leave(op);
    }
}

static const struct xm_path path_later = {"later", start, progress, release};

int xm_later_begin(struct xm_op *op)
{
    op->path = &path_later;
    xm_set_last_path(path_later.name);
    if (__builtin_expect(xm_observing, 0)) {
        xm_facts_local(op);
        xm_seen_op(op, path_later.name, true);
    }
    return xm_op_launch(op, op->call.request);
}

static struct xm_wait begin_waiting(void)
{
    return xm_wait_begin("for the other ranks of a communicator to come to earlier non-blocking "
                         "collectives");
}

static xcclResult_t step(struct xm_wait *wait)
{
    xm_ops_progress();
    return (xm_wait_step(wait) != XM_WAIT_EXPIRED)
               ? xcclSuccess
               : xc_fail(xcclTimeout,
                         "not completed within %ld s (XCCL_TIMEOUT): a rank has not come to "
                         "earlier non-blocking collectives",
                         xc_params()->timeout);
}

xcclResult_t xm_later_wait(struct xm_comm *xm)
{
    struct xm_wait wait = begin_waiting();
    xcclResult_t   res = xcclSuccess;

    while (xm_later_any(xm) && (res == xcclSuccess)) {
        res = step(&wait);
    }
    return res;
}

xcclResult_t xm_later_choose(struct xm_op *op, const struct xm_path **path_p)
{
    struct xm_wait wait = begin_waiting();
    xcclResult_t   res;

    while ((res = xm_collective_choose(op, path_p)) == xcclInProgress) {
        res = step(&wait);
        if (res != xcclSuccess) {
            break;
        }
    }
    return res;
}
