/* SPDX-License-Identifier: BSD-3-Clause */
/* Large collectives without a reduction by the copy engines, once the hosts have met. */
#include "base/log.h"
#include "base/params.h"
#include "data/events.h"
#include "paths/direct.h"

/*
 * A copy engine that writes to the other device takes 2.5 us less than one that reads from it, and
 * fills the link better than kernels do; but it is a call of the runtime for every copy. 2 H200s.
 */
enum { SEVERAL = 8 }; /* with a kernel for this rank's own block */
/*
 * Among more ranks, where each has a block for every other: one copy after the other, since several
 * at once get into each other's way. 16 MiB to each take 150 us, by kernels 163; 4 MiB 51 and 53.
 * 4 H100s.
 */
enum { AMONG_MORE = 16 };

static uint64_t target_of(const struct xk_work *m, uint32_t i)
{
    return m->to[i];
}

static uint64_t source_of(const struct xk_work *m, uint32_t i)
{
    return m->from[(m->targets == 0) ? i : 0];
}

static size_t length_of(const struct xk_work *m, uint32_t i)
{
    return (size_t)((m->targets == 0) ? m->lengths[i] : m->bytes);
}

static uint32_t copies_of(const struct xk_work *m)
{
    return (m->targets == 0) ? m->sources : m->targets;
}

/* Does each write its own, to all or to a root? */
static bool writes_blocks(enum xm_coll coll)
{
    switch (coll) {
    case XM_ALLGATHER:
    case XM_ALLGATHERV:
    case XM_ALLTOALL:
    case XM_ALLTOALLV:
    case XM_GATHER:
    case XM_GATHERV:
        return true;
    default:
        return false;
    }
}

bool xm_direct_copies_well(const struct xm_op *op, const struct xk_work *m)
{
    uint32_t n = 0;

    if (op->meets || (m->what != XK_NO_REDUCTION)) {
        return false;
    }
    if (op->comm->size > 2) {
        return writes_blocks(op->call.coll) &&
               (op->block_bytes >= (uint64_t)xc_params()->direct_copies * AMONG_MORE);
    }
    for (uint32_t i = 0; i < copies_of(m); i++) {
        n += (source_of(m, i) != target_of(m, i));
    }
    return op->block_bytes >= (uint64_t)xc_params()->direct_copies * ((n > 1) ? SEVERAL : 1);
}

static xcclResult_t push(struct xm_op *op, void *to, const void *from, size_t bytes)
{
    xcclResult_t res =
        (op->pushed == NULL) ? xm_event_take(op->dev, op->home, &op->pushed) : xcclSuccess;

    if (res == xcclSuccess) {
        res = op->dev->copy_async(to, from, bytes, op->stream);
    }
    return (res == xcclSuccess) ? op->dev->event_record(op->pushed, op->stream) : res;
}

/* This rank's own block, meanwhile: by a kernel, since engines would copy one after the other. */
static xcclResult_t keep(struct xm_op *op, void *to, const void *from, size_t bytes)
{
    return xm_kernel_copy_start(op->direct->kernels, to, from, bytes, &op->kept)
               ? xcclSuccess
               : push(op, to, from, bytes);
}

xcclResult_t xm_direct_copy(struct xm_op *op, const struct xk_work *m, uint32_t stay)
{
    xcclResult_t res = xcclSuccess;

    op->by_copies = true;
    for (uint32_t i = copies_of(m); (res == xcclSuccess) && (i-- > 0);) {
        void       *to = (void *)(uintptr_t)target_of(m, i);
        const void *from = (const void *)(uintptr_t)source_of(m, i);
        size_t      bytes = length_of(m, i);
        if ((to != from) && (bytes > 0)) {
            bool stays = ((stay >> i) & 1) != 0;
            res = stays ? keep(op, to, from, bytes) : push(op, to, from, bytes);
            xc_trace("%zu bytes by %s", bytes, stays ? "a kernel" : "a copy engine");
        }
    }
    return res;
}

xcclResult_t xm_direct_query_copies(struct xm_op *op)
{
    xcclResult_t res = xcclSuccess;

    if (op->pushed != NULL) {
        res = op->dev->event_query(op->pushed);
        if (res == xcclSuccess) {
            xm_event_give(op->dev, op->home, op->pushed);
            op->pushed = NULL;
        }
    }
    if ((res == xcclSuccess) && (op->kept.kernels != NULL)) {
        res = xm_kernel_copy_query(&op->kept);
    }
    return (res == xcclSuccess) ? xm_direct_query_pipeline(op) : res;
}
