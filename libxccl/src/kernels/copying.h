/* SPDX-License-Identifier: BSD-3-Clause */
/* xk_batch, xk_pack and xk_pack_listed: copies, and data of a datatype. */
#ifndef XK_KERNELS_COPYING_H
#define XK_KERNELS_COPYING_H

#include "kernels/moving.h"

XK_KERNEL(xk_batch)(XK_ARGUMENT struct xk_batch given)
{
    const struct xk_copy *a = &given.copy[blockIdx.y];

    if (blockIdx.x >= a->blocks) {
        return;
    }
    move_bytes(XK_PLACE(a->to, a->bytes), XK_PLACE(a->from, a->bytes), a->bytes,
               (uint64_t)blockIdx.x * blockDim.x + threadIdx.x, (uint64_t)a->blocks * blockDim.x);
    __syncthreads();
    if (threadIdx.x == 0) {
        uint32_t *finished = (uint32_t *)XK_PLACE((uint64_t)a->finished, 4);
        __threadfence_system();
        if (atomicInc(finished, a->blocks - 1) == a->blocks - 1) { /* the last one makes it 0 */
            __threadfence_system();
            *(volatile uint32_t *)XK_PLACE_SHARED((uint64_t)a->done, 4) = a->value;
        }
    }
}

XK_KERNEL(xk_pack)(XK_ARGUMENT struct xk_pack a)
{
    const struct xk_run *runs = a.few;
    if (a.runs != 0) {
        runs = (const struct xk_run *)XK_PLACE((uint64_t)a.runs, a.count * sizeof(struct xk_run));
    }
    uint64_t thread = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    uint64_t threads = (uint64_t)gridDim.x * blockDim.x;

    __shared__ struct xk_run r;
    for (uint32_t n = blockIdx.y; n < a.count; n += gridDim.y) {
        __syncthreads(); /* nobody is at the one before it any more */
        for (uint32_t w = threadIdx.x; w < sizeof(r) / 8; w += blockDim.x) {
            ((uint64_t *)&r)[w] = ((const uint64_t *)&runs[n])[w];
        }
        __syncthreads();
        move_run(&r, a.memory, a.packed, a.out, thread, threads);
    }
}

XK_KERNEL(xk_pack_listed)(XK_ARGUMENT struct xk_listed a)
{
    move_listed(&a, (uint64_t)blockIdx.x * blockDim.x + threadIdx.x,
                (uint64_t)gridDim.x * blockDim.x);
}

#endif
