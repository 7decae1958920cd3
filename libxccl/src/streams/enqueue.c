/* SPDX-License-Identifier: BSD-3-Clause */
/* What all enqueued operations share: the device, the capture, and what has to live on. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "comms/wait.h"
#include "data/events.h"
#include "ops/handles.h"
#include "paths/placeholder.h"
#include "paths/substitute.h"
#include "streams/enqueue.h"

/* An operation that was enqueued before has failed meanwhile: told once. */
static void take_failure(struct xm_enqueue *q)
{
    struct xm_stream_comm *sc = q->sc;

    pthread_mutex_lock(&sc->lock);
    q->code = __atomic_exchange_n(&sc->failed, MPI_SUCCESS, __ATOMIC_ACQ_REL);
    q->failure = sc->failed_as;
    snprintf(q->detail, sizeof(q->detail), "an operation enqueued before has failed: %s",
             sc->failure);
    pthread_mutex_unlock(&sc->lock);
}

void xm_enqueue_fail(struct xm_enqueue *q, xcclResult_t res)
{
    q->code = MPI_ERR_OTHER;
    q->failure = res;
    snprintf(q->detail, sizeof(q->detail), "%s", xc_last_detail());
}

int xm_enqueue_begin(struct xm_stream_comm *sc, struct xm_enqueue *q)
{
    const struct xm_stream *stream = sc->stream;

    *q = (struct xm_enqueue){.sc = sc, .comm = sc->comm, .code = MPI_SUCCESS};
    if (stream->dev == NULL) {
        return xm_raise(sc->comm, xcclInvalidUsage,
                        "an enqueued call needs a device stream: this rank's communicator has "
                        "none (MPIX_Stream_create with an info of type cudaStream_t or "
                        "hipStream_t)");
    }
    xm_stream_comm_look_for_misled(sc);
    q->late = (__atomic_load_n(&sc->failed, __ATOMIC_ACQUIRE) != MPI_SUCCESS);
    if (xc_device_resets(stream->dev, stream->device, true) != stream->resets) {
        return xm_raise(sc->comm, xcclInvalidUsage,
                        "the program has reset the device of the stream (as cudaDeviceReset does), "
                        "which is gone with it; make a stream and a communicator anew");
    }
    xcclResult_t res = stream->dev->enter(stream->device, &q->saved);
    if (res != xcclSuccess) {
        return xm_raise(sc->comm, res, xc_last_detail());
    }
    res = stream->ops->capturing(stream->handle, &q->capturing);
    if (res != xcclSuccess) {
        stream->dev->leave(q->saved);
        return xm_raise(sc->comm, res, xc_last_detail());
    }
    q->mode = xc_device_relax(stream->dev);
    xm_outstanding_begin();
    xm_stream_comm_reap(sc, false);
    return MPI_SUCCESS;
}

/* What is captured is enqueued when the program launches the graph, which nobody sees. */
static void track(struct xm_stream_comm *sc, bool capturing)
{
    struct xm_outstanding_stream *t = &sc->tracked;

    if (!capturing && (t->event != NULL) &&
        (t->dev->event_record(t->event, sc->stream->handle) == xcclSuccess)) {
        __atomic_store_n(&t->recorded, true, __ATOMIC_RELEASE);
    }
    xm_outstanding_end();
}

void xm_enqueue_leave(struct xm_enqueue *q)
{
    const struct xm_stream *stream = q->sc->stream;

    track(q->sc, q->capturing);
    xc_device_restore(stream->dev, q->mode);
    stream->dev->leave(q->saved);
    if (q->late && (q->code == MPI_SUCCESS)) {
        take_failure(q);
    }
}

int xm_enqueue_tell(const struct xm_enqueue *q)
{
    if (q->code == MPI_SUCCESS) {
        return MPI_SUCCESS;
    }
    if (q->failure != xcclSuccess) {
        return xm_raise(q->comm, q->failure, q->detail);
    }
    if (q->detail[0] != '\0') {
        xc_error("%s", q->detail);
    }
    xm_pmpi.Comm_call_errhandler(q->comm, q->code);
    return q->code;
}

/*
 * Where there is no memory for another, the communicator's spare one: the streams of other ranks
 * would wait for a call that is not made. Earlier calls may have to give it back first.
 */
static struct xm_enqueued *take_spare(const struct xm_enqueue *q)
{
    struct xm_stream_comm *sc = q->sc;
    struct xm_enqueued    *e;

    while (((e = __atomic_exchange_n(&sc->spare, NULL, __ATOMIC_ACQ_REL)) == NULL) &&
           !q->capturing && (sc->held != NULL)) {
        if (xm_stream_comm_wait_oldest(sc) != xcclSuccess) {
            return NULL;
        }
    }
    if (e != NULL) {
        memset(e, 0, sizeof(*e));
        e->spare = true;
    }
    return e;
}

struct xm_enqueued *xm_enqueued_new(const struct xm_enqueue *q)
{
    const struct xm_stream *stream = q->sc->stream;
    struct xm_enqueued     *e = calloc(1, sizeof(*e));

    e = (e != NULL) ? e : take_spare(q);
    if (e == NULL) {
        xc_fail(xcclSystemError, "out of memory for an operation");
        return NULL;
    }
    e->sc = q->sc;
    e->captured = q->capturing;
    e->op.comm = q->sc->xm;
    e->op.dev = stream->dev;
    e->op.device = e->op.home = stream->device;
    e->op.stream = stream->handle;
    e->request = e->handle = XM_HANDLE(MPI_REQUEST_NULL);
    xm_scratch_begin_ordered(&e->op.scratch, stream->dev, stream->device);
    e->op.copier = (struct xm_copier){&e->op.call, stream->dev, stream->handle, &e->op.scratch, 0};
    return e;
}

void xm_enqueued_free(struct xm_enqueued *e)
{
    xm_handles_let_go(&e->op);
    xm_event_give(e->op.dev, e->op.home, e->event);
    xm_scratch_end(&e->op.scratch);
    xm_placeholder_free(&e->op.placeholders);
    xm_substitute_free(&e->op.substitute);
    free(e->op.send_arrays);
    free(e->op.recv_arrays);
    xm_buffers_free(&e->op.buffers);
    if (e->spare) {
        __atomic_store_n(&e->sc->spare, e, __ATOMIC_RELEASE);
    } else {
        free(e);
    }
}

/* Nothing of it can be on the stream. */
static bool is_empty(const struct xm_enqueued *e)
{
    return !e->stays && (e->op.scratch.count == 0);
}

void xm_enqueued_failed(struct xm_enqueued *e)
{
    if (is_empty(e)) {
        xm_enqueued_free(e);
    }
}

xcclResult_t xm_enqueued_keep(const struct xm_enqueue *q, struct xm_enqueued *e)
{
    struct xm_stream_comm *sc = q->sc;

    if (is_empty(e)) {
        xm_enqueued_free(e);
        return xcclSuccess;
    }
    if (q->capturing) {
        pthread_mutex_lock(&sc->lock);
        e->next = sc->captured;
        sc->captured = e;
        pthread_mutex_unlock(&sc->lock);
        return xcclSuccess;
    }
    xcclResult_t res = xm_event_take(e->op.dev, e->op.home, &e->event);
    if (res == xcclSuccess) {
        res = e->op.dev->event_record(e->event, e->op.stream);
    }
    pthread_mutex_lock(&sc->lock);
    if (res == xcclSuccess) {
        e->next = NULL;
        *sc->held_end = e;
        sc->held_end = &e->next;
    } else { /* nothing tells when it is over: as of a graph's, when the communicator is freed */
        e->next = sc->captured;
        sc->captured = e;
    }
    pthread_mutex_unlock(&sc->lock);
    return res;
}

xcclResult_t xm_stream_comm_wait_oldest(struct xm_stream_comm *sc)
{
    struct xm_wait wait = xm_wait_begin("for memory that earlier enqueued calls hold");
    xcclResult_t   res;

    while ((res = sc->held->op.dev->event_query(sc->held->event)) == xcclInProgress) {
        if (xm_wait_step(&wait) == XM_WAIT_EXPIRED) {
            return xc_fail(xcclTimeout, "enqueued calls were not over within XCCL_TIMEOUT");
        }
    }
    if (res == xcclSuccess) {
        xm_stream_comm_reap(sc, false);
    }
    return res;
}

static bool is_over(const struct xm_enqueued *e, bool all)
{
    return all || (e->op.dev->event_query(e->event) == xcclSuccess);
}

void xm_stream_comm_reap(struct xm_stream_comm *sc, bool all)
{
    struct xm_enqueued *over = NULL;

    if (!all && (__atomic_load_n(&sc->held, __ATOMIC_ACQUIRE) == NULL)) {
        return;
    }
    pthread_mutex_lock(&sc->lock);
    while ((sc->held != NULL) && is_over(sc->held, all)) {
        struct xm_enqueued *e = sc->held;
        __atomic_store_n(&sc->held, e->next, __ATOMIC_RELEASE);
        e->next = over;
        over = e;
    }
    if (sc->held == NULL) {
        sc->held_end = &sc->held;
    }
    if (all) {
        while (sc->captured != NULL) {
            struct xm_enqueued *e = sc->captured;
            sc->captured = e->next;
            e->next = over;
            over = e;
        }
    }
    pthread_mutex_unlock(&sc->lock);
    while (over != NULL) {
        struct xm_enqueued *e = over;
        over = e->next;
        xm_enqueued_free(e);
    }
}
