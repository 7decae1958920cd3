/* SPDX-License-Identifier: BSD-3-Clause */
/* xk_linger: a kernel that stays and carries out what it is told. */
#ifndef XK_KERNELS_LINGERING_H
#define XK_KERNELS_LINGERING_H

#include "kernels/listening.h"
#include "kernels/short.h"

/* Every word says by itself that it is there: no fence is waited for. */
XK_DEVICE void tell_bytes(const struct xk_told *t, struct xk_answers *answers)
{
    uint32_t bytes = t->values[XK_BYTES];
    uint64_t in = XK_PLACE(told_address(t, XK_IN_LOW), bytes);

    for (uint32_t i = threadIdx.x; 4 * i < bytes; i += blockDim.x) {
        uint32_t value = 0, rest = bytes - 4 * i;
        if ((rest >= 4) && ((in & 3) == 0)) {
            value = load_4((const uint32_t *)(in + 4 * i));
        } else {
            for (uint32_t k = 0; (k < 4) && (k < rest); k++) {
                value |= (uint32_t) * (const volatile uint8_t *)(in + 4 * i + k) << (8 * k);
            }
        }
        *(volatile uint64_t *)&answers->told[i] = value | (uint64_t)t->number << 32;
    }
}

XK_DEVICE void take_bytes(const struct xk_told *t)
{
    uint32_t bytes = t->values[XK_BYTES];
    uint64_t out = XK_PLACE(told_address(t, XK_OUT_LOW), bytes);

    for (uint32_t i = threadIdx.x; i < bytes; i += blockDim.x) {
        uint32_t value = t->values[xk_taken_at(i / 4)];
        *(volatile uint8_t *)(out + i) = (uint8_t)(value >> (8 * (i % 4)));
    }
}

/* Runs that the host has just written: none is read by way of a cache. */
XK_DEVICE void carry_out_runs(struct xk_told *t)
{
    uint32_t        count = t->values[XK_BYTES];
    uint32_t        back = (xk_how_what(t->values[XK_HOW]) == XK_BY_RUNS_BACK);
    uint64_t        in = told_address(t, XK_IN_LOW), out = told_address(t, XK_OUT_LOW);
    const uint64_t *words =
        (const uint64_t *)XK_PLACE(told_address(t, XK_RANKS_LOW), count * sizeof(struct xk_run));

    for (uint32_t n = 0; n < count; n++) {
        __syncthreads(); /* nobody is at the one before it any more */
        for (uint32_t w = threadIdx.x; w < sizeof(t->run) / 8; w += blockDim.x) {
            ((uint64_t *)&t->run)[w] = load_8(&words[n * (sizeof(t->run) / 8) + w]);
        }
        __syncthreads();
        move_run(&t->run, in, out, back, threadIdx.x, blockDim.x);
    }
}

/* Which of `threads` this one is for copy k of n: each begins with other warps. */
XK_DEVICE uint32_t thread_of_copy(uint32_t thread, uint32_t threads, uint32_t k, uint32_t n)
{
    uint32_t first = k * (threads / n / XK_LANES * XK_LANES);

    return (thread >= first) ? thread - first : thread + threads - first;
}

/* So short ones are all on their way together. */
XK_APART void carry_out_records(const struct xk_work *given, uint32_t blocks)
{
    uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x, threads = blocks * blockDim.x;
#if defined(XK_SIMULATED)
    struct xk_work placed = *given;
    place_work(&placed);
    const struct xk_work *a = &placed;
#else
    const struct xk_work *a = given;
#endif

    for (uint32_t k = 0; k < a->sources; k++) {
        move_bytes(a->to[k], a->from[k], a->lengths[k],
                   thread_of_copy(thread, threads, k, a->sources), threads);
    }
}

/* What has nothing to do with other ranks. By runs it is no work for several blocks. */
XK_DEVICE void carry_out_copy(struct xk_told *t, uint32_t blocks, struct xk_answers *answers)
{
    uint32_t form = xk_how_form(t->values[XK_HOW]), bytes = t->values[XK_BYTES];
    uint64_t in = told_address(t, XK_IN_LOW), out = told_address(t, XK_OUT_LOW);

    if (form == XK_TELLS) {
        tell_bytes(t, answers);
    } else if (form == XK_TAKES) {
        take_bytes(t);
    } else if (xk_how_what(t->values[XK_HOW]) == XK_BY_RECORDS) {
        carry_out_records(&t->work, blocks);
    } else if (xk_how_what(t->values[XK_HOW]) != XK_BY_BYTES) {
        carry_out_runs(t);
    } else {
        move_bytes(XK_PLACE(out, bytes), XK_PLACE(in, bytes), bytes,
                   (uint64_t)blockIdx.x * blockDim.x + threadIdx.x, (uint64_t)blocks * blockDim.x);
    }
}

XK_DEVICE void carry_out_mapped(const struct xk_told *t, uint32_t blocks)
{
#if defined(XK_SIMULATED)
    struct xk_ranks ranks = t->exchange.ranks;
    place_ranks(&ranks);
    work_mapped(&ranks, &t->work, blocks);
#else
    work_mapped(&t->exchange.ranks, &t->work, blocks);
#endif
}

XK_DEVICE void carry_out_exchange(const struct xk_told *t, uint32_t blocks, struct xk_16 *kept)
{
    const struct xk_exchange *a = &t->exchange;

#if defined(XK_SIMULATED)
    struct xk_exchange placed = *a;
    place_exchange(&placed);
    a = &placed;
#endif
    if (xk_is_short(a->ranks.size, a->most, blocks)) {
        exchange_short(a, a->number, blocks, kept);
    } else {
        exchange(a, (uint64_t)blockIdx.x * blockDim.x + threadIdx.x, (uint64_t)blocks * blockDim.x);
    }
}

XK_DEVICE void carry_out(struct xk_told *t, uint32_t blocks, struct xk_16 *kept,
                         struct xk_answers *answers)
{
    uint32_t form = xk_how_form(t->values[XK_HOW]);

    if (form < XK_MAPPED) {
        carry_out_exchange(t, blocks, kept);
    } else if (form == XK_MAPPED) {
        carry_out_mapped(t, blocks);
    } else {
        carry_out_copy(t, blocks, answers);
    }
}

XK_DEVICE uint32_t told_trouble(const struct xk_told *t)
{
    uint32_t form = xk_how_form(t->values[XK_HOW]), what = xk_how_what(t->values[XK_HOW]);
    uint32_t meets = (form == XK_MAPPED) ? t->work.meets : xk_meets((enum xk_form)form, what);

    if ((form == XK_COPIES) || (form == XK_TELLS) || (form == XK_TAKES)) {
        return 0;
    }
#if defined(XK_SIMULATED)
    struct xk_ranks ranks = t->exchange.ranks;
    place_ranks(&ranks);
    return ends_in_trouble(&ranks, t->values[XK_NUMBER], what, meets);
#else
    return ends_in_trouble(&t->exchange.ranks, t->values[XK_NUMBER], what, meets);
#endif
}

/*
 * The last block that has done its part tells the host. The first one does not listen to the next
 * command, and so does not leave, before all have.
 */
XK_DEVICE void end_command(const struct xk_told *t, uint32_t blocks, struct xk_relay *relay,
                           struct xk_answers *answers)
{
    uint32_t mapped = (xk_how_form(t->values[XK_HOW]) == XK_MAPPED);
    uint32_t elsewhere = mapped || xk_how_elsewhere(t->values[XK_HOW]);

    if (is_last(&relay->arrived, blocks, elsewhere)) {
        tell_host(&answers->done, &answers->trouble, t->number, told_trouble(t));
        if (blocks > 1) {
            *(volatile uint32_t *)&relay->ended = t->number;
        }
    } else if ((threadIdx.x == 0) && (blockIdx.x == 0)) {
        while (load_4(&relay->ended) != t->number) {
            XK_PAUSE();
        }
    }
}

XK_KERNEL(xk_linger)(XK_ARGUMENT struct xk_linger a)
{
    __shared__ struct xk_told told;
    __shared__ struct xk_16   kept[XK_PAIRS];
    uint32_t                  last = a.number, first = a.first;
    struct xk_stay            stay = {now_ns(), 0, a.idle_ns, a.life_ns};
    const char        *command = (const char *)XK_PLACE((uint64_t)a.command, XK_LISTENED * 8);
    struct xk_answers *answers =
        (struct xk_answers *)XK_PLACE((uint64_t)a.answers, sizeof(struct xk_answers));
    struct xk_relay *relay =
        (struct xk_relay *)XK_PLACE((uint64_t)a.relay, sizeof(struct xk_relay));

    stay.idle = stay.begun;
    if (threadIdx.x == 0) {
        told.ranks = 0;
        told.values[XK_HOW] = 0; /* none before */
        /* A command for all blocks is not to wait for one that finds no room. */
        if (atomicAdd(&relay->begun, 1) == gridDim.x - 1) {
            relay->begun = 0;
            *(volatile uint32_t *)&answers->alive = a.epoch;
        }
    }
    __syncthreads();
    for (;;) {
        if (threadIdx.x >= XK_LANES) {
            /* the first warp listens */
        } else if (first) {
            begin_with(&a, &told);
        } else if (blockIdx.x == 0) {
            listen_to_host(command, (uint64_t)relay, last, &stay, &told);
        } else {
            listen_to_first((const char *)relay, last, a.epoch, &told);
        }
        first = 0;
        __syncthreads();
        if (told.verdict == XK_LEAVES) {
            break;
        }
        last = told.number;
        uint32_t blocks = blocks_of(told.values[XK_HOW]);
        if (blockIdx.x < blocks) {
            carry_out(&told, blocks, kept, answers);
            end_command(&told, blocks, relay, answers);
        }
        stay.idle = now_ns();
        __syncthreads(); /* nobody reads what comes next over it */
    }
    if ((threadIdx.x == 0) && (blockIdx.x == 0)) {
        *(volatile uint64_t *)&relay->leave = a.epoch;
        __threadfence_system();
        *(volatile uint32_t *)&answers->gone = a.epoch;
    }
}

#endif
