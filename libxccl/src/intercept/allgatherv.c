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
#include "intercept/ports.h"

enum {
    /* Below, the copies cost more than the broadcasts lose. */
    LEAST_BYTES = 256 << 10,
    /* Each part is one copy. */
    MOST_PARTS = 64,
    /* All slots together; larger parts go in pieces, one after the other through the same slots. */
    MOST_SLOT_BYTES = 128 << 20,
};

struct parts {
    size_t largest;
    size_t total;
    bool   equal;
};

static struct parts look_at_parts(const struct xm_run *run)
{
    const size_t *counts = run->recv.counts;
    struct parts  parts = {counts[0], counts[0], true};

    for (int i = 1; i < run->xm->size; i++) {
        parts.largest = (counts[i] > parts.largest) ? counts[i] : parts.largest;
        parts.total += counts[i];
        parts.equal = parts.equal && (counts[i] == counts[0]);
    }
    return parts;
}

static const char *own_part(const struct xm_run *run)
{
    return run->sides->in_place ? run->recv.ptr + run->recv.displs[run->xm->rank] : run->send.ptr;
}

static xcclResult_t broadcasts(struct xm_run *run)
{
    const struct xm_port *recv = &run->recv;

    return xcclAllGatherv(own_part(run), recv->counts[run->xm->rank], recv->ptr, recv->counts,
                          recv->displs, xcclUint8, run->xm->xcomm, run->xm->stream);
}

/* Does this rank want its equal parts one behind the other, as an allgather lays them? */
static bool lie_side_by_side(const struct xm_run *run, size_t bytes)
{
    for (int i = 1; i < run->xm->size; i++) {
        if (run->recv.displs[i] != run->recv.displs[0] + (size_t)i * bytes) {
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
static xcclResult_t gather_piece(struct xm_run *run, char *slots, size_t piece, size_t from)
{
    const struct xc_device_ops *dev = run->copier.dev;
    const struct xm_port       *recv = &run->recv;
    int                         rank = run->xm->rank;
    char                       *own = slots + (size_t)rank * piece;
    size_t                      bytes = in_piece(recv->counts[rank], from, piece);
    xcclResult_t                res = xcclSuccess;

    if (bytes > 0) {
        res = dev->copy_async(own, own_part(run) + from, bytes, run->xm->stream);
    }
    if (res == xcclSuccess) {
        res = xcclAllGather(own, slots, piece, xcclUint8, run->xm->xcomm, run->xm->stream);
    }
    for (int i = 0; (i < run->xm->size) && (res == xcclSuccess); i++) {
        bytes = in_piece(recv->counts[i], from, piece);
        if ((bytes > 0) && !((i == rank) && run->sides->in_place)) {
            res = dev->copy_async(recv->ptr + recv->displs[i] + from, slots + (size_t)i * piece,
                                  bytes, run->xm->stream);
        }
    }
    return res;
}

/* In pieces of so many bytes at most: the same on every rank. */
static xcclResult_t through_slots(struct xm_run *run, size_t largest, size_t piece)
{
    size_t n = (size_t)run->xm->size;
    void  *slots;

    xcclResult_t res = xm_scratch_take(&run->scratch, XM_POOL_DEVICE, piece * n, &slots);
    for (size_t from = 0; (from < largest) && (res == xcclSuccess); from += piece) {
        res = gather_piece(run, slots, piece, from);
    }
    return res;
}

xcclResult_t xm_enqueue_allgatherv(struct xm_run *run)
{
    struct parts parts = look_at_parts(run);
    size_t       n = (size_t)run->xm->size;

    if (parts.equal && lie_side_by_side(run, parts.largest)) {
        return xcclAllGather(own_part(run), run->recv.ptr + run->recv.displs[0], parts.largest,
                             xcclUint8, run->xm->xcomm, run->xm->stream);
    }
    if (parts.equal) {
        /* Other ranks may have them side by side and gather at once: so must this one. */
        return through_slots(run, parts.largest, parts.largest);
    }
    bool nearly_equal = (parts.largest <= parts.total / n + parts.total / n / 4);
    if (nearly_equal && (parts.total / n >= LEAST_BYTES) && (n <= MOST_PARTS)) {
        size_t most = MOST_SLOT_BYTES / n;
        return through_slots(run, parts.largest, (parts.largest < most) ? parts.largest : most);
    }
    return broadcasts(run);
}
