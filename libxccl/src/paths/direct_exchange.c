/* SPDX-License-Identifier: BSD-3-Clause */
/* Small collectives through the workspaces. */
#include "data/lingering.h"
#include "paths/direct.h"

/* Longer ones are as fast by a launch with more blocks than linger. 2 H200s. */
enum { THREADS = 512, MOST_BLOCKS = 16, TOLD_BYTES = 128 << 10 };

/* A thread moves 16 bytes at once. Whole warps. */
static unsigned threads_for(uint64_t bytes)
{
    uint64_t threads = (bytes + 16 * 32 - 1) / (16 * 32) * 32;

    return (threads < 32) ? 32 : (threads < THREADS) ? (unsigned)threads : THREADS;
}

static unsigned blocks_for(uint64_t bytes)
{
    uint64_t blocks = (bytes + THREADS * 16 - 1) / (THREADS * 16);

    return (blocks < 1) ? 1 : (blocks < MOST_BLOCKS) ? (unsigned)blocks : MOST_BLOCKS;
}

/* Is the result written to memory that is not the device's own? */
static uint32_t elsewhere(const struct xm_op *op)
{
    const struct xm_buffer *out = op->buffers.recv.used ? &op->buffers.recv : &op->buffers.send;

    return !op->recv.packed && (out->mem.kind != XC_MEM_DEVICE);
}

static bool tell(struct xm_op *op, const struct xm_direct_form *form)
{
    struct xm_direct *d = op->direct;
    uint64_t          ranks = (uint64_t)(uintptr_t)&d->words->ranks;
    const uint32_t    values[XK_WORDS] = {[XK_IN_LOW] = (uint32_t)form->in,
                                          [XK_IN_HIGH] = (uint32_t)(form->in >> 32),
                                          [XK_OUT_LOW] = (uint32_t)form->out,
                                          [XK_OUT_HIGH] = (uint32_t)(form->out >> 32),
                                          [XK_BYTES] = (uint32_t)form->bytes,
                                          [XK_HOW] = (uint32_t)form->form | form->root << 8 |
                                                     form->what << 16,
                                          [XK_RANKS_LOW] = (uint32_t)ranks,
                                          [XK_RANKS_HIGH] = (uint32_t)(ranks >> 32),
                                          [XK_NUMBER] = op->number_there,
                                          [XK_SERIAL] = d->serial};

    return xm_linger_tell(xm_kernels_attendant(d->kernels), values);
}

static xcclResult_t launch(struct xm_op *op, const struct xm_direct_form *form)
{
    struct xm_direct  *d = op->direct;
    struct xk_exchange what = {.ranks = d->words->ranks,
                               .in = form->in,
                               .out = form->out,
                               .number = op->number_there,
                               .what = form->what,
                               .elsewhere = elsewhere(op),
                               .finished = d->finished,
                               .done = &d->words->done};

    for (int i = 0; i < op->comm->size; i++) {
        what.parts[i] = xm_direct_part(op, form, i);
    }
    /* By what is equal on all ranks: block b of one waits for block b of another. */
    return xm_kernel_exchange(d->kernels, &what, blocks_for(op->block_bytes),
                              threads_for(op->block_bytes), op->stream);
}

xcclResult_t xm_direct_launch(struct xm_op *op)
{
    struct xm_direct_form form;

    xm_direct_form_of(op, &form);
    return launch(op, &form);
}

/* Nothing is to be waited for on the stream, and no operation before this one is under way. */
static bool may_tell(const struct xm_op *op, const struct xm_direct_form *form)
{
    return op->blocking && op->ordered && !op->in_turn && !form->parts &&
           (form->bytes <= TOLD_BYTES) && !op->send.packed && !op->recv.packed &&
           xm_direct_alone(op->direct, op->number_there);
}

xcclResult_t xm_direct_exchange(struct xm_op *op)
{
    struct xm_direct_form form;

    xm_direct_form_of(op, &form);
    if (may_tell(op, &form) && tell(op, &form)) {
        op->told = true;
        return xcclSuccess;
    }
    return launch(op, &form);
}
