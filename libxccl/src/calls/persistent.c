/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Persistent collectives. Each start is an operation of its own. Ranks may start their requests in
 * different orders, and MPI matches them by the order in which they were made. So all ranks agree,
 * when they make one, on who carries its starts:
 *
 *   host memory on all ranks      MPI's own request
 *   device memory on any rank     non-blocking collectives on a communicator of the request's own
 *   too many such communicators,  MPI's own request on host memory, which the data is copied to and
 *   or host memory on others      from: MPI has a limited number of communicators
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/params.h"
#include "calls/calls.h"
#include "calls/choice.h"
#include "calls/facts.h"
#include "calls/pairwise.h"
#include "comms/agree.h"
#include "comms/topology.h"
#include "data/arrays.h"
#include "ops/persistent.h"
#include "paths/staged.h"

/*
 * Requests of a process with communicators of their own. These use what there is little of: slots
 * (256), memory of the direct path, the vendor's communicators, and MPICH has 2048 in all.
 */
enum { MOST_APART = 64 };

/* What a rank says of a request that is being made. */
enum {
    SAYS_DEVICE = 1,    /* some of its data is device memory */
    SAYS_ELSEWHERE = 2, /* it is not all that the fast paths want */
    SAYS_CROWDED = 4,   /* it has many requests with communicators of their own */
    SAYS_INVALID = 8    /* MPI is to refuse an argument, so nothing will be started */
};

/* Errors are the program's communicator's, which is the one that it knows. */
static int start_apart(const struct xm_call *call, const struct xm_held *held, MPI_Request *request)
{
    struct xm_call once = *call;
    bool           apart = (held->comm != XM_HANDLE(MPI_COMM_NULL));

    once.form = XM_NONBLOCKING;
    once.start = true;
    once.function = xm_function_of(call->coll, XM_NONBLOCKING, call->large);
    once.request = request;
    once.args[xm_mpi_arguments(once.function) - 1] = (long)request;
    if (apart) {
        once.comm = held->comm;
        once.args[xm_signatures[call->coll].comm] = (long)held->comm;
    }
    xm_buffer_forget();
    int code = xm_collective_run(&once);
    if (apart && (code != MPI_SUCCESS)) {
        xm_pmpi.Comm_call_errhandler(call->comm, code);
    }
    return code;
}

/* An operation for one call of this rank's, whose buffers are known; NULL: an error was raised. */
static struct xm_op *operation_of(const struct xm_call *call, bool *valid_p, int *code_p)
{
    struct xm_comm *xm;
    struct xm_place place;

    if (xm_comm_get(call->comm, &xm) != xcclSuccess) {
        *code_p = xm_raise(call->comm, xcclInternalError, xc_last_detail());
        return NULL;
    }
    struct xm_op *op = xm_op_new();
    if (op == NULL) {
        xm_comm_unuse(xm);
        *code_p = xm_raise(call->comm, xcclSystemError, "out of memory for an operation");
        return NULL;
    }
    op->call = *call;
    op->comm = xm;
    op->dev = xc_device_active();
    xm_collective_place(op, &place);
    *valid_p = xm_buffers_of(&op->call, &place, &op->buffers);
    xm_facts_local(op); /* its device */
    return op;
}

/* MPI's own request does it, on copies. It is not counted: its place is that of the request. */
static int start_standing(const struct xm_call *call, const struct xm_held *held,
                          MPI_Request *request)
{
    bool           valid;
    int            code;
    struct xm_call once = *call;

    once.form = XM_NONBLOCKING;
    once.request = request;
    xm_buffer_forget();
    struct xm_op *op = operation_of(&once, &valid, &code);
    if (op == NULL) {
        return code;
    }
    op->standing = held->standing;
    return xm_collective_carry(op, &xm_path_staged);
}

/* An operation of the program's is told the type, and may want to know it again: that one is kept.
 */
static bool holds_types(const struct xm_call *call)
{
    return strchr(xm_signatures[call->coll].kinds, 'o') == NULL;
}

/* The types of a buffer's blocks, derived ones as types of the request's own: also of an empty one,
 * whose type every start looks at. */
static bool hold_types(const struct xm_call *call, const struct xm_buffer *buffer, int side,
                       struct xm_held *held)
{
    int n = (buffer->types != NULL) ? buffer->blocks : (buffer->blocks > 0);

    held->types[side] = calloc((size_t)n + 1, sizeof(MPI_Datatype));
    held->own[side] = calloc((size_t)n + 1, sizeof(bool));
    if ((held->types[side] == NULL) || (held->own[side] == NULL)) {
        return false;
    }
    held->length[side] = n;
    for (int i = 0; i < n; i++) {
        struct xm_block block = xm_block_at(call, buffer, i);
        MPI_Datatype   *same = &held->types[side][i];
        held->own[side][i] = block.layout->derived &&
                             (xm_pmpi.Type_contiguous(1, block.type, same) == MPI_SUCCESS) &&
                             (xm_pmpi.Type_commit(same) == MPI_SUCCESS);
        *same = held->own[side][i] ? *same : block.type;
    }
    return true;
}

/* One type, or the array of them, of the send buffer or of the receive buffer. */
static void put_types(struct xm_call *call, const struct xm_held *held, int side, bool sends)
{
    const char *kinds = xm_signatures[call->coll].kinds;

    for (int i = 0; (held->length[side] > 0) && (kinds[i] != '\0'); i++) {
        if (kinds[i] == (sends ? 't' : 'u')) {
            *(sends ? &call->sendtype : &call->recvtype) = held->types[side][0];
            call->args[i] = (long)held->types[side][0];
        } else if (kinds[i] == (sends ? 'U' : 'V')) {
            *(sends ? &call->sendtypes : &call->recvtypes) = held->types[side];
            call->args[i] = (long)held->types[side];
        }
    }
}

/*
 * The program may free a type before the request that was made with it. MPI libraries read arrays
 * when the request is made, so there are programs that give them up behind it.
 */
static bool hold(struct xm_op *op, struct xm_held *held)
{
    struct xm_call    *call = &op->call;
    struct xm_buffers *buffers = &op->buffers;

    if (!xm_arrays_keep(call, buffers, op->comm->size)) {
        return false;
    }
    held->arrays = buffers->arrays;
    buffers->arrays = NULL;
    if (!holds_types(call)) {
        return true;
    }
    if (!hold_types(call, &buffers->send, 0, held) || !hold_types(call, &buffers->recv, 1, held)) {
        return false;
    }
    put_types(call, held, 0, call->coll != XM_BCAST);
    put_types(call, held, 1, false);
    return true;
}

/* All that any rank says, in bits, those of an intercommunicator's other group too. */
static xcclResult_t all_say(struct xm_comm *xm, int mine, int *all_p)
{
    int remote = 0, own = 0;

    if (!xm->inter) {
        return xm_comm_any(xm, mine, all_p);
    }
    if ((xm_pmpi.Allreduce(&mine, &remote, 1, XM_HANDLE(MPI_INT), XM_HANDLE(MPI_BOR), xm->comm) !=
         MPI_SUCCESS) ||
        (xm_pmpi.Allreduce(&remote, &own, 1, XM_HANDLE(MPI_INT), XM_HANDLE(MPI_BOR), xm->comm) !=
         MPI_SUCCESS)) {
        return xc_fail(xcclInternalError, "MPI_Allreduce failed");
    }
    *all_p = remote | own;
    return xcclSuccess;
}

/* MPI's request, as far as this MPI has such. */
static bool mpi_has(const struct xm_call *call)
{
    return xm_mpi_functions[call->function] != NULL;
}

/*
 * Can MPI start it again with other data in the same memory? MPICH 4.0 gathers the root's own part
 * when the request is made, in allgather between two groups too. Until MPICH 4.1.
 */
static bool mpi_repeats(const struct xm_call *call, bool inter)
{
    return mpi_has(call) &&
           (XM_OPENMPI || XM_STANDARD_ABI || (!inter && (call->coll != XM_GATHER)));
}

/*
 * Could any rank come to use a device? They agree on that once for a communicator, so that a
 * program without devices pays nothing; making a request may wait for others.
 */
static xcclResult_t concerns_devices(const struct xm_call *call, struct xm_comm *xm, bool *yes_p)
{
    xcclResult_t res = xcclSuccess;
    int          any = 0;

    if (xm->persistent == XM_PERSISTENT_UNKNOWN) {
        xm->asks_for = xm_coll_name(call->coll);
        xm->asks_in = xm->device_calls + 1;
        res = all_say(xm, xc_device_possible(), &any);
        if (res == xcclSuccess) {
            xm->persistent = any ? XM_PERSISTENT_OURS : XM_PERSISTENT_MPIS;
        }
    }
    *yes_p = !mpi_has(call) || (xm->persistent == XM_PERSISTENT_OURS);
    return res;
}

/* Collectives with neighbours need the topology. */
static int make_apart(const struct xm_call *call, MPI_Comm *comm_p)
{
    int code = xm_topology_plain(call->comm, comm_p);

    if ((code == MPI_SUCCESS) && xm_coll_has_neighbors(call->coll)) {
        MPI_Comm plain = *comm_p;
        code = xm_topology_copy(call->comm, plain, comm_p);
        xm_pmpi.Comm_free(&plain);
    }
    return (code == MPI_SUCCESS) ? xm_persistent_hush(*comm_p) : code;
}

/* Does every rank need data of every other, so that none completes it before all have begun? */
static bool is_lockstep(const struct xm_op *op)
{
    switch (op->call.coll) {
    case XM_ALLREDUCE:
    case XM_ALLGATHER:
    case XM_ALLTOALL:
    case XM_REDUCE_SCATTER_BLOCK:
        return op->buffers.recv.bytes > 0;
    default:
        return false;
    }
}

/* Starts must not wait for other ranks, so these agree now on what the fast paths need. */
static xcclResult_t prepare_apart(struct xm_op *op, MPI_Comm comm)
{
    struct xm_comm *xm;

    xcclResult_t res = xm_comm_get(comm, &xm);
    if (res != xcclSuccess) {
        return res;
    }
    if (xm_coll_needs_agreement(op->call.coll)) {
        res = xm_facts_of_starts(op, xm);
        if ((res != xcclSuccess) || !xm->starts.on_device) {
            xm_comm_unuse(xm);
            return res;
        }
    }
    xm->device_calls++;
    xm->lockstep = is_lockstep(op);
    res = xm_comm_agree(xm, op->call.coll, true, xm_facts_worth_us(xm, op), op->dev, op->device);
    xm_comm_unuse(xm);
    return res;
}

/* Ranks in host memory do not take part in agreements: MPI carries all starts, for each as it is.
 */
static xcclResult_t leave_apart_to_mpi(MPI_Comm comm)
{
    struct xm_comm *xm;

    xcclResult_t res = xm_comm_get(comm, &xm);
    if (res == xcclSuccess) {
        xm->quiet = true;
        xm_comm_unuse(xm);
    }
    return res;
}

static int give_up(const struct xm_call *call, struct xm_held *held, xcclResult_t res,
                   const char *text)
{
    xm_held_free(held);
    return xm_raise(call->comm, res, text);
}

/* May a path other than MPI's carry it? */
static bool is_fast(const struct xm_op *op)
{
    return xm_coll_on_device(op->call.coll) && !op->comm->inter &&
           (xc_params()->memory == XC_MEMORY_SAME);
}

/* Its starts are non-blocking collectives, on a communicator of the request's own if they can be.
 */
static int init_apart(struct xm_op *op, int all)
{
    struct xm_held  held = {.comm = XM_HANDLE(MPI_COMM_NULL)};
    struct xm_comm *xm = op->comm;
    bool            alone = (xm->size == 1) && !xm->inter;
    int             code = MPI_SUCCESS;
    xcclResult_t    res = xcclSuccess;

    /* After MPI_Comm_idup Open MPI makes none in the same place on all ranks. */
    if (!alone && !xm->quiet) {
        code = make_apart(&op->call, &held.comm);
        if (code != MPI_SUCCESS) {
            return code;
        }
        if (xm_coll_is_pairwise(op->call.coll) && !xm->inter) {
            res = xm_pairwise_apart(held.comm, op->call.coll);
        } else if (is_fast(op)) {
            res = (all & SAYS_ELSEWHERE) ? leave_apart_to_mpi(held.comm)
                                         : prepare_apart(op, held.comm);
        }
    }
    if (res != xcclSuccess) {
        return give_up(&op->call, &held, res, xc_last_detail());
    }
    if (!hold(op, &held)) {
        return give_up(&op->call, &held, xcclSystemError, "out of memory for a request");
    }
    return xm_request_persistent(&op->call, &held, start_apart);
}

/* Its starts are those of MPI's own request, on copies where this rank's data is device memory. */
static int init_standing(struct xm_op *op)
{
    struct xm_held held = {.comm = XM_HANDLE(MPI_COMM_NULL)};

    if (xm_collective_path_to_mpi(op, false) == &xm_path_mpi) {
        return xm_call_mpi(&op->call);
    }
    if (!hold(op, &held)) {
        return give_up(&op->call, &held, xcclSystemError, "out of memory for a request");
    }
    int          code = MPI_SUCCESS;
    xcclResult_t res = xm_standing_make(op, &held.standing, &code);
    if (res != xcclSuccess) {
        return give_up(&op->call, &held, res, xc_last_detail());
    }
    if (code != MPI_SUCCESS) {
        xm_held_free(&held);
        return code; /* MPI has raised it */
    }
    return xm_request_persistent(&op->call, &held, start_standing);
}

/* Has this rank data that is not a device's? Where ranks have counts of their own, it may have
 * none.
 */
static bool is_elsewhere(struct xm_op *op)
{
    if (op->dev == NULL) {
        return true;
    }
    if (xm_coll_needs_agreement(op->call.coll)) {
        return !xm_touches_device(op) && (op->buffers.send.used || op->buffers.recv.used);
    }
    return !xm_facts_local(op);
}

static int what_to_say(struct xm_op *op, bool valid)
{
    int says = (xm_persistent_apart() >= MOST_APART) ? SAYS_CROWDED : 0;

    if (!valid) {
        return SAYS_INVALID;
    }
    says |= xm_touches_device(op) ? SAYS_DEVICE : 0;
    return says | (is_elsewhere(op) ? SAYS_ELSEWHERE : 0);
}

static void warn_of_crowd(const struct xm_op *op)
{
    static bool said; /* atomic */

    if ((op->comm->rank == 0) && is_fast(op) &&
        !__atomic_exchange_n(&said, true, __ATOMIC_RELAXED)) {
        xc_warn("more than %d persistent collectives on device memory at once: those beyond are "
                "staged through host memory; free the requests that are no longer needed",
                MOST_APART);
    }
}

/* Any rank could use a device. */
static int init_agreed(struct xm_op *op, bool valid)
{
    struct xm_comm *xm = op->comm;
    int             all = 0;

    xm->asks_for = xm_coll_name(op->call.coll);
    xm->asks_in = xm->device_calls + 1;
    xcclResult_t res = all_say(xm, what_to_say(op, valid), &all);
    if (res != xcclSuccess) {
        return xm_raise(op->call.comm, res, xc_last_detail());
    }
    xm->persistent_calls++;
    if (mpi_has(&op->call) && (!valid || !(all & SAYS_DEVICE))) {
        return xm_call_mpi(&op->call); /* which says what is wrong with it, if anything is */
    }
    bool invalid = (all & SAYS_INVALID) && mpi_has(&op->call);
    bool unlike = (all & SAYS_ELSEWHERE) && is_fast(op); /* its ranks would take different paths */
    /* One rank needs no communicator for it. */
    bool alone = (xm->size == 1) && !xm->inter;
    bool apart = alone || (!(all & SAYS_CROWDED) && !xm->quiet && !unlike);
    if (invalid || (mpi_repeats(&op->call, xm->inter) && !apart)) {
        if (all & SAYS_CROWDED) {
            warn_of_crowd(op);
        }
        return init_standing(op);
    }
    if (!valid) {
        op->buffers.send.used = op->buffers.recv.used = false;
    }
    return init_apart(op, all);
}

int xm_collective_init(const struct xm_call *call)
{
    struct xm_comm *xm;
    bool            ours, valid;
    int             code;

    if (xm_config.faulty || (call->comm == XM_HANDLE(MPI_COMM_NULL)) ||
        (xm_comm_get(call->comm, &xm) != xcclSuccess)) {
        return xm_call_mpi(call);
    }
    xcclResult_t res = concerns_devices(call, xm, &ours);
    xm_comm_unuse(xm);
    if (res != xcclSuccess) {
        return xm_raise(call->comm, res, xc_last_detail());
    }
    if (!ours) {
        return xm_call_mpi(call);
    }
    struct xm_op *op = operation_of(call, &valid, &code);
    if (op == NULL) {
        return code;
    }
    code = init_agreed(op, valid);
    xm_op_free(op);
    return code;
}
