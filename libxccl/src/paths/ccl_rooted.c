/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gather and scatter, with and without counts for each rank. A root whose long buffer the vendor's
 * library cannot reach (host memory) copies it through device scratch, which must not grow with the
 * job; so long ones go in pieces, on all ranks alike.
 */
#include <stdlib.h>

#include "base/log.h"
#include "base/params.h"
#include "paths/ccl.h"

/* The root's buffer, cut into a block for each rank. */
struct blocks {
    size_t *counts; /* bytes */
    size_t *displs; /* bytes, from ptr */
    size_t *piece_counts;
    size_t *piece_displs;
    char   *ptr;
    bool    reachable; /* the library can use it as it is */
    char   *scratch;   /* else */
};

size_t xm_ccl_scratch_per_rank(const struct xm_op *op)
{
    /* Off such a boundary the vendor's library copies by smaller words. */
    const size_t alignment = 16;
    size_t       bytes = ((size_t)xc_params()->scratch << 20) / (size_t)op->comm->size;

    return (bytes > alignment) ? bytes / alignment * alignment : alignment;
}

bool xm_ccl_in_pieces(const struct xm_op *op)
{
    bool rooted = (op->call.coll == XM_GATHER) || (op->call.coll == XM_GATHERV) ||
                  (op->call.coll == XM_SCATTER) || (op->call.coll == XM_SCATTERV);

    return rooted && (op->facts.bytes > xm_ccl_scratch_per_rank(op));
}

static size_t least(size_t a, size_t b)
{
    return (a < b) ? a : b;
}

/* What of a block of so many bytes lies in the piece that begins at from. */
static size_t in_piece(size_t bytes, size_t from, size_t piece)
{
    return (bytes > from) ? least(bytes - from, piece) : 0;
}

static xcclResult_t cut(struct xm_op *op, const struct xm_usable *b, struct blocks *blocks)
{
    size_t n = (size_t)op->comm->size;

    blocks->counts = calloc(4 * n, sizeof(size_t));
    if (blocks->counts == NULL) {
        return xc_fail(xcclSystemError, "out of memory for %zu blocks", n);
    }
    blocks->displs = blocks->counts + n;
    blocks->piece_counts = blocks->displs + n;
    blocks->piece_displs = blocks->piece_counts + n;
    blocks->ptr = b->ptr;
    blocks->reachable =
        b->packed || (b->buffer->mem.kind == XC_MEM_MANAGED) ||
        ((b->buffer->mem.kind == XC_MEM_DEVICE) && (b->buffer->mem.device == op->vendor->device));
    size_t each = (size_t)b->buffer->bytes / n;
    for (size_t i = 0; i < n; i++) {
        blocks->counts[i] = (b->counts != NULL) ? b->counts[i] : each;
        blocks->displs[i] = (b->displs != NULL) ? b->displs[i] : i * each;
    }
    if (blocks->reachable) {
        return xcclSuccess;
    }
    return xm_ccl_take_scratch(op, n * xm_ccl_scratch_per_rank(op), &blocks->scratch);
}

/* The piece of every block that begins at from; the longest block ends where this is false. */
static bool next_piece(struct xm_op *op, struct blocks *b, size_t from)
{
    size_t n = (size_t)op->comm->size, piece = xm_ccl_scratch_per_rank(op);
    bool   any = false;

    for (size_t i = 0; i < n; i++) {
        b->piece_counts[i] = in_piece(b->counts[i], from, piece);
        b->piece_displs[i] = b->reachable ? b->displs[i] + from : i * piece;
        any = any || (b->piece_counts[i] > 0);
    }
    return any;
}

/* The root's own part of this piece. In place it lies among the others, and need not be moved. */
static char *own_piece(const struct xm_op *op, const struct blocks *b, char *apart, size_t from)
{
    int rank = op->comm->rank;

    if (!op->buffers.in_place) {
        return apart + from;
    }
    return (b->reachable ? b->ptr : b->scratch) + b->piece_displs[rank];
}

/* Between the scratch and the root's memory, which the vendor's library cannot reach. */
static xcclResult_t copy_piece(struct xm_op *op, const struct blocks *b, size_t from, bool out)
{
    xcclResult_t res = xcclSuccess;

    for (int i = 0; (i < op->comm->size) && (res == xcclSuccess); i++) {
        char *host = b->ptr + b->displs[i] + from;
        char *device = b->scratch + b->piece_displs[i];
        bool  stays = op->buffers.in_place && (i == op->comm->rank);
        if ((b->piece_counts[i] > 0) && !stays) {
            res = op->dev->copy_async(out ? host : device, out ? device : host, b->piece_counts[i],
                                      op->stream);
        }
    }
    return res;
}

static xcclResult_t gather_at_root(struct xm_op *op, char *in)
{
    struct blocks b = {0};
    xcclResult_t  res = cut(op, &op->recv, &b);

    for (size_t from = 0; (res == xcclSuccess) && next_piece(op, &b, from);
         from += xm_ccl_scratch_per_rank(op)) {
        res = xcclGatherv(own_piece(op, &b, in, from), b.piece_counts[op->comm->rank],
                          b.reachable ? b.ptr : b.scratch, b.piece_counts, b.piece_displs,
                          xcclUint8, op->call.root, op->vendor->xcomm, op->stream);
        if ((res == xcclSuccess) && !b.reachable) {
            res = copy_piece(op, &b, from, true);
        }
    }
    free(b.counts);
    return res;
}

static xcclResult_t scatter_at_root(struct xm_op *op, char *out)
{
    struct blocks b = {0};
    xcclResult_t  res = cut(op, &op->send, &b);

    for (size_t from = 0; (res == xcclSuccess) && next_piece(op, &b, from);
         from += xm_ccl_scratch_per_rank(op)) {
        if (!b.reachable) {
            res = copy_piece(op, &b, from, false);
        }
        if (res == xcclSuccess) {
            res = xcclScatterv(b.reachable ? b.ptr : b.scratch, b.piece_counts, b.piece_displs,
                               own_piece(op, &b, out, from), b.piece_counts[op->comm->rank],
                               xcclUint8, op->call.root, op->vendor->xcomm, op->stream);
        }
    }
    free(b.counts);
    return res;
}

/* A leaf's part goes in pieces of the same size. */
static xcclResult_t leaf_in_pieces(struct xm_op *op, char *ptr, size_t bytes, bool gathers)
{
    size_t       piece = xm_ccl_scratch_per_rank(op);
    xcclResult_t res = xcclSuccess;

    for (size_t from = 0; (from < bytes) && (res == xcclSuccess); from += piece) {
        size_t n = in_piece(bytes, from, piece);
        res = gathers ? xcclGatherv(ptr + from, n, NULL, NULL, NULL, xcclUint8, op->call.root,
                                    op->vendor->xcomm, op->stream)
                      : xcclScatterv(NULL, NULL, NULL, ptr + from, n, xcclUint8, op->call.root,
                                     op->vendor->xcomm, op->stream);
    }
    return res;
}

xcclResult_t xm_ccl_gather(struct xm_op *op)
{
    bool   root = (op->call.root == op->comm->rank), in_place = op->buffers.in_place;
    size_t rank = (size_t)op->comm->rank;
    size_t bytes = (size_t)op->buffers.send.bytes;
    char  *in = op->send.ptr;
    char  *out = op->buffers.recv.used ? op->recv.ptr : NULL;

    if (xm_ccl_in_pieces(op)) {
        return root ? gather_at_root(op, in) : leaf_in_pieces(op, in, bytes, true);
    }
    if (op->call.coll == XM_GATHERV) {
        if (in_place) {
            bytes = op->recv.counts[rank];
            in = op->recv.ptr + op->recv.displs[rank];
        }
        return xcclGatherv(in, bytes, op->recv.ptr, op->recv.counts, op->recv.displs, xcclUint8,
                           op->call.root, op->vendor->xcomm, op->stream);
    }
    if (in_place) {
        bytes = (size_t)op->buffers.recv.bytes / (size_t)op->comm->size;
        in = op->recv.ptr + rank * bytes;
    }
    return xcclGather(in, out, bytes, xcclUint8, op->call.root, op->vendor->xcomm, op->stream);
}

xcclResult_t xm_ccl_scatter(struct xm_op *op)
{
    bool   root = (op->call.root == op->comm->rank), in_place = op->buffers.in_place;
    size_t rank = (size_t)op->comm->rank;
    size_t bytes = (size_t)op->buffers.recv.bytes;
    char  *out = op->recv.ptr;

    if (xm_ccl_in_pieces(op)) {
        return root ? scatter_at_root(op, out) : leaf_in_pieces(op, out, bytes, false);
    }
    if (op->call.coll == XM_SCATTERV) {
        if (in_place) {
            bytes = op->send.counts[rank];
            out = op->send.ptr + op->send.displs[rank];
        }
        return xcclScatterv(op->send.ptr, op->send.counts, op->send.displs, out, bytes, xcclUint8,
                            op->call.root, op->vendor->xcomm, op->stream);
    }
    if (in_place) {
        bytes = (size_t)op->buffers.send.bytes / (size_t)op->comm->size;
        out = op->send.ptr + rank * bytes;
    }
    return xcclScatter(op->send.ptr, out, bytes, xcclUint8, op->call.root, op->vendor->xcomm,
                       op->stream);
}
