/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels that move bytes: xk_batch and xk_pack. */
#ifndef XK_KERNELS_MOVING_H
#define XK_KERNELS_MOVING_H

#include "kernels/kernels.h"
#include "kernels/portable.h"

/* Bytes of a command: this thread's part of what `threads` of them share. */
XK_DEVICE void move_bytes(uint64_t to, uint64_t from, uint64_t bytes, uint64_t thread,
                          uint64_t threads)
{
    uint64_t done = 0;

    if (((to | from) & 15) == 0) {
        uint64_t words = bytes / 16, i = thread;
        /* Four loads on their way at once: the distance to the other device is long. */
        for (; i + 3 * threads < words; i += 4 * threads) {
            struct xk_16 a = load_16((const void *)(from + 16 * i));
            struct xk_16 b = load_16((const void *)(from + 16 * (i + threads)));
            struct xk_16 c = load_16((const void *)(from + 16 * (i + 2 * threads)));
            struct xk_16 d = load_16((const void *)(from + 16 * (i + 3 * threads)));
            store_16(to + 16 * i, a);
            store_16(to + 16 * (i + threads), b);
            store_16(to + 16 * (i + 2 * threads), c);
            store_16(to + 16 * (i + 3 * threads), d);
        }
        for (; i < words; i += threads) {
            store_16(to + 16 * i, load_16((const void *)(from + 16 * i)));
        }
        done = words * 16;
    } else if (((to | from) & 3) == 0) {
        for (uint64_t i = thread; i < bytes / 4; i += threads) {
            move_unit(to + 4 * i, from + 4 * i, 4);
        }
        done = bytes / 4 * 4;
    }
    for (uint64_t i = done + thread; i < bytes; i += threads) {
        move_unit(to + i, from + i, 1);
    }
}

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
        if (atomicAdd(finished, 1) == a->blocks - 1) {
            *finished = 0;
            __threadfence_system();
            *(volatile uint32_t *)XK_PLACE((uint64_t)a->done, 4) = a->value;
        }
    }
}

/* Where stretch number i of a run lies. */
XK_DEVICE void place_of(const struct xk_run *r, uint64_t i, int64_t *offset_p, uint64_t *packed_p)
{
    int64_t  offset = r->offset;
    uint64_t packed = r->packed;

    for (uint32_t l = 0; l < r->levels; l++) {
        uint64_t count = r->level[l].count, step, rest;
        if ((i >> 32) == 0 && (count >> 32) == 0) { /* far cheaper */
            rest = (uint32_t)i / (uint32_t)count;
            step = (uint32_t)i - (uint32_t)rest * (uint32_t)count;
        } else {
            rest = i / count;
            step = i - rest * count;
        }
        i = rest;
        offset += r->level[l].stride * (int64_t)step;
        packed += r->level[l].packed * step;
    }
    *offset_p = offset;
    *packed_p = packed;
}

/* A run between memory and packed data; this thread's part of what `threads` of them share. */
XK_DEVICE void move_run(const struct xk_run *r, uint64_t memory, uint64_t packed, uint32_t out,
                        uint64_t thread, uint64_t threads)
{
    uint64_t units = r->bytes / r->unit, total = units * r->stretches;

    for (uint64_t i = thread; i < total; i += threads) {
        uint64_t stretch, within, place;
        int64_t  offset;
        if (units == 1) {
            stretch = i;
            within = 0;
        } else if ((total >> 32) == 0) {
            stretch = (uint32_t)i / (uint32_t)units;
            within = (i - stretch * units) * r->unit;
        } else {
            stretch = i / units;
            within = (i - stretch * units) * r->unit;
        }
        place_of(r, stretch, &offset, &place);
        uint64_t mine = XK_PLACE(memory + (uint64_t)offset + within, r->unit);
        uint64_t other = XK_PLACE(packed + place + within, r->unit);
        if (out != 0) {
            move_unit(mine, other, r->unit);
        } else {
            move_unit(other, mine, r->unit);
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

#endif
