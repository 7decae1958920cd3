/* SPDX-License-Identifier: BSD-3-Clause */
/* xk_linger: a kernel that stays and carries out copies, which have nothing to do with other ranks.
 */
#ifndef XK_KERNELS_LINGERING_H
#define XK_KERNELS_LINGERING_H

#include "kernels/listening.h"
#include "kernels/moving.h"

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

XK_DEVICE void carry_out_list(struct xk_told *t)
{
    const uint64_t *words =
        (const uint64_t *)XK_PLACE(told_address(t, XK_RANKS_LOW), sizeof(struct xk_listed));

    __syncthreads();
    for (uint32_t w = threadIdx.x; w < sizeof(t->listed) / 8; w += blockDim.x) {
        ((uint64_t *)&t->listed)[w] = load_8(&words[w]);
    }
    __syncthreads();
    move_listed(&t->listed, threadIdx.x, blockDim.x);
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

/* By runs and by a list it is no work for several blocks. */
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
    } else if (xk_how_what(t->values[XK_HOW]) == XK_BY_LIST) {
        carry_out_list(t);
    } else if (xk_how_what(t->values[XK_HOW]) != XK_BY_BYTES) {
        carry_out_runs(t);
    } else {
        move_bytes(XK_PLACE(out, bytes), XK_PLACE(in, bytes), bytes,
                   (uint64_t)blockIdx.x * blockDim.x + threadIdx.x, (uint64_t)blocks * blockDim.x);
    }
}

XK_KERNEL(xk_linger)(XK_ARGUMENT struct xk_linger a)
{
    __shared__ struct xk_told told;
    uint32_t                  last = a.number, first = a.first, before = 0;
    struct xk_stay            stay = {now_ns(), 0, a.idle_ns, a.life_ns};
    const char *command = (const char *)XK_PLACE_SHARED((uint64_t)a.command, XK_LISTENED * 8);
    struct xk_answers *answers =
        (struct xk_answers *)XK_PLACE_SHARED((uint64_t)a.answers, sizeof(struct xk_answers));
    struct xk_relay *relay =
        (struct xk_relay *)XK_PLACE((uint64_t)a.relay, sizeof(struct xk_relay));

    stay.idle = stay.begun;
    begin_lingering(&a, relay, answers, &told);
    for (;;) {
        listen(&a, command, relay, last, first, before, &stay, &told);
        first = 0;
        if (told.verdict == XK_LEAVES) {
            break;
        }
        last = told.number;
        uint32_t blocks = blocks_of(told.values[XK_HOW]);
        if (blockIdx.x < blocks) {
            carry_out_copy(&told, blocks, answers);
            if (is_last(&relay->arrived, blocks, xk_how_elsewhere(told.values[XK_HOW]))) {
                tell_done(&told, blocks, relay, answers, 0);
            } else {
                wait_for_last(&told, relay);
            }
        }
        stay.idle = now_ns();
        before = xk_words_of(told.values[XK_HOW], told.values[XK_BYTES]);
        __syncthreads(); /* nobody reads what comes next over it */
    }
    end_lingering(&a, relay, answers);
}

#endif
