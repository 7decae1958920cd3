/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that frees or unmaps memory waits for the device, and no other may enqueue meanwhile, as
 * docs/benchmarks/h200-x2/direct/locks.txt has it of CUDA's driver.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "driver_abi.h"
#include "ranks.h"

enum { BYTES = 4096, SOON_US = 20000 };

static CUstream    other;
static CUevent     event;
static CUdeviceptr memory;
static void       *pinned;
static char        pages[2 * BYTES];
static atomic_int  gate, begun, ended;

static void use(int device)
{
    CUcontext ctx;

    CHECK_EQ(cuDevicePrimaryCtxRetain(&ctx, device), CUDA_SUCCESS);
    CHECK_EQ(cuCtxSetCurrent(ctx), CUDA_SUCCESS);
}

static void wait_gate(void *arg)
{
    (void)arg;
    while (atomic_load(&gate) == 0) {
        usleep(1000);
    }
}

static void nothing(void *arg)
{
    (void)arg;
}

/* ---- what waits ---- */

static CUdeviceptr mapped;

static void close_it(void)
{
    CHECK_EQ(cuIpcCloseMemHandle(mapped), CUDA_SUCCESS);
}

static void free_it(void)
{
    CHECK_EQ(cuMemFree_v2(memory), CUDA_SUCCESS);
}

static void free_pinned(void)
{
    CHECK_EQ(cuMemFreeHost(pinned), CUDA_SUCCESS);
}

static void unregister(void)
{
    CHECK_EQ(cuMemHostUnregister(pages), CUDA_SUCCESS);
}

/* ---- what does not get in ---- */

static void record(void)
{
    CHECK_EQ(cuEventRecord(event, other), CUDA_SUCCESS);
}

static void fill(void)
{
    CHECK_EQ(cuMemsetD32Async(memory, 1, BYTES / 4, other), CUDA_SUCCESS);
}

static void call(void)
{
    CHECK_EQ(cuLaunchHostFunc(other, nothing, NULL), CUDA_SUCCESS);
}

static void allocate(void)
{
    CUdeviceptr ptr;

    CHECK_EQ(cuMemAlloc_v2(&ptr, BYTES), CUDA_SUCCESS);
}

static void make_stream(void)
{
    CUstream stream;

    CHECK_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
}

/* ---- and what does ---- */

static void query(void)
{
    CHECK_EQ(cuEventQuery(event), CUDA_SUCCESS);
    CHECK_EQ(cuStreamQuery(other), CUDA_SUCCESS);
    CHECK_EQ(cuStreamSynchronize(other), CUDA_SUCCESS);
}

static void *run(void *arg)
{
    void (*const *what)(void) = arg;

    use(0);
    atomic_fetch_add(&begun, 1);
    (*what)();
    atomic_fetch_add(&ended, 1);
    return NULL;
}

/* How many of the two calls have returned a moment after the second began. */
static int returned(void (*waits)(void), void (*beside)(void))
{
    CUstream  busy;
    pthread_t threads[2];

    CHECK_EQ(cuStreamCreate(&busy, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    atomic_store(&gate, 0);
    atomic_store(&ended, 0);
    CHECK_EQ(cuLaunchHostFunc(busy, wait_gate, NULL), CUDA_SUCCESS);
    CHECK_EQ(pthread_create(&threads[0], NULL, run, &waits), 0);
    usleep(SOON_US);
    CHECK_EQ(pthread_create(&threads[1], NULL, run, &beside), 0);
    usleep(SOON_US);
    int count = atomic_load(&ended);
    atomic_store(&gate, 1);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    CHECK_EQ(atomic_load(&ended), 2);
    CHECK_EQ(cuStreamDestroy_v2(busy), CUDA_SUCCESS);
    return count;
}

/* Mapped by rank 1, which does the rest. */
static void start(const struct world *world)
{
    CUipcMemHandle handle;

    CHECK_EQ(cuInit(0), CUDA_SUCCESS);
    use(0);
    CHECK_EQ(cuMemAlloc_v2(&memory, BYTES), CUDA_SUCCESS);
    if (world->rank == 0) {
        CHECK_EQ(cuIpcGetMemHandle(&handle, memory), CUDA_SUCCESS);
    }
    share_bytes(world, &handle, sizeof(handle));
    if (world->rank == 1) {
        CHECK_EQ(cuIpcOpenMemHandle_v2(&mapped, handle, 1), CUDA_SUCCESS);
        CHECK_EQ(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        CHECK_EQ(cuEventCreate(&event, 0), CUDA_SUCCESS);
        CHECK_EQ(cuMemHostAlloc(&pinned, BYTES, 0), CUDA_SUCCESS);
        CHECK_EQ(cuMemHostRegister_v2(pages, BYTES, 0), CUDA_SUCCESS);
    }
}

static void alone(const struct world *world)
{
    start(world);
    if (world->rank == 1) {
        CHECK_EQ(returned(close_it, query), 1);
        CHECK_EQ(returned(free_pinned, record), 0);
        CHECK_EQ(returned(unregister, call), 0);
        CHECK_EQ(cuMemHostAlloc(&pinned, BYTES, 0), CUDA_SUCCESS);
        CHECK_EQ(returned(free_pinned, fill), 0);
        CHECK_EQ(returned(free_it, allocate), 0);
        CHECK_EQ(cuMemHostAlloc(&pinned, BYTES, 0), CUDA_SUCCESS);
        CHECK_EQ(returned(free_pinned, make_stream), 0);
    }
    meet(world);
}

/* As before, on the device; what a second one is given is let in. */
static void closing(const struct world *world)
{
    CUcontext second;

    start(world);
    if (world->rank == 1) {
        CHECK_EQ(returned(close_it, record), 0);
        CHECK_EQ(cuDevicePrimaryCtxRetain(&second, 1), CUDA_SUCCESS);
        CHECK_EQ(cuCtxPushCurrent_v2(second), CUDA_SUCCESS);
        CHECK_EQ(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        CHECK_EQ(cuEventCreate(&event, 0), CUDA_SUCCESS);
        CHECK_EQ(cuCtxPopCurrent_v2(&second), CUDA_SUCCESS);
        CHECK_EQ(returned(free_it, record), 1);
    }
    meet(world);
}

static void admitted(const struct world *world)
{
    start(world);
    if (world->rank == 1) {
        CHECK_EQ(returned(close_it, record), 1);
    }
    meet(world);
}

int main(int argc, char **argv)
{
    const struct test_case cases[] = {
        {"alone", alone, 2, "cuda:1", NULL, NULL, -1},
        {"closing", closing, 2, "cuda:2", NULL, NULL, -1},
        {"admitted", admitted, 2, "cuda:1", NULL, "XCCL_SIM_FREE=admit", -1},
    };

    return run_cases(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
