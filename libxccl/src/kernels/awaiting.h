/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XK_KERNELS_AWAITING_H
#define XK_KERNELS_AWAITING_H

#include "kernels/kernels.h"
#include "kernels/portable.h"

/* xk_await: a stream waits until a word of host memory is at least a value. */
XK_KERNEL(xk_await)(XK_ARGUMENT struct xk_await given)
{
    const uint32_t *word = (const uint32_t *)XK_PLACE_SHARED((uint64_t)given.word, 4);

    if (threadIdx.x == 0) {
        while ((int32_t)(load_4(word) - given.least) < 0) {
            XK_PAUSE();
        }
        __threadfence_system();
    }
}

#endif
