/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * xk_mapped: large collectives on the program's own buffers, which the ranks have mapped. They meet
 * first, so that all inputs are there and all outputs may be written; each does its part; and they
 * meet again, so that nobody's buffer is used after its call has ended.
 */
#ifndef XK_KERNELS_MAPPED_H
#define XK_KERNELS_MAPPED_H

#include "kernels/exchange.h"

enum { XK_ROUNDS = 4 }; /* units of 16 bytes that a thread has on their way from each source */

/*
 * Block b waits for the blocks b of all others. False: the host has given up. What was written
 * before the kernel began is there for all who reach the device: it needs no fence.
 */
XK_DEVICE int meet(const struct xk_ranks *r, uint32_t phase, uint32_t number)
{
    uint32_t row = (phase * XK_MOST_BLOCKS + blockIdx.x) * XK_MAX_RANKS, polls = 0;
    int      all = 1;

    __syncthreads();
    for (uint32_t k = threadIdx.x; k < r->size; k += blockDim.x) {
        if ((phase != 0) || XK_MEETS_WITH_CARE) {
            __threadfence_system();
        }
        *(volatile uint32_t *)(meeting_of(r, k) + (row + r->rank) * 4) = number;
    }
    for (uint32_t k = threadIdx.x; (k < r->size) && all; k += blockDim.x) {
        while (load_4((const uint32_t *)(meeting_of(r, r->rank) + (row + k) * 4)) != number) {
            if (gives_up(r->abort, &polls)) {
                all = 0;
                break;
            }
        }
        __threadfence_system();
    }
    __syncthreads();
    return all;
}

/* ---- a reduction, or a copy to several ---- */

/* n, the number of sources, and what are constants; all loads are on the way at once. */
XK_DEVICE void reduce_rounds(const struct xk_mapped *a, uint64_t at, uint64_t step, uint32_t n,
                             uint32_t what)
{
    struct xk_16 v[4][XK_ROUNDS];

    XK_UNROLL
    for (uint32_t k = 0; k < n; k++) {
        XK_UNROLL
        for (uint32_t i = 0; i < XK_ROUNDS; i++) {
            v[k][i] = load_16((const void *)(a->from[k] + at + i * step));
        }
    }
    XK_UNROLL
    for (uint32_t i = 0; i < XK_ROUNDS; i++) {
        struct xk_16 result = v[0][i];
        if (n > 1) {
            struct xk_sum sum;
            xk_sum_begin(&sum, v[0][i], what);
            XK_UNROLL
            for (uint32_t k = 1; k < n; k++) {
                xk_sum_add(&sum, v[k][i], what);
            }
            result = xk_sum_end(&sum, what);
        }
        for (uint32_t k = 0; k < a->targets; k++) {
            store_16(a->to[k] + at + i * step, result);
        }
    }
}

/* As many whole rounds as there are; where the rest begins. */
XK_DEVICE uint64_t reduce_hot(const struct xk_mapped *a, uint64_t at, uint64_t step, uint32_t n,
                              uint32_t what)
{
    uint64_t all = XK_ROUNDS * step;

    for (; at + all - step + 16 <= a->bytes[0]; at += all) {
        reduce_rounds(a, at, step, n, what);
    }
    return at;
}

/* Any number of sources, one unit at a time; and the end, which may be part of one. */
XK_DEVICE void reduce_one(const struct xk_mapped *a, uint64_t at, uint32_t bytes)
{
    struct xk_sum sum;
    struct xk_16  result = load_unit(a->from[0] + at, bytes);

    if (a->sources > 1) {
        xk_sum_begin(&sum, result, a->what);
        for (uint32_t k = 1; k < a->sources; k++) {
            xk_sum_add(&sum, load_unit(a->from[k] + at, bytes), a->what);
        }
        result = xk_sum_end(&sum, a->what);
    }
    for (uint32_t k = 0; k < a->targets; k++) {
        store_unit(a->to[k] + at, result, bytes);
    }
}

XK_DEVICE void reduce_mapped(const struct xk_mapped *a, uint64_t thread, uint64_t threads)
{
    uint64_t bytes = a->bytes[0], step = threads * 16, at = thread * 16;

    if (a->sources == 1) {
        at = reduce_hot(a, at, step, 1, XK_NO_REDUCTION);
    } else {
        switch (a->what) {
#define XK_CASE(what)                                                                              \
    case what:                                                                                     \
        at = (a->sources == 2)   ? reduce_hot(a, at, step, 2, what)                                \
             : (a->sources == 4) ? reduce_hot(a, at, step, 4, what)                                \
                                 : at;                                                             \
        break;
            XK_OWN_CODE(XK_CASE)
            XK_CASE(XK_REDUCES(XK_FLOAT16, XK_SUM))
            XK_CASE(XK_REDUCES(XK_BFLOAT16, XK_SUM))
#undef XK_CASE
        default:
            break;
        }
    }
    for (; at < bytes; at += step) {
        uint64_t rest = bytes - at;
        reduce_one(a, at, (rest < 16) ? (uint32_t)rest : 16);
    }
}

/* ---- copies ---- */

XK_DEVICE void fetch_mapped(const struct xk_mapped *a, uint64_t thread, uint64_t threads)
{
    for (uint32_t i = 0; i < a->sources; i++) {
        /* Not all at the same rank at once. */
        uint32_t k = (i + a->ranks.rank) % a->sources;
        if (a->from[k] != a->to[k]) {
            move_bytes(a->to[k], a->from[k], a->bytes[k], thread, threads);
        }
    }
}

#if defined(XK_SIMULATED)
XK_DEVICE void place_mapped(struct xk_mapped *a)
{
    for (uint32_t k = 0; k < a->sources; k++) {
        a->from[k] = XK_PLACE(a->from[k], a->bytes[(a->targets == 0) ? k : 0]);
    }
    for (uint32_t k = 0; k < ((a->targets == 0) ? a->sources : a->targets); k++) {
        a->to[k] = XK_PLACE(a->to[k], a->bytes[(a->targets == 0) ? k : 0]);
    }
    place_ranks(&a->ranks);
}
#endif

XK_KERNEL(xk_mapped)(XK_ARGUMENT struct xk_mapped given)
{
#if defined(XK_SIMULATED)
    struct xk_mapped a = given;
    place_mapped(&a);
#else
    const struct xk_mapped &a = given;
#endif
    uint64_t thread = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    uint64_t threads = (uint64_t)gridDim.x * blockDim.x;

    if (meet(&a.ranks, 0, a.number)) {
        if (a.targets == 0) {
            fetch_mapped(&a, thread, threads);
        } else {
            reduce_mapped(&a, thread, threads);
        }
        meet(&a.ranks, 1, a.number);
    }
    tell_host((uint32_t *)XK_PLACE((uint64_t)a.finished, 4),
              (uint32_t *)XK_PLACE((uint64_t)a.done, 4), a.number, 0);
}

#endif
