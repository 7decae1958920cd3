/* SPDX-License-Identifier: BSD-3-Clause */
/* Words that say by themselves that they have come: each half has the number beside its data. */
#ifndef XK_KERNELS_WORDS_H
#define XK_KERNELS_WORDS_H

#include "kernels/portable.h"

XK_DEVICE void put_word(uint64_t at, uint64_t data, uint64_t number)
{
    struct xk_16 w = {(data & 0xffffffffu) | number << 32, data >> 32 | number << 32};

    store_16_at_once(at, w);
}

XK_DEVICE int has_come(const struct xk_16 *w, uint32_t number)
{
    return ((uint32_t)(w->x >> 32) == number) && ((uint32_t)(w->y >> 32) == number);
}

XK_DEVICE uint64_t data_of(const struct xk_16 *w)
{
    return (w->x & 0xffffffffu) | w->y << 32;
}

#endif
