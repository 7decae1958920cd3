/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Allgatherv on the vendor's library, which has parts of one size only.
 *
 * Programs use it mostly for parts that are equal or nearly so (n elements over p ranks), and the
 * vendor's allgather is far faster than one broadcast a rank in a group (4 H200s, NCCL 2.28.3, 16
 * MiB a rank: 197 against 543 us). So parts that hardly differ are gathered as slots of the largest
 * one, and copied to where they belong. All that the choice looks at, the receive counts, is the
 * same on every rank; the displacements are not.
 */
#include "base/log.h"
#include "paths/ccl.h"

enum {
    /* Below, the copies cost more than the broadcasts lose. */
    LEAST_BYTES = 256 << 10,
    /* Each part is one copy. */
    MOST_PARTS = 64,
    /* Off such a boundary the vendor's library copies by smaller words. */
    SLOT_ALIGNMENT = 16,
};

struct parts {
    size_t largest;
    size_t total;
    bool   equal;
};

static struct parts look_at_parts(const struct xm_op *op)
{
    const size_t *counts = op->recv.counts;
    struct parts  parts = {counts[0], counts[0], true};

    for (int i = 1; i < op->comm->size; i++) {
        parts.largest = (counts[i] > parts.largest) ? counts[i] : parts.largest;
        parts.total += counts[i];
        parts.equal = parts.equal && (counts[i] == counts[0]);
    }
    return parts;
}

static const char *own_part(const struct xm_op *op)
{
    return op->buffers.in_place ? op->recv.ptr + op->recv.displs[op->comm->rank] : op->send.ptr;
}

static xcclResult_t broadcasts(struct xm_op *op)
{
    const struct xm_usable *recv = &op->recv;

    return xcclAllGatherv(own_part(op), recv->counts[op->comm->rank], recv->ptr, recv->counts,
                          recv->displs, xcclUint8, op->vendor->xcomm, op->stream);
}

/* Does this rank want its equal parts one behind the other, as an allgather lays them? */
static bool lie_side_by_side(const struct xm_op *op, size_t bytes)
{
    for (int i = 1; i < op->comm->size; i++) {
        if (op->recv.displs[i] != op->recv.displs[0] + (size_t)i * bytes) {
            return false;
        }
    }
    return true;
}

/* What of a part of so many bytes lies in the piece that begins at from. */
static size_t in_piece(size_t part, size_t from, size_t piece)
{
    size_t left = (part > from) ? part - from : 0;

    return (left < piece) ? left : piece;
}

/* One piece of every part: into the own slot, to all, and from the slots to where it belongs. */
static xcclResult_t gather_piece(struct xm_op *op, char *slots, size_t piece, size_t from)
{
    const struct xc_device_ops *dev = op->dev;
    const struct xm_usable     *recv = &op->recv;
    int                         rank = op->comm->rank;
    char                       *own = slots + (size_t)rank * piece;
    size_t                      bytes = in_piece(recv->counts[rank], from, piece);
    xcclResult_t                res = xcclSuccess;

    if (bytes > 0) {
        res = dev->copy_async(own, own_part(op) + from, bytes, op->stream);
    }
    if (res == xcclSuccess) {
        res = xcclAllGather(own, slots, piece, xcclUint8, op->vendor->xcomm, op->stream);
    }
    for (int i = 0; (i < op->comm->size) && (res == xcclSuccess); i++) {
        bytes = in_piece(recv->counts[i], from, piece);
        if ((bytes > 0) && !((i == rank) && op->buffers.in_place)) {
            res = dev->copy_async(recv->ptr + recv->displs[i] + from, slots + (size_t)i * piece,
                                  bytes, op->stream);
        }
    }
    return res;
}

/* In pieces of so many bytes at most: the same on every rank. */
static xcclResult_t through_slots(struct xm_op *op, size_t largest, size_t piece)
{
    size_t n = (size_t)op->comm->size;
    char  *slots;

    xcclResult_t res = xm_ccl_take_scratch(op, piece * n, &slots);
    for (size_t from = 0; (from < largest) && (res == xcclSuccess); from += piece) {
        res = gather_piece(op, slots, piece, from);
    }
    return res;
}

bool xm_ccl_gathers_parts(const struct xm_op *op, size_t *piece_p)
{
    struct parts parts = look_at_parts(op);
    size_t       n = (size_t)op->comm->size;
    /* Twice the scratch of others: parts that lie side by side need none up to there. */
    size_t most = 2 * xm_ccl_scratch_per_rank(op);
    size_t slot = (parts.largest + SLOT_ALIGNMENT - 1) / SLOT_ALIGNMENT * SLOT_ALIGNMENT;

    if (parts.equal && (parts.largest <= most)) {
        *piece_p = parts.largest;
        return true;
    }
    bool nearly_equal = (parts.largest <= parts.total / n + parts.total / n / 4);
    *piece_p = (slot < most) ? slot : most;
    return nearly_equal && (parts.total / n >= LEAST_BYTES) && (n <= MOST_PARTS);
}

xcclResult_t xm_ccl_allgatherv(struct xm_op *op)
{
    struct parts parts = look_at_parts(op);
    size_t       piece;

    if (!xm_ccl_gathers_parts(op, &piece)) {
        return broadcasts(op);
    }
    /* Where other ranks do not have them so, those gather slots, which is the same to the library.
     */
    if (parts.equal && (piece == parts.largest) && lie_side_by_side(op, piece)) {
        return xcclAllGather(own_part(op), op->recv.ptr + op->recv.displs[0], piece, xcclUint8,
                             op->vendor->xcomm, op->stream);
    }
    return through_slots(op, parts.largest, piece);
}
