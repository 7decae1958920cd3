/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels' arithmetic as the simulation compiles it, and 16 bytes to try it on. */
#ifndef XT_VECTORS_H
#define XT_VECTORS_H

#include <stdint.h>
#include <string.h>

#define XK_DEVICE static inline
struct xk_16 {
    uint64_t x, y;
};
#include "kernels/arithmetic.h"

static inline uint64_t random_word(void)
{
    static uint64_t state = 88172645463325252u;

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * 2685821657736338717u;
}

/* Element i of 16 bytes, to and from an object of its size. */
static inline void take(void *element, const struct xk_16 *v, unsigned i, size_t bytes)
{
    memcpy(element, (const char *)v + i * bytes, bytes);
}

static inline void put(struct xk_16 *v, unsigned i, const void *element, size_t bytes)
{
    memcpy((char *)v + i * bytes, element, bytes);
}

static inline int same(struct xk_16 a, struct xk_16 b)
{
    return (a.x == b.x) && (a.y == b.y);
}

/* All ranks' vectors, by the accumulator. */
static inline struct xk_16 accumulate(const struct xk_16 *v, int ranks, uint32_t what)
{
    struct xk_sum s;

    xk_sum_begin(&s, v[0], what);
    for (int r = 1; r < ranks; r++) {
        xk_sum_add(&s, v[r], what);
    }
    return xk_sum_end(&s, what);
}

#endif
