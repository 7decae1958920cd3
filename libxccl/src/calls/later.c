/* SPDX-License-Identifier: BSD-3-Clause */
#include "calls/later.h"

#include <pthread.h>

#include "base/log.h"
#include "base/params.h"
#include "calls/calls.h"
#include "calls/facts.h"
#include "calls/observed.h"
#include "comms/wait.h"
#include "data/types.h"

static int in_use; /* atomic */

bool xm_later_in_use(void)
{
    return __atomic_load_n(&in_use, __ATOMIC_ACQUIRE) > 0;
}

/* The program may free them one by one, each in its place of the array. */
static bool has_types_of_blocks(const struct xm_buffer *buffer)
{
    return buffer->used && (buffer->types != NULL);
}

bool xm_later_possible(const struct xm_op *op)
{
    return (op->call.form == XM_NONBLOCKING) && !op->invalid &&
           !has_types_of_blocks(&op->buffers.send) && !has_types_of_blocks(&op->buffers.recv);
}

/* ---- what the program frees before they have begun ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct xm_op   *waiting;

bool xm_later_keeps_op(MPI_Op op)
{
    bool found = false;

    pthread_mutex_lock(&lock);
    for (struct xm_op *w = waiting; w != NULL; w = w->waits_beside) {
        if (w->call.op == op) {
            w->frees_op = found = true;
        }
    }
    pthread_mutex_unlock(&lock);
    return found;
}

bool xm_later_keeps_type(MPI_Datatype type)
{
    bool found = false;

    pthread_mutex_lock(&lock);
    for (struct xm_op *w = waiting; w != NULL; w = w->waits_beside) {
        if (w->call.sendtype == type) {
            w->frees_sendtype = found = true;
        } else if (w->call.recvtype == type) {
            w->frees_recvtype = found = true;
        }
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static void wait_beside(struct xm_op *op)
{
    pthread_mutex_lock(&lock);
    op->waits = true;
    op->waits_beside = waiting;
    waiting = op;
    pthread_mutex_unlock(&lock);
}

static bool uses_type(const struct xm_op *op, MPI_Datatype type)
{
    return (op->call.sendtype == type) || (op->call.recvtype == type);
}

/* From here on MPI, or the path, holds what it needs; what no other one waits for is freed. */
static void wait_no_more(struct xm_op *op)
{
    struct xm_op **at = &waiting;

    pthread_mutex_lock(&lock);
    while ((*at != NULL) && (*at != op)) {
        at = &(*at)->waits_beside;
    }
    *at = op->waits_beside;
    op->waits = false;
    for (const struct xm_op *w = waiting; w != NULL; w = w->waits_beside) {
        op->frees_op = op->frees_op && (w->call.op != op->call.op);
        op->frees_sendtype = op->frees_sendtype && !uses_type(w, op->call.sendtype);
        op->frees_recvtype = op->frees_recvtype && !uses_type(w, op->call.recvtype);
    }
    pthread_mutex_unlock(&lock);
    if (op->frees_op) {
        xm_pmpi.Op_free(&op->call.op);
    }
    if (op->frees_sendtype) {
        xm_pmpi.Type_free(&op->call.sendtype);
    }
    if (op->frees_recvtype) {
        xm_pmpi.Type_free(&op->call.recvtype);
    }
}

/* ---- the operation ---- */

static xcclResult_t start(struct xm_op *op)
{
    (void)op;
    return xcclSuccess;
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
    wait_no_more(op);
    __atomic_add_fetch(&op->comm->began_later, 1, __ATOMIC_RELEASE);
    __atomic_sub_fetch(&in_use, 1, __ATOMIC_RELEASE);
    return ((res == xcclSuccess) && (op->code == MPI_SUCCESS)) ? xcclInProgress : res;
}

static xcclResult_t progress(struct xm_op *op)
{
    bool next = (op->later == __atomic_load_n(&op->comm->began_later, __ATOMIC_ACQUIRE) + 1);

    return next ? begin(op) : xcclInProgress;
}

static void release(struct xm_op *op, bool failed)
{
    (void)failed;
    if (op->waits) {
        wait_no_more(op);
    }
}

static const struct xm_path path_later = {"later", start, progress, release};

int xm_later_begin(struct xm_op *op)
{
    op->path = &path_later;
    wait_beside(op);
    __atomic_add_fetch(&in_use, 1, __ATOMIC_RELEASE);
    op->later = __atomic_add_fetch(&op->comm->later, 1, __ATOMIC_RELAXED);
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
