/* SPDX-License-Identifier: BSD-3-Clause */
/* The CUDA driver API as a program without kernels uses it. */
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver_abi.h"
#include "ranks.h"

static CUcontext start(int device)
{
    CUcontext ctx;

    CHECK_EQ(cuInit(0), CUDA_SUCCESS);
    CHECK_EQ(cuDevicePrimaryCtxRetain(&ctx, device), CUDA_SUCCESS);
    CHECK_EQ(cuCtxSetCurrent(ctx), CUDA_SUCCESS);
    return ctx;
}

static void before_init(const struct world *world)
{
    CUcontext   ctx;
    CUdeviceptr ptr;
    int         number = 0;

    (void)world;
    CHECK_EQ(cuDriverGetVersion(&number), CUDA_SUCCESS);
    CHECK_EQ(number, 13000);
    CHECK_EQ(cuDeviceGetCount(&number), CUDA_ERROR_NOT_INITIALIZED);
    CHECK_EQ(cuCtxGetCurrent(&ctx), CUDA_ERROR_NOT_INITIALIZED);
    CHECK_EQ(cuMemAlloc_v2(&ptr, 16), CUDA_ERROR_NOT_INITIALIZED);
    CHECK_EQ(cuPointerGetAttribute(&number, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 0),
             CUDA_ERROR_NOT_INITIALIZED);
    CHECK_EQ(cuInit(1), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuInit(0), CUDA_SUCCESS);
    CHECK_EQ(cuMemAlloc_v2(&ptr, 16), CUDA_ERROR_INVALID_CONTEXT);
}

static void no_device(const struct world *world)
{
    (void)world;
    CHECK_EQ(cuInit(0), CUDA_ERROR_NO_DEVICE);
}

static void bad_variable(const struct world *world)
{
    (void)world;
    CHECK_EQ(cuInit(0), CUDA_ERROR_SYSTEM_NOT_READY);
}

static void devices(const struct world *world)
{
    CUuuid uuid[3];
    char   bus[3][16];
    char   name[64];
    int    count;
    int    number;

    (void)world;
    CHECK_EQ(cuInit(0), CUDA_SUCCESS);
    CHECK_EQ(cuDeviceGetCount(&count), CUDA_SUCCESS);
    CHECK_EQ(count, 3);
    for (int i = 0; i < count; i++) {
        CUdevice device;

        CHECK_EQ(cuDeviceGet(&device, i), CUDA_SUCCESS);
        CHECK_EQ(cuDeviceGetUuid_v2(&uuid[i], device), CUDA_SUCCESS);
        CHECK_EQ(cuDeviceGetPCIBusId(bus[i], sizeof(bus[i]), device), CUDA_SUCCESS);
        CHECK_EQ(cuDeviceGetName(name, sizeof(name), device), CUDA_SUCCESS);
        CHECK(strstr(name, "Simulated") != NULL);
        for (int j = 0; j < i; j++) {
            CHECK(memcmp(&uuid[i], &uuid[j], sizeof(uuid[i])) != 0);
            CHECK(strcmp(bus[i], bus[j]) != 0);
        }
    }
    CHECK_EQ(cuDeviceGet(&number, 3), CUDA_ERROR_INVALID_DEVICE);
    CHECK_EQ(cuDeviceGetAttribute(&number, 41, 0), CUDA_SUCCESS); /* unified addressing */
    CHECK_EQ(number, 1);
}

/* CUDA_VISIBLE_DEVICES=2,0: same devices, other order. */
static void visible(const struct world *world)
{
    char bus[16];
    int  count;

    (void)world;
    CHECK_EQ(cuInit(0), CUDA_SUCCESS);
    CHECK_EQ(cuDeviceGetCount(&count), CUDA_SUCCESS);
    CHECK_EQ(count, 2);
    CHECK_EQ(cuDeviceGetPCIBusId(bus, sizeof(bus), 0), CUDA_SUCCESS);
    CHECK(strcmp(bus, "0000:14:00.0") == 0);
    CHECK_EQ(cuDeviceGetPCIBusId(bus, sizeof(bus), 1), CUDA_SUCCESS);
    CHECK(strcmp(bus, "0000:10:00.0") == 0);
}

/* Pretend nodes: rank 0 and 1 have the same device number, and different devices. */
static void node_uuids(const struct world *world)
{
    CUuuid mine;
    CUuuid first;

    CHECK_EQ(cuInit(0), CUDA_SUCCESS);
    CHECK_EQ(cuDeviceGetUuid_v2(&mine, 0), CUDA_SUCCESS);
    first = mine;
    share_bytes(world, &first, sizeof(first));
    CHECK_EQ(memcmp(&mine, &first, sizeof(mine)) == 0, world->rank < 2);
}

static void *other_thread(void *arg)
{
    CUcontext ctx = arg;

    CHECK_EQ(cuCtxGetCurrent(&ctx), CUDA_SUCCESS);
    CHECK(ctx == NULL);
    return NULL;
}

static void contexts(const struct world *world)
{
    CUcontext primary = start(0);
    CUcontext own;
    CUcontext got;
    CUdevice  device;
    pthread_t thread;
    unsigned  flags;
    int       active;

    (void)world;
    CHECK_EQ(cuCtxCreate_v2(&own, 0, 1), CUDA_SUCCESS);
    CHECK_EQ(cuCtxGetDevice(&device), CUDA_SUCCESS);
    CHECK_EQ(device, 1);
    CHECK_EQ(cuCtxPushCurrent_v2(primary), CUDA_SUCCESS);
    CHECK_EQ(cuCtxGetDevice(&device), CUDA_SUCCESS);
    CHECK_EQ(device, 0);
    CHECK_EQ(cuCtxPopCurrent_v2(&got), CUDA_SUCCESS);
    CHECK(got == primary);
    CHECK_EQ(cuCtxGetCurrent(&got), CUDA_SUCCESS);
    CHECK(got == own);
    CHECK_EQ(pthread_create(&thread, NULL, other_thread, NULL), 0);
    pthread_join(thread, NULL);
    CHECK_EQ(cuCtxDestroy_v2(own), CUDA_SUCCESS);
    CHECK_EQ(cuCtxDestroy_v2(own), CUDA_ERROR_INVALID_CONTEXT);
    CHECK_EQ(cuCtxGetCurrent(&got), CUDA_SUCCESS);
    CHECK(got == primary);
    CHECK_EQ(cuDevicePrimaryCtxGetState(0, &flags, &active), CUDA_SUCCESS);
    CHECK_EQ(active, 1);
    CHECK_EQ(cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
    CHECK_EQ(cuDevicePrimaryCtxGetState(0, &flags, &active), CUDA_SUCCESS);
    CHECK_EQ(active, 0);
    CHECK_EQ(cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
}

static void copies(const struct world *world)
{
    enum { BYTES = 100003 };
    static unsigned char from[BYTES];
    static unsigned char to[BYTES];
    CUdeviceptr          a;
    CUdeviceptr          b;
    size_t               size;

    (void)world;
    start(0);
    for (int i = 0; i < BYTES; i++) {
        from[i] = (unsigned char)(i * 7);
    }
    CHECK_EQ(cuMemAlloc_v2(&a, BYTES), CUDA_SUCCESS);
    CHECK_EQ(cuMemAlloc_v2(&b, BYTES), CUDA_SUCCESS);
    CHECK_EQ(cuMemcpyHtoD_v2(a, from, BYTES), CUDA_SUCCESS);
    CHECK_EQ(cuMemcpyDtoD_v2(b, a, BYTES), CUDA_SUCCESS);
    CHECK_EQ(cuMemsetD8_v2(b + 10, 0xee, 3), CUDA_SUCCESS);
    CHECK_EQ(cuMemcpyDtoH_v2(to, b, BYTES), CUDA_SUCCESS);
    CHECK((to[9] == from[9]) && (to[10] == 0xee) && (to[12] == 0xee) && (to[13] == from[13]));
    CHECK(memcmp(to + 13, from + 13, BYTES - 13) == 0);
    CHECK_EQ(cuMemcpyHtoD_v2(a + 1, from, BYTES), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuMemcpyHtoD_v2((CUdeviceptr)(uintptr_t)to, from, 8), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuMemGetAddressRange_v2(&b, &size, a + 77), CUDA_SUCCESS);
    CHECK((b == a) && (size == BYTES));
    CHECK_EQ(cuMemFree_v2(a + 1), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuMemFree_v2(a), CUDA_SUCCESS);
    CHECK_EQ(cuMemFree_v2(a), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuMemcpyHtoD_v2(a, from, 8), CUDA_ERROR_INVALID_VALUE);
}

/* A large workspace is cleared by giving its pages back; what is beside it stays. */
static void cleared(const struct world *world)
{
    enum { BYTES = (20 << 20) + 5000, FROM = 100, COUNT = (20 << 20) + 777 };
    static unsigned char to[BYTES];
    CUdeviceptr          ptr;

    (void)world;
    start(0);
    CHECK_EQ(cuMemAlloc_v2(&ptr, BYTES), CUDA_SUCCESS);
    CHECK_EQ(cuMemsetD8_v2(ptr, 0x5a, BYTES), CUDA_SUCCESS);
    CHECK_EQ(cuMemsetD8_v2(ptr + FROM, 0, COUNT), CUDA_SUCCESS);
    CHECK_EQ(cuMemcpyDtoH_v2(to, ptr, BYTES), CUDA_SUCCESS);
    for (int i = 0; i < BYTES; i++) {
        CHECK_EQ(to[i], ((i >= FROM) && (i < FROM + COUNT)) ? 0 : 0x5a);
    }
    CHECK_EQ(cuMemFree_v2(ptr), CUDA_SUCCESS);
}

/* Rows of 3 bytes, 10 apart on the device and 4 apart on the host. */
static void rows(const struct world *world)
{
    enum { PITCH = 10, HOST_PITCH = 4, WIDTH = 3, HEIGHT = 5 };
    unsigned char from[HOST_PITCH * HEIGHT];
    unsigned char to[PITCH * HEIGHT];
    CUDA_MEMCPY2D copy = {.WidthInBytes = WIDTH, .Height = HEIGHT};
    CUdeviceptr   ptr;

    (void)world;
    start(0);
    for (int i = 0; i < HOST_PITCH * HEIGHT; i++) {
        from[i] = (unsigned char)(i + 1);
    }
    CHECK_EQ(sizeof(copy), 128);
    CHECK_EQ(cuMemAlloc_v2(&ptr, sizeof(to)), CUDA_SUCCESS);
    CHECK_EQ(cuMemsetD8_v2(ptr, 0xee, sizeof(to)), CUDA_SUCCESS);
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = from;
    copy.srcPitch = HOST_PITCH;
    copy.srcXInBytes = 1;
    copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    copy.dstDevice = ptr;
    copy.dstPitch = PITCH;
    copy.dstXInBytes = 2;
    CHECK_EQ(cuMemcpy2DAsync_v2(&copy, NULL), CUDA_SUCCESS);
    CHECK_EQ(cuMemcpyDtoH_v2(to, ptr, sizeof(to)), CUDA_SUCCESS);
    for (int i = 0; i < PITCH * HEIGHT; i++) {
        int at = i % PITCH - 2;
        int want = ((at >= 0) && (at < WIDTH)) ? from[i / PITCH * HOST_PITCH + 1 + at] : 0xee;

        CHECK_EQ(to[i], want);
    }
}

static void bad_rows(const struct world *world)
{
    unsigned char host[100];
    CUDA_MEMCPY2D good = {.WidthInBytes = 4, .Height = 10, .srcPitch = 10, .dstPitch = 10};
    CUDA_MEMCPY2D copy;
    CUdeviceptr   ptr;
    int           limit;

    (void)world;
    start(0);
    CHECK_EQ(cuMemAlloc_v2(&ptr, sizeof(host)), CUDA_SUCCESS);
    good.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    good.srcDevice = ptr;
    good.dstMemoryType = CU_MEMORYTYPE_HOST;
    good.dstHost = host;
    CHECK_EQ(cuMemcpy2D_v2(&good), CUDA_SUCCESS);
    CHECK_EQ(cuMemcpy2D_v2(NULL), CUDA_ERROR_INVALID_VALUE);
    copy = good;
    copy.srcPitch = 3; /* less than a row */
    CHECK_EQ(cuMemcpy2D_v2(&copy), CUDA_ERROR_INVALID_VALUE);
    copy = good;
    copy.srcXInBytes = 7; /* a row ends behind its pitch */
    CHECK_EQ(cuMemcpy2D_v2(&copy), CUDA_ERROR_INVALID_VALUE);
    copy = good;
    copy.srcY = 1; /* the last row ends behind the allocation */
    CHECK_EQ(cuMemcpy2D_v2(&copy), CUDA_ERROR_INVALID_VALUE);
    copy = good;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE; /* whose field is empty */
    CHECK_EQ(cuMemcpy2D_v2(&copy), CUDA_ERROR_INVALID_VALUE);
    copy.dstDevice = (CUdeviceptr)(uintptr_t)host;
    CHECK_EQ(cuMemcpy2D_v2(&copy), CUDA_ERROR_INVALID_VALUE);
    copy = good;
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = (const void *)(uintptr_t)ptr;
    CHECK_EQ(cuMemcpy2D_v2(&copy), CUDA_ERROR_INVALID_VALUE);
    copy = good;
    copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    CHECK_EQ(cuMemcpy2D_v2(&copy), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuDeviceGetAttribute(&limit, 11, 0), CUDA_SUCCESS);
    copy = good;
    copy.Height = 1;
    copy.srcPitch = (size_t)limit;
    CHECK_EQ(cuMemcpy2D_v2(&copy), CUDA_SUCCESS);
    copy.srcPitch = (size_t)limit + 1;
    CHECK_EQ(cuMemcpy2DAsync_v2(&copy, NULL), CUDA_ERROR_INVALID_VALUE);
    copy.Height = 0; /* nothing to do is no error */
    CHECK_EQ(cuMemcpy2DAsync_v2(&copy, NULL), CUDA_SUCCESS);
}

static int open_files(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int  count = 0;

    while (readdir(dir) != NULL) {
        count++;
    }
    closedir(dir);
    return count;
}

/* Thousands of allocations: no descriptor each, blocks apart, room found again. */
static void allocations(const struct world *world)
{
    enum { COUNT = 5000 };
    static CUdeviceptr ptrs[COUNT];
    size_t             before;
    size_t             after;
    size_t             total;

    (void)world;
    start(0);
    CHECK_EQ(cuMemAlloc_v2(&ptrs[0], 1), CUDA_SUCCESS);
    int files = open_files();
    CHECK_EQ(cuMemGetInfo_v2(&before, &total), CUDA_SUCCESS);
    CHECK_EQ(total, 64 << 20);
    for (int round = 0; round < 3; round++) {
        for (int i = 1; i < COUNT; i++) {
            CHECK_EQ(cuMemAlloc_v2(&ptrs[i], (size_t)(1 + i % 3000)), CUDA_SUCCESS);
            CHECK_EQ(ptrs[i] % 256, 0);
        }
        CHECK_EQ(open_files(), files);
        for (int i = COUNT - 1; i > 0; i--) {
            CHECK_EQ(cuMemFree_v2(ptrs[i]), CUDA_SUCCESS);
        }
    }
    CHECK_EQ(cuMemGetInfo_v2(&after, &total), CUDA_SUCCESS);
    CHECK_EQ(after, before);
    CHECK_EQ(cuMemAlloc_v2(&ptrs[1], 63 << 20), CUDA_SUCCESS);
    CHECK_EQ(cuMemAlloc_v2(&ptrs[2], 2 << 20), CUDA_ERROR_OUT_OF_MEMORY);
}

/* The host cannot touch device memory; it can touch pinned and managed memory. */
static void host_faults(const struct world *world)
{
    CUdeviceptr managed;
    CUdeviceptr device;
    void       *pinned;
    int         status;

    (void)world;
    start(0);
    CHECK_EQ(cuMemAlloc_v2(&device, 4096), CUDA_SUCCESS);
    CHECK_EQ(cuMemAllocManaged(&managed, 4096, 1), CUDA_SUCCESS);
    CHECK_EQ(cuMemHostAlloc(&pinned, 4096, 0), CUDA_SUCCESS);
    *(volatile int *)(uintptr_t)managed = 5;
    *(volatile int *)pinned = 6;
    for (int write = 0; write < 2; write++) {
        pid_t pid = fork();

        if (pid == 0) {
            volatile int *p = (volatile int *)(uintptr_t)device;

            signal(SIGSEGV, SIG_DFL);
            if (write) {
                *p = 1;
            } else {
                (void)*p;
            }
            _exit(0);
        }
        CHECK_EQ(waitpid(pid, &status, 0), pid);
        CHECK(WIFSIGNALED(status) && (WTERMSIG(status) == SIGSEGV));
    }
}

static void pointers(const struct world *world)
{
    int         attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    unsigned    type = 99;
    unsigned    managed = 99;
    int         ordinal = 99;
    void       *data[] = {&type, &managed, &ordinal};
    CUcontext   ctx = start(1);
    CUcontext   got;
    CUdeviceptr ptr;
    char       *heap = malloc(8192);

    (void)world;
    CHECK_EQ(cuMemAlloc_v2(&ptr, 100), CUDA_SUCCESS);
    CHECK_EQ(cuPointerGetAttributes(3, attributes, data, ptr + 99), CUDA_SUCCESS);
    CHECK((type == CU_MEMORYTYPE_DEVICE) && (managed == 0) && (ordinal == 1));
    CHECK_EQ(cuPointerGetAttribute(&got, CU_POINTER_ATTRIBUTE_CONTEXT, ptr), CUDA_SUCCESS);
    CHECK(got == ctx);
    CHECK_EQ(cuMemAllocManaged(&ptr, 100, 1), CUDA_SUCCESS);
    CHECK_EQ(cuPointerGetAttributes(3, attributes, data, ptr), CUDA_SUCCESS);
    CHECK((type == CU_MEMORYTYPE_DEVICE) && (managed == 1));
    ptr = (CUdeviceptr)(uintptr_t)heap;
    CHECK_EQ(cuPointerGetAttributes(3, attributes, data, ptr), CUDA_SUCCESS);
    CHECK((type == 0) && (managed == 0) && (ordinal == -2));
    CHECK_EQ(cuPointerGetAttribute(&type, attributes[0], ptr), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuMemHostRegister_v2(heap, 8192, 0), CUDA_SUCCESS);
    CHECK_EQ(cuMemHostRegister_v2(heap + 4096, 10, 0), 712);
    CHECK_EQ(cuPointerGetAttribute(&type, attributes[0], ptr + 8191), CUDA_SUCCESS);
    CHECK_EQ(type, CU_MEMORYTYPE_HOST);
    CHECK_EQ(cuMemHostUnregister(heap), CUDA_SUCCESS);
    CHECK_EQ(cuMemHostUnregister(heap), 713);
    free(heap);
}

static atomic_int gate;
static atomic_int passed;

static void wait_gate(void *arg)
{
    (void)arg;
    while (atomic_load(&gate) == 0) {
        usleep(100);
    }
}

static void count_pass(void *arg)
{
    CHECK_EQ(atomic_fetch_add(&passed, 1), (int)(intptr_t)arg);
}

static void streams(const struct world *world)
{
    CUstream stream;
    CUstream other;
    CUevent  event;

    (void)world;
    start(0);
    CHECK_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    CHECK_EQ(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    CHECK_EQ(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    CHECK_EQ(cuEventQuery(event), CUDA_SUCCESS); /* never recorded */
    CHECK_EQ(cuLaunchHostFunc(stream, wait_gate, NULL), CUDA_SUCCESS);
    CHECK_EQ(cuLaunchHostFunc(stream, count_pass, (void *)0), CUDA_SUCCESS);
    CHECK_EQ(cuEventRecord(event, stream), CUDA_SUCCESS);
    CHECK_EQ(cuStreamWaitEvent(other, event, 0), CUDA_SUCCESS);
    CHECK_EQ(cuLaunchHostFunc(other, count_pass, (void *)1), CUDA_SUCCESS);
    usleep(20000);
    CHECK_EQ(atomic_load(&passed), 0);
    CHECK_EQ(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    CHECK_EQ(cuStreamQuery(other), CUDA_ERROR_NOT_READY);
    CHECK_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    atomic_store(&gate, 1);
    CHECK_EQ(cuEventSynchronize(event), CUDA_SUCCESS);
    CHECK_EQ(cuStreamSynchronize(other), CUDA_SUCCESS);
    CHECK_EQ(atomic_load(&passed), 2);
    CHECK_EQ(cuEventDestroy_v2(event), CUDA_SUCCESS);
    CHECK_EQ(cuEventDestroy_v2(event), CUDA_ERROR_INVALID_HANDLE);
    CHECK_EQ(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
    CHECK_EQ(cuStreamQuery(stream), CUDA_ERROR_INVALID_HANDLE);
}

/* Blocking streams and the default stream wait for each other; a non-blocking one does not. */
static void default_stream(const struct world *world)
{
    CUstream blocking;
    CUstream free_running;

    (void)world;
    start(0);
    CHECK_EQ(cuStreamCreate(&blocking, 0), CUDA_SUCCESS);
    CHECK_EQ(cuStreamCreate(&free_running, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    CHECK_EQ(cuLaunchHostFunc(blocking, wait_gate, NULL), CUDA_SUCCESS);
    CHECK_EQ(cuLaunchHostFunc(NULL, count_pass, (void *)1), CUDA_SUCCESS);
    CHECK_EQ(cuLaunchHostFunc(blocking, count_pass, (void *)2), CUDA_SUCCESS);
    CHECK_EQ(cuLaunchHostFunc(free_running, count_pass, (void *)0), CUDA_SUCCESS);
    CHECK_EQ(cuStreamSynchronize(free_running), CUDA_SUCCESS);
    CHECK_EQ(atomic_load(&passed), 1);
    CHECK_EQ(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
    atomic_store(&gate, 1);
    CHECK_EQ(cuStreamSynchronize(NULL), CUDA_SUCCESS);
    CHECK_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    CHECK_EQ(atomic_load(&passed), 3);
}

/* Pinned memory makes a copy asynchronous; from pageable memory the bytes are taken at once. */
static void pageable(const struct world *world)
{
    CUstream    stream;
    CUdeviceptr device;
    int        *pinned;
    int         heap = 41;
    int         got = 0;

    (void)world;
    start(0);
    CHECK_EQ(cuMemAlloc_v2(&device, 4), CUDA_SUCCESS);
    CHECK_EQ(cuMemHostAlloc((void **)&pinned, 4, 0), CUDA_SUCCESS);
    CHECK_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    CHECK_EQ(cuLaunchHostFunc(stream, wait_gate, NULL), CUDA_SUCCESS);
    CHECK_EQ(cuMemcpyHtoDAsync_v2(device, &heap, 4, stream), CUDA_SUCCESS);
    heap = 42;
    CHECK_EQ(cuMemcpyAsync((CUdeviceptr)(uintptr_t)pinned, device, 4, stream), CUDA_SUCCESS);
    *pinned = 0;
    atomic_store(&gate, 1);
    CHECK_EQ(cuMemcpyAsync((CUdeviceptr)(uintptr_t)&got, device, 4, stream), CUDA_SUCCESS);
    CHECK_EQ(got, 41);
    CHECK_EQ(*pinned, 41);
}

static void values(const struct world *world)
{
    CUstream    waiter;
    CUstream    writer;
    CUdeviceptr flag;
    CUevent     from;
    CUevent     to;
    float       ms = -1;

    (void)world;
    start(0);
    CHECK_EQ(cuMemAlloc_v2(&flag, 4), CUDA_SUCCESS);
    CHECK_EQ(cuMemsetD8_v2(flag, 0, 4), CUDA_SUCCESS);
    CHECK_EQ(cuStreamCreate(&waiter, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    CHECK_EQ(cuStreamCreate(&writer, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    CHECK_EQ(cuEventCreate(&from, 0), CUDA_SUCCESS);
    CHECK_EQ(cuEventCreate(&to, 0), CUDA_SUCCESS);
    CHECK_EQ(cuEventRecord(from, waiter), CUDA_SUCCESS);
    CHECK_EQ(cuStreamWaitValue32_v2(waiter, flag, 3, CU_STREAM_WAIT_VALUE_EQ), CUDA_SUCCESS);
    CHECK_EQ(cuEventRecord(to, waiter), CUDA_SUCCESS);
    CHECK_EQ(cuEventSynchronize(from), CUDA_SUCCESS);
    usleep(10000);
    CHECK_EQ(cuStreamQuery(waiter), CUDA_ERROR_NOT_READY);
    CHECK_EQ(cuEventElapsedTime(&ms, from, to), CUDA_ERROR_NOT_READY);
    CHECK_EQ(cuStreamWriteValue32_v2(writer, flag, 3, 0), CUDA_SUCCESS);
    CHECK_EQ(cuStreamSynchronize(waiter), CUDA_SUCCESS);
    CHECK_EQ(cuEventElapsedTime(&ms, from, to), CUDA_SUCCESS);
    CHECK((ms >= 9) && (ms < 10000));
    CHECK_EQ(cuEventDestroy_v2(from), CUDA_SUCCESS);
    CHECK_EQ(cuEventDestroy_v2(to), CUDA_SUCCESS);
}

static unsigned long long buffer_id(CUdeviceptr ptr)
{
    unsigned long long id = 0;

    CHECK_EQ(cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, ptr), CUDA_SUCCESS);
    return id;
}

static unsigned sync_memops(CUdeviceptr ptr)
{
    int      attribute = CU_POINTER_ATTRIBUTE_SYNC_MEMOPS;
    unsigned single = 99;
    unsigned many = 99;
    void    *data = &many;

    CHECK_EQ(cuPointerGetAttribute(&single, attribute, ptr), CUDA_SUCCESS);
    CHECK_EQ(cuPointerGetAttributes(1, &attribute, &data, ptr), CUDA_SUCCESS);
    CHECK_EQ(single, many);
    return single;
}

/* What tells one allocation from a later one at its address, and what may be set. */
static void pointer_attributes(const struct world *world)
{
    const unsigned     on = 1;
    const unsigned     off = 0;
    CUdeviceptr        ptr;
    CUdeviceptr        again;
    void              *pinned;
    unsigned long long id;

    (void)world;
    start(0);
    CHECK_EQ(cuMemAlloc_v2(&ptr, 100), CUDA_SUCCESS);
    CHECK_EQ(sync_memops(ptr), 0);
    CHECK_EQ(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, ptr + 50), CUDA_SUCCESS);
    CHECK_EQ(sync_memops(ptr), 1);
    CHECK_EQ(cuPointerSetAttribute(&off, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, ptr), CUDA_SUCCESS);
    CHECK_EQ(sync_memops(ptr), 0);
    CHECK_EQ(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, ptr), CUDA_SUCCESS);
    CHECK_EQ(cuPointerSetAttribute(NULL, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, ptr),
             CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_BUFFER_ID, ptr),
             CUDA_ERROR_INVALID_VALUE);
    id = buffer_id(ptr);
    CHECK_EQ(cuMemFree_v2(ptr), CUDA_SUCCESS);
    CHECK_EQ(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, ptr),
             CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuMemAlloc_v2(&again, 100), CUDA_SUCCESS);
    CHECK_EQ(again, ptr);
    CHECK(buffer_id(again) != id);
    CHECK_EQ(sync_memops(again), 0);
    CHECK_EQ(cuMemAllocAsync(&ptr, 100, NULL), CUDA_SUCCESS);
    CHECK_EQ(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, ptr),
             CUDA_ERROR_NOT_SUPPORTED);
    CHECK_EQ(cuMemHostAlloc(&pinned, 100, 0), CUDA_SUCCESS);
    CHECK_EQ(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS,
                                   (CUdeviceptr)(uintptr_t)pinned),
             CUDA_ERROR_INVALID_VALUE);
}

/* Was the default stream still busy when a synchronous call had returned, in one of many tries? */
static bool under_way(int call, CUdeviceptr ptr, CUdeviceptr other)
{
    static unsigned char bytes[(64 << 10) + 1];
    bool                 busy = false;

    for (int i = 0; (i < 50) && !busy; i++) {
        if (call == 0) {
            CHECK_EQ(cuMemsetD8_v2(ptr, 1, 100), CUDA_SUCCESS);
        } else if (call == 1) {
            CHECK_EQ(cuMemcpyHtoD_v2(ptr, bytes, 64 << 10), CUDA_SUCCESS);
        } else if (call == 2) {
            CHECK_EQ(cuMemcpyDtoD_v2(other, ptr, 100), CUDA_SUCCESS);
        } else {
            CHECK_EQ(cuMemcpyHtoD_v2(ptr, bytes, sizeof(bytes)), CUDA_SUCCESS);
        }
        busy = (cuStreamQuery(NULL) == CUDA_ERROR_NOT_READY);
        CHECK_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    }
    return busy;
}

/* Synchronous calls return early, but for a large copy; none does where the memory says so. */
static void check_early(CUdeviceptr ptr, CUdeviceptr other, bool want)
{
    unsigned char byte = 7;

    CHECK_EQ(under_way(0, ptr, other), want);
    CHECK_EQ(under_way(1, ptr, other), want);
    CHECK_EQ(under_way(2, ptr, other), want);
    CHECK_EQ(under_way(3, ptr, other), false);
    CHECK_EQ(cuMemcpyHtoD_v2(ptr, &byte, 1), CUDA_SUCCESS);
    byte = 0; /* it was taken, and comes before what follows */
    CHECK_EQ(cuMemcpyDtoH_v2(&byte, ptr, 1), CUDA_SUCCESS);
    CHECK_EQ(byte, 7);
}

static void early(const struct world *world)
{
    const unsigned on = 1;
    CUdeviceptr    ptr;
    CUdeviceptr    other;

    (void)world;
    start(0);
    CHECK_EQ(cuMemAlloc_v2(&ptr, 1 << 20), CUDA_SUCCESS);
    CHECK_EQ(cuMemAlloc_v2(&other, 1 << 20), CUDA_SUCCESS);
    check_early(ptr, other, true);
    CHECK_EQ(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, ptr), CUDA_SUCCESS);
    check_early(ptr, other, false);
}

static void *open_gate(void *arg)
{
    (void)arg;
    usleep(50000);
    atomic_store(&gate, 1);
    return NULL;
}

/* XCCL_SIM_ALLOC=wait: allocating waits for the context's work, but not in the order of a stream.
 */
static void alloc_waits(const struct world *world)
{
    CUstream    stream;
    CUdeviceptr ptr;
    void       *pinned;
    pthread_t   thread;

    (void)world;
    start(0);
    CHECK_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    for (int i = 0; i < 2; i++) {
        atomic_store(&gate, 0);
        CHECK_EQ(cuLaunchHostFunc(stream, wait_gate, NULL), CUDA_SUCCESS);
        CHECK_EQ(cuMemAllocAsync(&ptr, 100, stream), CUDA_SUCCESS);
        CHECK_EQ(atomic_load(&gate), 0);
        CHECK_EQ(pthread_create(&thread, NULL, open_gate, NULL), 0);
        if (i == 0) {
            CHECK_EQ(cuMemAlloc_v2(&ptr, 100), CUDA_SUCCESS);
        } else {
            CHECK_EQ(cuMemHostAlloc(&pinned, 100, 0), CUDA_SUCCESS);
        }
        CHECK_EQ(atomic_load(&gate), 1);
        CHECK_EQ(pthread_join(thread, NULL), 0);
    }
}

static void lookups(const struct world *world)
{
    const char *text;
    void       *fn;
    int         status;

    (void)world;
    CHECK_EQ(cuGetProcAddress_v2("cuMemAlloc", &fn, 12000, 0, &status), CUDA_SUCCESS);
    CHECK((fn == (void *)cuMemAlloc_v2) && (status == 0));
    CHECK_EQ(cuGetProcAddress_v2("cuNoSuchThing", &fn, 12000, 0, &status), CUDA_ERROR_NOT_FOUND);
    CHECK_EQ(status, 1);
    CHECK_EQ(cuGetErrorName(CUDA_ERROR_NOT_READY, &text), CUDA_SUCCESS);
    CHECK(strcmp(text, "CUDA_ERROR_NOT_READY") == 0);
    CHECK_EQ(cuGetErrorString(12345, &text), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuInit(0), CUDA_SUCCESS);
    CHECK_EQ(cuModuleLoad(&fn, "x"), CUDA_ERROR_NOT_SUPPORTED);
}

/* What nvcc made is for devices that exist. */
static void module_of_a_real_device(const struct world *world)
{
    static const unsigned char fatbin[64] = {0x50, 0xed, 0x55, 0xba};
    void                      *module;
    CUcontext                  ctx;

    (void)world;
    CHECK_EQ(cuModuleLoadData(&module, fatbin), CUDA_ERROR_NOT_INITIALIZED);
    CHECK_EQ(cuInit(0), CUDA_SUCCESS);
    CHECK_EQ(cuModuleLoadData(&module, fatbin), CUDA_ERROR_INVALID_CONTEXT);
    CHECK_EQ(cuDevicePrimaryCtxRetain(&ctx, 0), CUDA_SUCCESS);
    CHECK_EQ(cuCtxSetCurrent(ctx), CUDA_SUCCESS);
    CHECK_EQ(cuModuleLoadData(&module, fatbin), CUDA_ERROR_NO_BINARY_FOR_GPU);
}

static void alloc_fault(const struct world *world)
{
    CUdeviceptr ptr;

    start(world->rank);
    CHECK_EQ(cuMemAlloc_v2(&ptr, 16), CUDA_SUCCESS);
    CHECK_EQ(cuMemAlloc_v2(&ptr, 16), (world->rank == 1) ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS);
    CHECK_EQ(cuMemAlloc_v2(&ptr, 16), CUDA_SUCCESS);
}

int main(int argc, char **argv)
{
    const struct test_case cases[] = {
        {"before_init", before_init, 1, "cuda:1", NULL, NULL, -1},
        {"no_device", no_device, 1, NULL, NULL, NULL, -1},
        {"other_flavour", no_device, 1, "rocm:2", NULL, NULL, -1},
        {"bad_flavour", bad_variable, 1, "cuda:0", NULL, NULL, -1},
        {"bad_fail", bad_variable, 1, "cuda:1", "op:allreduse@1", NULL, -1},
        {"bad_name", bad_variable, 1, "cuda:1", NULL, "XCCL_SIM_NODE=2", -1},
        {"bad_version", bad_variable, 1, "cuda:1", NULL, "XCCL_SIM_VERSION=22803@", -1},
        {"devices", devices, 1, "cuda:3", NULL, NULL, -1},
        {"visible", visible, 1, "cuda:3", NULL, "CUDA_VISIBLE_DEVICES=2,0,9,1", -1},
        {"node_uuids", node_uuids, 4, "cuda:2", NULL, "XCCL_SIM_NODES=2", -1},
        {"contexts", contexts, 1, "cuda:2", NULL, NULL, -1},
        {"copies", copies, 1, "cuda:1", NULL, NULL, -1},
        {"cleared", cleared, 1, "cuda:1", NULL, NULL, -1},
        {"rows", rows, 1, "cuda:1", NULL, NULL, -1},
        {"bad_rows", bad_rows, 1, "cuda:1", NULL, NULL, -1},
        {"allocations", allocations, 1, "cuda:1", NULL, "XCCL_SIM_MEMORY=64m", -1},
        {"host_faults", host_faults, 1, "cuda:1", NULL, NULL, -1},
        {"pointers", pointers, 1, "cuda:2", NULL, NULL, -1},
        {"streams", streams, 1, "cuda:1", NULL, NULL, -1},
        {"default_stream", default_stream, 1, "cuda:1", NULL, NULL, -1},
        {"pageable", pageable, 1, "cuda:1", NULL, NULL, -1},
        {"values", values, 1, "cuda:1", NULL, NULL, -1},
        {"pointer_attributes", pointer_attributes, 1, "cuda:1", NULL, NULL, -1},
        {"early", early, 1, "cuda:1", NULL, "XCCL_SIM_EARLY=1", -1},
        {"alloc_waits", alloc_waits, 1, "cuda:1", NULL, "XCCL_SIM_ALLOC=wait", -1},
        {"bad_choice", bad_variable, 1, "cuda:1", NULL, "XCCL_SIM_ALLOC=yes", -1},
        {"lookups", lookups, 1, "cuda:1", NULL, NULL, -1},
        {"module_of_a_real_device", module_of_a_real_device, 1, "cuda:1", NULL, NULL, -1},
        {"alloc_fault", alloc_fault, 2, "cuda:2", "alloc@1=2", NULL, -1},
    };

    return run_cases(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
