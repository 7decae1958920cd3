/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * xk_rounds: blocks that are too long for a slot, in a series of exchanges. It needs nothing of the
 * other ranks but their workspaces, so nobody waits on the host, and any memory will do.
 *
 * A slot is written again two rounds later, once its reader has seen the last of it. Thread t of
 * every rank deals with the same units. So where all ranks send and receive alike, what t takes
 * from a rank in round n says that t is through with round n - 1 there, and threads go on without
 * waiting for each other. Elsewhere all blocks of a rank meet between two rounds; and before the
 * last one always, since what comes next has other threads.
 */
#ifndef XK_KERNELS_ROUNDS_H
#define XK_KERNELS_ROUNDS_H

#include "kernels/exchange.h"

/* What is left from `at` on, and at most `most`. */
XK_DEVICE uint32_t stretch(uint64_t bytes, uint64_t at, uint32_t most)
{
    uint64_t left = (at < bytes) ? bytes - at : 0;

    return (left < most) ? (uint32_t)left : most;
}

/* A round of a call whose blocks go from rank to rank as they are. */
XK_DEVICE void plan_piece(const struct xk_rounds *a, uint32_t round, struct xk_exchange *e)
{
    uint64_t at = (uint64_t)round * a->piece;

    for (uint32_t k = threadIdx.x; k < a->ranks.size; k += blockDim.x) {
        const struct xk_span *s = &a->spans[k];
        e->parts[k].send_at = s->send_at + at;
        e->parts[k].receive_at = (a->what == XK_NO_REDUCTION) ? s->receive_at + at : 0;
        e->parts[k].send = stretch(s->send, at, a->piece);
        e->parts[k].receive = stretch(s->receive, at, a->piece);
    }
    if (threadIdx.x == 0) {
        e->in = a->in;
        e->out = a->out + ((a->what == XK_NO_REDUCTION) ? 0 : at);
        e->what = a->what;
    }
}

/*
 * A round of an allreduce between several ranks. A piece for each of them is a stretch of the
 * vector: each adds its own, in an even round, and all get the sums in the next.
 */
XK_DEVICE void plan_shared(const struct xk_rounds *a, uint32_t round, struct xk_exchange *e)
{
    uint32_t rank = a->ranks.rank, adds = ((round & 1) == 0);
    uint64_t bytes = a->spans[0].send, at = (uint64_t)(round / 2) * a->ranks.size * a->piece;
    uint64_t own_at = at + (uint64_t)rank * a->piece;
    uint32_t own = stretch(bytes, own_at, a->piece);

    for (uint32_t k = threadIdx.x; k < a->ranks.size; k += blockDim.x) {
        uint64_t other_at = at + (uint64_t)k * a->piece;
        uint32_t other = stretch(bytes, other_at, a->piece);
        e->parts[k].send_at = adds ? other_at : own_at;
        e->parts[k].send = adds ? other : own;
        e->parts[k].receive_at = adds ? 0 : other_at;
        e->parts[k].receive = adds ? own : other;
    }
    if (threadIdx.x == 0) {
        e->in = adds ? a->in : a->out;
        e->out = adds ? a->out + own_at : a->out;
        e->what = adds ? a->what : XK_NO_REDUCTION;
    }
}

/* All threads of this block have come here before. False: the host has given up. */
XK_DEVICE int meet_blocks(const struct xk_rounds *a, uint32_t *finished, uint32_t comings)
{
    __shared__ int there;
    uint32_t       polls = 0;

    if (gridDim.x == 1) {
        return 1;
    }
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(finished, 1);
        there = 1;
        while (there && (load_4(finished) < comings)) {
            there = !gives_up(a->ranks.abort, &polls);
        }
        __threadfence();
    }
    __syncthreads();
    return there;
}

#if defined(XK_SIMULATED)
XK_DEVICE void place_rounds(struct xk_rounds *a)
{
    uint64_t in = 0, out = 0;

    for (uint32_t k = 0; k < a->ranks.size; k++) {
        const struct xk_span *s = &a->spans[k];
        uint64_t              from = (s->send != 0) ? s->send_at + s->send : 0;
        uint64_t              to = (s->receive != 0) ? s->receive_at + s->receive : 0;
        in = (from > in) ? from : in;
        out = (to > out) ? to : out;
    }
    a->in = XK_PLACE(a->in, in);
    a->out = XK_PLACE(a->out, out);
    place_ranks(&a->ranks);
}
#endif

XK_KERNEL(xk_rounds)(XK_ARGUMENT struct xk_rounds given)
{
    __shared__ struct xk_exchange e;
#if defined(XK_SIMULATED)
    struct xk_rounds a = given;
    place_rounds(&a);
#else
    const struct xk_rounds &a = given;
#endif
    uint64_t  thread = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    uint64_t  threads = (uint64_t)gridDim.x * blockDim.x;
    uint32_t *finished = (uint32_t *)XK_PLACE((uint64_t)a.finished, 4);
    uint32_t *done = (uint32_t *)XK_PLACE_SHARED((uint64_t)a.done, 8);
    uint32_t  comings = gridDim.x;
    int       goes_on = 1;

    if (threadIdx.x == 0) {
        e.ranks = a.ranks;
    }
    for (uint32_t n = 0; __syncthreads_and(goes_on) && (n < a.rounds); n++) {
        if ((n > 0) && (a.one_way || (n + 1 == a.rounds))) {
            goes_on = meet_blocks(&a, finished, comings);
            comings += gridDim.x;
            if (!goes_on) {
                break;
            }
        }
        if (a.shared) {
            plan_shared(&a, n, &e);
        } else {
            plan_piece(&a, n, &e);
        }
        if (threadIdx.x == 0) {
            e.number = a.number + n;
        }
        __syncthreads();
        goes_on = exchange(&e, thread, threads);
    }
    /* Whoever has given up will not wait for blocks that have not: nobody uses the result. */
    if (__syncthreads_and(goes_on) ? is_last(finished, (gridDim.x == 1) ? 1 : comings, a.elsewhere)
                                   : (threadIdx.x == 0)) {
        tell_host(done, done + 1, a.number + a.rounds - 1, 0);
    }
}

#endif
