/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * xk_short: an exchange of so little that each thread has one unit of one rank's, or a few. Nothing
 * is done for one rank after the other, so it takes hardly longer with more ranks. And it is little
 * code: a kernel that is launched for it finds neither its instructions nor its arguments in a
 * cache, and waits for each line of them.
 */
#ifndef XK_KERNELS_SHORT_H
#define XK_KERNELS_SHORT_H

#include "kernels/exchange.h"

/* Units of a chunk, whose pairs have a thread each: a power of 2, so that nothing is divided. */
XK_DEVICE uint32_t chunk_shift(uint32_t size)
{
    return (size <= 2) ? 8 : (size <= 4) ? 7 : 6;
}

/* At least one, for the headers. */
XK_DEVICE uint32_t chunks_of(uint32_t bytes, uint32_t shift)
{
    return (bytes == 0) ? 1 : (((bytes - 1) / 16) >> shift) + 1;
}

/* Rank 0 is this one, and others are in an order of each rank's own. */
XK_DEVICE uint32_t rank_after(const struct xk_ranks *r, uint32_t i)
{
    uint32_t k = r->rank + i;

    return (k < r->size) ? k : k - r->size;
}

XK_DEVICE void put_pair(const struct xk_exchange *a, uint32_t number, uint32_t k, uint32_t u)
{
    const struct xk_ranks *r = &a->ranks;
    uint64_t               slot = slot_of(r, k, r->rank, number);
    uint32_t               bytes = a->parts[k].send;

    if (u * 16 < bytes) {
        struct xk_16 v = load_unit(a->in + a->parts[k].send_at + u * 16, bytes - u * 16);
        slot += XK_SLOT_HEADER + (uint64_t)u * 32;
        put_word(slot, v.x, number);
        put_word(slot + 16, v.y, number);
    } else if ((bytes == 0) && (u == 0)) {
        put_word(slot, 0, number);
    }
}

/* Unit u of rank k, or its header, where there is one. False: the host has given up. */
XK_DEVICE int take_words(const struct xk_exchange *a, uint32_t number, uint32_t k, uint32_t u,
                         struct xk_16 *v)
{
    uint64_t at = slot_of(&a->ranks, a->ranks.rank, k, number), behind = 0;
    uint32_t bytes = a->parts[k].receive, polls = 0;

    if (u * 16 < bytes) {
        at += XK_SLOT_HEADER + (uint64_t)u * 32;
        behind = 16;
    } else if ((bytes != 0) || (u != 0)) {
        return 1;
    }
    for (;;) {
        struct xk_16 x = load_16((const void *)at), y = load_16((const void *)(at + behind));
        if (has_come(&x, number) && has_come(&y, number)) {
            v->x = data_of(&x);
            v->y = data_of(&y);
            return 1;
        }
        if (gives_up(a->ranks.abort, &polls)) {
            return 0;
        }
    }
}

/* Where it goes: to its place, or to be added. */
XK_DEVICE int take_pair(const struct xk_exchange *a, uint32_t number, uint32_t k, uint32_t u,
                        struct xk_16 *kept)
{
    const struct xk_part *p = &a->parts[k];
    uint32_t              reduces = (a->what != XK_NO_REDUCTION), there = (u * 16 < p->receive);
    uint64_t              to = a->out + p->receive_at + u * 16;
    struct xk_16          v = {0, 0};

    if (k != a->ranks.rank) {
        if (!take_words(a, number, k, u, &v)) {
            return 0;
        }
    } else if (there) {
        uint64_t from = a->in + p->send_at + u * 16;
        if (!reduces && (from == to)) {
            return 1;
        }
        v = load_unit(from, p->receive - u * 16);
    }
    if (there && reduces) {
        *kept = v;
    } else if (there) {
        store_unit(to, v, p->receive - u * 16);
    }
    return 1;
}

XK_DEVICE void store_sum(const struct xk_exchange *a, uint32_t number, uint32_t u, uint32_t bytes,
                         uint32_t what, const struct xk_sum *sum)
{
    store_unit(a->out + u * 16, xk_sum_end(sum, what), bytes - u * 16);
    if (xk_sum_overflowed(sum, what)) {
        notice(&a->ranks, number);
    }
}

/* What the threads of a chunk have taken, in the order of the ranks: the same bits in every run. */
XK_DEVICE void reduce_kept(const struct xk_exchange *a, uint32_t number, uint32_t first,
                           uint32_t shift, const struct xk_16 *kept, uint32_t what)
{
    for (uint32_t t = threadIdx.x; (t >> shift) == 0; t += blockDim.x) {
        struct xk_sum sum = {{0}};
        uint32_t      bytes = 0;
        XK_ROLLED
        for (uint32_t k = 0; k < a->ranks.size; k++) {
            if ((first + t) * 16 >= a->parts[k].receive) {
                continue;
            }
            if (bytes != 0) {
                xk_sum_add(&sum, kept[k << shift | t], what);
            } else {
                xk_sum_begin(&sum, kept[k << shift | t], what);
            }
            bytes = a->parts[k].receive;
        }
        if (bytes != 0) {
            store_sum(a, number, first + t, bytes, what, &sum);
        }
    }
}

/* Between two ranks the thread that waits for a unit adds its own: no other is waited for. */
XK_DEVICE int reduce_of_two(const struct xk_exchange *a, uint32_t number, uint32_t u, uint32_t what)
{
    uint32_t     rank = a->ranks.rank, other = 1 - rank;
    uint32_t     own = a->parts[rank].receive, others = a->parts[other].receive;
    struct xk_16 v = {0, 0}, w = {0, 0};

    if (u * 16 < own) {
        v = load_unit(a->in + a->parts[rank].send_at + u * 16, own - u * 16);
    }
    if (!take_words(a, number, other, u, &w)) {
        return 0;
    }
    uint32_t bytes = (own != 0) ? own : others;
    if (u * 16 < bytes) {
        struct xk_sum sum;
        int           first = (own != 0) && ((rank == 0) || (others == 0));
        xk_sum_begin(&sum, first ? v : w, what);
        if ((own != 0) && (others != 0)) {
            xk_sum_add(&sum, first ? w : v, what);
        }
        store_sum(a, number, u, bytes, what, &sum);
    }
    return 1;
}

/* What goes over another's input is put by the thread that writes there, before. */
XK_DEVICE int reduce_two_ranks(const struct xk_exchange *a, uint32_t number, uint32_t blocks,
                               uint32_t what)
{
    uint32_t first = blockIdx.x * blockDim.x + threadIdx.x, step = blocks * blockDim.x;
    int      all = 1;

    for (uint32_t u = first; (u * 16 < a->most) || (u == 0); u += step) {
        put_pair(a, number, 1 - a->ranks.rank, u);
    }
    for (uint32_t u = first; (u * 16 < a->most) || (u == 0); u += step) {
        all = reduce_of_two(a, number, u, what) && all;
    }
    return all;
}

XK_DEVICE int take_chunk(const struct xk_exchange *a, uint32_t number, uint32_t first,
                         uint32_t shift, struct xk_16 *kept)
{
    int all = 1;

    for (uint32_t t = threadIdx.x; (t >> shift) < a->ranks.size; t += blockDim.x) {
        uint32_t k = rank_after(&a->ranks, t >> shift), u = t & ((1u << shift) - 1);
        all = take_pair(a, number, k, first + u, &kept[k << shift | u]) && all;
    }
    return all;
}

XK_DEVICE int reduce_chunk(const struct xk_exchange *a, uint32_t number, uint32_t first,
                           uint32_t shift, struct xk_16 *kept, uint32_t what)
{
    int all = take_chunk(a, number, first, shift, kept);

    __syncthreads();
    reduce_kept(a, number, first, shift, kept, what);
    __syncthreads(); /* nobody keeps more before */
    return all;
}

/*
 * By so many blocks of the grid, each with chunks of its own; a->most: bytes of the longest part.
 * All is put before anything is waited for: a result may go over input of this block's, not of
 * another's. False: the host has given up.
 */
XK_DEVICE int exchange_short(const struct xk_exchange *a, uint32_t number, uint32_t blocks,
                             struct xk_16 *kept)
{
    uint32_t shift = chunk_shift(a->ranks.size), chunks = chunks_of(a->most, shift);
    int      all = 1;

    if ((a->ranks.size == 2) && (a->what != XK_NO_REDUCTION)) {
        switch (a->what) {
#define XK_CASE(what)                                                                              \
    case what:                                                                                     \
        return reduce_two_ranks(a, number, blocks, what);
            XK_OWN_CODE(XK_CASE)
#undef XK_CASE
        default:
            return reduce_two_ranks(a, number, blocks, a->what);
        }
    }
    for (uint32_t c = blockIdx.x; c < chunks; c += blocks) {
        for (uint32_t t = threadIdx.x; (t >> shift) < a->ranks.size; t += blockDim.x) {
            if ((t >> shift) != 0) {
                put_pair(a, number, rank_after(&a->ranks, t >> shift),
                         (c << shift) + (t & ((1u << shift) - 1)));
            }
        }
    }
    for (uint32_t c = blockIdx.x; c < chunks; c += blocks) {
        switch (a->what) {
        case XK_NO_REDUCTION:
            all = take_chunk(a, number, c << shift, shift, kept) && all;
            break;
#define XK_CASE(what)                                                                              \
    case what:                                                                                     \
        all = reduce_chunk(a, number, c << shift, shift, kept, what) && all;                       \
        break;
            XK_OWN_CODE(XK_CASE)
#undef XK_CASE
        default:
            all = reduce_chunk(a, number, c << shift, shift, kept, a->what) && all;
            break;
        }
    }
    return all;
}

XK_KERNEL(xk_short)(XK_ARGUMENT struct xk_exchange given)
{
    __shared__ struct xk_16 kept[XK_PAIRS];
#if defined(XK_SIMULATED)
    struct xk_exchange a = given;
    place_exchange(&a);
#else
    const struct xk_exchange &a = given;
#endif

    exchange_short(&a, a.number, gridDim.x, kept);
    end_exchange(&a);
}

#endif
