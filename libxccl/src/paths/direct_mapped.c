/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large collectives on the buffers of all ranks. Each shows its own on the board, and maps those of
 * the others when all are there; then the kernels meet, and work on all of them.
 */
#include <string.h>

#include "base/log.h"
#include "comms/wait.h"
#include "data/lingering.h"
#include "data/mappings.h"
#include "paths/direct.h"

enum { IN, OUT, ALIGNED = 16, LINE = 128 };
/* Of a rank's buffer. Longer ones are as fast by a launch with more blocks than linger. */
enum { TOLD_BYTES = 4 << 20, TOLD_BYTES_SHARED = 256 << 10, TOLD_BLOCKS = 16 };
enum { BLOCKS_BESIDE = 32 };
/*
 * So long something may take to be unmapped, which most often takes less than a millisecond; and
 * while something is outstanding, which may end soon, or wait for a rank that waits here.
 */
enum { UNMAPPING_NS = 500 * 1000 * 1000, HINDERED_NS = 50 * 1000 * 1000 };

/* Kernels copy from and to any address, but for what they add up or write to several. */
static bool lies_well(const struct xm_direct_form *form, uint64_t at)
{
    bool any = (form->what == XK_NO_REDUCTION) && (form->form != XK_BCAST);

    return any || (at % ALIGNED == 0);
}

/*
 * What the kernels need to know of a buffer's place. Those of a blocking call are launched at once:
 * where they would have to wait for their turn, and may wait for each other, buffers count as
 * unusable.
 */
static void show(struct xm_op *op, const struct xm_buffer *b, uint64_t at, bool well,
                 uint64_t nonce, struct xm_shown *shown)
{
    shown->state = XM_SHOWN_NONE;
    if (!b->used) {
        return;
    }
    shown->state = XM_SHOWN_ODD;
    shown->nonce = nonce;
    bool waits =
        op->blocking && !xm_direct_rests(op) && xm_order_wanted_direct(op->comm->slots, true);
    if (op->hidden || !well || waits) {
        return;
    }
    shown->state = XM_SHOWN_NOT;
    if (xm_export(op->dev, (const void *)(uintptr_t)at, 0, &shown->ipc) == xcclSuccess) {
        shown->offset = at - shown->ipc.base;
        shown->bytes = (uint64_t)b->bytes;
        shown->state = XM_SHOWN_USABLE;
    }
}

/* Blocks that only this rank knows: those that others write to, or fetch from a root. */
static void show_blocks(const struct xm_op *op, const struct xm_direct_form *form,
                        struct xm_show *shown)
{
    bool fetched = (form->form == XK_SCATTER) && (op->call.root == op->comm->rank);

    for (int i = 0; i < op->comm->size; i++) {
        struct xk_span span = xm_direct_span(op, form, i);
        shown->at[i] = fetched ? span.send_at : span.receive_at;
        shown->length[i] = fetched ? span.send : span.receive;
    }
}

xcclResult_t xm_direct_show(struct xm_op *op)
{
    struct xm_direct_form    form;
    struct xm_show           shown = {0};
    struct xm_board_address  own;
    const struct xm_buffers *b = &op->buffers;
    bool                     one = b->in_place || (op->call.coll == XM_BCAST);
    const struct xm_buffer  *in = (one && !b->send.used) ? &b->recv : &b->send;
    const struct xm_buffer  *out = (one && !b->recv.used) ? &b->send : &b->recv;

    if (!xm_slots_may_show(op->comm->slots)) {
        return xcclInProgress;
    }
    xm_direct_form_of(op, &form);
    xm_board_address_of(xm_board_own(), &own);
    show(op, in, form.in, lies_well(&form, form.in), own.nonce, &shown.buffers[IN]);
    show(op, out, form.out, lies_well(&form, form.out), own.nonce, &shown.buffers[OUT]);
    shown.buffers[IN].ready = op->rested || xm_direct_may_tell(op);
    if (form.uneven) {
        show_blocks(op, &form, &shown);
    }
    shown.on_device = (b->send.used && (b->send.mem.kind != XC_MEM_HOST)) ||
                      (b->recv.used && (b->recv.mem.kind != XC_MEM_HOST));
    xm_direct_show_held(op, &shown);
    op->show = xm_slots_show(op->comm->slots, &shown);
    return xcclSuccess;
}

/* Where a rank's buffer lies for this device; 0: it has none. */
static xcclResult_t place(struct xm_op *op, const struct xm_shown *shown, int rank, uint64_t own,
                          uint64_t *at_p)
{
    char *base = NULL;

    *at_p = own;
    if ((rank == op->comm->rank) || (shown->state == XM_SHOWN_NONE)) {
        return xcclSuccess;
    }
    xcclResult_t res = xm_mapping_of(shown->nonce, &shown->ipc, op->dev, op->home, &base);
    *at_p = (uint64_t)(uintptr_t)base + shown->offset;
    return res;
}

/*
 * In whole lines, if the buffers begin with one. Where warps read parts of two, an allreduce of 64
 * MiB among three H100s took 311 us instead of 285.
 */
static uint64_t shard(uint64_t bytes, uint64_t n, uint64_t i)
{
    uint64_t lines = (bytes + LINE - 1) / LINE, each = (lines + n - 1) / n * LINE;
    uint64_t at = i * each;

    return (at < bytes) ? at : bytes;
}

_Static_assert((int)XM_SLOT_RANKS == (int)XK_MAX_RANKS, "a block of each rank can be shown");

/* Of all ranks, beginning with this one's: so that not all are at the same rank at once. */
struct places {
    uint64_t              in[XK_MAX_RANKS], out[XK_MAX_RANKS];
    const struct xm_show *shown[XK_MAX_RANKS];
};

/* What is to be done, and a bit for each target that is this rank's own. */
struct plan {
    struct xk_work work;
    uint32_t       own;
};

static uint32_t rank_at(const struct xm_op *op, uint32_t place)
{
    return ((uint32_t)op->comm->rank + place) % (uint32_t)op->comm->size;
}

static uint32_t place_of(const struct xm_op *op, uint32_t rank)
{
    uint32_t size = (uint32_t)op->comm->size;

    return (rank + size - (uint32_t)op->comm->rank) % size;
}

/*
 * The stretch of a vector that this rank deals with. Where there is a root and more than two ranks
 * the others share the work: everybody's links carry the vector once in either direction then.
 */
static void own_stretch(const struct xm_op *op, const struct xm_direct_form *form, bool rooted,
                        uint64_t *from_p, uint64_t *to_p)
{
    uint64_t n = (uint64_t)op->comm->size, mine = (uint64_t)op->comm->rank;

    *from_p = *to_p = 0;
    if (rooted && (mine == form->root)) {
        return;
    }
    if (rooted) {
        mine -= (mine > form->root);
        n--;
    }
    *from_p = shard(form->bytes, n, mine);
    *to_p = shard(form->bytes, n, mine + 1);
}

/* A part of the vector, reduced from all into all, or into the root's. */
static void plan_reduction(struct xm_op *op, const struct xm_direct_form *form,
                           const struct places *p, struct plan *plan)
{
    struct xk_work *m = &plan->work;
    uint32_t        n = (uint32_t)op->comm->size, rank = (uint32_t)op->comm->rank;
    bool     scatters = (form->form == XK_REDUCE_SCATTER), rooted = (form->form == XK_REDUCE);
    uint64_t from = 0, to = 0;

    if (scatters) {
        struct xk_span span = xm_direct_span(op, form, op->comm->rank);
        from = span.send_at;
        to = from + span.receive;
    } else {
        own_stretch(op, form, rooted && (n > 2), &from, &to);
    }
    m->sources = n;
    m->turn = rank;
    m->bytes = to - from;
    for (uint32_t i = 0; i < n; i++) {
        m->from[i] = p->in[i] + from;
    }
    m->targets = 1;
    if (scatters) {
        m->to[0] = p->out[0];
    } else if (rooted) {
        m->to[0] = p->out[place_of(op, form->root)] + from;
    } else {
        m->targets = n;
        for (uint32_t i = 0; i < n; i++) {
            m->to[i] = p->out[i] + from;
        }
    }
}

/* A part of the root's vector into everybody's; of two ranks the root writes, which is faster. */
static void plan_bcast(struct xm_op *op, const struct xm_direct_form *form, const struct places *p,
                       struct plan *plan)
{
    struct xk_work *m = &plan->work;
    uint32_t        root = place_of(op, form->root);
    uint64_t        from = 0, to = 0;

    if (op->comm->size > 2) {
        own_stretch(op, form, true, &from, &to);
    } else if (root == 0) {
        to = form->bytes;
    }
    m->sources = 1;
    m->from[0] = p->in[root] + from;
    m->bytes = to - from;
    for (uint32_t i = 0; i < (uint32_t)op->comm->size; i++) {
        if (i != root) {
            plan->own |= (uint32_t)(i == 0) << m->targets;
            m->to[m->targets++] = p->out[i] + from;
        }
    }
}

static void add_copy(struct plan *plan, uint64_t from, uint64_t to, uint64_t bytes, bool own)
{
    struct xk_work *m = &plan->work;

    if (bytes > 0) {
        m->from[m->sources] = from;
        m->to[m->sources] = to;
        m->lengths[m->sources] = bytes;
        plan->own |= (uint32_t)own << m->sources;
        m->sources++;
    }
}

static xcclResult_t counts_differ(int from, uint64_t sent, int to, uint64_t expected)
{
    return xc_fail(xcclInvalidArgument,
                   "rank %d sends %llu bytes to rank %d, which has counts for %llu", from,
                   (unsigned long long)sent, to, (unsigned long long)expected);
}

/*
 * Where this rank's block of so many bytes lies in the buffer of the rank at a place, which has
 * shown that. sends: to that rank, else from it.
 */
static xcclResult_t find_block(const struct xm_op *op, const struct xm_direct_form *form,
                               const struct places *p, uint32_t place, uint64_t bytes, bool sends,
                               uint64_t *at_p)
{
    int                   rank = op->comm->rank, other = (int)rank_at(op, place);
    const struct xm_show *shown = p->shown[other];

    *at_p = (uint64_t)rank * form->bytes;
    if (!form->uneven) {
        return xcclSuccess;
    }
    *at_p = shown->at[rank];
    if (shown->length[rank] == bytes) {
        return xcclSuccess;
    }
    return sends ? counts_differ(rank, bytes, other, shown->length[rank])
                 : counts_differ(other, shown->length[rank], rank, bytes);
}

/*
 * Everybody writes its block to each, or to the root: writing is faster than reading. 4 H200s: 360
 * GB/s, 300.
 */
static xcclResult_t plan_writes(struct xm_op *op, const struct xm_direct_form *form,
                                const struct places *p, struct plan *plan)
{
    xcclResult_t res = xcclSuccess;

    for (uint32_t i = 0; (res == xcclSuccess) && (i < (uint32_t)op->comm->size); i++) {
        struct xk_span span = xm_direct_span(op, form, (int)rank_at(op, i));
        uint64_t       at = 0;
        if (span.send == 0) {
            continue;
        }
        res = find_block(op, form, p, i, span.send, true, &at);
        add_copy(plan, form->in + span.send_at, p->out[i] + at, span.send, i == 0);
    }
    return res;
}

/*
 * Everybody fetches its block: the root's kernel alone would not fill its links. Of two ranks the
 * root writes, as above.
 */
static xcclResult_t plan_scatter(struct xm_op *op, const struct xm_direct_form *form,
                                 const struct places *p, struct plan *plan)
{
    bool         two = (op->comm->size == 2), roots = (op->call.root == op->comm->rank);
    uint32_t     root = place_of(op, (uint32_t)op->call.root);
    xcclResult_t res = xcclSuccess;
    uint64_t     at = 0;

    if (!two || roots) {
        struct xk_span own = xm_direct_span(op, form, op->call.root);
        res = roots ? xcclSuccess : find_block(op, form, p, root, own.receive, false, &at);
        at = roots ? own.send_at : at;
        add_copy(plan, p->in[root] + at, p->out[0], own.receive, true);
    }
    if (two && roots) {
        struct xk_span span = xm_direct_span(op, form, 1 - op->comm->rank);
        if (span.send > 0) {
            res = find_block(op, form, p, 1, span.send, true, &at);
            add_copy(plan, form->in + span.send_at, p->out[1], span.send, false);
        }
    }
    return res;
}

/* A rank's block to everybody: read once, unless blocks lie so that they are better copied. */
static xcclResult_t plan_allgather(struct xm_op *op, const struct xm_direct_form *form,
                                   const struct places *p, struct plan *plan)
{
    struct xk_work *m = &plan->work;
    uint64_t        all = 0;
    uint32_t        count = 0, own = 0;
    xcclResult_t    res = plan_writes(op, form, p, plan);

    for (uint32_t i = 0; i < m->sources; i++) {
        if (m->to[i] != m->from[i]) {
            own |= ((plan->own >> i) & 1) << count;
            m->from[count] = m->from[i];
            m->lengths[count] = m->lengths[i];
            m->to[count++] = m->to[i];
            all |= m->from[i] | m->to[i];
        }
    }
    plan->own = own;
    m->sources = count;
    if ((count > 0) && (all % ALIGNED == 0)) {
        m->bytes = m->lengths[0];
        m->sources = 1;
        m->targets = count;
    }
    return res;
}

static xcclResult_t make_plan(struct xm_op *op, const struct xm_direct_form *form,
                              const struct places *p, struct plan *plan)
{
    switch (form->form) {
    case XK_BCAST:
        plan_bcast(op, form, p, plan);
        return xcclSuccess;
    case XK_SCATTER:
        return plan_scatter(op, form, p, plan);
    case XK_ALLGATHER:
        return plan_allgather(op, form, p, plan);
    case XK_GATHER:
    case XK_ALLTOALL:
        return plan_writes(op, form, p, plan);
    default:
        plan_reduction(op, form, p, plan);
        return xcclSuccess;
    }
}

/*
 * Enough to fill the links; more only take room. 2 H200s: of 8 MiB and less, 64 take as long as
 * 128; of 16 and 32 MiB, a reduce takes 3 % longer. The program's kernels may run beside one that
 * it does not wait for.
 */
static unsigned blocks_for(const struct xm_op *op)
{
    uint64_t bytes = op->block_bytes;
    unsigned blocks = (bytes <= (1 << 20)) ? 16 : (bytes <= (8 << 20)) ? 64 : 128;

    return (op->blocking || (blocks < BLOCKS_BESIDE)) ? blocks : BLOCKS_BESIDE;
}

static bool tell(struct xm_op *op, const struct xk_work *m)
{
    uint32_t records = (m->sources > m->targets) ? m->sources : m->targets;
    uint32_t values[XK_ALL_WORDS] = {[XK_BYTES] = records,
                                     [XK_HOW] = xk_how(XK_MAPPED, 0, TOLD_BLOCKS, 0, m->what),
                                     [XK_IN_HIGH] = m->sources | m->targets << 8 | m->turn << 16 |
                                                    m->meets << 24};

    xm_direct_word(values, XK_OUT_LOW, m->bytes);
    for (uint32_t i = 0; i < records; i++) {
        int record = XK_RECORDS + XK_RECORD * (int)i;
        xm_direct_word(values, record + XK_FROM, m->from[i]);
        xm_direct_word(values, record + XK_TO, m->to[i]);
        values[record + XK_LENGTH] = (uint32_t)m->lengths[i];
    }
    return xm_direct_tell(op, values);
}

static xcclResult_t launch(struct xm_op *op, const struct places *p, bool told)
{
    struct xm_direct     *d = op->direct;
    struct xm_direct_form form;
    unsigned              blocks = blocks_for(op);
    struct plan           plan = {.work = {.number = op->number_there, .meets = op->meets}};
    struct xk_work       *m = &plan.work;

    xm_direct_form_of(op, &form);
    m->what = form.what;
    xcclResult_t res = make_plan(op, &form, p, &plan);
    if (res != xcclSuccess) {
        return res;
    }
    xm_op_waits(op);
    if (xm_direct_copies_well(op, m)) {
        return xm_direct_copy(op, m, plan.own);
    }
    if (xm_direct_pipelines_well(op, m)) {
        res = xm_direct_pipeline(op, m);
        if (res != xcclUnsupported) {
            return res;
        }
    }
    if (told && (op->block_bytes <= (d->shared ? TOLD_BYTES_SHARED : TOLD_BYTES)) &&
        xm_direct_may_tell(op) && tell(op, m)) {
        op->told = true;
        return xcclSuccess;
    }
    if (!op->blocking) {
        xc_trace("%llu bytes on the ranks' own buffers, all of which have come",
                 (unsigned long long)op->block_bytes);
    }
    /* Those that do not meet wait for nobody. */
    blocks = (op->meets && (d->most_blocks < blocks)) ? d->most_blocks : blocks;
    const struct xk_mapped what = {
        .ranks = d->words->ranks, .work = *m, .finished = d->finished, .done = &d->words->done};
    return xm_kernel_mapped(d->kernels, &what, blocks, &d->queue,
                            xm_direct_alone(d, op->number_there));
}

static xcclResult_t map(struct xm_op *op, struct places *p)
{
    struct xm_direct_form form;
    xcclResult_t          res = xcclSuccess;

    xm_direct_form_of(op, &form);
    for (int i = 0; (res == xcclSuccess) && (i < op->comm->size); i++) {
        int                    rank = (int)rank_at(op, (uint32_t)i);
        const struct xm_shown *buffers = p->shown[rank]->buffers;
        res = place(op, &buffers[IN], rank, form.in, &p->in[i]);
        if (res == xcclSuccess) {
            res = place(op, &buffers[OUT], rank, form.out, &p->out[i]);
        }
    }
    return res;
}

/* Once more with all of it pinned: mapping the one may have cost the other. */
static xcclResult_t map_and_pin(struct xm_op *op, struct places *p, uint32_t *losses_p)
{
    xm_direct_unpin(op);
    xcclResult_t res = map(op, p);

    if (res == xcclSuccess) {
        xm_direct_pin(op, losses_p);
        res = map(op, p);
    }
    if (res != xcclSuccess) {
        xm_direct_unpin(op);
    }
    return res;
}

/*
 * Say whether this rank can map what all have shown. It cannot wait for that: what lies there is
 * unmapped when nothing on the device waits for other ranks, and something there may wait for one
 * that waits here.
 */
static void say_mapped(struct xm_op *op, struct places *p)
{
    uint32_t     losses = 0;
    xcclResult_t res = map_and_pin(op, p, &losses);

    if (res == xcclInProgress) {
        uint64_t now = xm_now_ns();
        op->unmaps_ns = (op->unmaps_ns != 0) ? op->unmaps_ns : now;
        if (now - op->unmaps_ns < (xm_outstanding_any() ? HINDERED_NS : UNMAPPING_NS)) {
            return;
        }
    }
    if (res != xcclSuccess) {
        xc_info("%llu bytes do not go between the ranks' buffers: %s",
                (unsigned long long)op->block_bytes,
                (res == xcclInProgress) ? "what was freed there is not unmapped yet"
                                        : xc_last_detail());
    }
    xc_trace("%llu bytes between the ranks' buffers: %s", (unsigned long long)op->block_bytes,
             (res == xcclSuccess) ? "mapped for the first time" : "not mapped");
    op->said_mapped = true;
    xm_slots_say_mapped(op->comm->slots, op->show, res == xcclSuccess, losses);
}

/* Whether they are mapped on all ranks, before any of them begins; as xm_direct_mapped(). */
static xcclResult_t agree(struct xm_op *op, struct places *p)
{
    uint32_t losses[XM_SLOT_RANKS] = {0};

    if (!op->said_mapped && xm_direct_all_held(op, p->shown)) {
        op->all_mapped = true;
        return xcclSuccess;
    }
    if (!op->said_mapped) {
        say_mapped(op, p);
    }
    if (!xm_slots_mapped(op->comm->slots, op->show, &op->all_mapped, losses)) {
        return xcclInProgress;
    }
    if (!op->all_mapped) {
        return xcclUnsupported;
    }
    xm_direct_keep_held(op, p->shown[op->comm->rank], losses);
    return xcclSuccess;
}

/* As xm_direct_mapped(), of what all have shown. */
static xcclResult_t map_and_launch(struct xm_op *op, struct places *p, bool told)
{
    xcclResult_t res = op->all_mapped ? xcclSuccess : agree(op, p);

    if (res == xcclSuccess) {
        res = map(op, p);
    }
    if ((res == xcclSuccess) && !op->blocking) {
        res = xm_usable_pack(op);
    }
    return (res == xcclSuccess) ? launch(op, p, told) : res;
}

xcclResult_t xm_direct_mapped(struct xm_op *op, bool told)
{
    struct places p;
    xcclResult_t  res = xcclSuccess;
    bool          all_can = true;

    op->meets = false;
    for (int i = 0; i < op->comm->size; i++) {
        p.shown[i] = xm_slots_shown(op->comm->slots, op->show, i);
        if (p.shown[i] == NULL) {
            return xcclInProgress;
        }
        const struct xm_shown *in = &p.shown[i]->buffers[IN], *out = &p.shown[i]->buffers[OUT];
        if ((in->state <= XM_SHOWN_ODD) || (out->state <= XM_SHOWN_ODD)) {
            res = xcclUnsupported;
        }
        all_can = all_can && (in->state != XM_SHOWN_NOT) && (out->state != XM_SHOWN_NOT);
        op->meets = op->meets || (in->ready == 0);
    }
    if (res != xcclSuccess) {
        op->direct->unmappable += op->blocking && !all_can;
        xm_direct_unpin(op);
        xm_slots_read(op->comm->slots, op->show);
        return res; /* once all have come: the same on all of them */
    }
    xm_mappings_hold();
    res = map_and_launch(op, &p, told);
    xm_mappings_let_go();
    if (res != xcclInProgress) {
        xm_slots_read(op->comm->slots, op->show);
    }
    if ((res != xcclInProgress) && !op->told) {
        xm_direct_unpin(op);
    }
    return res;
}
