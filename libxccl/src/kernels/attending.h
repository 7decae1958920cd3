/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * xk_attend: a kernel that stays and carries out collectives. Those wait for other ranks, so copies
 * have a kernel of their own, see lingering.h.
 */
#ifndef XK_KERNELS_ATTENDING_H
#define XK_KERNELS_ATTENDING_H

#include "kernels/listening.h"
#include "kernels/mapped.h"
#include "kernels/short.h"

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

XK_DEVICE void carry_out(const struct xk_told *t, uint32_t blocks, struct xk_16 *kept)
{
    if (xk_how_form(t->values[XK_HOW]) < XK_MAPPED) {
        carry_out_exchange(t, blocks, kept);
    } else {
        carry_out_mapped(t, blocks);
    }
}

XK_DEVICE uint32_t told_trouble(const struct xk_told *t)
{
    uint32_t form = xk_how_form(t->values[XK_HOW]), what = xk_how_what(t->values[XK_HOW]);
    uint32_t meets = (form == XK_MAPPED) ? t->work.meets : xk_meets((enum xk_form)form, what);

#if defined(XK_SIMULATED)
    struct xk_ranks ranks = t->exchange.ranks;
    place_ranks(&ranks);
    return ends_in_trouble(&ranks, t->values[XK_NUMBER], what, meets);
#else
    return ends_in_trouble(&t->exchange.ranks, t->values[XK_NUMBER], what, meets);
#endif
}

XK_DEVICE uint32_t told_elsewhere(const struct xk_told *t)
{
    return (xk_how_form(t->values[XK_HOW]) == XK_MAPPED) || xk_how_elsewhere(t->values[XK_HOW]);
}

XK_KERNEL(xk_attend)(XK_ARGUMENT struct xk_linger a)
{
    __shared__ struct xk_told told;
    __shared__ struct xk_16   kept[XK_PAIRS];
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
            carry_out(&told, blocks, kept);
            if (is_last(&relay->arrived, blocks, told_elsewhere(&told))) {
                tell_done(&told, blocks, relay, answers, told_trouble(&told));
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
