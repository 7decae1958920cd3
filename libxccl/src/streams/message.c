/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Enqueued messages. They go through MPI on the program's communicator, so they match ordinary
 * sends and receives too. A request is MPI's, of the generalised kind, for the wait alone that is
 * enqueued; it is over when that is.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "streams/message.h"
#include "streams/runner.h"
#include "streams/staged.h"

typedef int (*isend_c_fn)(const void *, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
typedef int (*irecv_c_fn)(void *, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

static pthread_mutex_t     lock = PTHREAD_MUTEX_INITIALIZER;
static struct xm_enqueued *requested; /* whose requests the program holds; by next */

static int post_large(struct xm_enqueued *e, void *at, MPI_Datatype type)
{
    xm_function_t f = xm_mpi_functions[e->receives ? XM_FN_MPI_Irecv_c : XM_FN_MPI_Isend_c];

    if (f == NULL) {
        return MPI_ERR_COUNT; /* looked at before */
    }
    return e->receives ? ((irecv_c_fn)f)(at, e->op.buffers.recv.count, type, e->peer, e->tag,
                                         e->sc->comm, &e->request)
                       : ((isend_c_fn)f)(at, e->op.buffers.send.count, type, e->peer, e->tag,
                                         e->sc->comm, &e->request);
}

static int post_message(struct xm_enqueued *e)
{
    const struct xm_buffer *b = e->receives ? &e->op.buffers.recv : &e->op.buffers.send;
    char                   *span = e->receives ? e->op.recv_span : e->op.send_span;
    void                   *at = (span != NULL) ? span - b->low : b->buf;

    if (b->count > INT_MAX) {
        return post_large(e, at, b->type);
    }
    return e->receives ? xm_pmpi.Irecv(at, (int)b->count, b->type, e->peer, e->tag, e->sc->comm,
                                       &e->request)
                       : xm_pmpi.Isend(at, (int)b->count, b->type, e->peer, e->tag, e->sc->comm,
                                       &e->request);
}

/* A message's arguments; false: MPI is to say what is wrong with them. */
static bool read_message(struct xm_enqueued *e, const long *args, bool large)
{
    struct xm_buffer *b = e->receives ? &e->op.buffers.recv : &e->op.buffers.send;
    MPI_Count         count = large ? (MPI_Count)args[1] : (int)args[1];

    xm_buffer_forget();
    e->op.call.comm = e->sc->comm;
    e->peer = (int)args[3];
    e->tag = (int)args[4];
    if ((count < 0) ||
        !xm_buffer_single(b, (const void *)args[0], count, (MPI_Datatype)(intptr_t)args[2])) {
        return false;
    }
    /* A shorter message leaves the rest as it is, so what is there comes along and goes back. */
    b->in = true;
    b->out = e->receives;
    return true;
}

/* MPI's own error for arguments that it must refuse. */
static int refuse(MPI_Comm comm, const long *args, bool large, bool receives)
{
    MPI_Request  request;
    MPI_Datatype type = (MPI_Datatype)(intptr_t)args[2];
    int          count = (int)args[1];

    if (large) { /* cut to an int, a wrong count may be a right one */
        count = (args[1] < 0) ? -1 : (args[1] > INT_MAX) ? INT_MAX : (int)args[1];
    }
    return receives ? xm_pmpi.Irecv((void *)args[0], count, type, (int)args[3], (int)args[4], comm,
                                    &request)
                    : xm_pmpi.Isend((const void *)args[0], count, type, (int)args[3], (int)args[4],
                                    comm, &request);
}

static xcclResult_t keep_type(struct xm_enqueued *e)
{
    struct xm_buffer *b = e->receives ? &e->op.buffers.recv : &e->op.buffers.send;

    if (!b->layout.derived) {
        return xcclSuccess;
    }
    xm_buffer_hold_type(b);
    return b->layout.held ? xcclSuccess : xc_fail(xcclInternalError, "MPI_Type_contiguous failed");
}

static xcclResult_t begin_message(struct xm_enqueued *e)
{
    const struct xm_buffer *b = e->receives ? &e->op.buffers.recv : &e->op.buffers.send;
    xcclResult_t            res = xm_staged_possible(e->sc);

    if ((res == xcclSuccess) && (b->count > INT_MAX) &&
        (xm_mpi_functions[e->receives ? XM_FN_MPI_Irecv_c : XM_FN_MPI_Isend_c] == NULL)) {
        res =
            xc_fail(xcclUnsupported,
                    "an enqueued message has a count above %d, and this MPI has no function for it",
                    INT_MAX);
    }
    if (res == xcclSuccess) {
        res = keep_type(e);
    }
    if (res == xcclSuccess) {
        res = xm_staged_prepare(e);
    }
    e->post = post_message;
    return (res == xcclSuccess) ? xm_staged_start(e) : res;
}

/* ---- requests ---- */

static int query(void *extra, MPI_Status *status)
{
    (void)extra;
    xm_pmpi.Status_set_elements(status, XM_HANDLE(MPI_BYTE), 0);
    xm_pmpi.Status_set_cancelled(status, 0);
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = MPI_UNDEFINED;
    return MPI_SUCCESS;
}

static int nothing(void *extra)
{
    (void)extra;
    return MPI_SUCCESS;
}

static int no_cancel(void *extra, int complete)
{
    (void)extra;
    (void)complete;
    return MPI_SUCCESS;
}

static int give_request(struct xm_enqueued *e, MPI_Request *request)
{
    int code = xm_pmpi.Grequest_start(query, nothing, no_cancel, e, &e->handle);

    if (code == MPI_SUCCESS) {
        *request = e->handle;
        __atomic_add_fetch(&e->sc->open, 1, __ATOMIC_RELEASE);
        pthread_mutex_lock(&lock);
        e->next = requested;
        requested = e;
        pthread_mutex_unlock(&lock);
    }
    return code;
}

static struct xm_enqueued **find_request(MPI_Request request)
{
    struct xm_enqueued **at = &requested;

    while ((*at != NULL) && ((*at)->handle != request)) {
        at = &(*at)->next;
    }
    return at;
}

static struct xm_enqueued *look_up(MPI_Request request)
{
    pthread_mutex_lock(&lock);
    struct xm_enqueued *found = *find_request(request);
    pthread_mutex_unlock(&lock);
    return found;
}

bool xm_enqueue_has_request(MPI_Request request)
{
    return look_up(request) != NULL;
}

static void take_request(MPI_Request request)
{
    pthread_mutex_lock(&lock);
    struct xm_enqueued **at = find_request(request);
    if (*at != NULL) {
        *at = (*at)->next;
    }
    pthread_mutex_unlock(&lock);
}

/* Wait on the stream, and give what was received to the program. */
static void finish_message(struct xm_enqueue *q, struct xm_enqueued *e)
{
    xcclResult_t res = xm_staged_finish(e);

    if (res == xcclSuccess) {
        res = xm_enqueued_keep(q, e);
    }
    if (res != xcclSuccess) {
        xm_enqueue_fail(q, res);
    }
}

int xm_enqueue_wait(enum xm_function function, MPI_Request *request, MPI_Status *status)
{
    char              text[160];
    struct xm_enqueue q;
    bool              taken = false;

    if (*request == XM_HANDLE(MPI_REQUEST_NULL)) {
        return xm_pmpi.Wait(request, status);
    }
    struct xm_enqueued *e = look_up(*request);
    if (e == NULL) {
        snprintf(text, sizeof(text),
                 "%s: not a request of MPIX_Isend_enqueue or MPIX_Irecv_enqueue",
                 xm_mpi_function_name(function));
        return xm_raise(XM_HANDLE(MPI_COMM_WORLD), xcclInvalidArgument, text);
    }
    struct xm_stream_comm *sc = e->sc;
    int                    code = xm_enqueue_begin(sc, &q);
    if (code != MPI_SUCCESS) {
        return code;
    }
    if (q.capturing != e->captured) {
        xm_enqueue_fail(&q, xc_fail(xcclInvalidUsage,
                                    "%s: an operation and its wait go into the same graph",
                                    xm_mpi_function_name(function)));
    } else {
        take_request(*request);
        xm_runner_status(e, status);
        xm_pmpi.Grequest_complete(e->handle);
        xm_pmpi.Request_free(&e->handle);
        *request = XM_HANDLE(MPI_REQUEST_NULL);
        finish_message(&q, e);
        taken = true;
    }
    xm_enqueue_leave(&q);
    if (taken) { /* from here on another thread may free what the program has freed before */
        __atomic_sub_fetch(&sc->open, 1, __ATOMIC_RELEASE);
    }
    return xm_enqueue_tell(&q);
}

/* ---- the calls ---- */

/* False: MPI is to say what is wrong with the arguments, when the call has ended. */
static bool serve(struct xm_enqueue *q, struct xm_enqueued *e, const long *args, bool large,
                  bool waits)
{
    if (!read_message(e, args, large)) {
        q->code = MPI_ERR_OTHER;
        xm_enqueued_free(e);
        return false;
    }
    if (e->receives && waits) {
        xm_runner_status(e, (MPI_Status *)args[6]);
    }
    xcclResult_t res = begin_message(e);
    if (res != xcclSuccess) {
        xm_enqueue_fail(q, res);
        xm_enqueued_failed(e);
    } else if (waits) {
        finish_message(q, e);
    } else {
        q->code = give_request(e, (MPI_Request *)args[6]);
    }
    return true;
}

int xm_enqueue_message(enum xm_function function, const long *args)
{
    bool large =
        (function == XM_FN_MPIX_Send_enqueue_c) || (function == XM_FN_MPIX_Recv_enqueue_c) ||
        (function == XM_FN_MPIX_Isend_enqueue_c) || (function == XM_FN_MPIX_Irecv_enqueue_c);
    bool receives =
        (function == XM_FN_MPIX_Recv_enqueue) || (function == XM_FN_MPIX_Recv_enqueue_c) ||
        (function == XM_FN_MPIX_Irecv_enqueue) || (function == XM_FN_MPIX_Irecv_enqueue_c);
    bool waits = (function == XM_FN_MPIX_Send_enqueue) || (function == XM_FN_MPIX_Send_enqueue_c) ||
                 (function == XM_FN_MPIX_Recv_enqueue) || (function == XM_FN_MPIX_Recv_enqueue_c);
    struct xm_stream_comm *sc = xm_stream_comm_of((MPI_Comm)(intptr_t)args[5]);
    struct xm_enqueue      q;
    bool                   served = true;
    int                    code = xm_enqueue_begin(sc, &q);

    if (code != MPI_SUCCESS) {
        return code;
    }
    struct xm_enqueued *e = xm_enqueued_new(&q);
    if (e == NULL) {
        xm_enqueue_fail(&q, xcclSystemError);
    } else {
        e->message = true;
        e->receives = receives;
        served = serve(&q, e, args, large, waits);
    }
    xm_enqueue_leave(&q);
    return served ? xm_enqueue_tell(&q) : refuse(sc->comm, args, large, receives);
}
