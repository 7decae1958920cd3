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

/* Gather into slots of one size, and copy each part from its slot to its place. */
static xcclResult_t through_slots(struct xm_run *run, size_t slot)
{
    const struct xc_device_ops *dev = run->copier.dev;
    const struct xm_port       *recv = &run->recv;
    int                         rank = run->xm->rank;
    void                       *slots;
    xcclResult_t                res =
        xm_scratch_take(&run->scratch, XM_POOL_DEVICE, slot * (size_t)run->xm->size, &slots);

    if (res != xcclSuccess) {
        return res;
    }
    char *base = slots;
    char *own = base + (size_t)rank * slot;
    if (recv->counts[rank] > 0) {
        res = dev->copy_async(own, own_part(run), recv->counts[rank], run->xm->stream);
    }
    if (res == xcclSuccess) {
        res = xcclAllGather(own, base, slot, xcclUint8, run->xm->xcomm, run->xm->stream);
    }
    for (int i = 0; (i < run->xm->size) && (res == xcclSuccess); i++) {
        if ((recv->counts[i] > 0) && !((i == rank) && run->sides->in_place)) {
            res = dev->copy_async(recv->ptr + recv->displs[i], base + (size_t)i * slot,
                                  recv->counts[i], run->xm->stream);
        }
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
    /* A rank that has its equal parts elsewhere must call the same as the others. */
    bool nearly_equal = (parts.largest <= parts.total / n + parts.total / n / 4);
    if (parts.equal || (nearly_equal && (parts.total / n >= LEAST_BYTES) && (n <= MOST_PARTS))) {
        return through_slots(run, parts.largest);
    }
    return broadcasts(run);
}
