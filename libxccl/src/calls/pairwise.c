/* SPDX-License-Identifier: BSD-3-Clause */
#include "calls/pairwise.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/params.h"
#include "calls/calls.h"
#include "calls/choice.h"
#include "calls/facts.h"
#include "comms/agree.h"
#include "comms/edges.h"
#include "comms/topology.h"
#include "comms/wait.h"
#include "ops/entry.h"
#include "ops/inside.h"
#include "ops/persistent.h"
#include "ops/request.h"
#include "ops/results.h"

/* ---- who carries them ---- */

/* What a rank says. */
enum { SAYS_WANTED = 1, SAYS_IMPOSSIBLE = 2 };

/* Errors of messages are the program's communicator's, which is the one that it knows. */
static xcclResult_t make_comm(struct xm_comm *xm, MPI_Comm *messages_p)
{
    int code = xm_topology_plain(xm->comm, messages_p);

    if (code == MPI_SUCCESS) {
        code = xm_persistent_hush(*messages_p);
    }
    return (code == MPI_SUCCESS)
               ? xcclSuccess
               : xc_fail(xcclInternalError, "MPI makes no communicator for the messages of %s",
                         xm->asks_for);
}

/* wanted: this rank has come with a device; apart: the communicator is none of the program's. */
static xcclResult_t agree(struct xm_comm *xm, enum xm_pairs pairs, struct xm_edges *edges,
                          bool wanted, bool apart)
{
    bool     carried = (xc_params()->p2p != XC_P2P_MPI); /* else MPI gets what it cannot reach */
    bool     possible = (edges != NULL) && carried && (apart || xm_edges_have_room());
    bool     better = (xm_rendezvous_looks_from() > 0) && (xc_params()->route == XC_ROUTE_XCCL);
    int      mine = (wanted && better) ? SAYS_WANTED : 0, all = 0;
    MPI_Comm messages = xm->comm;
    xcclResult_t res = xm_comm_any(xm, mine | (possible ? 0 : SAYS_IMPOSSIBLE), &all);

    if ((res != xcclSuccess) || (all != SAYS_WANTED)) {
        return res;
    }
    if (!apart) {
        res = make_comm(xm, &messages);
    }
    if (res == xcclSuccess) {
        xm_edges_take(xm, pairs, edges, messages, !apart);
    }
    return res;
}

/* In a call that all ranks make, and may wait for each other in. */
static xcclResult_t ask_ranks(struct xm_comm *xm, enum xm_coll coll, bool wanted, bool apart)
{
    enum xm_pairs    pairs = xm_pairs_of(coll);
    struct xm_edges *edges = xm_edges_find(xm, pairs);

    xm->asks_for = xm_coll_name(coll);
    xm->asks_in = xm->device_calls + 1;
    xcclResult_t res = agree(xm, pairs, edges, wanted, apart);
    if (xm->pairs[pairs].edges != edges) {
        xm_edges_free(edges);
    }
    return res;
}

void xm_pairwise_made(MPI_Comm comm)
{
    struct xm_comm *xm;

    if (xm_config.faulty || xm_comms_finalized() || (xm_comm_get(comm, &xm) != xcclSuccess)) {
        return;
    }
    if (ask_ranks(xm, XM_NEIGHBOR_ALLTOALL, xc_device_active() != NULL, false) != xcclSuccess) {
        xc_warn("%s", xc_last_detail());
    }
    xm_comm_unuse(xm);
}

xcclResult_t xm_pairwise_apart(MPI_Comm comm, enum xm_coll coll)
{
    struct xm_comm *xm;
    xcclResult_t    res = xm_comm_get(comm, &xm);

    if (res == xcclSuccess) {
        res = ask_ranks(xm, coll, true, true);
        xm_comm_unuse(xm);
    }
    return res;
}

bool xm_pairwise_are_mpis(MPI_Comm comm, enum xm_coll coll, bool blocking)
{
    struct xm_comm *xm;

    if (xm_comm_get(comm, &xm) != xcclSuccess) {
        return true;
    }
    bool mpis = xm_edges_are_mpis(xm, xm_pairs_of(coll), blocking);
    xm_comm_unuse(xm);
    return mpis;
}

void xm_pairwise_count(MPI_Comm comm, enum xm_coll coll, bool blocking)
{
    struct xm_comm *xm;

    if (xm_comm_get(comm, &xm) == xcclSuccess) {
        xm_edges_count(xm, xm_pairs_of(coll), blocking);
        xm_comm_unuse(xm);
    }
}

/* ---- the messages ---- */

/* For the rest of messages of which the first bytes have come. */
static const uint64_t ENDING_NS = 1000000000u;

static enum xm_function message_function(const struct xm_call *call, bool sends)
{
    if (call->large && (xm_mpi_functions[XM_FN_MPI_Isend_c] != NULL)) {
        return sends ? XM_FN_MPI_Isend_c : XM_FN_MPI_Irecv_c;
    }
    return sends ? XM_FN_MPI_Isend : XM_FN_MPI_Irecv;
}

/* What goes along an edge: of MPI_Neighbor_allgather the same to all. */
static struct xm_block block_along(const struct xm_op *op, bool sends, int i)
{
    const struct xm_buffer *b = sends ? &op->buffers.send : &op->buffers.recv;
    bool                    v = (op->call.coll == XM_NEIGHBOR_ALLGATHERV);
    bool                    all = v || (op->call.coll == XM_NEIGHBOR_ALLGATHER);

    if (b->counts != NULL) {
        return xm_block_at(&op->call, b, i);
    }
    struct xm_block block = {.count = sends ? op->call.sendcount : op->call.recvcount,
                             .type = b->type,
                             .layout = &b->layout};
    if (b->used && !(sends && all)) {
        block.offset = (MPI_Aint)(i * block.count * b->layout.extent);
    }
    return block;
}

static struct xm_edges *edges_of(const struct xm_op *op)
{
    return op->comm->pairs[xm_pairs_of(op->call.coll)].edges;
}

static int post(const struct xm_op *op, bool sends, int i, MPI_Request *request)
{
    const struct xm_edges *edges = edges_of(op);
    struct xm_block        block = block_along(op, sends, i);
    const void            *buf = sends ? op->call.sendbuf : op->call.recvbuf;
    int                    rank = sends ? edges->targets[i] : edges->sources[i];
    /* What is sent below comes from above. */
    int tag = !edges->grid ? 0 : sends ? i ^ 1 : i;
    /* Of nothing the type may be any: MPI is not to refuse it behind messages that have gone. */
    bool       nothing = (block.count * block.layout->size == 0);
    const long args[] = {(long)((uintptr_t)buf + (uintptr_t)block.offset),
                         nothing ? 0 : (long)block.count,
                         nothing ? (long)XM_HANDLE(MPI_BYTE) : (long)block.type,
                         rank,
                         tag,
                         (long)edges->comm,
                         (long)request};
    /* From any rank to any other both sides know that there is nothing. */
    bool left_out = nothing && (op->call.coll == XM_ALLTOALLW);

    return ((rank == MPI_PROC_NULL) || left_out)
               ? MPI_SUCCESS
               : xm_transfer_call(message_function(&op->call, sends), 1, args);
}

/* From every rank to every rank each begins with itself. */
static int post_side(struct xm_op *op, bool sends)
{
    const struct xm_edges *edges = edges_of(op);
    int                    n = sends ? edges->out : edges->in;
    int                    first = (op->call.coll == XM_ALLTOALLW) ? op->comm->rank : 0;
    int                    code = MPI_SUCCESS;

    for (int k = 0; (code == MPI_SUCCESS) && (k < n); k++) {
        int i = (first + k) % n;
        code = post(op, sends, i, &op->requests[sends ? edges->in + i : i]);
    }
    return code;
}

static int call_requests(enum xm_function function, const long *args)
{
    return (xm_requests_live() > 0) ? xm_request_call(function, 1, args)
                                    : (int)xm_mpi_forward(function, 1, args);
}

/* MPI writes to no memory of the program's behind this, unless a message never comes whole. */
static void end_receive(MPI_Request *request)
{
    struct xm_wait wait = xm_wait_begin("for a message that is on its way");
    MPI_Status     status;
    int            flag = 0;

    wait.limit = ENDING_NS;
    while ((xm_test_alone(1, request, &flag, &status) == MPI_SUCCESS) && !flag &&
           (xm_wait_step(&wait) != XM_WAIT_EXPIRED)) {}
}

/*
 * MPI has refused one, or one has failed, or the program's patience is over: nobody waits for the
 * others, and what was sent has gone.
 */
static void give_up(struct xm_op *op)
{
    for (int i = 0; i < op->num_requests; i++) {
        const long args[] = {(long)&op->requests[i]};
        bool       receives = (i < edges_of(op)->in);
        if (op->requests[i] == XM_HANDLE(MPI_REQUEST_NULL)) {
            continue;
        }
        /* One of ours leaves its bytes to its receiver, in memory that is not the program's. */
        if (receives || (xm_entry_peek(op->requests[i]) != NULL)) {
            call_requests(XM_FN_MPI_Cancel, args);
        }
        if (receives) {
            end_receive(&op->requests[i]);
        }
        if (op->requests[i] != XM_HANDLE(MPI_REQUEST_NULL)) {
            call_requests(XM_FN_MPI_Request_free, args);
        }
    }
}

static void post_both(struct xm_op *op)
{
    op->code = post_side(op, false);
    if (op->code == MPI_SUCCESS) {
        op->code = post_side(op, true);
    }
}

/* Threads may start persistent requests of one rank at the same time, and all have its edges. */
static void post_in_turn(struct xm_op *op)
{
    if (!xm_collective_takes_turns(op)) {
        post_both(op);
        return;
    }
    pthread_mutex_lock(&op->comm->alone);
    post_both(op);
    pthread_mutex_unlock(&op->comm->alone);
}

static xcclResult_t start(struct xm_op *op)
{
    int n = edges_of(op)->in + edges_of(op)->out;

    op->requests = malloc(((size_t)n + 1) * sizeof(MPI_Request));
    op->statuses = malloc(((size_t)n + 1) * sizeof(MPI_Status));
    if ((op->requests == NULL) || (op->statuses == NULL)) {
        return xm_op_fail(op, xc_fail(xcclSystemError, "out of memory for %d messages", n));
    }
    op->num_requests = n;
    for (int i = 0; i < n; i++) {
        op->requests[i] = XM_HANDLE(MPI_REQUEST_NULL);
    }
    post_in_turn(op);
    if (op->code != MPI_SUCCESS) {
        give_up(op);
    }
    return xcclSuccess;
}

/* The first that failed by itself, of several that MPI says of how they ended. */
static int code_of(const struct xm_op *op, int code)
{
    if ((code == MPI_SUCCESS) || !xm_is_in_status(code)) {
        return code;
    }
    for (int i = 0; i < op->num_requests; i++) {
        int one = op->statuses[i].MPI_ERROR;
        if ((one != MPI_SUCCESS) && (one != MPI_ERR_PENDING)) {
            return one;
        }
    }
    return code;
}

static void wait_for_all(struct xm_op *op)
{
    const long args[] = {op->num_requests, (long)op->requests, (long)op->statuses};

    xm_inside_enter(op->call.function, op->call.args);
    op->code = code_of(op, call_requests(XM_FN_MPI_Waitall, args));
    xm_inside_leave();
    if (op->code != MPI_SUCCESS) {
        give_up(op);
    }
}

static xcclResult_t test_all(struct xm_op *op)
{
    int flag = 0;
    int code = xm_test_alone(op->num_requests, op->requests, &flag, op->statuses);

    op->code = code_of(op, code);
    if (code != MPI_SUCCESS) {
        give_up(op);
    }
    return ((code == MPI_SUCCESS) && !flag) ? xcclInProgress : xcclSuccess;
}

static xcclResult_t progress(struct xm_op *op)
{
    if (op->code != MPI_SUCCESS) {
        return xcclSuccess;
    }
    if (op->blocking && (xc_params()->timeout == 0)) {
        wait_for_all(op);
        return xcclSuccess;
    }
    return test_all(op); /* a wait for all would not end by a time-out */
}

static void release(struct xm_op *op, bool failed)
{
    if (failed && (op->requests != NULL)) {
        give_up(op);
        edges_of(op)->broken = true;
    }
    free(op->requests);
    free(op->statuses);
    op->requests = NULL;
    op->statuses = NULL;
}

static const struct xm_path path = {"messages", start, progress, release, true};

/* ---- choosing ---- */

/* MPI says what is wrong with what it does not have a function for. */
static bool are_counts_had(const struct xm_op *op)
{
    const struct xm_edges *edges = edges_of(op);
    bool                   had = !op->call.large || (xm_mpi_functions[XM_FN_MPI_Isend_c] != NULL);

    for (int i = 0; !had && (i < edges->in + edges->out); i++) {
        bool            sends = (i >= edges->in);
        struct xm_block block = block_along(op, sends, sends ? i - edges->in : i);
        if (block.count > INT_MAX) {
            return false;
        }
    }
    return true;
}

xcclResult_t xm_pairwise_choose(struct xm_op *op, const struct xm_path **path_p)
{
    struct xm_comm *xm = op->comm;
    enum xm_pairs   pairs = xm_pairs_of(op->call.coll);
    bool            blocking = (op->call.form == XM_BLOCKING);
    bool            suits = !op->buffers.in_place && !xm->inter; /* the same on all ranks */
    xcclResult_t    res = xcclSuccess;

    *path_p = xm_collective_path_to_mpi(op, false);
    /* What MPI refuses on this rank alone is no call of the others. */
    op->code = op->invalid ? MPI_SUCCESS : xm_collective_check_types(op);
    if (op->invalid || (op->code != MPI_SUCCESS)) {
        return xcclSuccess;
    }
    xm->pairs[pairs].on_device = xm->pairs[pairs].on_device || xm_touches_device(op);
    if (!xm_edges_are_ours(xm, pairs) && suits && !xm_edges_are_mpis(xm, pairs, blocking)) {
        res = ask_ranks(xm, op->call.coll, xm->pairs[pairs].on_device, false);
    }
    op->pairwise = true; /* counted at its end */
    if (!xm_edges_are_ours(xm, pairs) || !suits || !are_counts_had(op)) {
        return res;
    }
    *path_p = &path;
    return !xm->pairs[pairs].edges->broken
               ? res
               : xc_fail(xcclRemoteError,
                         "%s: an earlier call on this communicator ended by XCCL_TIMEOUT, and "
                         "messages of it may still come; free the communicator",
                         xm_coll_name(op->call.coll));
}
