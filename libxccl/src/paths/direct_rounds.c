/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocks that are too long for the workspaces, where the ranks' buffers are not mapped: calls that
 * must not wait for the other ranks' hosts, memory that cannot be mapped, blocks of different
 * sizes.
 */
#include <limits.h>

#include "base/log.h"
#include "paths/direct.h"

/* Two ranks: a thread of so many blocks has XK_AT_ONCE units of a round. From 16 MiB on, 2 H200s.
 */
enum { BLOCKS = 16, MORE_BLOCKS = 32, LONG = 32, MOST_ROUNDS = 60000 };

/* Each rank adds a part for all: with more than two, less goes over the links. */
static bool is_shared(const struct xm_op *op)
{
    return (op->call.coll == XM_ALLREDUCE) && (op->comm->size > 2);
}

uint32_t xm_direct_rounds_of(const struct xm_op *op)
{
    uint64_t each = xk_slot_data((uint32_t)op->comm->size), rounds = 1;

    if (xm_direct_is_checked(op)) {
        return 0; /* MPI may have to do those over */
    }
    if (is_shared(op)) {
        each *= (uint64_t)op->comm->size;
        rounds = 2;
    }
    rounds *= (op->block_bytes + each - 1) / each;
    return (rounds <= MOST_ROUNDS) ? (uint32_t)rounds : 0;
}

/* Does every rank send as much to every other as it receives from it, and at the same time? */
static bool is_one_way(const struct xm_op *op, const struct xm_direct_form *form)
{
    switch (op->call.coll) {
    case XM_ALLREDUCE:
    case XM_ALLGATHER:
    case XM_ALLTOALL:
    case XM_REDUCE_SCATTER_BLOCK:
    case XM_REDUCE_SCATTER:
    case XM_ALLGATHERV:
    case XM_ALLTOALLV:
        return form->uneven;
    default:
        return true;
    }
}

xcclResult_t xm_direct_rounds(struct xm_op *op)
{
    struct xm_direct     *d = op->direct;
    struct xm_direct_form form;
    struct xk_rounds      what = {.ranks = d->words->ranks,
                                  .number = op->number_there - op->rounds + 1,
                                  .rounds = op->rounds,
                                  .piece = xk_slot_data((uint32_t)op->comm->size),
                                  .shared = is_shared(op),
                                  .elsewhere = xm_direct_elsewhere(op),
                                  .finished = d->finished,
                                  .done = &d->words->done};

    xm_direct_form_of(op, &form);
    what.in = form.in;
    what.out = form.out;
    what.what = form.what;
    /* Ranks with few blocks may have different numbers of them: then no two threads are alike. */
    what.one_way = is_one_way(op, &form) || (d->most_blocks != UINT_MAX);
    for (int i = 0; i < op->comm->size; i++) {
        what.spans[i] = xm_direct_span(op, &form, i);
    }
    xc_trace("%llu bytes in %u rounds of %u", (unsigned long long)op->block_bytes, what.rounds,
             what.piece);
    unsigned blocks = (op->rounds < LONG) ? BLOCKS : MORE_BLOCKS;
    return xm_kernel_rounds(d->kernels, &what, (d->most_blocks < blocks) ? d->most_blocks : blocks,
                            &d->queue);
}
