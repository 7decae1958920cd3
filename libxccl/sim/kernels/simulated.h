/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the kernels need where the simulation's streams run them: C, and a block is one thread. An
 * address that the device could not reach ends the process, as it would end a context.
 */
#ifndef XK_KERNELS_SIMULATED_H
#define XK_KERNELS_SIMULATED_H

#include <stdint.h>

#include "core/core.h"

struct xk_index {
    unsigned x, y;
};
static __thread struct xk_index blockIdx, gridDim;
static const struct xk_index    threadIdx = {0, 0}, blockDim = {1, 1};

#define XK_KERNEL(name) static __attribute__((unused)) void name
#define XK_DEVICE static inline
#define XK_APART static
#define XK_PLACE(address, bytes) xs_kernel_place(address, bytes)
#define XK_PLACE_SHARED(address, bytes) xs_kernel_place_shared(address, bytes)
#define XK_ARGUMENT const
#define XK_MEETS_WITH_CARE 1
#define XK_COPIES_PAST_CACHES 1
#define XK_PAUSE() xs_kernel_pause()
#define XK_POLLS 1 /* a look costs nothing beside the pause of a thread */
#define XK_AFTER_THE_STREAM() xs_kernel_waits()
/* A block is one thread, and each variable is of one function alone. */
#define __shared__
#define __syncthreads() ((void)0)
#define __syncthreads_and(all) (all)
#define XK_SYNC_WARP() ((void)0)
#define XK_LANES 1
#define XK_OF_LANE(value, lane) (value)
#define XK_IN_ALL_LANES(is_so) (is_so)
#define __threadfence() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define __threadfence_system() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define atomicAdd(p, n) __atomic_fetch_add(p, n, __ATOMIC_SEQ_CST)
#define atomicInc(p, most) xk_atomic_inc(p, most)
#define now_ns() xs_kernel_now_ns()

struct xk_16 {
    uint64_t x, y;
};

/* As the devices have it: behind `most` comes 0. */
XK_DEVICE uint32_t xk_atomic_inc(uint32_t *p, uint32_t most)
{
    uint32_t old = __atomic_load_n(p, __ATOMIC_RELAXED);

    while (!__atomic_compare_exchange_n(p, &old, (old >= most) ? 0 : old + 1, false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {}
    return old;
}

/* The program's threads write meanwhile. */
XK_DEVICE uint64_t load_8(const uint64_t *p)
{
    xs_kernel_aligned((uint64_t)(uintptr_t)p, 8);
    return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}
XK_DEVICE uint32_t load_4(const uint32_t *p)
{
    xs_kernel_aligned((uint64_t)(uintptr_t)p, 4);
    return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}
XK_DEVICE struct xk_16 load_16(const void *p)
{
    xs_kernel_aligned((uint64_t)(uintptr_t)p, 16);
    const uint64_t *words = p;
    struct xk_16    v = {load_8(words), load_8(words + 1)};
    return v;
}

#endif
