/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Non-blocking calls whose counts only the ranks themselves know. They are launched when all ranks
 * have come, each of which shows then where its blocks lie and how long they are. So all know the
 * longest one, and go the same way.
 */
#include "base/log.h"
#include "comms/vectors.h"
#include "paths/direct.h"

/*
 * Numbers of a call, for all ways that it may go; it has the last ones. They are odd, and so is the
 * number of rounds: slots take turns from one exchange to the next. The simulation may have few.
 */
enum { NUMBERS = 60001, FEW_NUMBERS = 5 };
static const uint32_t few = 1 << 24;

uint32_t xm_direct_later_numbers(const struct xm_direct *d)
{
    return (d->last < few) ? FEW_NUMBERS : NUMBERS;
}

/* False: some rank has not come. */
static bool look(const struct xm_op *op, uint64_t *longest_p, bool *device_p)
{
    *longest_p = 0;
    *device_p = false;
    for (int i = 0; i < op->comm->size; i++) {
        const struct xm_show *shown = xm_slots_shown(op->comm->slots, op->show, i);
        if (shown == NULL) {
            return false;
        }
        *device_p = *device_p || (shown->on_device != 0);
        for (int k = 0; k < op->comm->size; k++) {
            *longest_p = (shown->length[k] > *longest_p) ? shown->length[k] : *longest_p;
        }
    }
    return true;
}

/* By what all show, so the same on all ranks. */
static bool learn(struct xm_op *op)
{
    uint64_t longest;
    bool     device;

    if (!look(op, &longest, &device)) {
        return false;
    }
    if (longest > 0) {
        xm_vectors_seen(op->comm, device);
    }
    op->counts_later = false;
    op->counts_shown = true;
    op->block_bytes = (longest > 0) ? longest : 1;
    if (op->block_bytes > xk_slot_data((uint32_t)op->comm->size)) {
        uint32_t rounds = xm_direct_rounds_of(op);
        rounds |= (rounds > 0); /* 0: there are not so many */
        op->instead = (rounds <= xm_direct_later_numbers(op->direct)) ? rounds : 0;
        /* In place others still read what would be written. */
        op->mapped = (op->call.coll != XM_ALLTOALLV) || !op->buffers.in_place;
    } else {
        op->mapped = false;
    }
    if (!op->mapped) {
        xm_direct_unpin(op);
        xm_slots_read(op->comm->slots, op->show);
    }
    xc_trace("blocks of up to %llu bytes, as all ranks have shown",
             (unsigned long long)op->block_bytes);
    return true;
}

xcclResult_t xm_direct_later(struct xm_op *op)
{
    if (op->counts_later && !learn(op)) {
        return xcclInProgress;
    }
    xcclResult_t res = op->mapped ? xm_direct_mapped(op, false) : xcclUnsupported;
    bool         fits = (op->block_bytes <= xk_slot_data((uint32_t)op->comm->size));

    if ((res == xcclUnsupported) && !fits && (op->instead == 0)) {
        return xc_fail(xcclInvalidUsage,
                       "a block of %llu bytes is too long for memory that the ranks cannot map for "
                       "each other; with XCCL_LAUNCH=now MPI carries the call",
                       (unsigned long long)op->block_bytes);
    }
    return res;
}
