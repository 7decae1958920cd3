/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the kernels need of CUDA, of HIP, and of C for the simulation, which runs each block as one
 * thread. Loads do not stay in a cache: a kernel that lingers would not see what others have
 * written since.
 */
#ifndef XK_KERNELS_PORTABLE_H
#define XK_KERNELS_PORTABLE_H

#if defined(XK_SIMULATED)
#include "kernels/simulated.h"
#elif defined(__HIP__)
#include <hip/hip_runtime.h>
#define XK_KERNEL(name) extern "C" __global__ void __launch_bounds__(512) name
#define XK_DEVICE static __device__ __forceinline__
#define XK_APART static __device__ __noinline__ /* a call, for what is rare */
#define XK_PLACE(address, bytes) (address)
#define XK_PLACE_SHARED(address, bytes) (address) /* with the host, or with other devices */
#define XK_PAUSE()
#define XK_POLLS (1 << 14)
/* The lanes of a wave keep step: what one wrote has to be there, that is all. */
#define XK_SYNC_WARP() (__threadfence_block(), __builtin_amdgcn_wave_barrier())
#define XK_LANES 32 /* of a warp, and of a wave those that listen */
#define XK_OF_LANE(value, lane) ((uint32_t)__shfl((int)(value), (int)(lane)))
#define XK_IN_ALL_LANES(is_so) __all(is_so)
#define XK_ARGUMENT const
#define XK_AFTER_THE_STREAM()
/* Nobody has looked at what the caches of these devices hold between kernels. */
#define XK_MEETS_WITH_CARE 1
#define XK_COPIES_PAST_CACHES 1
XK_DEVICE uint64_t now_ns(void)
{
    return wall_clock64() * 10;
} /* it counts at 100 MHz */
XK_DEVICE uint64_t load_8(const uint64_t *p)
{
    return __hip_atomic_load(p, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
}
struct xk_16 {
    uint64_t x, y;
};
XK_DEVICE struct xk_16 load_16(const void *p)
{
    const uint64_t *words = (const uint64_t *)p;
    struct xk_16    v = {load_8(words), load_8(words + 1)};
    return v;
}
XK_DEVICE uint32_t load_4(const uint32_t *p)
{
    return __hip_atomic_load(p, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
}
#else
#define XK_KERNEL(name) extern "C" __global__ void __launch_bounds__(512) name
#define XK_DEVICE static __device__ __forceinline__
#define XK_APART static __device__ __noinline__ /* a call, for what is rare */
#define XK_PLACE(address, bytes) (address)
#define XK_PLACE_SHARED(address, bytes) (address) /* with the host, or with other devices */
#define XK_PAUSE()
#define XK_POLLS (1 << 14)
#define XK_SYNC_WARP() __syncwarp()
#define XK_LANES 32
#define XK_OF_LANE(value, lane) __shfl_sync(0xffffffffu, value, (int)(lane))
#define XK_IN_ALL_LANES(is_so) __all_sync(0xffffffffu, is_so)
/*
 * The kernel may have been launched early: what was enqueued before it is over behind this, and
 * what is enqueued behind it may be on the device by then, not before: it takes room.
 */
#if __CUDA_ARCH__ >= 900
#define XK_AFTER_THE_STREAM()                                                                      \
    asm volatile("griddepcontrol.wait; griddepcontrol.launch_dependents;" ::: "memory")
#else
#define XK_AFTER_THE_STREAM()
#endif
#define XK_MEETS_WITH_CARE 0
#define XK_COPIES_PAST_CACHES 0
#define XK_ARGUMENT const __grid_constant__ /* read where it is, not from a copy a thread */
/*
 * By the clock of the multiprocessor, at 2 GHz at most: %globaltimer takes 2 us to read, and a
 * kernel that polls would look at its command that much later.
 */
XK_DEVICE uint64_t now_ns(void)
{
    return (uint64_t)clock64() >> 1;
}
struct xk_16 {
    uint64_t x, y;
};
XK_DEVICE struct xk_16 load_16(const void *p)
{
    struct xk_16 v;
    asm volatile("ld.volatile.global.v2.u64 {%0, %1}, [%2];" : "=l"(v.x), "=l"(v.y) : "l"(p));
    return v;
}
XK_DEVICE uint64_t load_8(const uint64_t *p)
{
    return *(const volatile uint64_t *)p;
}
XK_DEVICE uint32_t load_4(const uint32_t *p)
{
    return *(const volatile uint32_t *)p;
}
#endif

XK_DEVICE void store_16(uint64_t to, struct xk_16 v)
{
#if defined(XK_SIMULATED)
    xs_kernel_aligned(to, 16);
#endif
#if defined(XK_SIMULATED) || defined(__HIP__)
    ((uint64_t *)to)[0] = v.x;
    ((uint64_t *)to)[1] = v.y;
#else
    asm volatile("st.global.v2.u64 [%0], {%1, %2};" : : "l"(to), "l"(v.x), "l"(v.y) : "memory");
#endif
}

/* Not split, nor held back; HIP's halves are whole each, and that is what readers rely on. */
XK_DEVICE void store_16_at_once(uint64_t to, struct xk_16 v)
{
#if defined(XK_SIMULATED)
    xs_kernel_aligned(to, 16);
    __atomic_store_n((uint64_t *)to, v.x, __ATOMIC_RELEASE);
    __atomic_store_n((uint64_t *)to + 1, v.y, __ATOMIC_RELEASE);
#elif defined(__HIP__)
    __hip_atomic_store((uint64_t *)to, v.x, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
    __hip_atomic_store((uint64_t *)to + 1, v.y, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
#else
    asm volatile("st.volatile.global.v2.u64 [%0], {%1, %2};"
                 :
                 : "l"(to), "l"(v.x), "l"(v.y)
                 : "memory");
#endif
}

XK_DEVICE void move_unit(uint64_t to, uint64_t from, uint32_t unit)
{
    switch (unit) {
    case 16:
        store_16(to, load_16((const void *)from));
        break;
    case 8:
        *(uint64_t *)to = load_8((const uint64_t *)from);
        break;
    case 4:
        *(uint32_t *)to = load_4((const uint32_t *)from);
        break;
    case 2:
        *(uint16_t *)to = *(const volatile uint16_t *)from;
        break;
    default:
        *(uint8_t *)to = *(const volatile uint8_t *)from;
        break;
    }
}

#endif
