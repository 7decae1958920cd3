/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kernels that move bytes: CUDA, HIP, and C for the simulation, which runs each block as one
 * thread. Loads do not stay in a cache: a kernel that lingers would not see what others have
 * written since.
 */
#include "kernels/kernels.h"

#if defined(XK_SIMULATED)
#include "kernels/simulated.h"
#elif defined(__HIP__)
#include <hip/hip_runtime.h>
#define XK_KERNEL(name) extern "C" __global__ void __launch_bounds__(512) name
#define XK_DEVICE static __device__ __forceinline__
#define XK_PLACE(address, bytes) (address)
#define XK_PAUSE()
/* The lanes of a wave keep step: what one wrote has to be there, that is all. */
#define XK_SYNC_WARP() (__threadfence_block(), __builtin_amdgcn_wave_barrier())
#define XK_ARGUMENT const
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
#define XK_PLACE(address, bytes) (address)
#define XK_PAUSE()
#define XK_SYNC_WARP() __syncwarp()
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
#if defined(XK_SIMULATED) || defined(__HIP__)
    ((uint64_t *)to)[0] = v.x;
    ((uint64_t *)to)[1] = v.y;
#else
    asm volatile("st.global.v2.u64 [%0], {%1, %2};" : : "l"(to), "l"(v.x), "l"(v.y) : "memory");
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

XK_KERNEL(xk_copy)(struct xk_copy a)
{
    uint64_t to = XK_PLACE(a.to, a.bytes), from = XK_PLACE(a.from, a.bytes);

    move_bytes(to, from, a.bytes, (uint64_t)blockIdx.x * blockDim.x + threadIdx.x,
               (uint64_t)gridDim.x * blockDim.x);
    __syncthreads();
    if (threadIdx.x == 0) {
        uint32_t *finished = (uint32_t *)XK_PLACE((uint64_t)a.finished, 4);
        __threadfence_system();
        if (atomicAdd(finished, 1) == gridDim.x - 1) {
            *finished = 0;
            __threadfence_system();
            *(volatile uint32_t *)XK_PLACE((uint64_t)a.done, 4) = a.value;
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
        uint64_t units = r.bytes / r.unit, total = units * r.stretches;
        for (uint64_t i = thread; i < total; i += threads) {
            uint64_t stretch, within, packed;
            int64_t  offset;
            if (units == 1) {
                stretch = i;
                within = 0;
            } else if ((total >> 32) == 0) {
                stretch = (uint32_t)i / (uint32_t)units;
                within = (i - stretch * units) * r.unit;
            } else {
                stretch = i / units;
                within = (i - stretch * units) * r.unit;
            }
            place_of(&r, stretch, &offset, &packed);
            uint64_t mine = XK_PLACE(a.memory + (uint64_t)offset + within, r.unit);
            uint64_t other = XK_PLACE(a.packed + packed + within, r.unit);
            if (a.out != 0) {
                move_unit(mine, other, r.unit);
            } else {
                move_unit(other, mine, r.unit);
            }
        }
    }
}

XK_DEVICE int is_numbered(uint64_t word, uint32_t number)
{
    return (uint32_t)(word >> 32) == number;
}

enum { XK_AGAIN, XK_TOLD, XK_LEAVES };

XK_KERNEL(xk_linger)(struct xk_linger a)
{
    __shared__ struct xk_16 words[XK_WORDS / 2];
    __shared__ uint64_t     to, from;
    __shared__ uint32_t     bytes, number, verdict;
    uint32_t                last = a.number;
    uint64_t                begun = now_ns(), idle = begun;
    const char             *command = (const char *)XK_PLACE((uint64_t)a.command, XK_WORDS * 8);
    struct xk_answers      *answers =
        (struct xk_answers *)XK_PLACE((uint64_t)a.answers, sizeof(struct xk_answers));

    if (threadIdx.x == 0) {
        *(volatile uint32_t *)&answers->alive = a.epoch;
    }
    for (;;) {
        /* One warp, whose lanes' loads are one request on the bus. */
        while (threadIdx.x < 32) {
            for (uint32_t i = threadIdx.x; i < XK_WORDS / 2; i += blockDim.x) {
                words[i] = load_16(command + 16 * i);
            }
            XK_SYNC_WARP();
            if (threadIdx.x == 0) {
                struct xk_16 t = words[0], f = words[1], n = words[2];
                uint64_t     now = now_ns();
                number = (uint32_t)(n.x >> 32);
                verdict = XK_AGAIN;
                if ((number != last) && is_numbered(t.x, number) && is_numbered(t.y, number) &&
                    is_numbered(f.x, number) && is_numbered(f.y, number)) {
                    to = (uint64_t)(uint32_t)t.x | t.y << 32;
                    from = (uint64_t)(uint32_t)f.x | f.y << 32;
                    bytes = (uint32_t)n.x;
                    verdict = XK_TOLD;
                } else if ((now - idle > a.idle_ns) || (now - begun > a.life_ns)) {
                    verdict = XK_LEAVES;
                }
            }
            XK_SYNC_WARP();
            if (verdict != XK_AGAIN) {
                break;
            }
            XK_SYNC_WARP(); /* all have read it */
            XK_PAUSE();
        }
        __syncthreads();
        if (verdict == XK_LEAVES) {
            break;
        }
        last = number;
        move_bytes(XK_PLACE(to, bytes), XK_PLACE(from, bytes), bytes, threadIdx.x, blockDim.x);
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence_system();
            *(volatile uint32_t *)&answers->done = last;
            idle = now_ns();
        }
    }
    if (threadIdx.x == 0) {
        __threadfence_system();
        *(volatile uint32_t *)&answers->gone = a.epoch;
    }
}
