/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations that MPI carries: copies to pinned memory on the stream, a function of the host that
 * hands the operation to a thread, and a wait on the stream for the word that the thread sets when
 * MPI is done. Memory of the host is used as it is.
 *
 * A rank whose data does not come to a collective enqueues that all the same, as the streams of the
 * others wait for it: on whatever is in the pinned memory, or on placeholders. Then the call is an
 * error there, and the others are told once it is over (runner.c).
 */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "comms/wait.h"
#include "ops/handles.h"
#include "paths/as_bytes.h"
#include "paths/placeholder.h"
#include "paths/substitute.h"
#include "streams/runner.h"
#include "streams/staged.h"

enum { LINE = 64 };

xcclResult_t xm_staged_possible(const struct xm_stream_comm *sc)
{
    return sc->threads
               ? xcclSuccess
               : xc_fail(xcclInvalidUsage,
                         "this enqueued call goes through MPI, which a thread of xccl calls "
                         "meanwhile: initialise MPI by MPI_Init_thread with "
                         "MPI_THREAD_MULTIPLE");
}

static size_t span_of(const struct xm_buffer *b)
{
    size_t bytes = xm_on_device(b) ? (size_t)(b->high - b->low) : 0;

    return (bytes + LINE - 1) / LINE * LINE;
}

/*
 * Whatever the program does with its type before MPI sees it. Not a duplicate: that would call the
 * program's copy callbacks.
 */
static xcclResult_t keep_type(struct xm_buffer *b, MPI_Datatype *type)
{
    if (!b->layout.derived || !b->used) {
        return xcclSuccess;
    }
    xm_buffer_hold_type(b);
    if (!b->layout.held) {
        return xc_fail(xcclInternalError, "MPI_Type_contiguous failed");
    }
    *type = b->type;
    return xcclSuccess;
}

/* What MPI takes for the buffer's address; that may be far from its data. */
static void *as_base(const struct xm_enqueued *e, const struct xm_buffer *b, char *span)
{
    bool as_bytes = e->op.no_memory && (b->absolute || e->op.substitute.made);

    return as_bytes ? span : (void *)((uintptr_t)span - (uintptr_t)b->low);
}

/*
 * Open MPI's non-blocking collectives take equal addresses of both buffers for MPI_IN_PLACE. Those
 * of types that begin behind their address can be equal although the data lies apart.
 */
static void keep_apart(struct xm_enqueued *e)
{
    const struct xm_buffers *b = &e->op.buffers;
    const void              *send = e->op.call.sendbuf, *recv = e->op.call.recvbuf;

    send = (e->op.send_span != NULL) ? as_base(e, &b->send, e->op.send_span) : send;
    recv = (e->op.recv_span != NULL) ? as_base(e, &b->recv, e->op.recv_span) : recv;
    if ((send == recv) && (e->op.recv_span != NULL)) {
        e->op.recv_span += LINE;
    } else if ((send == recv) && (e->op.send_span != NULL)) {
        e->op.send_span += LINE;
    }
}

xcclResult_t xm_staged_prepare(struct xm_enqueued *e)
{
    struct xm_buffers *b = &e->op.buffers;
    size_t             send = span_of(&b->send), recv = span_of(&b->recv);
    xcclResult_t       res;

    if (b->send.absolute || b->recv.absolute) { /* between the addresses lies what is not its own */
        return xc_fail(xcclUnsupported, "an enqueued call that goes through MPI has absolute "
                                        "addresses in its datatype: pass the address of a buffer");
    }

    /* Where all that XCCL_STAGING allows is in use, earlier operations give theirs back. */
    while (((res = xm_scratch_take(&e->op.scratch, XM_POOL_HOST, 2 * LINE + send + recv,
                                   &e->room)) != xcclSuccess) &&
           !e->captured && (e->sc->held != NULL)) {
        res = xm_stream_comm_wait_oldest(e->sc);
        if (res != xcclSuccess) {
            return res;
        }
    }
    if (res != xcclSuccess) {
        return res;
    }
    e->stays = true;
    e->word = e->room;
    e->word[0] = e->word[1] = 0;
    e->op.send_span = (send > 0) ? (char *)e->room + LINE : NULL;
    e->op.recv_span = (recv > 0) ? (char *)e->room + LINE + send : NULL;
    keep_apart(e);
    if (send > 0) {
        res = xm_stage_in(&e->op.copier, &b->send, e->op.send_span);
    }
    if ((res == xcclSuccess) && (recv > 0)) {
        res = xm_stage_in(&e->op.copier, &b->recv, e->op.recv_span);
    }
    return res;
}

static void hand_over(void *arg)
{
    struct xm_enqueued *e = arg;

    __atomic_store_n(e->word, 0, __ATOMIC_RELEASE);
    xm_runner_hand_over(e);
}

/*
 * Without a function of the host the stream says by a word that it has come there. A launch of a
 * graph is seen by that function alone, but who gets no such node has no graph either.
 */
xcclResult_t xm_staged_start(struct xm_enqueued *e)
{
    const struct xc_device_ops *dev = e->op.dev;
    xcclResult_t                res = e->sc->stream->ops->call(hand_over, e, e->op.stream);

    if ((res == xcclSuccess) || e->captured) {
        return res;
    }
    res = dev->set_async(e->word, 0, sizeof(*e->word), e->op.stream);
    if (res == xcclSuccess) {
        res = dev->set_async(e->word + 1, 0xff, sizeof(*e->word), e->op.stream);
    }
    if (res == xcclSuccess) {
        xm_runner_expect(e);
    }
    return res;
}

/*
 * A kernel can be captured everywhere; CUDA's own wait takes no place on the device. That of HIP
 * wants memory of a special kind.
 */
static xcclResult_t wait_for_word(struct xm_enqueued *e)
{
    const struct xm_stream *stream = e->sc->stream;
    struct xm_kernels      *k = xm_kernels_of(stream->dev, stream->device);

    bool kernel = e->captured || (strcmp(stream->dev->name, "cuda") != 0);

    return (kernel && (k != NULL)) ? xm_kernel_await(k, e->word, 1, e->op.stream)
                                   : stream->ops->wait(e->word, 1, e->op.stream);
}

xcclResult_t xm_staged_finish(struct xm_enqueued *e)
{
    xcclResult_t res = wait_for_word(e);

    return ((res == xcclSuccess) && (e->op.recv_span != NULL) && (e->op.missed == xcclSuccess))
               ? xm_stage_out(&e->op.copier, &e->op.buffers.recv, e->op.recv_span)
               : res;
}

static int post_collective(struct xm_enqueued *e)
{
    const struct xm_call    *call = &e->op.call;
    const struct xm_buffers *b = &e->op.buffers;
    const void              *send = call->sendbuf;
    void                    *recv = call->recvbuf;

    if (e->op.send_span != NULL) {
        void *at = as_base(e, &b->send, e->op.send_span);
        /* The root of a broadcast has one buffer only, and sends it. */
        if (call->coll == XM_BCAST) {
            recv = at;
        } else {
            send = at;
        }
    }
    if (e->op.recv_span != NULL) {
        recv = as_base(e, &b->recv, e->op.recv_span);
    }
    return xm_call_mpi_start(call, send, recv, &e->request);
}

static bool is_the_programs(MPI_Op op)
{
    return (op != 0) && (xm_op_name(op) == NULL);
}

/* An operation of the program's is told the type, and may want to know it again: see keep_op(). */
static xcclResult_t keep_types(struct xm_enqueued *e)
{
    struct xm_call    *call = &e->op.call;
    struct xm_buffers *b = &e->op.buffers;
    const char        *kinds = xm_signatures[call->coll].kinds;
    MPI_Datatype       send = call->sendtype, recv = call->recvtype;
    bool               bcast = (call->coll == XM_BCAST);

    if (is_the_programs(call->op)) {
        return xcclSuccess;
    }
    xcclResult_t res = keep_type(&b->send, bcast ? &recv : &send);
    if (res == xcclSuccess) {
        res = keep_type(&b->recv, &recv);
    }
    for (int i = 0; kinds[i] != '\0'; i++) {
        call->args[i] = (kinds[i] == 't')   ? (long)(intptr_t)send
                        : (kinds[i] == 'u') ? (long)(intptr_t)recv
                                            : call->args[i];
    }
    return res;
}

/* An operation of the program's and its type, until this one is given back. */
static xcclResult_t keep_op(struct xm_enqueued *e)
{
    return (!is_the_programs(e->op.call.op) || xm_handles_keep(&e->op))
               ? xcclSuccess
               : xc_fail(xcclSystemError, "out of memory for an operation");
}

/* ---- a collective in which this rank's data has no part ---- */

static xcclResult_t take_placeholder(struct xm_op *op, const struct xm_buffer *b, bool sends,
                                     char **span_p, void **arrays_p)
{
    size_t       bytes = (size_t)(b->absolute ? b->bytes : b->high - b->low);
    void        *span = NULL;
    xcclResult_t res = xcclSuccess;

    if (xm_on_device(b)) {
        res = xm_placeholder_take(&op->placeholders, bytes, &span);
        if ((res == xcclSuccess) && b->absolute) {
            res = xm_call_as_bytes(&op->call, b, sends, arrays_p);
        }
    }
    *span_p = span;
    return res;
}

static xcclResult_t take_placeholders(struct xm_op *op)
{
    const struct xm_buffers *b = &op->buffers;
    bool                     root = (op->call.coll == XM_BCAST); /* it sends its only buffer */

    op->no_memory = true;
    if (xm_substitute_for(op)) {
        return xm_substitute_take(op, &op->call);
    }
    xcclResult_t res = take_placeholder(op, &b->send, !root, &op->send_span, &op->send_arrays);
    return (res == xcclSuccess)
               ? take_placeholder(op, &b->recv, false, &op->recv_span, &op->recv_arrays)
               : res;
}

/*
 * Let MPI be called without this rank's data, for such a reason. Where even the pinned memory of
 * the word is missing, that of the communicator serves: its stream does one after the other.
 */
static xcclResult_t miss(struct xm_enqueued *e, xcclResult_t why)
{
    struct xm_stream_comm *sc = e->sc;

    e->op.missed = xm_op_fail(&e->op, why);
    if (!e->op.keeps_handles) { /* where there are no duplicates of its types */
        (void)xm_handles_keep(&e->op);
    }
    if ((sc->xm->size > 1) && (sc->xm->slots == NULL)) {
        size_t n = strlen(e->op.detail);
        snprintf(e->op.detail + n, sizeof(e->op.detail) - n,
                 "; the other ranks cannot be told, and their results may be wrong");
    }
    if (e->word != NULL) {
        return xcclSuccess;
    }
    if ((sc->word == NULL) || (take_placeholders(&e->op) != xcclSuccess)) {
        return why;
    }
    e->stays = true;
    e->word = sc->word;
    return xcclSuccess;
}

xcclResult_t xm_staged_collective(struct xm_enqueued *e)
{
    xcclResult_t res = xm_staged_possible(e->sc);

    if (res != xcclSuccess) {
        return res;
    }
    res = keep_types(e);
    if (res == xcclSuccess) {
        res = keep_op(e);
    }
    if (res == xcclSuccess) {
        res = xm_staged_prepare(e);
    }
    e->post = post_collective;
    if (res != xcclSuccess) {
        res = miss(e, res);
    }
    if (res == xcclSuccess) {
        res = xm_staged_start(e);
    }
    return (res == xcclSuccess) ? xm_staged_finish(e) : res;
}
