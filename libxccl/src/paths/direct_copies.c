/* SPDX-License-Identifier: BSD-3-Clause */
/* Large collectives without a reduction by the copy engines, once the hosts have met. */
#include <stdlib.h>

#include "data/pools.h"
#include "paths/direct.h"

/*
 * A copy engine that writes to the other device takes 2.5 us less than one that reads from it, and
 * fills the link better than kernels do; but it is a call of the runtime for every copy. 2 H200s.
 */
static uint64_t pushed_from(bool several)
{
    static long from = -1;
    if (from < 0) {
        const char *text = getenv("XCCL_DIRECT_PUSH");
        from = (text != NULL) ? atol(text) : 256 << 10;
    }
    return (uint64_t)from * (several ? 4 : 1);
}

static uint64_t target_of(const struct xk_mapped *m, uint32_t i)
{
    return m->to[i];
}

static uint64_t source_of(const struct xk_mapped *m, uint32_t i)
{
    return m->from[(m->targets == 0) ? i : 0];
}

static uint32_t copies_of(const struct xk_mapped *m)
{
    return (m->targets == 0) ? m->sources : m->targets;
}

bool xm_direct_copies_well(const struct xm_op *op, const struct xk_mapped *m)
{
    uint32_t n = 0;

    if (op->meets || (op->comm->size != 2) || (m->what != XK_NO_REDUCTION)) {
        return false;
    }
    for (uint32_t i = 0; i < copies_of(m); i++) {
        n += (source_of(m, i) != target_of(m, i));
    }
    return op->block_bytes >= pushed_from(n > 1);
}

static xcclResult_t enqueue(struct xm_op *op, uint64_t to, uint64_t from, uint64_t bytes,
                            xcclStream_t stream, void **event_p)
{
    xcclResult_t res = xm_event_take(op->dev, op->home, event_p);

    if (res == xcclSuccess) {
        res = op->dev->copy_async((void *)(uintptr_t)to, (const void *)(uintptr_t)from,
                                  (size_t)bytes, stream);
    }
    return (res == xcclSuccess) ? op->dev->event_record(*event_p, stream) : res;
}

/* Those to the other device begin first: this rank's own are the last of a plan, or the first. */
xcclResult_t xm_direct_copy(struct xm_op *op, const struct xk_mapped *m)
{
    xcclResult_t res = xcclSuccess;
    uint32_t     n = (m->bytes > 0) ? copies_of(m) : 0;

    op->copies = 0;
    for (uint32_t i = n; (res == xcclSuccess) && (i-- > 0);) {
        xcclStream_t stream = op->stream;
        if (source_of(m, i) == target_of(m, i)) {
            continue;
        }
        if (op->copies > 0) {
            res = xm_copy_stream(op->dev, op->home, &stream);
        }
        if (res == xcclSuccess) {
            res = enqueue(op, target_of(m, i), source_of(m, i), m->bytes, stream,
                          &op->copied[op->copies++]);
        }
    }
    op->by_copies = true;
    return res;
}

xcclResult_t xm_direct_query_copies(struct xm_op *op)
{
    while (op->copies > 0) {
        void        *event = op->copied[op->copies - 1];
        xcclResult_t res = op->dev->event_query(event);
        if (res != xcclSuccess) {
            return res;
        }
        xm_event_give(op->dev, op->home, event);
        op->copies--;
    }
    return xcclSuccess;
}
