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

#include "kernels/short.h"

/* Clear this operation's share of the slots' words; the header counts as one. */
XK_DEVICE void enqueued_sweep(const struct xk_enqueued *a, uint32_t number)
{
    const struct xk_ranks *r = &a->exchange.ranks;
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

XK_KERNEL(xk_enqueued)(XK_ARGUMENT struct xk_enqueued given)
{
    __shared__ struct xk_16 kept[XK_PAIRS];
#if defined(XK_SIMULATED)
    struct xk_enqueued a = given;
    place_exchange(&a.exchange);
#else
    const struct xk_enqueued &a = given;
#endif
    struct xk_counter *counter =
        (struct xk_counter *)XK_PLACE((uint64_t)a.counter, sizeof(struct xk_counter));

    XK_AFTER_THE_STREAM();
    uint32_t number = load_4(&counter->number);
    exchange_short(&a.exchange, number, gridDim.x, kept);
    enqueued_end(&a, counter, number);
}

#endif
