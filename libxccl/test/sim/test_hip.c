/* SPDX-License-Identifier: BSD-3-Clause */
/* The HIP runtime API as a program without kernels uses it. */
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ranks.h"

typedef struct {
    int      type;
    int      device;
    void    *devicePointer;
    void    *hostPointer;
    int      isManaged;
    unsigned allocationFlags;
} hipPointerAttribute_t;

int         hipRuntimeGetVersion(int *version);
int         hipGetDeviceCount(int *count);
int         hipGetDevice(int *device);
int         hipSetDevice(int device);
int         hipDeviceGetPCIBusId(char *id, int len, int device);
int         hipDeviceGetUuid(unsigned char *uuid, int device);
int         hipMalloc(void **ptr, size_t bytes);
int         hipMallocManaged(void **ptr, size_t bytes, unsigned flags);
int         hipHostMalloc(void **ptr, size_t bytes, unsigned flags);
int         hipFree(void *ptr);
int         hipHostFree(void *ptr);
int         hipPointerGetAttributes(hipPointerAttribute_t *attributes, const void *ptr);
int         hipMemcpy(void *dst, const void *src, size_t bytes, int kind);
int         hipMemcpyAsync(void *dst, const void *src, size_t bytes, int kind, void *stream);
int         hipMemset(void *dst, int value, size_t bytes);
int         hipGetLastError(void);
int         hipPeekAtLastError(void);
int         hipStreamCreateWithFlags(void **stream, unsigned flags);
int         hipStreamQuery(void *stream);
int         hipStreamSynchronize(void *stream);
int         hipStreamWaitEvent(void *stream, void *event, unsigned flags);
int         hipStreamDestroy(void *stream);
int         hipLaunchHostFunc(void *stream, void (*fn)(void *), void *data);
int         hipEventCreateWithFlags(void **event, unsigned flags);
int         hipEventRecord(void *event, void *stream);
int         hipEventQuery(void *event);
int         hipEventDestroy(void *event);
int         hipModuleLoadData(void **module, const void *image);
const char *hipGetErrorName(int error);
int         hipDeviceReset(void);
int         hipMemAddressReserve(void **ptr, size_t bytes, size_t alignment, void *wish,
                                 unsigned long long flags);
int         hipMemCreate(void **handle, size_t bytes, const void *prop, unsigned long long flags);
int hipMemMap(void *ptr, size_t bytes, size_t offset, void *handle, unsigned long long flags);
int hipMemSetAccess(void *ptr, size_t bytes, const void *descs, size_t count);
int hipMemUnmap(void *ptr, size_t bytes);
int hipMemRelease(void *handle);
int hipMemAddressFree(void *ptr, size_t bytes);
int hipIpcGetMemHandle(void *handle, void *ptr);

int hipMemcpy2D(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                size_t height, int kind);
int hipMemcpy2DAsync(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                     size_t height, int kind, void *stream);

enum { TO_DEVICE = 1, TO_HOST = 2, BY_POINTERS = 4, NOT_READY = 600 };

static void devices(const struct world *world)
{
    unsigned char uuid[2][16];
    char          bus[32];
    int           number;

    (void)world;
    CHECK_EQ(hipGetDeviceCount(&number), 0);
    CHECK_EQ(number, 2);
    CHECK_EQ(hipGetDevice(&number), 0);
    CHECK_EQ(number, 0);
    CHECK_EQ(hipSetDevice(1), 0);
    CHECK_EQ(hipGetDevice(&number), 0);
    CHECK_EQ(number, 1);
    CHECK_EQ(hipSetDevice(2), 101);
    CHECK_EQ(hipPeekAtLastError(), 101);
    CHECK_EQ(hipGetLastError(), 101);
    CHECK_EQ(hipGetLastError(), 0);
    CHECK_EQ(hipDeviceGetPCIBusId(bus, sizeof(bus), 1), 0);
    CHECK(strcmp(bus, "0000:12:00.0") == 0);
    CHECK_EQ(hipDeviceGetUuid(uuid[0], 0), 0);
    CHECK_EQ(hipDeviceGetUuid(uuid[1], 1), 0);
    CHECK(memcmp(uuid[0], uuid[1], 16) != 0);
    CHECK(strcmp(hipGetErrorName(NOT_READY), "hipErrorNotReady") == 0);
}

/* What the runtime has for a device without one. */
static void no_uuid(const struct world *world)
{
    unsigned char uuid[16];

    (void)world;
    CHECK_EQ(hipDeviceGetUuid(uuid, 1), 0);
    CHECK(memcmp(uuid, "XX\0\0\0\0\0\0\0\0\0\0\0\0\0", 16) == 0);
}

static void no_device(const struct world *world)
{
    int number = 7;

    (void)world;
    CHECK_EQ(hipGetDeviceCount(&number), 100);
    CHECK_EQ(number, 0);
}

static void memory(const struct world *world)
{
    char  from[100];
    char  to[100];
    char *device;
    int   status;

    (void)world;
    memset(from, 3, sizeof(from));
    CHECK_EQ(hipMalloc((void **)&device, 100), 0);
    CHECK_EQ(hipMemset(device, 9, 100), 0);
    CHECK_EQ(hipMemcpy(device + 50, from, 50, TO_DEVICE), 0);
    CHECK_EQ(hipMemcpy(to, device, 100, TO_HOST), 0);
    CHECK((to[49] == 9) && (to[50] == 3) && (to[99] == 3));
    CHECK_EQ(hipMemcpy(to, device, 100, TO_DEVICE), 21);
    CHECK_EQ(hipMemcpy(to, device, 101, TO_HOST), 1);
    CHECK_EQ(hipMemcpy(to, device, 1, 5), 21);
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGSEGV, SIG_DFL);
        *(volatile char *)device = 1;
        _exit(0);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFSIGNALED(status) && (WTERMSIG(status) == SIGSEGV));
    CHECK_EQ(hipFree(NULL), 0);
    CHECK_EQ(hipFree(device), 0);
    CHECK_EQ(hipFree(device), 1);
}

static void rows(const struct world *world)
{
    char  from[20];
    char  to[50];
    char *device;

    (void)world;
    for (int i = 0; i < 20; i++) {
        from[i] = (char)(i + 1);
    }
    CHECK_EQ(hipMalloc((void **)&device, 50), 0);
    CHECK_EQ(hipMemset(device, 99, 50), 0);
    CHECK_EQ(hipMemcpy2DAsync(device, 10, from, 4, 3, 5, BY_POINTERS, NULL), 0);
    CHECK_EQ(hipMemcpy2D(to, 10, device, 10, 10, 5, TO_HOST), 0);
    for (int i = 0; i < 50; i++) {
        CHECK_EQ(to[i], (i % 10 < 3) ? from[i / 10 * 4 + i % 10] : 99);
    }
    CHECK_EQ(hipMemcpy2D(to, 10, device, 2, 3, 5, TO_HOST), 12);
    CHECK_EQ(hipMemcpy2D(to, 2, device, 10, 3, 5, TO_HOST), 12);
    CHECK_EQ(hipMemcpy2D(to, 10, device, (size_t)1 << 31, 3, 1, TO_HOST), 12);
    CHECK_EQ(hipMemcpy2D(to, 10, device, 10, 3, 5, TO_DEVICE), 21);
    CHECK_EQ(hipMemcpy2D(to, 10, device, 10, 3, 6, TO_HOST), 1);
    CHECK_EQ(hipMemcpy2D(to, 10, device, 10, 3, 0, TO_HOST), 0);
    CHECK_EQ(hipMemcpy2D(to, 10, device, 12, 3, 5, TO_HOST), 1);
}

/* The numbering of memory kinds changed with ROCm 6. */
static void check_pointers(const struct world *world, int host, int device, int managed)
{
    hipPointerAttribute_t attributes;
    void                 *ptr;

    (void)world;
    CHECK_EQ(hipSetDevice(1), 0);
    CHECK_EQ(hipMalloc(&ptr, 64), 0);
    CHECK_EQ(hipPointerGetAttributes(&attributes, (char *)ptr + 63), 0);
    CHECK_EQ(attributes.type, device);
    CHECK_EQ(attributes.device, 1);
    CHECK_EQ(attributes.isManaged, 0);
    CHECK_EQ(hipHostMalloc(&ptr, 64, 0), 0);
    CHECK_EQ(hipPointerGetAttributes(&attributes, ptr), 0);
    CHECK_EQ(attributes.type, host);
    CHECK_EQ(hipHostFree(ptr), 0);
    CHECK_EQ(hipMallocManaged(&ptr, 64, 1), 0);
    CHECK_EQ(hipPointerGetAttributes(&attributes, ptr), 0);
    CHECK_EQ(attributes.type, managed);
    CHECK_EQ(attributes.isManaged, 1);
}

static void pointers_6(const struct world *world)
{
    hipPointerAttribute_t attributes;
    int                   version;

    CHECK_EQ(hipRuntimeGetVersion(&version), 0);
    CHECK_EQ(version / 10000000, 6);
    check_pointers(world, 1, 2, 3);
    CHECK_EQ(hipPointerGetAttributes(&attributes, &version), 0);
    CHECK_EQ(attributes.type, 0);
}

static void pointers_5(const struct world *world)
{
    hipPointerAttribute_t attributes;
    int                   version;

    CHECK_EQ(hipRuntimeGetVersion(&version), 0);
    CHECK_EQ(version / 10000000, 5);
    check_pointers(world, 0, 1, 1);
    CHECK_EQ(hipPointerGetAttributes(&attributes, &version), 1);
    CHECK_EQ(hipGetLastError(), 1);
}

static atomic_int gate;

static void wait_gate(void *arg)
{
    (void)arg;
    while (atomic_load(&gate) == 0) {
        usleep(100);
    }
}

static void streams(const struct world *world)
{
    void *stream;
    void *other;
    void *event;
    int  *pinned;
    int  *device;

    (void)world;
    CHECK_EQ(hipStreamCreateWithFlags(&stream, 1), 0);
    CHECK_EQ(hipStreamCreateWithFlags(&other, 1), 0);
    CHECK_EQ(hipEventCreateWithFlags(&event, 2), 0);
    CHECK_EQ(hipMalloc((void **)&device, 4), 0);
    CHECK_EQ(hipHostMalloc((void **)&pinned, 4, 0), 0);
    *pinned = 1;
    CHECK_EQ(hipMemcpy(device, pinned, 4, BY_POINTERS), 0);
    CHECK_EQ(hipLaunchHostFunc(stream, wait_gate, NULL), 0);
    CHECK_EQ(hipMemcpyAsync(device, pinned, 4, BY_POINTERS, stream), 0);
    CHECK_EQ(hipEventRecord(event, stream), 0);
    CHECK_EQ(hipStreamWaitEvent(other, event, 0), 0);
    CHECK_EQ(hipStreamQuery(other), NOT_READY);
    CHECK_EQ(hipEventQuery(event), NOT_READY);
    *pinned = 2;
    atomic_store(&gate, 1);
    CHECK_EQ(hipStreamSynchronize(other), 0);
    CHECK_EQ(hipEventQuery(event), 0);
    CHECK_EQ(hipMemcpy(pinned, device, 4, BY_POINTERS), 0);
    CHECK_EQ(*pinned, 2);
    CHECK_EQ(hipEventDestroy(event), 0);
    CHECK_EQ(hipStreamDestroy(stream), 0);
    CHECK_EQ(hipModuleLoadData(&stream, "x"), 209); /* no kernel image for this device */
}

/* hipMemAllocationProp and hipMemAccessDesc. */
static const struct {
    int   type, handles, location, device;
    void *win32;
    char  flags[8];
} prop = {1, 1, 1, 0, NULL, {0}};
static const struct {
    int location, device, flags;
} desc = {1, 0, 3};

/* Memory that is mapped in two steps, and a copy that crosses them. */
static void mapped(const struct world *world)
{
    enum { CHUNK = 2 << 20 };
    hipPointerAttribute_t attributes;
    char                 *at, ipc[64], from[100], to[100] = {0};
    void                 *handle;

    (void)world;
    memset(from, 3, sizeof(from));
    CHECK_EQ(hipMemAddressReserve((void **)&at, 2 * CHUNK, 0, NULL, 0), 0);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(hipMemCreate(&handle, CHUNK, &prop, 0), 0);
        CHECK_EQ(hipMemMap(at + i * CHUNK, CHUNK, 0, handle, 0), 0);
        CHECK_EQ(hipMemRelease(handle), 0);
        CHECK_EQ(hipMemcpy(at + i * CHUNK, from, 1, TO_DEVICE), 1); /* access comes next */
        CHECK_EQ(hipMemSetAccess(at + i * CHUNK, CHUNK, &desc, 1), 0);
    }
    CHECK_EQ(hipMemcpy(at + CHUNK - 50, from, 100, TO_DEVICE), 0);
    CHECK_EQ(hipMemcpy(to, at + CHUNK - 50, 100, TO_HOST), 0);
    CHECK(memcmp(from, to, 100) == 0);
    CHECK_EQ(hipPointerGetAttributes(&attributes, at + CHUNK), 0);
    CHECK_EQ(attributes.type, 2);
    CHECK_EQ(hipIpcGetMemHandle(ipc, at), 1);
    CHECK_EQ(hipFree(at), 1);
    CHECK_EQ(hipMemAddressFree(at, 2 * CHUNK), 1);
    CHECK_EQ(hipMemUnmap(at, 2 * CHUNK), 0);
    CHECK_EQ(hipMemAddressFree(at, 2 * CHUNK), 0);
}

/* The device goes on, and nothing of before is there. */
static void reset(const struct world *world)
{
    void *ptr, *stream, *event;
    char  byte = 1;

    (void)world;
    CHECK_EQ(hipMalloc(&ptr, 100), 0);
    CHECK_EQ(hipStreamCreateWithFlags(&stream, 1), 0);
    CHECK_EQ(hipEventCreateWithFlags(&event, 2), 0);
    CHECK_EQ(hipEventRecord(event, stream), 0);
    CHECK_EQ(hipDeviceReset(), 0);
    CHECK_EQ(hipStreamQuery(stream), 709);
    CHECK_EQ(hipEventQuery(event), 709);
    CHECK_EQ(hipFree(ptr), 1);
    CHECK_EQ(hipMalloc(&ptr, 100), 0);
    CHECK_EQ(hipMemcpy(ptr, &byte, 1, TO_DEVICE), 0);
}

int main(int argc, char **argv)
{
    const struct test_case cases[] = {
        {"devices", devices, 1, "rocm:2", NULL, NULL, -1},
        {"no_device", no_device, 1, "cuda:2", NULL, NULL, -1},
        {"memory", memory, 1, "rocm:1", NULL, NULL, -1},
        {"rows", rows, 1, "rocm:1", NULL, NULL, -1},
        {"pointers_6", pointers_6, 1, "rocm:2", NULL, NULL, -1},
        {"no_uuid", no_uuid, 1, "rocm:2", NULL, "XCCL_SIM_UUID=0", -1},
        {"pointers_5", pointers_5, 1, "rocm:2", NULL, "XCCL_SIM_HIP=5", -1},
        {"streams", streams, 1, "rocm:1", NULL, NULL, -1},
        {"mapped", mapped, 1, "rocm:1", NULL, NULL, -1},
        {"reset", reset, 1, "rocm:1", NULL, NULL, -1},
    };

    return run_cases(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
