/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that a program maps itself (virtual memory management), and the reset of a device: what a
 * driver 13.0 answered on an H200.
 */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver_abi.h"
#include "ranks.h"

enum { CHUNK = 2 << 20, CHUNKS = 4 };

static const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                         .requestedHandleTypes =
                                             CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                         .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
static const CUmemAccessDesc     desc = {{CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                         CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

static CUcontext start(void)
{
    CUcontext ctx;

    CHECK_EQ(cuInit(0), CUDA_SUCCESS);
    CHECK_EQ(cuDevicePrimaryCtxRetain(&ctx, 0), CUDA_SUCCESS);
    CHECK_EQ(cuCtxSetCurrent(ctx), CUDA_SUCCESS);
    return ctx;
}

static CUdeviceptr reserve(void)
{
    CUdeviceptr ptr = 0;

    CHECK_EQ(cuMemAddressReserve(&ptr, CHUNKS * CHUNK, 0, 0, 0), CUDA_SUCCESS);
    CHECK_EQ(ptr % CHUNK, 0);
    return ptr;
}

/* Memory at a place, which lives as long as it is mapped. */
static void map(CUdeviceptr at, bool open)
{
    CUmemGenericAllocationHandle handle;

    CHECK_EQ(cuMemCreate(&handle, CHUNK, &prop, 0), CUDA_SUCCESS);
    CHECK_EQ(cuMemMap(at, CHUNK, 0, handle, 0), CUDA_SUCCESS);
    CHECK_EQ(cuMemRelease(handle), CUDA_SUCCESS);
    if (open) {
        CHECK_EQ(cuMemSetAccess(at, CHUNK, &desc, 1), CUDA_SUCCESS);
    }
}

static unsigned long long ask(int attribute, CUdeviceptr ptr)
{
    unsigned long long value = 0;

    CHECK_EQ(cuPointerGetAttribute(&value, attribute, ptr), CUDA_SUCCESS);
    return value;
}

/* Reserved, mapped, and open to the device: each is a step of its own. */
static void steps(const struct world *world)
{
    char               byte = 1;
    size_t             size = 0;
    unsigned long long value;
    CUdeviceptr        base, at;
    CUipcMemHandle     ipc;
    const unsigned     on = 1;

    (void)world;
    start();
    CHECK_EQ(cuMemGetAllocationGranularity(&size, &prop, 0), CUDA_SUCCESS);
    CHECK_EQ(size, CHUNK);
    at = reserve();
    CHECK_EQ(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at),
             CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuMemcpyHtoD_v2(at, &byte, 1), CUDA_ERROR_INVALID_VALUE);
    map(at, true);
    map(at + CHUNK, false);
    CHECK_EQ(ask(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at + CHUNK), CU_MEMORYTYPE_DEVICE);
    CHECK_EQ(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, at + CHUNK),
             CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuMemGetAddressRange_v2(&base, &size, at + CHUNK), CUDA_ERROR_NOT_FOUND);
    CHECK_EQ(cuMemcpyHtoD_v2(at + CHUNK, &byte, 1), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuMemsetD8_v2(at + CHUNK - 1, 1, 2), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuMemSetAccess(at + CHUNK, 2 * CHUNK, &desc, 1), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuMemSetAccess(at + CHUNK, CHUNK, &desc, 1), CUDA_SUCCESS);
    CHECK_EQ(cuMemGetAccess(&value, &desc.location, at + CHUNK), CUDA_SUCCESS);
    CHECK_EQ(value, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    CHECK_EQ(cuMemGetAddressRange_v2(&base, &size, at + CHUNK + 5), CUDA_SUCCESS);
    CHECK((base == at + CHUNK) && (size == CHUNK));
    CHECK_EQ(ask(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, at + CHUNK), at);
    CHECK_EQ(ask(CU_POINTER_ATTRIBUTE_RANGE_SIZE, at + CHUNK), CHUNKS * CHUNK);
    CHECK_EQ(ask(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, at), 0);
    CHECK_EQ(ask(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, at), 1);
    CHECK_EQ(ask(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, at), 1); /* not that it were so: see early() */
    CHECK_EQ(ask(CU_POINTER_ATTRIBUTE_CONTEXT, at), 0);
    CHECK(ask(CU_POINTER_ATTRIBUTE_BUFFER_ID, at) !=
          ask(CU_POINTER_ATTRIBUTE_BUFFER_ID, at + CHUNK));
    CHECK_EQ(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, at),
             CUDA_ERROR_NOT_SUPPORTED);
    CHECK_EQ(cuIpcGetMemHandle(&ipc, at), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuMemFree_v2(at), CUDA_ERROR_INVALID_VALUE);
}

/* A copy crosses mappings; what was mapped before at a place is gone, with its content. */
static void crossing(const struct world *world)
{
    enum { BYTES = 1000 };
    unsigned char from[BYTES], to[BYTES] = {0};
    CUdeviceptr   at, plain;

    (void)world;
    start();
    memset(from, 7, sizeof(from));
    at = reserve();
    map(at, true);
    map(at + CHUNK, true);
    CHECK_EQ(cuMemAlloc_v2(&plain, BYTES), CUDA_SUCCESS);
    CHECK_EQ(cuMemcpyHtoD_v2(at + CHUNK - 500, from, BYTES), CUDA_SUCCESS);
    CHECK_EQ(cuMemcpyDtoD_v2(plain, at + CHUNK - 500, BYTES), CUDA_SUCCESS);
    CHECK_EQ(cuMemcpyDtoH_v2(to, plain, BYTES), CUDA_SUCCESS);
    CHECK(memcmp(from, to, BYTES) == 0);
    CHECK_EQ(cuMemcpyHtoD_v2(at + 2 * CHUNK - 500, from, BYTES), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuMemUnmap(at + CHUNK, CHUNK), CUDA_SUCCESS);
    CHECK_EQ(cuMemcpyDtoH_v2(to, at + CHUNK - 500, BYTES), CUDA_ERROR_INVALID_VALUE);
    map(at + CHUNK, true);
    CHECK_EQ(cuMemcpyDtoH_v2(to, at + CHUNK - 500, BYTES), CUDA_SUCCESS);
    CHECK((to[499] == 7) && (to[500] == 0));
}

/* What it refuses, and how long memory lives. */
static void rules(const struct world *world)
{
    CUmemGenericAllocationHandle handle, again;
    CUmemAllocationProp          got;
    CUmemAllocationProp          other = prop;
    CUdeviceptr                  at, other_at;
    size_t                       before, after, total;

    (void)world;
    start();
    at = reserve();
    other.location.id = 9;
    CHECK_EQ(cuMemCreate(&handle, CHUNK, &other, 0), 101);
    CHECK_EQ(cuMemCreate(&handle, CHUNK + 1, &prop, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuMemAddressReserve(&other_at, 100, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuMemGetInfo_v2(&before, &total), CUDA_SUCCESS);
    CHECK_EQ(cuMemCreate(&handle, CHUNK, &prop, 0), CUDA_SUCCESS);
    CHECK_EQ(cuMemMap(at, CHUNK, 0, handle, 0), CUDA_SUCCESS);
    CHECK_EQ(cuMemMap(at, CHUNK, 0, handle, 0), CUDA_ERROR_INVALID_VALUE); /* something is there */
    CHECK_EQ(cuMemMap(at + CHUNK, CHUNK, CHUNK, handle, 0), CUDA_ERROR_NOT_SUPPORTED);
    CHECK_EQ(cuMemMap(at + CHUNK, 4096, 0, handle, 0), CUDA_ERROR_NOT_SUPPORTED);
    CHECK_EQ(cuMemMap(at + 4 * CHUNK, CHUNK, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuMemMap(at + CHUNK, CHUNK, 0, handle, 0), CUDA_SUCCESS); /* the same memory */
    CHECK_EQ(cuMemGetAllocationPropertiesFromHandle(&got, handle), CUDA_SUCCESS);
    CHECK_EQ(got.requestedHandleTypes, 1);
    CHECK_EQ(cuMemRelease(handle), CUDA_SUCCESS);
    CHECK_EQ(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(at + 9)), CUDA_SUCCESS);
    CHECK_EQ(again, handle);
    CHECK_EQ(cuMemRelease(again), CUDA_SUCCESS);
    CHECK_EQ(cuMemUnmap(at, 4096), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuMemAddressFree(at, CHUNKS * CHUNK), CUDA_ERROR_INVALID_VALUE); /* mapped */
    CHECK_EQ(cuMemUnmap(at + CHUNK, 2 * CHUNK), CUDA_SUCCESS);                /* half of it is */
    CHECK_EQ(cuMemGetInfo_v2(&after, &total), CUDA_SUCCESS);
    CHECK_EQ(before - after, CHUNK);
    CHECK_EQ(cuMemUnmap(at, CHUNK), CUDA_SUCCESS);
    CHECK_EQ(cuMemGetInfo_v2(&after, &total), CUDA_SUCCESS);
    CHECK_EQ(before, after);
    CHECK_EQ(cuMemAddressFree(at, CHUNK), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuMemAddressFree(at, CHUNKS * CHUNK), CUDA_SUCCESS);
}

/* The same memory by a file descriptor, here in the same process. */
static void exported(const struct world *world)
{
    CUmemGenericAllocationHandle handle, imported;
    CUdeviceptr                  at;
    int                          fd = -1, value = 5;

    (void)world;
    start();
    at = reserve();
    CHECK_EQ(cuMemCreate(&handle, CHUNK, &prop, 0), CUDA_SUCCESS);
    CHECK_EQ(cuMemExportToShareableHandle(&fd, handle, 1, 0), CUDA_SUCCESS);
    CHECK_EQ(cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)fd, 1), CUDA_SUCCESS);
    close(fd);
    CHECK_EQ(cuMemMap(at, CHUNK, 0, handle, 0), CUDA_SUCCESS);
    CHECK_EQ(cuMemMap(at + CHUNK, CHUNK, 0, imported, 0), CUDA_SUCCESS);
    CHECK_EQ(cuMemSetAccess(at, 2 * CHUNK, &desc, 1), CUDA_SUCCESS);
    CHECK_EQ(cuMemcpyHtoD_v2(at + 100, &value, 4), CUDA_SUCCESS);
    value = 0;
    CHECK_EQ(cuMemcpyDtoH_v2(&value, at + CHUNK + 100, 4), CUDA_SUCCESS);
    CHECK_EQ(value, 5);
}

/* It says that synchronous calls are over when they return, and they are not. */
static void early(const struct world *world)
{
    CUdeviceptr at;
    bool        busy = false;

    (void)world;
    start();
    at = reserve();
    map(at, true);
    for (int i = 0; (i < 50) && !busy; i++) {
        CHECK_EQ(cuMemsetD8_v2(at, 1, 100), CUDA_SUCCESS);
        busy = (cuStreamQuery(NULL) == CUDA_ERROR_NOT_READY);
        CHECK_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    }
    CHECK(busy);
}

static int signal_of(void (*touch)(void *), void *what)
{
    int   status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        signal(SIGSEGV, SIG_DFL);
        signal(SIGABRT, SIG_DFL);
        touch(what);
        _exit(0);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void read_byte(void *ptr)
{
    (void)*(volatile char *)ptr;
}

static void query_stream(void *stream)
{
    cuStreamQuery(stream);
}

static void query_event(void *event)
{
    cuEventQuery(event);
}

/* All of the context goes, pinned memory too, but not what is mapped by the program. */
static void reset(const struct world *world)
{
    CUcontext          ctx = start(), again;
    CUdeviceptr        at, ptr;
    CUstream           stream;
    CUevent            event;
    void              *pinned;
    unsigned long long id, next;
    unsigned           flags;
    int                active = 9, value = 3;

    (void)world;
    at = reserve();
    map(at, true);
    CHECK_EQ(cuMemcpyHtoD_v2(at, &value, 4), CUDA_SUCCESS);
    CHECK_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    CHECK_EQ(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    CHECK_EQ(cuEventRecord(event, stream), CUDA_SUCCESS);
    CHECK_EQ(cuMemHostAlloc(&pinned, 100, 0), CUDA_SUCCESS);
    CHECK_EQ(cuMemAlloc_v2(&ptr, 100), CUDA_SUCCESS);
    CHECK_EQ(cuCtxGetId(ctx, &id), CUDA_SUCCESS);
    CHECK_EQ(cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
    CHECK_EQ(cuDevicePrimaryCtxGetState(0, &flags, &active), CUDA_SUCCESS);
    CHECK_EQ(active, 0);
    CHECK_EQ(cuCtxGetId(ctx, &next), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    CHECK_EQ(cuCtxGetCurrent(&again), CUDA_SUCCESS);
    CHECK(again == ctx);
    CHECK_EQ(cuMemAlloc_v2(&ptr, 64), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    CHECK_EQ(cuStreamQuery(NULL), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    CHECK_EQ(cuStreamQuery(stream), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    CHECK_EQ(cuEventQuery(event), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    CHECK_EQ(cuCtxPushCurrent_v2(ctx), CUDA_SUCCESS);
    CHECK_EQ(cuPointerGetAttribute(&next, CU_POINTER_ATTRIBUTE_BUFFER_ID, ptr),
             CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuDevicePrimaryCtxRetain(&again, 0), CUDA_SUCCESS);
    CHECK(again == ctx);
    CHECK_EQ(cuCtxGetId(ctx, &next), CUDA_SUCCESS);
    CHECK(next != id);
    CHECK_EQ(signal_of(query_stream, stream), SIGABRT);
    CHECK_EQ(signal_of(query_event, event), SIGABRT);
    CHECK_EQ(signal_of(read_byte, pinned), SIGSEGV);
    CHECK_EQ(cuMemHostAlloc(&pinned, 100, 0), CUDA_SUCCESS);
    CHECK_EQ(signal_of(read_byte, pinned), 0);
    value = 0;
    CHECK_EQ(cuMemcpyDtoH_v2(&value, at, 4), CUDA_SUCCESS);
    CHECK_EQ(value, 3);
}

int main(int argc, char **argv)
{
    const struct test_case cases[] = {
        {"steps", steps, 1, "cuda:1", NULL, NULL, -1},
        {"crossing", crossing, 1, "cuda:1", NULL, NULL, -1},
        {"rules", rules, 1, "cuda:1", NULL, NULL, -1},
        {"exported", exported, 1, "cuda:1", NULL, NULL, -1},
        {"early", early, 1, "cuda:1", NULL, "XCCL_SIM_EARLY=1", -1},
        {"reset", reset, 1, "cuda:1", NULL, NULL, -1},
    };

    return run_cases(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
