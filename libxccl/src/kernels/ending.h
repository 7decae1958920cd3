/* SPDX-License-Identifier: BSD-3-Clause */
/* How a kernel, or a command to one that lingers, ends. */
#ifndef XK_KERNELS_ENDING_H
#define XK_KERNELS_ENDING_H

#include "kernels/kernels.h"
#include "kernels/portable.h"

/*
 * What this thread knows to be written is there for all of the device, whose caches every other
 * reader goes through; and for the host, where it has been written to. AMD's copy engines read past
 * the caches, and the host may start one as soon as it is told.
 */
XK_DEVICE void settle(uint32_t elsewhere)
{
    if (elsewhere || XK_COPIES_PAST_CACHES) {
        __threadfence_system();
    } else {
        __threadfence();
    }
}

/* In one thread, once all blocks have come here: true. comings: of blocks, to anything so far. */
XK_DEVICE int is_last(uint32_t *finished, uint32_t comings, uint32_t elsewhere)
{
    __syncthreads();
    if (threadIdx.x != 0) {
        return 0;
    }
    settle(elsewhere);
    if (comings > 1) {
        if (atomicInc(finished, comings - 1) != comings - 1) { /* the last one makes it 0 */
            return 0;
        }
        settle(elsewhere);
    }
    return 1;
}

XK_DEVICE void tell_host(uint32_t *done, uint32_t *trouble_at, uint32_t number, uint32_t trouble)
{
    if (trouble != 0) {
        *(volatile uint32_t *)trouble_at = number;
        __threadfence_system();
    }
    *(volatile uint32_t *)done = number;
}

#endif
