/* SPDX-License-Identifier: BSD-3-Clause */
/* What each collective is to the kernels, and which of them they carry. */
#include "base/params.h"
#include "data/kernel_reduction.h"
#include "paths/direct.h"

/* Pairs with holes are larger than their data: packed, they are nothing that a kernel knows. */
static const char *find_reduction(struct xm_op *op)
{
    struct xm_kernel_reduction r;
    const struct xm_buffer    *b = op->buffers.send.used ? &op->buffers.send : &op->buffers.recv;
    const char                *reason = xm_kernel_reduction_of(op->call.sendtype, op->call.op, &r);

    if (reason != NULL) {
        return reason;
    }
    if (r.tried && op->comm->integers_differ) {
        return "the ranks' MPIs reduce integers differently";
    }
    if (b->used && (b->layout.size != (MPI_Count)r.element)) {
        return "pairs of values with holes";
    }
    /*
     * MPI's part would be posted when others have posted calls after it; or a stream goes on; or,
     * of a persistent request, it would be posted by nobody while the program is in another call.
     */
    if ((XK_OP_OF(r.what) == XK_SUM_CHECKED) && (op->call.form != XM_BLOCKING)) {
        return "sum that MPI may have to do over, in the order of the calls";
    }
    op->direct_what = r.what;
    return NULL;
}

static int form_of(enum xm_coll coll)
{
    switch (coll) {
    case XM_ALLREDUCE:
        return XK_ALLREDUCE;
    case XM_REDUCE:
        return XK_REDUCE;
    case XM_BCAST:
        return XK_BCAST;
    case XM_ALLGATHER:
    case XM_ALLGATHERV:
        return XK_ALLGATHER;
    case XM_ALLTOALL:
    case XM_ALLTOALLV:
        return XK_ALLTOALL;
    case XM_GATHER:
    case XM_GATHERV:
        return XK_GATHER;
    case XM_SCATTER:
    case XM_SCATTERV:
        return XK_SCATTER;
    case XM_SCAN:
        return XK_SCAN;
    case XM_EXSCAN:
        return XK_EXSCAN;
    case XM_REDUCE_SCATTER:
    case XM_REDUCE_SCATTER_BLOCK:
        return XK_REDUCE_SCATTER;
    default:
        return -1;
    }
}

static bool reduces(enum xm_coll coll)
{
    return (coll == XM_ALLREDUCE) || (coll == XM_REDUCE) || (coll == XM_REDUCE_SCATTER) ||
           (coll == XM_REDUCE_SCATTER_BLOCK) || (coll == XM_SCAN) || (coll == XM_EXSCAN);
}

static bool has_root(enum xm_coll coll)
{
    return (coll == XM_REDUCE) || (coll == XM_BCAST) || (coll == XM_GATHER) || (coll == XM_SCATTER);
}

/* Programs pass counts that are all the same: then it is reduce_scatter_block. */
static bool same_counts(const struct xm_call *call, int size)
{
    for (int i = 1; i < size; i++) {
        if (xm_count_at(call, call->recvcounts, i) != xm_count_at(call, call->recvcounts, 0)) {
            return false;
        }
    }
    return true;
}

/* Blocks of different sizes, or in places that only their rank knows. */
static bool is_uneven(const struct xm_op *op)
{
    switch (op->call.coll) {
    case XM_REDUCE_SCATTER:
        return !same_counts(&op->call, op->comm->size);
    case XM_ALLGATHERV:
    case XM_ALLTOALLV:
    case XM_GATHERV:
    case XM_SCATTERV:
        return true;
    default:
        return false;
    }
}

static uint64_t largest_part(const struct xm_op *op)
{
    MPI_Count most = 0;

    for (int i = 0; i < op->comm->size; i++) {
        MPI_Count count = xm_count_at(&op->call, op->call.recvcounts, i);
        most = (count > most) ? count : most;
    }
    return (uint64_t)(most * op->buffers.recv.layout.size);
}

/*
 * Where a block is larger than the first one, a rank's result may cover data that other threads of
 * the kernel have not sent yet; the first block's are sent by the thread that writes there.
 */
static bool covers_others(const struct xm_op *op)
{
    const struct xm_call *call = &op->call;

    for (int i = 1; (op->call.coll == XM_REDUCE_SCATTER) && (i < op->comm->size); i++) {
        if (xm_count_at(call, call->recvcounts, i) > xm_count_at(call, call->recvcounts, 0)) {
            return true;
        }
    }
    return false;
}

/* What goes from one rank to another, at most: the same on all ranks, by MPI's rules. */
static uint64_t block_bytes(const struct xm_op *op)
{
    const struct xm_buffer *send = &op->buffers.send, *recv = &op->buffers.recv;
    uint64_t                size = (uint64_t)op->comm->size;
    bool                    is_root = (op->call.root == op->comm->rank);
    const struct xm_layout *element = recv->used ? &recv->layout : &send->layout;

    switch (op->call.coll) {
    case XM_ALLGATHERV:
    case XM_REDUCE_SCATTER:
        return largest_part(op);
    case XM_ALLTOALLV:
    case XM_GATHERV:
    case XM_SCATTERV:
        return op->largest_bytes;
    case XM_ALLREDUCE:
    case XM_REDUCE:
    case XM_SCAN:
    case XM_EXSCAN:
        return (uint64_t)(op->call.sendcount * element->size);
    case XM_REDUCE_SCATTER_BLOCK:
        return (uint64_t)(op->call.recvcount * element->size);
    case XM_BCAST:
        return (uint64_t)(send->used ? send->bytes : recv->bytes);
    case XM_GATHER:
        return is_root ? (uint64_t)recv->bytes / size : (uint64_t)send->bytes;
    case XM_SCATTER:
        return is_root ? (uint64_t)send->bytes / size : (uint64_t)recv->bytes;
    default:
        return (uint64_t)recv->bytes / size;
    }
}

/*
 * Everybody waits for the buffers of the others: in a blocking call, or where the call is enqueued
 * once all have come. When others see that theirs cannot be mapped is no matter in a blocking one.
 */
static bool may_wait_for_buffers(const struct xm_op *op)
{
    enum { TRIES = 4 };

    return (op->call.form == XM_BLOCKING) ? (op->comm->direct->unmappable < TRIES)
                                          : (xc_params()->launch != XC_LAUNCH_NOW);
}

/* Does every part of the vector begin where kernels can take it up? */
static bool parts_are_aligned(const struct xm_op *op, uint64_t unit)
{
    for (int i = 0; i < op->comm->size - 1; i++) {
        MPI_Count count = xm_count_at(&op->call, op->call.recvcounts, i);
        if ((uint64_t)(count * op->buffers.recv.layout.size) % unit != 0) {
            return false;
        }
    }
    return true;
}

static bool may_map(const struct xm_op *op)
{
    enum { ALIGNED = 16 };
    bool in_place = op->buffers.in_place;

    if (!may_wait_for_buffers(op)) {
        return false;
    }
    switch (op->call.coll) {
    case XM_SCAN:
    case XM_EXSCAN:
        return false;
    case XM_ALLTOALL:
    case XM_ALLTOALLV:
        return !in_place; /* others still read what would be written */
    case XM_REDUCE_SCATTER:
        return parts_are_aligned(op, ALIGNED); /* those in place hide their buffers */
    case XM_REDUCE_SCATTER_BLOCK:
        return !in_place && (op->block_bytes % ALIGNED == 0);
    default:
        return true;
    }
}

/*
 * Through the workspaces everything goes with a number beside it: twice the bytes, to each rank.
 * Only where one rank receives it all is that faster up to the last byte that fits (4 H200s), and
 * between two ranks in reductions (2 H100s) and, but for alltoallv, with lengths of each rank's own
 * (2 H200s).
 */
static uint64_t most_exchanged(const struct xm_op *op)
{
    uint64_t fit = xk_slot_data((uint32_t)op->comm->size);
    bool     to_one = (op->call.coll == XM_REDUCE) || (op->call.coll == XM_GATHER) ||
                  (op->call.coll == XM_GATHERV);
    bool one_each = is_uneven(op) && (op->call.coll != XM_ALLTOALLV); /* block, there or back */
    bool between_two = (op->comm->size == 2) && (reduces(op->call.coll) || one_each);

    return (to_one || between_two) ? fit : fit / 2;
}

/* Where ranks take turns on a device: nobody's kernel may wait for another's. */
static bool is_worth_turns(const struct xm_op *op)
{
    bool alone = op->mapped && (op->call.form == XM_BLOCKING);

    return (xc_params()->direct == XC_DIRECT_ON) ||
           (alone && (op->block_bytes >= (uint64_t)xc_params()->direct_turns));
}

const char *xm_direct_turns(const struct xm_op *op)
{
    if (!op->comm->direct->in_turns || is_worth_turns(op)) {
        return NULL;
    }
    return "ranks share a device, MPS does not run, and the call is a short or a non-blocking one";
}

/* Nothing is known yet of how it goes, but that it goes when all have come. */
static const char *obstacle_later(struct xm_op *op)
{
    struct xm_direct *d = op->comm->direct;

    if (xc_params()->launch == XC_LAUNCH_NOW) {
        return "counts that only the ranks know, with XCCL_LAUNCH=now";
    }
    if (!xm_direct_has_numbers(d, xm_direct_later_numbers(d))) {
        xm_direct_spend(d);
        return "the ranks are about to join the direct path anew";
    }
    op->mapped = true; /* it shows its buffers */
    op->rounds = op->instead = 0;
    return NULL;
}

const char *xm_direct_obstacle(struct xm_op *op)
{
    struct xm_comm *xm = op->comm;

    if (form_of(op->call.coll) < 0) {
        return "a collective that the direct path lacks";
    }
    if (xm->direct_state != XM_DIRECT_JOINED) {
        return (xm->direct_state == XM_DIRECT_NEVER) ? "no direct path"
                                                     : "the direct path is not joined yet";
    }
    op->direct_what = XK_NO_REDUCTION;
    const char *reason = reduces(op->call.coll) ? find_reduction(op) : NULL;
    if (reason != NULL) {
        return reason;
    }
    if (covers_others(op) && (largest_part(op) > (uint64_t)xc_params()->scratch << 20)) {
        return "blocks of different sizes, with no room for copies (XCCL_SCRATCH)";
    }
    if (op->counts_later) {
        return (xm->direct->in_turns && (xc_params()->direct != XC_DIRECT_ON))
                   ? "ranks share a device, MPS does not run, and the call is a non-blocking one"
                   : obstacle_later(op);
    }
    op->block_bytes = block_bytes(op);
    bool     fits = (op->block_bytes <= xk_slot_data((uint32_t)xm->size));
    bool     blocking = (op->call.form == XM_BLOCKING);
    uint32_t rounds = fits ? 0 : xm_direct_rounds_of(op);
    uint64_t exchanged = blocking ? most_exchanged(op) : xk_slot_data((uint32_t)xm->size);
    bool     unmapped = fits || (rounds > 0);
    op->mapped = (op->block_bytes > exchanged) && may_map(op) && (blocking || unmapped);
    op->rounds = op->mapped ? 0 : rounds;
    op->instead = (op->mapped && !blocking) ? rounds : 0;
    reason = xm_direct_turns(op);
    if (reason != NULL) {
        return reason;
    }
    return (op->mapped || unmapped) ? NULL : "too large for the workspaces of the direct path";
}

void xm_direct_form_of(const struct xm_op *op, struct xm_direct_form *form)
{
    const struct xm_usable *send = &op->send, *recv = &op->recv;
    uint64_t                in = (uint64_t)(uintptr_t)send->ptr;
    uint64_t                out = (uint64_t)(uintptr_t)recv->ptr;
    bool                    in_place = op->buffers.in_place;
    uint64_t                rank = (uint64_t)op->comm->rank;

    *form = (struct xm_direct_form){.form = (enum xk_form)form_of(op->call.coll),
                                    .root = has_root(op->call.coll) ? (uint32_t)op->call.root : 0,
                                    .what = op->direct_what,
                                    .bytes = op->block_bytes,
                                    .uneven = is_uneven(op)};
    switch (op->call.coll) {
    case XM_BCAST:
        in = out = op->buffers.send.used ? in : out;
        break;
    case XM_ALLGATHER:
        in = in_place ? out + rank * form->bytes : in;
        break;
    case XM_ALLGATHERV:
        in = in_place ? out + recv->displs[rank] : in;
        break;
    case XM_GATHER:
        /* The root's own part is there already. */
        in = in_place ? out + rank * form->bytes : in;
        break;
    case XM_SCATTER:
        out = in_place ? in + rank * form->bytes : out;
        break;
    case XM_SCATTERV:
        out = in_place ? in : out;
        break;
    default:
        in = in_place ? out : in;
        break;
    }
    form->in = in;
    form->out = (op->apart != NULL) ? (uint64_t)(uintptr_t)op->apart : out;
}

static uint64_t counted_before(const struct xm_op *op, int rank)
{
    uint64_t sum = 0;

    for (int i = 0; i < rank; i++) {
        sum += (uint64_t)xm_count_at(&op->call, op->call.recvcounts, i);
    }
    return sum * (uint64_t)op->buffers.recv.layout.size;
}

static uint64_t counted(const struct xm_op *op, int rank)
{
    return (uint64_t)(xm_count_at(&op->call, op->call.recvcounts, rank) *
                      op->buffers.recv.layout.size);
}

/* Only a rank in place knows that it is: MPI does not ask it of all. */
bool xm_direct_overwrites(const struct xm_op *op)
{
    return op->buffers.in_place && covers_others(op);
}

uint64_t xm_direct_result_bytes(const struct xm_op *op)
{
    switch (op->call.coll) {
    case XM_REDUCE:
        return (op->call.root == op->comm->rank) ? op->block_bytes : 0;
    case XM_EXSCAN:
        return (op->comm->rank > 0) ? op->block_bytes : 0;
    case XM_REDUCE_SCATTER:
        return counted(op, op->comm->rank);
    default:
        return op->block_bytes;
    }
}

static void counted_block(const struct xm_usable *b, int other, uint64_t *at_p, uint64_t *bytes_p)
{
    if (b->counts != NULL) {
        *at_p = b->displs[other];
        *bytes_p = b->counts[other];
    }
}

/* Of those whose counts only this rank and the other know. */
static struct xk_span vector_span(const struct xm_op *op, int other)
{
    const struct xm_usable *send = op->buffers.in_place ? &op->recv : &op->send;
    struct xk_span          span = {0, 0, 0, 0};
    int                     root = op->call.root, rank = op->comm->rank;

    if (op->call.coll == XM_ALLTOALLV) {
        counted_block(send, other, &span.send_at, &span.send);
        counted_block(&op->recv, other, &span.receive_at, &span.receive);
    } else if (op->call.coll == XM_GATHERV) {
        if (rank == root) {
            counted_block(&op->recv, other, &span.receive_at, &span.receive);
            span.send = (other == rank) ? span.receive : 0;
            span.send_at = (op->buffers.in_place && (other == rank)) ? span.receive_at : 0;
        } else if (other == root) {
            span.send = (uint64_t)op->buffers.send.bytes;
        }
    } else {
        if (rank == root) {
            counted_block(&op->send, other, &span.send_at, &span.send);
        }
        if ((other == root) && op->buffers.recv.used) {
            span.receive = (uint64_t)op->buffers.recv.bytes;
        }
    }
    return span;
}

struct xk_span xm_direct_span(const struct xm_op *op, const struct xm_direct_form *form, int other)
{
    struct xk_span span = {0, 0, 0, 0};
    int            rank = op->comm->rank;

    if (!form->uneven) {
        return xk_span_of(form->form, form->root, (uint32_t)rank, (uint32_t)other, form->bytes);
    }
    if ((op->call.coll != XM_ALLGATHERV) && (op->call.coll != XM_REDUCE_SCATTER)) {
        return vector_span(op, other);
    }
    if (op->call.coll == XM_ALLGATHERV) {
        span.send = counted(op, rank);
        span.receive = counted(op, other);
        span.receive_at = op->recv.displs[other];
    } else {
        span.send = counted(op, other);
        span.send_at = counted_before(op, other);
        span.receive = counted(op, rank);
    }
    return span;
}
