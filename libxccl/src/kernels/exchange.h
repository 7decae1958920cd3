/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * xk_exchange: one kernel for every collective of small messages. Each word that a rank writes into
 * another's workspace carries 8 bytes of data and, twice, the number of the operation: a store of 8
 * bytes arrives as a whole, so data is there when its number is, without a fence or a second
 * message.
 *
 * Every rank writes at least a header to every other, and waits for one from every other. So a rank
 * that begins operation n + 2 knows that nobody reads what came for operation n any more, and two
 * sets of slots are enough.
 */
#ifndef XK_KERNELS_EXCHANGE_H
#define XK_KERNELS_EXCHANGE_H

#include "kernels/kernels.h"
#include "kernels/portable.h"
/* Once those are known. */
#include "kernels/arithmetic.h"
#include "kernels/ending.h"
#include "kernels/words.h"

/* A waiting thread looks for the host's word to give up every so many polls. */
enum { XK_POLLS_PER_LOOK = XK_POLLS, XK_AT_ONCE = 4 };

/* Reductions that have code of their own: looking one up for each unit takes its time. */
#define XK_OWN_CODE(X)                                                                             \
    X(XK_REDUCES(XK_FLOAT32, XK_SUM))                                                              \
    X(XK_REDUCES(XK_FLOAT64, XK_SUM))                                                              \
    X(XK_REDUCES(XK_INT32, XK_SUM))                                                                \
    X(XK_REDUCES(XK_FLOAT64, XK_MAX))

XK_DEVICE uint64_t slot_of(const struct xk_ranks *r, uint32_t owner, uint32_t writer,
                           uint32_t number)
{
    uint64_t slot = (uint64_t)(number & 1) * r->size + writer;

    return r->workspace[owner] + slot * xk_slot_bytes(r->size);
}

XK_DEVICE uint64_t meeting_of(const struct xk_ranks *r, uint32_t owner)
{
    return r->workspace[owner] + 2 * r->size * xk_slot_bytes(r->size);
}

XK_DEVICE uint64_t meeting_word(const struct xk_ranks *r, uint32_t owner, uint32_t line,
                                uint32_t writer)
{
    return meeting_of(r, owner) + line * XK_MEETING_LINE + writer * 8;
}

/*
 * The number is where words of a slot have theirs, too: another communicator's data, which may lie
 * here, is never taken for it.
 */
XK_DEVICE void meeting_put(uint64_t at, uint32_t number, uint32_t trouble)
{
    *(volatile uint64_t *)at = trouble | (uint64_t)number << 32;
}

XK_DEVICE int meeting_is(uint64_t word, uint32_t number)
{
    return (uint32_t)(word >> 32) == number;
}

/* ---- units of 16 bytes of the program's memory, of any alignment ---- */

XK_DEVICE uint64_t load_bytes(uint64_t at, uint32_t bytes)
{
    uint64_t v = 0;

    for (uint32_t i = 0; i < bytes; i++) {
        v |= (uint64_t) * (const volatile uint8_t *)(at + i) << (8 * i);
    }
    return v;
}

XK_DEVICE void store_bytes(uint64_t at, uint64_t v, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++) {
        *(uint8_t *)(at + i) = (uint8_t)(v >> (8 * i));
    }
}

XK_DEVICE uint64_t load_half(uint64_t at, uint32_t bytes)
{
    if (bytes >= 8) {
        if ((at & 7) == 0) {
            return load_8((const uint64_t *)at);
        }
        bytes = 8;
    }
    if ((at & 3) == 0) {
        if (bytes == 8) {
            uint64_t low = load_4((const uint32_t *)at);
            return low | (uint64_t)load_4((const uint32_t *)(at + 4)) << 32;
        }
        if (bytes == 4) {
            return load_4((const uint32_t *)at);
        }
    }
    return load_bytes(at, bytes);
}

XK_DEVICE void store_half(uint64_t at, uint64_t v, uint32_t bytes)
{
    bytes = (bytes > 8) ? 8 : bytes;
    if ((bytes == 8) && ((at & 7) == 0)) {
        *(uint64_t *)at = v;
    } else if (((at & 3) == 0) && ((bytes & 3) == 0)) {
        *(uint32_t *)at = (uint32_t)v;
        if (bytes == 8) {
            *(uint32_t *)(at + 4) = (uint32_t)(v >> 32);
        }
    } else {
        store_bytes(at, v, bytes);
    }
}

XK_APART struct xk_16 load_odd_unit(uint64_t at, uint32_t bytes)
{
    struct xk_16 v = {load_half(at, bytes), 0};

    if (bytes > 8) {
        v.y = load_half(at + 8, bytes - 8);
    }
    return v;
}

XK_APART void store_odd_unit(uint64_t at, uint64_t x, uint64_t y, uint32_t bytes)
{
    store_half(at, x, bytes);
    if (bytes > 8) {
        store_half(at + 8, y, bytes - 8);
    }
}

/* The first `bytes` of 16 at an address; the others are 0. */
XK_DEVICE struct xk_16 load_unit(uint64_t at, uint32_t bytes)
{
    if ((bytes >= 16) && ((at & 15) == 0)) {
        return load_16((const void *)at);
    }
    if ((bytes == 8) && ((at & 7) == 0)) { /* one number: the most frequent of all */
        struct xk_16 v = {load_8((const uint64_t *)at), 0};
        return v;
    }
    return load_odd_unit(at, bytes);
}

XK_DEVICE void store_unit(uint64_t at, struct xk_16 v, uint32_t bytes)
{
    if ((bytes >= 16) && ((at & 15) == 0)) {
        store_16(at, v);
    } else if ((bytes == 8) && ((at & 7) == 0)) {
        *(uint64_t *)at = v.x;
    } else {
        store_odd_unit(at, v.x, v.y, bytes);
    }
}

/* ---- words with their number ---- */

/* Has the host given up? Asked now and then. */
XK_DEVICE int gives_up(uint64_t abort, uint32_t *polls)
{
    XK_PAUSE();
    return ((++*polls % XK_POLLS_PER_LOOK) == 0) && (load_4((const uint32_t *)abort) != 0);
}

/*
 * A unit from each slot of the mask, bits 0 to XK_AT_ONCE - 1; their words are loaded side by side.
 * False: the host has given up.
 */
XK_DEVICE int take_units(const uint64_t *at, uint32_t mask, uint32_t number, uint64_t abort,
                         struct xk_16 *v)
{
    struct xk_16 a[XK_AT_ONCE] = {{0, 0}}, b[XK_AT_ONCE] = {{0, 0}};
    uint32_t     polls = 0;

    for (;;) {
        int all = 1;
        XK_UNROLL
        for (uint32_t k = 0; k < XK_AT_ONCE; k++) {
            if ((mask >> k) & 1) {
                a[k] = load_16((const void *)at[k]);
                b[k] = load_16((const void *)(at[k] + 16));
            }
        }
        XK_UNROLL
        for (uint32_t k = 0; k < XK_AT_ONCE; k++) {
            if ((mask >> k) & 1) {
                all = all && has_come(&a[k], number) && has_come(&b[k], number);
            }
        }
        if (all) {
            break;
        }
        if (gives_up(abort, &polls)) {
            return 0;
        }
    }
    XK_UNROLL
    for (uint32_t k = 0; k < XK_AT_ONCE; k++) {
        if ((mask >> k) & 1) {
            v[k].x = data_of(&a[k]);
            v[k].y = data_of(&b[k]);
        }
    }
    return 1;
}

/* ---- the exchange ---- */

XK_DEVICE void put_headers(const struct xk_exchange *a)
{
    const struct xk_ranks *r = &a->ranks;

    for (uint32_t k = threadIdx.x; k < r->size; k += blockDim.x) {
        if ((k != r->rank) && (a->parts[k].send == 0)) {
            put_word(slot_of(r, k, r->rank, a->number), 0, a->number);
        }
    }
}

XK_DEVICE int take_headers(const struct xk_exchange *a)
{
    const struct xk_ranks *r = &a->ranks;
    uint32_t               polls = 0;

    for (uint32_t k = threadIdx.x; k < r->size; k += blockDim.x) {
        if ((k == r->rank) || (a->parts[k].receive != 0)) {
            continue;
        }
        for (;;) {
            struct xk_16 w = load_16((const void *)slot_of(r, r->rank, k, a->number));
            if (has_come(&w, a->number)) {
                break;
            }
            if (gives_up(r->abort, &polls)) {
                return 0;
            }
        }
    }
    return 1;
}

XK_DEVICE uint64_t word_of(const struct xk_exchange *a, uint32_t owner, uint32_t writer, uint64_t u)
{
    return slot_of(&a->ranks, owner, writer, a->number) + XK_SLOT_HEADER + u * 32;
}

/* Are units of this buffer whole and aligned from u on, XK_AT_ONCE of them at this step? */
XK_DEVICE int in_one_go(uint64_t at, uint64_t u, uint64_t step, uint32_t bytes)
{
    return ((at & 15) == 0) && ((u + (XK_AT_ONCE - 1) * step + 1) * 16 <= bytes);
}

XK_DEVICE void load_units(uint64_t at, uint64_t u, uint64_t step, uint32_t bytes, struct xk_16 *v)
{
    if (in_one_go(at, u, step, bytes)) {
        XK_UNROLL
        for (uint32_t i = 0; i < XK_AT_ONCE; i++) {
            v[i] = load_16((const void *)(at + (u + i * step) * 16));
        }
        return;
    }
    XK_UNROLL
    for (uint32_t i = 0; i < XK_AT_ONCE; i++) {
        uint64_t from = (u + i * step) * 16;
        if (from < bytes) {
            v[i] = load_unit(at + from, bytes - (uint32_t)from);
        }
    }
}

XK_DEVICE void store_units(uint64_t at, uint64_t u, uint64_t step, uint32_t bytes,
                           const struct xk_16 *v)
{
    if (in_one_go(at, u, step, bytes)) {
        XK_UNROLL
        for (uint32_t i = 0; i < XK_AT_ONCE; i++) {
            store_16(at + (u + i * step) * 16, v[i]);
        }
        return;
    }
    XK_UNROLL
    for (uint32_t i = 0; i < XK_AT_ONCE; i++) {
        uint64_t to = (u + i * step) * 16;
        if (to < bytes) {
            store_unit(at + to, v[i], bytes - (uint32_t)to);
        }
    }
}

/* A bit for each of the units that there are. */
XK_DEVICE uint32_t units_there(uint64_t u, uint64_t step, uint32_t bytes)
{
    uint32_t mask = 0;

    XK_UNROLL
    for (uint32_t i = 0; i < XK_AT_ONCE; i++) {
        mask |= (uint32_t)((u + i * step) * 16 < bytes) << i;
    }
    return mask;
}

/* At most one unit for each rank; blocks that begin at the same place may differ in length. */
XK_DEVICE void put_one(const struct xk_exchange *a, uint64_t u)
{
    const struct xk_ranks *r = &a->ranks;
    struct xk_16           v = {0, 0};
    uint64_t               from = ~(uint64_t)0;
    uint32_t               loaded = 0;

    for (uint32_t i = 1; i < r->size; i++) {
        uint32_t k = (r->rank + i < r->size) ? r->rank + i : r->rank + i - r->size;
        uint32_t bytes = a->parts[k].send;
        if (u * 16 >= bytes) {
            continue;
        }
        if ((a->parts[k].send_at != from) || (bytes > loaded)) {
            from = a->parts[k].send_at;
            loaded = bytes;
            v = load_unit(a->in + from + u * 16, bytes - (uint32_t)(u * 16));
        }
        uint64_t to = word_of(a, k, r->rank, u);
        put_word(to, v.x, a->number);
        put_word(to + 16, v.y, a->number);
    }
}

/* Write this rank's data; what is the same for several ranks is read once. */
XK_DEVICE void put_data(const struct xk_exchange *a, uint64_t thread, uint64_t threads)
{
    const struct xk_ranks *r = &a->ranks;
    uint32_t               most = 0;

    for (uint32_t k = 0; k < r->size; k++) {
        uint32_t bytes = (k == r->rank) ? 0 : a->parts[k].send;
        most = (bytes > most) ? bytes : most;
    }
    if (most <= threads * 16) {
        put_one(a, thread);
        return;
    }
    for (uint64_t u = thread; u * 16 < most; u += XK_AT_ONCE * threads) {
        struct xk_16 v[XK_AT_ONCE] = {{0, 0}};
        uint64_t     from = ~(uint64_t)0;
        uint32_t     loaded = 0;
        for (uint32_t i = 1; i < r->size; i++) {
            uint32_t k = (r->rank + i < r->size) ? r->rank + i : r->rank + i - r->size;
            uint32_t bytes = a->parts[k].send;
            if (u * 16 >= bytes) {
                continue;
            }
            if ((a->parts[k].send_at != from) || (bytes > loaded)) {
                from = a->parts[k].send_at;
                loaded = bytes;
                load_units(a->in + from, u, threads, bytes, v);
            }
            uint64_t to = word_of(a, k, r->rank, u);
            XK_UNROLL
            for (uint32_t n = 0; n < XK_AT_ONCE; n++) {
                if ((u + n * threads) * 16 < bytes) {
                    put_word(to + n * threads * 32, v[n].x, a->number);
                    put_word(to + n * threads * 32 + 16, v[n].y, a->number);
                }
            }
        }
    }
}

/* At most one unit of a block. */
XK_DEVICE int take_one(const struct xk_exchange *a, uint32_t k, uint64_t own, uint64_t to,
                       uint64_t u)
{
    uint32_t     bytes = a->parts[k].receive - (uint32_t)(u * 16);
    uint64_t     word = word_of(a, a->ranks.rank, k, u);
    struct xk_16 v = {0, 0};

    if (u * 16 >= a->parts[k].receive) {
        return 1;
    }
    if (k == a->ranks.rank) {
        v = load_unit(own + u * 16, bytes);
    } else if (!take_units(&word, 1, a->number, a->ranks.abort, &v)) {
        return 0;
    }
    store_unit(to + u * 16, v, bytes);
    return 1;
}

/* Blocks go where they belong. */
XK_DEVICE int take_blocks(const struct xk_exchange *a, uint64_t thread, uint64_t threads)
{
    const struct xk_ranks *r = &a->ranks;

    for (uint32_t k = 0; k < r->size; k++) {
        const struct xk_part *p = &a->parts[k];
        uint64_t              own = a->in + p->send_at, to = a->out + p->receive_at;
        if ((k == r->rank) && (own == to)) {
            continue;
        }
        if (p->receive <= threads * 16) { /* less to do for each */
            if (!take_one(a, k, own, to, thread)) {
                return 0;
            }
            continue;
        }
        for (uint64_t u = thread; u * 16 < p->receive; u += XK_AT_ONCE * threads) {
            struct xk_16 v[XK_AT_ONCE] = {{0, 0}};
            if (k == r->rank) {
                load_units(own, u, threads, p->receive, v);
            } else {
                uint64_t words[XK_AT_ONCE];
                XK_UNROLL
                for (uint32_t i = 0; i < XK_AT_ONCE; i++) {
                    words[i] = word_of(a, r->rank, k, u + i * threads);
                }
                if (!take_units(words, units_there(u, threads, p->receive), a->number, r->abort,
                                v)) {
                    return 0;
                }
            }
            store_units(to, u, threads, p->receive, v);
        }
    }
    return 1;
}

/* A checked sum may have left its range: the thread that is the last of this rank looks for it. */
XK_DEVICE void notice(const struct xk_ranks *r, uint32_t number)
{
    meeting_put(meeting_of(r, r->rank) + XK_TROUBLE_AT, number, XK_TROUBLE);
}

/* Units of the result of two ranks, several at once. */
XK_DEVICE int reduce_two(const struct xk_exchange *a, uint64_t u, uint64_t step, uint32_t bytes,
                         uint32_t what)
{
    const struct xk_ranks *r = &a->ranks;
    uint64_t               words[XK_AT_ONCE];
    struct xk_16           own[XK_AT_ONCE] = {{0, 0}}, v[XK_AT_ONCE] = {{0, 0}};
    int                    left = 0;

    load_units(a->in + a->parts[r->rank].send_at, u, step, bytes, own);
    XK_UNROLL
    for (uint32_t i = 0; i < XK_AT_ONCE; i++) {
        words[i] = word_of(a, r->rank, 1 - r->rank, u + i * step);
    }
    if (!take_units(words, units_there(u, step, bytes), a->number, r->abort, v)) {
        return 0;
    }
    XK_UNROLL
    for (uint32_t i = 0; i < XK_AT_ONCE; i++) {
        struct xk_sum sum;
        xk_sum_begin(&sum, (r->rank == 0) ? own[i] : v[i], what);
        xk_sum_add(&sum, (r->rank == 0) ? v[i] : own[i], what);
        left = left || xk_sum_overflowed(&sum, what);
        v[i] = xk_sum_end(&sum, what);
    }
    store_units(a->out, u, step, bytes, v);
    if (left) {
        notice(r, a->number);
    }
    return 1;
}

/* One unit of the result, always in the order of the ranks: the same bits in every run. */
XK_DEVICE int reduce_unit(const struct xk_exchange *a, uint64_t u, uint32_t bytes, uint32_t what)
{
    const struct xk_ranks *r = &a->ranks;
    struct xk_sum          sum = {{0}};
    int                    begun = 0;

    for (uint32_t first = 0; first < r->size; first += XK_AT_ONCE) {
        uint64_t     words[XK_AT_ONCE] = {0};
        struct xk_16 v[XK_AT_ONCE] = {{0, 0}};
        uint32_t     mask = 0, foreign = 0;
        XK_UNROLL
        for (uint32_t k = 0; k < XK_AT_ONCE; k++) {
            uint32_t other = first + k;
            if ((other < r->size) && (a->parts[other].receive != 0)) {
                mask |= 1u << k;
                foreign |= (uint32_t)(other != r->rank) << k;
                words[k] = word_of(a, r->rank, other, u);
                if (other == r->rank) {
                    v[k] = load_unit(a->in + a->parts[other].send_at + u * 16, bytes);
                }
            }
        }
        if (!take_units(words, foreign, a->number, r->abort, v)) {
            return 0;
        }
        XK_UNROLL
        for (uint32_t k = 0; k < XK_AT_ONCE; k++) {
            if (((mask >> k) & 1) == 0) {
                continue;
            }
            if (begun) {
                xk_sum_add(&sum, v[k], what);
            } else {
                xk_sum_begin(&sum, v[k], what);
                begun = 1;
            }
        }
    }
    store_unit(a->out + u * 16, xk_sum_end(&sum, what), bytes);
    if (xk_sum_overflowed(&sum, what)) {
        notice(r, a->number);
    }
    return 1;
}

/* hot: what is a constant; else several at once would be more code than it is worth. */
XK_DEVICE int take_reduced(const struct xk_exchange *a, uint64_t thread, uint64_t threads,
                           uint32_t what, int hot)
{
    uint32_t bytes = 0, sources = 0;

    for (uint32_t k = 0; k < a->ranks.size; k++) {
        bytes = (a->parts[k].receive != 0) ? a->parts[k].receive : bytes;
        sources += (a->parts[k].receive != 0);
    }
    if (hot && (sources == 2) && (a->ranks.size == 2) && (bytes > threads * 16)) {
        for (uint64_t u = thread; u * 16 < bytes; u += XK_AT_ONCE * threads) {
            if (!reduce_two(a, u, threads, bytes, what)) {
                return 0;
            }
        }
        return 1;
    }
    for (uint64_t u = thread; u * 16 < bytes; u += threads) {
        if (!reduce_unit(a, u, bytes - (uint32_t)(u * 16), what)) {
            return 0;
        }
    }
    return 1;
}

XK_DEVICE int take(const struct xk_exchange *a, uint64_t thread, uint64_t threads)
{
    uint32_t what = a->what;

    if (XK_OP_OF(what) == XK_SUM_CHECKED) { /* four types by the same code */
        return take_reduced(a, thread, threads, XK_REDUCES(XK_TYPE_OF(what), XK_SUM_CHECKED), 1);
    }
    switch (what) {
    case XK_NO_REDUCTION:
        return take_blocks(a, thread, threads);
#define XK_CASE(what)                                                                              \
    case what:                                                                                     \
        return take_reduced(a, thread, threads, what, 1);
        XK_OWN_CODE(XK_CASE)
#undef XK_CASE
    default:
        return take_reduced(a, thread, threads, what, 0);
    }
}

/*
 * By all threads of the grid. What is written is seen by others once the host has been told. False:
 * the host has given up.
 */
XK_DEVICE int exchange(const struct xk_exchange *a, uint64_t thread, uint64_t threads)
{
    if (blockIdx.x == 0) {
        put_headers(a);
    }
    put_data(a, thread, threads);
    int all = take(a, thread, threads);
    if (blockIdx.x == 0) {
        all = take_headers(a) && all;
    }
    return all;
}

/*
 * By the thread that is the last of this rank: say that it goes, and wait for all ranks to. A rank
 * says so once its writes are seen, so those of all are there then. XK_TROUBLE: what a rank has to
 * say, and in the end what any has said.
 */
XK_DEVICE uint32_t all_go(const struct xk_ranks *r, uint32_t number, uint32_t trouble)
{
    uint32_t polls = 0, there = 0, any = 0;

    for (uint32_t k = 0; k < r->size; k++) {
        meeting_put(meeting_word(r, k, 1, r->rank), number, trouble);
    }
    while (there != r->size) {
        there = any = 0;
        for (uint32_t k = 0; k < r->size; k++) {
            uint64_t word = load_8((const uint64_t *)meeting_word(r, r->rank, 1, k));
            there += (uint32_t)meeting_is(word, number);
            any |= (uint32_t)word & XK_TROUBLE;
        }
        if ((there != r->size) && gives_up(r->abort, &polls)) {
            return 0;
        }
    }
    return any;
}

/*
 * By the same thread: XK_TROUBLE if a checked sum may have left its range; alike on all ranks,
 * unless their hosts tell each other. meets: the ranks do.
 */
XK_DEVICE uint32_t ends_in_trouble(const struct xk_ranks *r, uint32_t number, uint32_t what,
                                   uint32_t meets)
{
    uint32_t own = 0;

    if ((XK_OP_OF(what) == XK_SUM_CHECKED) &&
        meeting_is(load_8((const uint64_t *)(meeting_of(r, r->rank) + XK_TROUBLE_AT)), number)) {
        own = XK_TROUBLE;
    }
    return meets ? all_go(r, number, own) : own;
}

#if defined(XK_SIMULATED)
/* Where the simulation has what the arguments mean. */
XK_DEVICE void place_ranks(struct xk_ranks *r)
{
    for (uint32_t k = 0; k < r->size; k++) {
        r->workspace[k] = XK_PLACE_SHARED(r->workspace[k], xk_workspace_bytes(r->size));
    }
    r->abort = XK_PLACE_SHARED(r->abort, 4);
}

/* The buffers that the parts are of. */
XK_DEVICE void place_buffers(const struct xk_part *parts, uint32_t size, uint64_t *in_p,
                             uint64_t *out_p)
{
    uint64_t in = 0, out = 0;

    for (uint32_t k = 0; k < size; k++) {
        const struct xk_part *p = &parts[k];
        uint64_t              from = (p->send != 0) ? p->send_at + p->send : 0;
        uint64_t              to = (p->receive != 0) ? p->receive_at + p->receive : 0;
        in = (from > in) ? from : in;
        out = (to > out) ? to : out;
    }
    *in_p = XK_PLACE(*in_p, in);
    *out_p = XK_PLACE(*out_p, out);
}

XK_DEVICE void place_exchange(struct xk_exchange *a)
{
    place_buffers(a->parts, a->ranks.size, &a->in, &a->out);
    place_ranks(&a->ranks);
}
#endif

XK_DEVICE void end_exchange(const struct xk_exchange *a)
{
    if (is_last((uint32_t *)XK_PLACE((uint64_t)a->finished, 4), gridDim.x, a->elsewhere)) {
        uint32_t *done = (uint32_t *)XK_PLACE_SHARED((uint64_t)a->done, 8);
        tell_host(done, done + 1, a->number,
                  ends_in_trouble(&a->ranks, a->number, a->what, a->meets));
    }
}

XK_KERNEL(xk_exchange)(XK_ARGUMENT struct xk_exchange given)
{
#if defined(XK_SIMULATED)
    struct xk_exchange a = given;
    place_exchange(&a);
#else
    const struct xk_exchange &a = given;
#endif

    exchange(&a, (uint64_t)blockIdx.x * blockDim.x + threadIdx.x, (uint64_t)gridDim.x * blockDim.x);
    end_exchange(&a);
}

#endif
