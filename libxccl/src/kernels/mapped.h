/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * xk_mapped: large collectives on the program's own buffers, which the ranks have mapped. They meet
 * first, so that all inputs are there and all outputs may be written; each does its part; and they
 * meet again, so that nobody's buffer is used after its call has ended. Where nothing else is to be
 * waited for on the devices, the hosts do that in half the time.
 */
#ifndef XK_KERNELS_MAPPED_H
#define XK_KERNELS_MAPPED_H

#include "kernels/exchange.h"
#include "kernels/moving.h"

/* Units of 16 bytes that a thread has on their way from each source; and of a long reduction. */
enum { XK_ROUNDS = 4, XK_ROUNDS_LONG = 2 };
/*
 * A reduction of so many bytes is long: each block has a stretch of its own, adds it into this
 * rank's output, and only then brings the others the sums, one after the other. Links carry more
 * while nobody writes among the reads, and with fewer of these at once: 64 MiB among four H100s
 * take 308 us instead of 331, among two 203 instead of 217; 4 MiB are as fast at once.
 */
#if defined(XK_SIMULATED)
enum { XK_LONG = 16 << 10 }; /* tests come there */
#else
enum { XK_LONG = 4 << 20 };
#endif
enum { XK_LINE = 128 }; /* no two blocks write to the same one */

/*
 * The first block says that this rank has come, and every block waits for all ranks. False: the
 * host has given up. What was written before the kernel began is there for all who reach the
 * device: it needs no fence.
 */
XK_DEVICE int all_have_come(const struct xk_ranks *r, uint32_t number)
{
    uint32_t polls = 0;
    int      all = 1;

    for (uint32_t k = threadIdx.x; (blockIdx.x == 0) && (k < r->size); k += blockDim.x) {
        if (XK_MEETS_WITH_CARE) {
            __threadfence_system();
        }
        meeting_put(meeting_word(r, k, 0, r->rank), number, 0);
    }
    for (uint32_t k = threadIdx.x; (k < r->size) && all; k += blockDim.x) {
        while (!meeting_is(load_8((const uint64_t *)meeting_word(r, r->rank, 0, k)), number)) {
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

/* In the order of the ranks again: the same bits whoever adds. n is 2, 3 or 4. */
XK_DEVICE void turn_back(struct xk_16 *v, uint32_t n, uint32_t turn)
{
    struct xk_16 odd[4], two[4];

    XK_UNROLL
    for (uint32_t k = 0; k < n; k++) {
        odd[k] = ((turn & 1) != 0) ? v[(k + n - 1) % n] : v[k];
    }
    XK_UNROLL
    for (uint32_t k = 0; k < n; k++) {
        two[k] = ((turn & 2) != 0) ? odd[(k + n - 2) % n] : odd[k];
    }
    XK_UNROLL
    for (uint32_t k = 0; k < n; k++) {
        v[k] = two[k];
    }
}

/* A thread's part of a reduction: 16 bytes every step, up to end, for the first targets. */
struct xk_stretch {
    uint64_t at, end, step;
    uint32_t targets;
    int      is_long;
};

/*
 * rounds, n, the number of sources, and what are constants, but for the type of a checked sum; all
 * loads are on the way at once. Returns whether that may have left its range.
 */
XK_DEVICE int reduce_rounds(const struct xk_work *a, const struct xk_stretch *p, uint32_t rounds,
                            uint32_t n, uint32_t what)
{
    struct xk_16 v[XK_ROUNDS][4];
    int          left = 0;

    XK_UNROLL
    for (uint32_t i = 0; i < rounds; i++) {
        XK_UNROLL
        for (uint32_t k = 0; k < n; k++) {
            v[i][k] = load_16((const void *)(a->from[k] + p->at + i * p->step));
        }
    }
    XK_UNROLL
    for (uint32_t i = 0; i < rounds; i++) {
        struct xk_16 result = v[i][0];
        if (n > 1) {
            struct xk_sum sum = {{0}};
            if (!xk_sum_is_checked(what)) { /* right in any order */
                turn_back(v[i], n, a->turn);
            }
            xk_sum_begin(&sum, v[i][0], what);
            XK_UNROLL
            for (uint32_t k = 1; k < n; k++) {
                xk_sum_add(&sum, v[i][k], what);
            }
            left = left || xk_sum_overflowed(&sum, what);
            result = xk_sum_end(&sum, what);
        }
        for (uint32_t k = 0; k < p->targets; k++) {
            store_16(a->to[k] + p->at + i * p->step, result);
        }
    }
    return left;
}

/* Whole units while there are that many; p->at is then where the rest begins. */
XK_DEVICE int reduce_hot(const struct xk_work *a, struct xk_stretch *p, uint32_t rounds, uint32_t n,
                         uint32_t what)
{
    int left = 0;

    for (; p->at + (rounds - 1) * p->step + 16 <= p->end; p->at += rounds * p->step) {
        left |= reduce_rounds(a, p, rounds, n, what);
    }
    return left;
}

/* Any number of sources, one unit at a time; and the end, which may be part of one. */
XK_DEVICE int reduce_one(const struct xk_work *a, const struct xk_stretch *p, uint32_t bytes,
                         uint32_t what)
{
    struct xk_16 v[XK_MAX_RANKS] = {{0, 0}}, result;
    uint32_t     at_source = (a->sources - a->turn) % a->sources; /* rank 0's */
    int          left = 0;

    XK_UNROLL
    for (uint32_t k = 0; k < XK_MAX_RANKS; k++) {
        if (k < a->sources) {
            v[k] = load_unit(a->from[at_source] + p->at, bytes);
            at_source = (at_source + 1 < a->sources) ? at_source + 1 : 0;
        }
    }
    result = v[0];
    if (a->sources > 1) {
        struct xk_sum sum = {{0}};
        xk_sum_begin(&sum, v[0], what);
        XK_UNROLL
        for (uint32_t k = 1; k < XK_MAX_RANKS; k++) {
            if (k < a->sources) {
                xk_sum_add(&sum, v[k], what);
            }
        }
        left = xk_sum_overflowed(&sum, what);
        result = xk_sum_end(&sum, what);
    }
    for (uint32_t k = 0; k < p->targets; k++) {
        store_unit(a->to[k] + p->at, result, bytes);
    }
    return left;
}

XK_DEVICE int reduce_rest(const struct xk_work *a, struct xk_stretch *p, uint32_t what)
{
    int left = 0;

    for (; p->at < p->end; p->at += p->step) {
        uint64_t rest = p->end - p->at;
        left |= reduce_one(a, p, (rest < 16) ? (uint32_t)rest : 16, what);
    }
    return left;
}

XK_DEVICE int reduce_many(const struct xk_work *a, struct xk_stretch *p, uint32_t n, uint32_t what)
{
    int left = p->is_long ? reduce_hot(a, p, XK_ROUNDS_LONG, n, what)
                          : reduce_hot(a, p, XK_ROUNDS, n, what);

    return left | reduce_hot(a, p, 1, n, what);
}

/* What is left after this is for reduce_rest(). */
XK_DEVICE int reduce_most(const struct xk_work *a, struct xk_stretch *p, uint32_t what)
{
    return (a->sources == 2)   ? reduce_many(a, p, 2, what)
           : (a->sources == 3) ? reduce_many(a, p, 3, what)
           : (a->sources == 4) ? reduce_many(a, p, 4, what)
                               : 0;
}

/* Returns whether a checked sum may have left its range. */
XK_DEVICE int reduce_part(const struct xk_work *a, struct xk_stretch *p)
{
    uint32_t what = a->what;
    int      left = 0;

    if (XK_OP_OF(what) == XK_SUM_CHECKED) { /* four types by the same code */
        what = XK_REDUCES(XK_TYPE_OF(what), XK_SUM_CHECKED);
        left = reduce_most(a, p, what);
        return left | reduce_rest(a, p, what);
    }
    if (a->sources == 1) {
        left = reduce_many(a, p, 1, XK_NO_REDUCTION);
    } else {
        switch (what) {
#define XK_CASE(what)                                                                              \
    case what:                                                                                     \
        left = reduce_most(a, p, what);                                                            \
        break;
            XK_OWN_CODE(XK_CASE)
            XK_CASE(XK_REDUCES(XK_FLOAT16, XK_SUM))
            XK_CASE(XK_REDUCES(XK_BFLOAT16, XK_SUM))
#undef XK_CASE
        default:
            break;
        }
    }
    return left | reduce_rest(a, p, what);
}

/* The first target of several is this rank's own output. */
XK_DEVICE int reduce_mapped(const struct xk_work *a, uint32_t blocks)
{
    if ((a->sources < 2) || (a->bytes < XK_LONG)) {
        struct xk_stretch p = {((uint64_t)blockIdx.x * blockDim.x + threadIdx.x) * 16, a->bytes,
                               (uint64_t)blocks * blockDim.x * 16, a->targets, 0};
        return reduce_part(a, &p);
    }
    uint64_t each = (a->bytes + blocks * XK_LINE - 1) / (blocks * XK_LINE) * XK_LINE;
    uint64_t begin = blockIdx.x * each, end = begin + each;
    begin = (begin < a->bytes) ? begin : a->bytes;
    end = (end < a->bytes) ? end : a->bytes;

    struct xk_stretch p = {begin + threadIdx.x * 16, end, (uint64_t)blockDim.x * 16, 1, 1};
    int               left = reduce_part(a, &p);
    if (a->targets > 1) {
        __syncthreads();
    }
    for (uint32_t k = 1; k < a->targets; k++) {
        move_bytes(a->to[k] + begin, a->to[0] + begin, end - begin, threadIdx.x, blockDim.x);
    }
    return left;
}

/* ---- copies ---- */

XK_DEVICE void fetch_mapped(const struct xk_work *a, uint64_t thread, uint64_t threads)
{
    for (uint32_t k = 0; k < a->sources; k++) {
        if (a->from[k] != a->to[k]) {
            move_bytes(a->to[k], a->from[k], a->lengths[k], thread, threads);
        }
    }
}

/* By all threads of so many blocks. False: the host has given up. */
XK_DEVICE int work_mapped(const struct xk_ranks *r, const struct xk_work *given, uint32_t blocks)
{
    uint64_t thread = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    uint64_t threads = (uint64_t)blocks * blockDim.x;

    if ((given->meets != 0) && !all_have_come(r, given->number)) {
        return 0; /* without a look at buffers that others may have freed since */
    }
#if defined(XK_SIMULATED)
    struct xk_work placed = *given;
    place_work(&placed);
    const struct xk_work *a = &placed;
#else
    const struct xk_work *a = given;
#endif
    if (a->targets == 0) {
        fetch_mapped(a, thread, threads);
    } else if (reduce_mapped(a, blocks)) {
        notice(r, a->number);
    }
    return 1;
}

XK_KERNEL(xk_mapped)(XK_ARGUMENT struct xk_mapped given)
{
#if defined(XK_SIMULATED)
    struct xk_mapped a = given;
    place_ranks(&a.ranks);
#else
    const struct xk_mapped &a = given;
#endif

    work_mapped(&a.ranks, &a.work, gridDim.x);
    if (is_last((uint32_t *)XK_PLACE((uint64_t)a.finished, 4), gridDim.x, 1)) {
        uint32_t *done = (uint32_t *)XK_PLACE_SHARED((uint64_t)a.done, 8);
        tell_host(done, done + 1, a.work.number,
                  ends_in_trouble(&a.ranks, a.work.number, a.work.what, a.work.meets));
    }
}

#endif
