/* SPDX-License-Identifier: BSD-3-Clause */
/* xk_linger: a kernel that stays and carries out what it is told. */
#ifndef XK_KERNELS_LINGERING_H
#define XK_KERNELS_LINGERING_H

#include "kernels/exchange.h"
#include "kernels/moving.h"

enum { XK_AGAIN, XK_TOLD, XK_LEAVES };

/* What a block has in common. */
struct xk_told {
    struct xk_exchange exchange;
    uint64_t           ranks; /* where exchange.ranks came from */
    uint32_t           values[XK_WORDS];
    uint32_t           number, verdict;
};

XK_DEVICE uint64_t told_address(const struct xk_told *t, uint32_t low)
{
    return (uint64_t)t->values[low] | (uint64_t)t->values[low + 1] << 32;
}

/*
 * Wait for the next command, by one warp, whose lanes' loads are one request on the bus. The
 * command is whole when all of its words have its number.
 */
XK_DEVICE void listen(const char *command, uint32_t last, uint64_t begun, uint64_t idle,
                      const struct xk_linger *a, struct xk_16 *words, struct xk_told *t)
{
    for (;;) {
        for (uint32_t i = threadIdx.x; i < XK_WORDS / 2; i += blockDim.x) {
            words[i] = load_16(command + 16 * i);
        }
        XK_SYNC_WARP();
        if (threadIdx.x == 0) {
            uint32_t number = (uint32_t)(words[0].x >> 32);
            uint64_t now = now_ns();
            int      whole = (number == last + 1);
            for (uint32_t i = 0; i < XK_WORDS / 2; i++) {
                whole = whole && has_come(&words[i], number);
            }
            t->number = number;
            t->verdict = whole ? XK_TOLD : XK_AGAIN;
            if (!whole && ((now - idle > a->idle_ns) || (now - begun > a->life_ns))) {
                t->verdict = XK_LEAVES;
            }
        }
        XK_SYNC_WARP();
        if (t->verdict != XK_AGAIN) {
            break;
        }
        XK_SYNC_WARP(); /* all have read it */
        XK_PAUSE();
    }
    for (uint32_t i = threadIdx.x; (t->verdict == XK_TOLD) && (i < XK_WORDS / 2); i += blockDim.x) {
        t->values[2 * i] = (uint32_t)words[i].x;
        t->values[2 * i + 1] = (uint32_t)words[i].y;
    }
}

/* The communicator's is most often that of the command before. */
XK_DEVICE void know_ranks(struct xk_told *t)
{
    uint64_t from = told_address(t, XK_RANKS_LOW);

    if (from == t->ranks) {
        return;
    }
    __syncthreads();
    const uint64_t *words = (const uint64_t *)XK_PLACE(from, sizeof(struct xk_ranks));
    for (uint32_t i = threadIdx.x; i < sizeof(struct xk_ranks) / 8; i += blockDim.x) {
        ((uint64_t *)&t->exchange.ranks)[i] = load_8(&words[i]);
    }
    if (threadIdx.x == 0) {
        t->ranks = from;
    }
    __syncthreads();
}

XK_DEVICE void carry_out(struct xk_told *t)
{
    uint32_t how = t->values[XK_HOW];
    uint64_t in = told_address(t, XK_IN_LOW), out = told_address(t, XK_OUT_LOW);
    uint32_t bytes = t->values[XK_BYTES];

    if (how == XK_COPIES) {
        move_bytes(XK_PLACE(out, bytes), XK_PLACE(in, bytes), bytes, threadIdx.x, blockDim.x);
        return;
    }
    know_ranks(t);
    struct xk_exchange *a = &t->exchange;
    for (uint32_t k = threadIdx.x; k < XK_MAX_RANKS; k += blockDim.x) {
        a->parts[k] =
            xk_part_of((enum xk_form)(how & 0xff), (how >> 8) & 0xff, a->ranks.rank, k, bytes);
    }
    if (threadIdx.x == 0) {
        a->in = in;
        a->out = out;
        a->number = t->values[XK_NUMBER];
        a->what = how >> 16;
    }
    __syncthreads();
#if defined(XK_SIMULATED)
    struct xk_exchange placed = *a;
    place_exchange(&placed);
    a = &placed;
#endif
    exchange(a, threadIdx.x, blockDim.x);
}

XK_KERNEL(xk_linger)(XK_ARGUMENT struct xk_linger a)
{
    __shared__ struct xk_16   words[XK_WORDS / 2];
    __shared__ struct xk_told told;
    uint32_t                  last = a.number;
    uint64_t                  begun = now_ns(), idle = begun;
    const char               *command = (const char *)XK_PLACE((uint64_t)a.command, XK_WORDS * 8);
    struct xk_answers        *answers =
        (struct xk_answers *)XK_PLACE((uint64_t)a.answers, sizeof(struct xk_answers));
    uint32_t first = a.first;

    if (threadIdx.x == 0) {
        told.ranks = 0;
        *(volatile uint32_t *)&answers->alive = a.epoch;
    }
    for (;;) {
        if (first) {
            for (uint32_t i = threadIdx.x; i < XK_WORDS; i += blockDim.x) {
                told.values[i] = a.values[i];
            }
            if (threadIdx.x == 0) {
                told.number = last + 1;
                told.verdict = XK_TOLD;
            }
            first = 0;
        } else if (threadIdx.x < 32) {
            listen(command, last, begun, idle, &a, words, &told);
        }
        __syncthreads();
        if (told.verdict == XK_LEAVES) {
            break;
        }
        last = told.number;
        carry_out(&told);
        __syncthreads();
        if (threadIdx.x == 0) {
            settle(told.values[XK_HOW] == XK_COPIES ? 1 : told.values[XK_ELSEWHERE]);
            *(volatile uint32_t *)&answers->done = last;
            idle = now_ns();
        }
    }
    if (threadIdx.x == 0) {
        __threadfence_system();
        *(volatile uint32_t *)&answers->gone = a.epoch;
    }
}

#endif
