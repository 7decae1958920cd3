/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * xk_enqueued: a small collective on a stream of the program's, which may be part of a graph. A
 * graph passes the same arguments each time, so the operation's number is a word of device memory,
 * read by all blocks and advanced by the last one: the ranks enqueue the same calls in the same
 * order, so all have the same number. The end of the kernel is the end of the operation; nobody
 * else is told.
 *
 * Numbers begin anew at 1 after `last`, which is even, so parities go on taking turns. A word that
 * an operation long ago has left must not be taken for one of the same number then: each operation
 * clears some words of the slots that it has used itself, and all are cleared once in a round. They
 * may be: another rank writes there two operations later, which is after this kernel.
 */
#ifndef XK_KERNELS_ENQUEUED_H
#define XK_KERNELS_ENQUEUED_H

#include "kernels/exchange.h"

/* The unit u of what goes to each other rank; what is the same for several is read once. */
XK_DEVICE void enqueued_put(const struct xk_enqueued *a, uint32_t number, uint64_t u)
{
    const struct xk_ranks *r = &a->ranks;
    struct xk_16           v = {0, 0};
    uint64_t               from = ~(uint64_t)0;

    for (uint32_t i = 1; i < r->size; i++) {
        uint32_t k = (r->rank + i < r->size) ? r->rank + i : r->rank + i - r->size;
        uint32_t bytes = a->parts[k].send;
        if (u * 16 >= bytes) {
            continue;
        }
        if (a->parts[k].send_at != from) {
            from = a->parts[k].send_at;
            v = load_unit(a->in + from + u * 16, bytes - (uint32_t)(u * 16));
        }
        uint64_t to = slot_of(r, k, r->rank, number) + XK_SLOT_HEADER + u * 32;
        put_word(to, v.x, number);
        put_word(to + 16, v.y, number);
    }
}

/* The unit u of each block goes where it belongs. */
XK_DEVICE int enqueued_take(const struct xk_enqueued *a, uint32_t number, uint64_t u)
{
    const struct xk_ranks *r = &a->ranks;

    for (uint32_t k = 0; k < r->size; k++) {
        const struct xk_part *p = &a->parts[k];
        uint64_t              own = a->in + p->send_at, to = a->out + p->receive_at;
        uint64_t              word = slot_of(r, r->rank, k, number) + XK_SLOT_HEADER + u * 32;
        struct xk_16          v = {0, 0};
        if ((u * 16 >= p->receive) || ((k == r->rank) && (own == to))) {
            continue;
        }
        uint32_t bytes = p->receive - (uint32_t)(u * 16);
        if (k == r->rank) {
            v = load_unit(own + u * 16, bytes);
        } else if (!take_units(&word, 1, number, r->abort, &v)) {
            return 0;
        }
        store_unit(to + u * 16, v, bytes);
    }
    return 1;
}

/* The unit u of the result, always in the order of the ranks. own: this rank's unit. */
XK_DEVICE int enqueued_reduce(const struct xk_enqueued *a, uint32_t number, uint64_t u,
                              uint32_t bytes, struct xk_16 own, uint32_t what)
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
                words[k] = slot_of(r, r->rank, other, number) + XK_SLOT_HEADER + u * 32;
                v[k] = own;
            }
        }
        if (!take_units(words, foreign, number, r->abort, v)) {
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
    return 1;
}

XK_DEVICE int enqueued_reduces(const struct xk_enqueued *a, uint32_t number, uint64_t thread,
                               uint64_t threads, uint32_t what)
{
    uint32_t bytes = a->result;

    for (uint64_t u = thread; u * 16 < bytes; u += threads) {
        uint32_t     rest = bytes - (uint32_t)(u * 16);
        struct xk_16 own = {0, 0};
        if (a->parts[a->ranks.rank].receive != 0) {
            own = load_unit(a->in + a->parts[a->ranks.rank].send_at + u * 16, rest);
        }
        if (!enqueued_reduce(a, number, u, rest, own, what)) {
            return 0;
        }
    }
    return 1;
}

/* All that this rank sends and receives. False: the host has given up. */
XK_DEVICE int enqueued_carry(const struct xk_enqueued *a, uint32_t number, uint64_t thread,
                             uint64_t threads)
{
    for (uint64_t u = thread; u * 16 < a->most; u += threads) {
        enqueued_put(a, number, u);
    }
    switch (a->what) {
    case XK_NO_REDUCTION:
        for (uint64_t u = thread; u * 16 < a->most; u += threads) {
            if (!enqueued_take(a, number, u)) {
                return 0;
            }
        }
        return 1;
#define XK_CASE(name, what)                                                                        \
    case what:                                                                                     \
        return enqueued_reduces(a, number, thread, threads, what);
        XK_HOT(XK_CASE)
#undef XK_CASE
    default:
        return enqueued_reduces(a, number, thread, threads, a->what);
    }
}

/* Ranks between which no data goes wait for each other all the same. */
XK_DEVICE void enqueued_put_headers(const struct xk_enqueued *a, uint32_t number)
{
    const struct xk_ranks *r = &a->ranks;

    for (uint32_t k = threadIdx.x; k < r->size; k += blockDim.x) {
        if ((k != r->rank) && (a->parts[k].send == 0)) {
            put_word(slot_of(r, k, r->rank, number), 0, number);
        }
    }
}

XK_DEVICE void enqueued_take_headers(const struct xk_enqueued *a, uint32_t number)
{
    const struct xk_ranks *r = &a->ranks;
    uint32_t               polls = 0;

    for (uint32_t k = threadIdx.x; k < r->size; k += blockDim.x) {
        if ((k == r->rank) || (a->parts[k].receive != 0)) {
            continue;
        }
        for (;;) {
            struct xk_16 w = load_16((const void *)slot_of(r, r->rank, k, number));
            if (has_come(&w, number) || gives_up(r->abort, &polls)) {
                break;
            }
        }
    }
}

/* Clear this operation's share of the slots' words; the header counts as one. */
XK_DEVICE void enqueued_sweep(const struct xk_enqueued *a, uint32_t number)
{
    const struct xk_ranks *r = &a->ranks;
    uint32_t               words = xk_slot_words(r->size);
    const struct xk_16     none = {0, 0};

    for (uint32_t i = threadIdx.x; i < r->size * a->sweep; i += blockDim.x) {
        uint32_t writer = i % r->size;
        uint32_t word = ((number >> 1) * a->sweep + i / r->size) % words; /* below last + words */
        if (writer != r->rank) {
            store_16_at_once(slot_of(r, r->rank, writer, number) +
                                 ((word == 0) ? 0 : XK_SLOT_HEADER + (uint64_t)(word - 1) * 16),
                             none);
        }
    }
}

/* The last block of all: what is done when nobody of the grid needs the slots any more. */
XK_DEVICE void enqueued_end(const struct xk_enqueued *a, struct xk_counter *counter,
                            uint32_t number)
{
    __shared__ uint32_t last;

    __syncthreads();
    if (gridDim.x > 1) {
        if (threadIdx.x == 0) {
            __threadfence();
            last = (atomicAdd(&counter->finished, 1) == gridDim.x - 1);
        }
        __syncthreads();
        if (!last) {
            return;
        }
    }
    enqueued_sweep(a, number);
    if (threadIdx.x == 0) {
        counter->finished = 0;
        if (number >= a->last) {
            counter->rounds++;
        }
        counter->number = (number >= a->last) ? 1 : number + 1;
    }
}

#if defined(XK_SIMULATED)
XK_DEVICE void place_enqueued(struct xk_enqueued *a)
{
    place_buffers(a->parts, a->ranks.size, &a->in, &a->out);
    place_ranks(&a->ranks);
}
#endif

XK_KERNEL(xk_enqueued)(XK_ARGUMENT struct xk_enqueued given)
{
#if defined(XK_SIMULATED)
    struct xk_enqueued a = given;
    place_enqueued(&a);
#else
    const struct xk_enqueued &a = given;
#endif
    struct xk_counter *counter =
        (struct xk_counter *)XK_PLACE((uint64_t)a.counter, sizeof(struct xk_counter));
    uint32_t number = load_4(&counter->number);

    if (blockIdx.x == 0) {
        enqueued_put_headers(&a, number);
    }
    enqueued_carry(&a, number, (uint64_t)blockIdx.x * blockDim.x + threadIdx.x,
                   (uint64_t)gridDim.x * blockDim.x);
    if (blockIdx.x == 0) {
        enqueued_take_headers(&a, number);
    }
    enqueued_end(&a, counter, number);
}

/* xk_await: a stream waits until a word of host memory is at least a value. */
XK_KERNEL(xk_await)(XK_ARGUMENT struct xk_await given)
{
    const uint32_t *word = (const uint32_t *)XK_PLACE((uint64_t)given.word, 4);

    if (threadIdx.x == 0) {
        while ((int32_t)(load_4(word) - given.least) < 0) {
            XK_PAUSE();
        }
        __threadfence_system();
    }
}

#endif
