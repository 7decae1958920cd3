/* SPDX-License-Identifier: BSD-3-Clause */
/* Small collectives through the workspaces. */
#include "comms/order.h"
#include "data/lingering.h"
#include "paths/direct.h"

static unsigned blocks_for(const struct xm_op *op, uint64_t bytes)
{
    return xk_short_blocks((uint32_t)op->comm->size, bytes);
}

static unsigned at_most(unsigned blocks, unsigned most)
{
    return (blocks < most) ? blocks : most;
}

bool xm_direct_elsewhere(const struct xm_op *op)
{
    const struct xm_buffer *out = op->buffers.recv.used ? &op->buffers.recv : &op->buffers.send;

    return !op->recv.packed && (out->mem.kind != XC_MEM_DEVICE);
}

void xm_direct_word(uint32_t *values, int low, uint64_t value)
{
    values[low] = (uint32_t)value;
    values[low + 1] = (uint32_t)(value >> 32);
}

bool xm_direct_tell(struct xm_op *op, uint32_t values[XK_ALL_WORDS])
{
    struct xm_direct *d = op->direct;

    xm_direct_word(values, XK_RANKS_LOW, (uint64_t)(uintptr_t)&d->words->ranks);
    values[XK_NUMBER] = op->number_there;
    values[XK_SERIAL] = d->serial;
    return xm_linger_tell(xm_kernels_attendant(d->kernels), values);
}

/* Are they what a command without records would say, of blocks of so many bytes? */
static bool are_alike(const struct xm_op *op, const struct xm_direct_form *form,
                      const struct xk_span *spans, uint32_t *bytes_p)
{
    uint64_t bytes = 0;

    for (int i = 0; i < op->comm->size; i++) {
        bytes = (spans[i].send > bytes) ? spans[i].send : bytes;
        bytes = (spans[i].receive > bytes) ? spans[i].receive : bytes;
    }
    for (int i = 0; i < op->comm->size; i++) {
        const struct xk_span *s = &spans[i];
        struct xk_span        e =
            xk_span_of(form->form, form->root, (uint32_t)op->comm->rank, (uint32_t)i, bytes);
        if ((s->send != e.send) || (s->receive != e.receive) ||
            ((s->send > 0) && (s->send_at != e.send_at)) ||
            ((s->receive > 0) && (s->receive_at != e.receive_at))) {
            return false;
        }
    }
    *bytes_p = (uint32_t)bytes;
    return true;
}

/* False: a block lies too far from its buffer's begin for a command. */
static bool add_records(const struct xm_op *op, const struct xk_span *spans, uint32_t *values)
{
    for (int i = 0; i < op->comm->size; i++) {
        uint32_t *record = &values[XK_RECORDS + XK_RECORD * i];
        if ((spans[i].send_at > UINT32_MAX) || (spans[i].receive_at > UINT32_MAX)) {
            return false;
        }
        record[XK_SEND_AT] = (uint32_t)spans[i].send_at;
        record[XK_SEND] = (uint32_t)spans[i].send;
        record[XK_RECEIVE_AT] = (uint32_t)spans[i].receive_at;
        record[XK_RECEIVE] = (uint32_t)spans[i].receive;
    }
    values[XK_BYTES] = (uint32_t)op->comm->size;
    return true;
}

/* With counts of each rank's own, which are the same for all, most of the time. */
static bool add_parts(const struct xm_op *op, const struct xm_direct_form *form, uint32_t *values)
{
    struct xk_span spans[XK_MAX_RANKS];
    uint32_t       root = form->root;

    for (int i = 0; i < op->comm->size; i++) {
        spans[i] = xm_direct_span(op, form, i);
    }
    if (!are_alike(op, form, spans, &values[XK_BYTES])) {
        root = XK_PARTS;
        if (!add_records(op, spans, values)) {
            return false;
        }
    }
    values[XK_HOW] =
        xk_how(form->form, root, blocks_for(op, form->bytes), xm_direct_elsewhere(op), form->what);
    return true;
}

static bool tell(struct xm_op *op, const struct xm_direct_form *form)
{
    uint32_t values[XK_ALL_WORDS] = {[XK_BYTES] = (uint32_t)form->bytes,
                                     [XK_HOW] =
                                         xk_how(form->form, form->root, blocks_for(op, form->bytes),
                                                xm_direct_elsewhere(op), form->what)};

    if (form->uneven && !add_parts(op, form, values)) {
        return false;
    }
    xm_direct_word(values, XK_IN_LOW, form->in);
    xm_direct_word(values, XK_OUT_LOW, form->out);
    return xm_direct_tell(op, values);
}

static xcclResult_t launch(struct xm_op *op, const struct xm_direct_form *form)
{
    struct xm_direct  *d = op->direct;
    struct xk_exchange what = {.ranks = d->words->ranks,
                               .in = form->in,
                               .out = form->out,
                               .number = op->number_there,
                               .what = form->what,
                               .elsewhere = xm_direct_elsewhere(op),
                               .meets = xk_meets(form->form, form->what),
                               .finished = d->finished,
                               .done = &d->words->done};

    for (int i = 0; i < op->comm->size; i++) {
        struct xk_span span = xm_direct_span(op, form, i);
        what.parts[i] = xk_part_of(&span);
        what.most = (what.parts[i].send > what.most) ? what.parts[i].send : what.most;
        what.most = (what.parts[i].receive > what.most) ? what.parts[i].receive : what.most;
    }
    return xm_kernel_exchange(d->kernels, &what,
                              at_most(blocks_for(op, op->block_bytes), d->most_blocks), &d->queue,
                              xm_direct_alone(d, op->number_there));
}

/*
 * Nothing is to be waited for on the stream, and no operation before this one is under way. Under
 * MPS a process has so few queues that a kernel in its turn may stand behind the one that lingers:
 * that must not wait for what waits for the other.
 */
bool xm_direct_may_tell(const struct xm_op *op)
{
    return op->blocking && op->ordered && !op->direct->in_turns && !op->send.packed &&
           !op->recv.packed && xm_direct_alone(op->direct, op->number_there) &&
           (!op->direct->shared || (!op->in_turn && xm_order_idle()));
}

xcclResult_t xm_direct_exchange(struct xm_op *op, bool told)
{
    struct xm_direct_form form;

    xm_op_waits(op);
    if (op->rounds > 0) {
        return xm_direct_rounds(op);
    }
    xm_direct_form_of(op, &form);
    if (told && xm_direct_may_tell(op) && tell(op, &form)) {
        op->told = true;
        return xcclSuccess;
    }
    return launch(op, &form);
}
