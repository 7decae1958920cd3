/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI serves the call on copies in host memory, for an MPI that cannot read the device's. The
 * copies in are done when MPI is called, so that MPI sees calls in the program's order and needs
 * nothing more of this rank.
 *
 * A rank whose copies in fail calls MPI all the same, with whatever is in that memory, and one that
 * gets no memory with a placeholder: else its next call would meet this one of the other ranks. It
 * says so to those of its node, whose result is wrong. In a reduction by an operator of the
 * program's it reduces something else (substitute.h).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "comms/wait.h"
#include "data/events.h"
#include "paths/as_bytes.h"
#include "paths/placeholder.h"
#include "paths/staged.h"
#include "paths/substitute.h"

enum { APART = 64 };

/* The call as MPI gets it. */
struct staged_call {
    struct xm_call call;
    void          *send, *recv;
};

static struct staged_call original(const struct xm_op *op)
{
    return (struct staged_call){op->call, (void *)(uintptr_t)op->call.sendbuf, op->call.recvbuf};
}

static bool is_reduction(enum xm_coll coll)
{
    return strchr(xm_signatures[coll].kinds, 'o') != NULL;
}

/*
 * Around absolute addresses there may be anything, or nothing: only the data itself is copied, and
 * goes as bytes. A reduction wants its elements as they are.
 */
static bool goes_as_bytes(const struct xm_op *op, const struct xm_buffer *buffer)
{
    return buffer->absolute && !is_reduction(op->call.coll);
}

static xcclResult_t take(struct xm_op *op, size_t bytes, void **span_p)
{
    return op->no_memory ? xm_placeholder_take(&op->placeholders, bytes, span_p)
                         : xm_scratch_take(&op->scratch, XM_POOL_HOST, bytes, span_p);
}

/* What MPI takes for the buffer's address, if its data lies there; that may be far from it. */
static void *as_base(void *span, const struct xm_buffer *buffer)
{
    return (void *)((uintptr_t)span - (uintptr_t)buffer->low);
}

/* Host memory of the buffer's shape. */
static xcclResult_t take_span(struct xm_op *op, const struct xm_buffer *buffer, const void *other,
                              void **span_p)
{
    size_t       bytes = (size_t)(buffer->high - buffer->low);
    void        *span = NULL;
    xcclResult_t res = take(op, bytes, &span);

    if ((res == xcclSuccess) && (as_base(span, buffer) == other)) {
        res = take(op, bytes + APART, &span);
        if ((res == xcclSuccess) && (as_base(span, buffer) == other)) {
            span = (char *)span + APART;
        }
    }
    *span_p = span;
    return res;
}

static xcclResult_t fill(struct xm_op *op, const struct xm_buffer *buffer, char *span,
                         bool *enqueued_p)
{
    if (!buffer->in) {
        return xcclSuccess;
    }
    if (goes_as_bytes(op, buffer)) {
        *enqueued_p = true;
        return xm_pack(&op->copier, buffer, span);
    }
    if (op->ordered && xm_stage_in_quickly(&op->copier, buffer, span)) {
        return xcclSuccess;
    }
    *enqueued_p = true;
    return xm_stage_in(&op->copier, buffer, span);
}

/*
 * Host memory for a device buffer; the pointer for MPI goes to *buf_p. Not `other`, the pointer of
 * the other buffer: behind displacements two pointers may be equal although the data lies apart,
 * and the non-blocking collectives of Open MPI 4.1 take equal pointers for MPI_IN_PLACE.
 */
static xcclResult_t replace(struct xm_op *op, const struct xm_buffer *buffer, const void *other,
                            char **span_p, void **buf_p)
{
    void        *span = NULL;
    xcclResult_t res;

    if (buffer->mixed && !goes_as_bytes(op, buffer) && !op->no_memory) {
        return xc_fail(xcclUnsupported,
                       "the datatype of a reduction has absolute addresses in memory of several "
                       "kinds, and this MPI is not GPU-aware; reduce memory of one kind at a time");
    }
    if (goes_as_bytes(op, buffer)) {
        res = take(op, (size_t)buffer->bytes, &span);
        *buf_p = span;
    } else {
        res = take_span(op, buffer, other, &span);
        *buf_p = as_base(span, buffer);
    }
    *span_p = span;
    return res;
}

/* Host memory for both buffers, and the call as MPI gets it. */
static xcclResult_t replace_both(struct xm_op *op, struct staged_call *to)
{
    const struct xm_buffer *send = &op->buffers.send, *recv = &op->buffers.recv;
    /* The root of a broadcast has one buffer only, and sends it. */
    bool         root = (op->call.coll == XM_BCAST);
    xcclResult_t res = xcclSuccess;

    if (xm_on_device(send)) {
        res =
            replace(op, send, root ? NULL : to->recv, &op->send_span, root ? &to->recv : &to->send);
        if ((res == xcclSuccess) && goes_as_bytes(op, send)) {
            res = xm_call_as_bytes(&to->call, send, !root, &op->send_arrays);
        }
    }
    if ((res == xcclSuccess) && xm_on_device(recv)) {
        res = replace(op, recv, to->send, &op->recv_span, &to->recv);
        if ((res == xcclSuccess) && goes_as_bytes(op, recv)) {
            res = xm_call_as_bytes(&to->call, recv, false, &op->recv_arrays);
        }
    }
    return res;
}

static xcclResult_t copy_in(struct xm_op *op)
{
    bool         enqueued = false;
    xcclResult_t res = xcclSuccess;

    if (op->send_span != NULL) {
        res = fill(op, &op->buffers.send, op->send_span, &enqueued);
    }
    if ((res == xcclSuccess) && (op->recv_span != NULL)) {
        res = fill(op, &op->buffers.recv, op->recv_span, &enqueued);
    }
    return ((res == xcclSuccess) && enqueued) ? xm_stream_wait(op->dev, op->copier.stream) : res;
}

static xcclResult_t take_memory(struct xm_op *op, struct staged_call *to)
{
    if (op->standing != NULL) {
        op->send_span = op->standing->send_span;
        op->recv_span = op->standing->recv_span;
        return xcclSuccess;
    }
    return replace_both(op, to);
}

static xcclResult_t bring_in(struct xm_op *op)
{
    xcclResult_t res = xm_copy_stream(op->dev, op->device, &op->copier.stream);

    if ((res == xcclSuccess) && !op->ordered) {
        res = op->dev->stream_after_default(op->copier.stream);
    }
    return (res == xcclSuccess) ? copy_in(op) : res;
}

static xcclResult_t take_substitute(struct xm_op *op, struct staged_call *to)
{
    xcclResult_t res = xm_substitute_take(op, &to->call);

    if (op->send_span != NULL) { /* else there is none, or MPI_IN_PLACE */
        to->send = op->send_span;
    }
    if (op->recv_span != NULL) {
        to->recv = op->recv_span;
    }
    return res;
}

/* Nothing of this rank's is there, and what MPI leaves there is nobody's. */
static xcclResult_t take_placeholders(struct xm_op *op, struct staged_call *to)
{
    xm_scratch_end(&op->scratch);
    free(op->send_arrays);
    free(op->recv_arrays);
    op->send_arrays = op->recv_arrays = NULL;
    op->send_span = op->recv_span = NULL;
    op->no_memory = true;
    *to = original(op);
    return xm_substitute_for(op) ? take_substitute(op, to) : replace_both(op, to);
}

/* With the device entered; *memory_p: MPI can be called, although this rank's data is not there. */
static xcclResult_t begin(struct xm_op *op, struct staged_call *to, bool *memory_p)
{
    xm_scratch_begin(&op->scratch, op->dev, op->device);
    op->copier = (struct xm_copier){&op->call, op->dev, NULL, &op->scratch, 0};
    xcclResult_t res = take_memory(op, to);
    *memory_p = (res == xcclSuccess);
    return (res == xcclSuccess) ? bring_in(op) : res;
}

/* *missed_p: why MPI is called without this rank's data, as op->detail says. */
static xcclResult_t prepare(struct xm_op *op, struct staged_call *to, xcclResult_t *missed_p)
{
    bool  memory = (op->standing != NULL);
    void *saved;

    if (memory && (op->standing->missed != xcclSuccess)) {
        *missed_p =
            xm_op_fail(op, xc_fail(op->standing->missed, "%s", op->standing->missed_detail));
        return xcclSuccess;
    }
    *missed_p = op->dev->enter(op->device, &saved);
    if (*missed_p == xcclSuccess) {
        *missed_p = begin(op, to, &memory);
        op->dev->leave(saved);
    }
    if (*missed_p != xcclSuccess) {
        xm_op_fail(op, *missed_p);
    }
    return (memory || (take_placeholders(op, to) == xcclSuccess)) ? xcclSuccess : *missed_p;
}

/*
 * By which ranks of a node tell of a miss; 0: they cannot. Before they have agreed on their slots,
 * each knows those that are there, and all calls of the communicator are counted. Persistent
 * requests of MPI's may be started in any order: the starts of each are counted by themselves.
 */
static uint64_t number_of(const struct xm_op *op)
{
    enum { REQUEST_BITS = 20, START_BITS = 26 }; /* only the latest misses are kept */
    const uint64_t early = UINT64_C(1) << 47, standing = UINT64_C(1) << 46;

    if ((op->comm == NULL) || (op->comm->slots == NULL)) {
        return 0;
    }
    if (op->standing != NULL) {
        uint64_t request = op->standing->number & ((UINT64_C(1) << REQUEST_BITS) - 1);
        uint64_t start = op->standing->starts & ((UINT64_C(1) << START_BITS) - 1);
        return early | standing | (request << START_BITS) | start;
    }
    return (op->number == 0) ? (early | op->place) : op->number;
}

static void say_missed(struct xm_op *op, xcclResult_t res)
{
    uint64_t number = number_of(op);

    op->missed = res;
    if (number != 0) {
        xm_slots_say_missed(op->comm->slots, number);
    } else if ((op->comm != NULL) && (op->comm->size > 1)) {
        size_t n = strlen(op->detail);
        snprintf(op->detail + n, sizeof(op->detail) - n,
                 "; the other ranks cannot be told, and their results may be wrong");
    }
}

/* Once MPI is over. */
static xcclResult_t look_for_missed(struct xm_op *op)
{
    uint64_t number = number_of(op);
    int      rank = (number != 0) ? xm_slots_missed(op->comm->slots, number) : -1;

    if ((op->missed != xcclSuccess) || (rank < 0)) {
        return op->missed;
    }
    return xm_op_fail(op, xc_fail(xcclRemoteError,
                                  "rank %d could not copy its data to host memory, as an error of "
                                  "its own says, so this result may be wrong",
                                  rank));
}

static int call_mpi(struct xm_op *op, const struct staged_call *to)
{
    if (op->standing != NULL) {
        op->inner = op->standing->request;
        return xm_pmpi.Start(&op->inner);
    }
    return op->blocking ? xm_call_mpi_with(&to->call, to->send, to->recv)
                        : xm_call_mpi_start(&to->call, to->send, to->recv, &op->inner);
}

/*
 * Open MPI takes the next step of MPI_Comm_idup whenever it gets progress, as a collective on that
 * communicator. Were that before this call on some ranks only, MPI would mix up both.
 */
static xcclResult_t prepare_in_order(struct xm_op *op, struct staged_call *to,
                                     xcclResult_t *missed_p)
{
    bool quiet = (op->comm != NULL) && op->comm->quiet;

    if (quiet) {
        xm_progress_pause();
    }
    xcclResult_t res = prepare(op, to, missed_p);
    xm_progress_resume();
    return res;
}

static xcclResult_t start(struct xm_op *op)
{
    struct staged_call to = original(op);
    xcclResult_t       missed = xcclSuccess;

    op->inner = XM_HANDLE(MPI_REQUEST_NULL);
    if (op->standing != NULL) {
        op->standing->starts++;
    }
    if ((op->standing != NULL) && op->standing->lost) {
        return xm_op_fail(op, xc_fail(xcclInvalidUsage,
                                      "an earlier start of the persistent request has not "
                                      "completed; free the request, and make it anew"));
    }
    xcclResult_t res = prepare_in_order(op, &to, &missed);
    if (res != xcclSuccess) {
        return res;
    }
    if (missed != xcclSuccess) {
        say_missed(op, missed);
    }
    op->code = call_mpi(op, &to);
    op->stage = XM_STAGE_WORK;
    return xcclSuccess;
}

/* The stage is XM_STAGE_OVER if nothing of it is enqueued. */
static xcclResult_t copy_out(struct xm_op *op)
{
    const struct xm_buffer *recv = &op->buffers.recv;
    xcclResult_t            res;

    op->stage = XM_STAGE_COPY;
    if (goes_as_bytes(op, recv)) {
        res = recv->out ? xm_unpack(&op->copier, recv, op->recv_span) : xcclSuccess;
    } else if (!recv->out || (op->ordered && xm_stage_out_quickly(&op->copier, recv, op->recv_span,
                                                                  recv->bytes))) {
        op->stage = XM_STAGE_OVER;
        return xcclSuccess;
    } else {
        res = xm_stage_out(&op->copier, recv, op->recv_span);
    }
    if ((res == xcclSuccess) && !op->blocking) {
        res = xm_event_take(op->dev, op->device, &op->event);
        if (res == xcclSuccess) {
            res = op->dev->event_record(op->event, op->copier.stream);
        }
    }
    return res;
}

static xcclResult_t take_out(struct xm_op *op)
{
    void        *saved;
    xcclResult_t res = op->dev->enter(op->device, &saved);

    if (res == xcclSuccess) {
        res = copy_out(op);
        op->dev->leave(saved);
    }
    return res;
}

static xcclResult_t query(struct xm_op *op)
{
    void        *saved;
    xcclResult_t res = op->dev->enter(op->device, &saved);

    if (res != xcclSuccess) {
        return res;
    }
    res = (op->event != NULL) ? op->dev->event_query(op->event)
                              : op->dev->stream_query(op->copier.stream);
    op->dev->leave(saved);
    return res;
}

static xcclResult_t progress(struct xm_op *op)
{
    xcclResult_t res = xcclSuccess;
    int          over = 1;

    if (op->stage == XM_STAGE_WORK) {
        if (!op->blocking && (op->code == MPI_SUCCESS)) {
            op->code = xm_pmpi.Test(&op->inner, &over, MPI_STATUS_IGNORE);
        }
        if (!over && (op->code == MPI_SUCCESS)) {
            return xcclInProgress;
        }
        res = look_for_missed(op);
        if ((res != xcclSuccess) || (op->code != MPI_SUCCESS) || (op->recv_span == NULL)) {
            return res;
        }
        res = take_out(op);
    }
    if ((res == xcclSuccess) && (op->stage != XM_STAGE_OVER)) {
        res = query(op);
    }
    return ((res == xcclSuccess) || (res == xcclInProgress)) ? res : xm_op_fail(op, res);
}

/* Does MPI use the memory of the operation no more? */
static bool mpi_is_over(const struct xm_op *op)
{
    return op->blocking || (op->inner == XM_HANDLE(MPI_REQUEST_NULL));
}

/* An error handler may have left a call that was to see how it ends, while MPI goes on. */
static bool was_left(const struct xm_op *op)
{
    return (op->code != MPI_SUCCESS) && (op->standing == NULL) && !mpi_is_over(op);
}

static void release(struct xm_op *op, bool failed)
{
    failed = failed || was_left(op);
    if (mpi_is_over(op)) {
        xm_placeholder_free(&op->placeholders);
        xm_substitute_free(&op->substitute);
    }
    if (!failed || (op->no_memory && mpi_is_over(op))) {
        xm_scratch_end(&op->scratch);
        xm_event_give(op->dev, op->device, op->event);
        free(op->send_arrays);
        free(op->recv_arrays);
    } else if (op->standing != NULL) {
        int over = 1;
        xm_pmpi.Test(&op->standing->request, &over, MPI_STATUS_IGNORE);
        op->standing->lost = !over;
    }
}

static xcclResult_t replace_on_device(struct xm_op *op, struct staged_call *to)
{
    void        *saved;
    xcclResult_t res = op->dev->enter(op->device, &saved);

    if (res == xcclSuccess) {
        res = replace_both(op, to);
        op->dev->leave(saved);
    }
    return res;
}

static xcclResult_t make_standing(struct xm_op *op, struct xm_standing *standing, int *code_p)
{
    struct staged_call to = original(op);

    xm_scratch_begin(&op->scratch, op->dev, op->device);
    xcclResult_t res = replace_on_device(op, &to);
    if (res != xcclSuccess) { /* MPI counts its collectives, and other ranks come to this one */
        standing->missed = res;
        snprintf(standing->missed_detail, sizeof(standing->missed_detail), "%s", xc_last_detail());
        res = take_placeholders(op, &to);
    }
    standing->scratch = op->scratch;
    standing->send_span = op->send_span;
    standing->recv_span = op->recv_span;
    standing->send_arrays = op->send_arrays;
    standing->recv_arrays = op->recv_arrays;
    standing->placeholders = op->placeholders;
    standing->substitute = op->substitute;
    standing->number = op->comm->persistent_calls;
    if (res == xcclSuccess) {
        *code_p = xm_call_mpi_init(&to.call, to.send, to.recv, &standing->request);
    }
    return res;
}

xcclResult_t xm_standing_make(struct xm_op *op, struct xm_standing **standing_p, int *code_p)
{
    struct xm_standing *standing = calloc(1, sizeof(*standing));

    if (standing == NULL) {
        return xc_fail(xcclSystemError, "out of memory for a request");
    }
    standing->request = XM_HANDLE(MPI_REQUEST_NULL);
    xcclResult_t res = make_standing(op, standing, code_p);
    if ((res != xcclSuccess) || (*code_p != MPI_SUCCESS)) {
        xm_standing_free(standing);
        return res;
    }
    *standing_p = standing;
    return xcclSuccess;
}

void xm_standing_free(struct xm_standing *standing)
{
    if ((standing == NULL) || standing->lost) {
        return; /* where MPI still writes to the memory, that stays; MPICH crashes if it is freed */
    }
    if (standing->request != XM_HANDLE(MPI_REQUEST_NULL)) {
        xm_pmpi.Request_free(&standing->request);
    }
    xm_scratch_end(&standing->scratch);
    xm_placeholder_free(&standing->placeholders);
    xm_substitute_free(&standing->substitute);
    free(standing->send_arrays);
    free(standing->recv_arrays);
    free(standing);
}

const struct xm_path xm_path_staged = {"mpi-staged", start, progress, release, false};
