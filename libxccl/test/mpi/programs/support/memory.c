/* SPDX-License-Identifier: BSD-3-Clause */
#include "memory.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The calls of a runtime, with what differs between CUDA's driver API and HIP's evened out. */
struct runtime {
    int (*init)(unsigned);
    int (*get_count)(int *);
    int (*set_device)(int);                         /* HIP */
    int (*device_get)(int *, int);                  /* CUDA */
    int (*context_retain)(void **, int);            /* CUDA */
    int (*context_set)(void *);                     /* CUDA */
    int (*reset)(int);                              /* CUDA */
    int (*reset_current)(void);                     /* HIP */
    int (*copy)(void *, const void *, size_t, int); /* HIP: 1 to the device, 2 from it */
    int (*copy_to)(uint64_t, const void *, size_t); /* CUDA */
    int (*copy_from)(void *, uint64_t, size_t);     /* CUDA */
    int (*alloc)(void **, size_t);
    int (*alloc_managed)(void **, size_t, unsigned);
    int (*free)(void *);
};

/* Of Gaudi's: copies go over a stream, and host memory is mapped for them. */
static struct {
    int (*initialize)(void);
    int (*acquire)(unsigned *, const char *);
    int (*alloc)(unsigned, uint64_t, uint64_t, unsigned, uint64_t *);
    int (*free)(unsigned, uint64_t, unsigned);
    int (*map)(unsigned, uint64_t, const void *);
    int (*unmap)(unsigned, const void *);
    int (*copy)(void *, uint64_t, uint64_t, uint64_t, int);
    int (*stream_new)(void **, unsigned, unsigned);
    int (*stream_sync)(void *);
} syn;
static void *syn_stream;

static struct runtime api;
static int            device = -1; /* -1: no runtime was started */
static void          *context;     /* CUDA's primary context; NULL with HIP */

static void require(int status, const char *what)
{
    if (status != 0) {
        fprintf(stderr, "memory: %s failed with status %d\n", what, status);
        exit(70);
    }
}

static void *symbol(void *library, const char *name)
{
    void *address = dlsym(library, name);

    if (address == NULL) {
        fprintf(stderr, "memory: %s is missing: %s\n", name, dlerror());
        exit(70);
    }
    return address;
}

static void *library; /* of the runtime */

#define BIND(field, name) (*(void **)&api.field = symbol(library, name))

/* MT_POOLS: device memory is that of the runtime's pools, as of cudaMallocAsync. */
static int (*alloc_in_order)(void **, size_t, void *);
static int (*wait_in_order)(void *);

static int alloc_of_pool(void **ptr, size_t bytes)
{
    return alloc_in_order(ptr, bytes, NULL); /* in the order of the default stream: so at once */
}

static void take_pools(const char *name, const char *waits)
{
    if (getenv("MT_POOLS") != NULL) {
        *(void **)&alloc_in_order = symbol(library, name);
        *(void **)&wait_in_order = symbol(library, waits);
        api.alloc = alloc_of_pool;
    }
}

static void bind_cuda(void)
{
    BIND(init, "cuInit");
    BIND(get_count, "cuDeviceGetCount");
    BIND(device_get, "cuDeviceGet");
    BIND(context_retain, "cuDevicePrimaryCtxRetain");
    BIND(context_set, "cuCtxSetCurrent");
    BIND(copy_to, "cuMemcpyHtoD_v2");
    BIND(copy_from, "cuMemcpyDtoH_v2");
    BIND(alloc, "cuMemAlloc_v2");
    BIND(free, "cuMemFree_v2");
    *(void **)&api.alloc_managed = dlsym(library, "cuMemAllocManaged");
    take_pools("cuMemAllocAsync", "cuStreamSynchronize");
}

static void bind_hip(void)
{
    BIND(init, "hipInit");
    BIND(get_count, "hipGetDeviceCount");
    BIND(set_device, "hipSetDevice");
    BIND(copy, "hipMemcpy");
    BIND(alloc, "hipMalloc");
    BIND(free, "hipFree");
    *(void **)&api.alloc_managed = dlsym(library, "hipMallocManaged");
    take_pools("hipMallocAsync", "hipStreamSynchronize");
}

static int hpu_alloc(void **ptr, size_t bytes)
{
    uint64_t address = 0;
    int      status = syn.alloc((unsigned)device, bytes, 0, 0, &address);

    *ptr = (void *)(uintptr_t)address;
    return status;
}

/* There is none: a Gaudi's memory takes its place. */
static int hpu_alloc_managed(void **ptr, size_t bytes, unsigned flags)
{
    (void)flags;
    return hpu_alloc(ptr, bytes);
}

static int hpu_free(void *ptr)
{
    return syn.free((unsigned)device, (uintptr_t)ptr, 0);
}

/* As HIP's: 1 to the device, 2 from it; here 0 and 1. */
static int hpu_copy(void *dst, const void *src, size_t bytes, int kind)
{
    const void *host = (kind == 1) ? src : dst;

    if (bytes == 0) {
        return 0;
    }
    require(syn.map((unsigned)device, bytes, host), "mapping host memory");
    require(syn.copy(syn_stream, (uintptr_t)src, bytes, (uintptr_t)dst, kind - 1), "copying");
    require(syn.stream_sync(syn_stream), "waiting for a copy");
    return syn.unmap((unsigned)device, host);
}

static void open_hpu(void)
{
    static const struct {
        const char *name;
        void       *slot;
    } rows[] = {
        {"synInitialize", &syn.initialize},
        {"synDeviceAcquire", &syn.acquire},
        {"synDeviceMalloc", &syn.alloc},
        {"synDeviceFree", &syn.free},
        {"synHostMap", &syn.map},
        {"synHostUnmap", &syn.unmap},
        {"synMemCopyAsync", &syn.copy},
        {"synStreamCreateGeneric", &syn.stream_new},
        {"synStreamSynchronize", &syn.stream_sync},
    };
    unsigned acquired = 0;

    library = dlopen("libSynapse.so", RTLD_NOW | RTLD_GLOBAL);
    require(library == NULL, "opening libSynapse.so");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        void *address = symbol(library, rows[i].name);
        memcpy(rows[i].slot, &address, sizeof(address));
    }
    require(syn.initialize(), "synInitialize");
    require(syn.acquire(&acquired, NULL), "synDeviceAcquire");
    require(syn.stream_new(&syn_stream, acquired, 0), "synStreamCreateGeneric");
    device = (int)acquired;
    api.alloc = hpu_alloc;
    api.alloc_managed = hpu_alloc_managed;
    api.free = hpu_free;
    api.copy = hpu_copy;
}

void mt_memory_enter(void)
{
    if (syn_stream != NULL) {
        return; /* a process has one device */
    }
    if ((device >= 0) && (api.set_device != NULL)) {
        require(api.set_device(device), "hipSetDevice");
    } else if (device >= 0) {
        require(api.context_set(context), "cuCtxSetCurrent");
    }
}

void mt_memory_open(const char *runtime, int local_rank)
{
    bool        cuda = strcmp(runtime, "cuda") == 0;
    const char *file = cuda ? "libcuda.so.1" : "libamdhip64.so";
    int         count = 0;

    if (strcmp(runtime, "none") == 0) {
        return;
    }
    if (strcmp(runtime, "hpu") == 0) {
        open_hpu();
        return;
    }
    library = dlopen(file, RTLD_NOW | RTLD_GLOBAL);
    if (library == NULL) {
        fprintf(stderr, "memory: %s\n", dlerror());
        exit(70);
    }
    cuda ? bind_cuda() : bind_hip();
    require(api.init(0), "initialising the runtime");
    require(api.get_count(&count), "counting devices");
    require(count < 1, "finding a device");
    if (getenv("MT_DEVICES") != NULL) { /* the others are left over */
        count = atoi(getenv("MT_DEVICES"));
    }
    if (cuda) {
        require(api.device_get(&device, local_rank % count), "cuDeviceGet");
        require(api.context_retain(&context, device), "cuDevicePrimaryCtxRetain");
    } else {
        device = local_rank % count;
    }
    mt_memory_enter();
}

void mt_memory_reset(bool again)
{
    if (api.set_device != NULL) {
        BIND(reset_current, "hipDeviceReset");
        require(api.reset_current(), "hipDeviceReset");
    } else if (context != NULL) {
        BIND(reset, "cuDevicePrimaryCtxReset_v2");
        require(api.reset(device), "cuDevicePrimaryCtxReset");
    }
    if (again && (context != NULL)) {
        require(api.context_retain(&context, device), "cuDevicePrimaryCtxRetain");
        require(api.context_set(context), "cuCtxSetCurrent");
    }
}

/* As in a program that was compiled for it. */
void mt_copy_per_thread(void)
{
    if (api.copy != NULL) {
        BIND(copy, "hipMemcpy_spt");
    } else {
        BIND(copy_to, "cuMemcpyHtoD_v2_ptds");
        BIND(copy_from, "cuMemcpyDtoH_v2_ptds");
    }
}

void *mt_alloc(enum mt_where where, size_t bytes)
{
    void *ptr = NULL;

    bytes = (bytes == 0) ? 1 : bytes;
    if ((where == MT_HOST) || (device < 0)) {
        ptr = malloc(bytes);
        require(ptr == NULL, "malloc");
    } else if (where == MT_MANAGED) {
        require(api.alloc_managed == NULL, "looking for managed memory");
        require(api.alloc_managed(&ptr, bytes, 1), "allocating managed memory");
    } else {
        require(api.alloc(&ptr, bytes), "allocating device memory");
    }
    return ptr;
}

void mt_free(enum mt_where where, void *ptr)
{
    if ((where == MT_HOST) || (device < 0)) {
        free(ptr);
    } else {
        /* A copy from pageable memory may be under way, and for memory of pools nothing waits. */
        require((wait_in_order != NULL) && (wait_in_order(NULL) != 0), "waiting for copies");
        require(api.free(ptr), "freeing device memory");
    }
}

void mt_put(void *dst, enum mt_where where, const void *src, size_t bytes)
{
    if (bytes == 0) {
        return; /* there may be no memory */
    }
    if ((where == MT_HOST) || (device < 0)) {
        memcpy(dst, src, bytes);
    } else if (api.copy != NULL) {
        require(api.copy(dst, src, bytes, 1), "copying to the device");
    } else {
        require(api.copy_to((uint64_t)(uintptr_t)dst, src, bytes), "copying to the device");
    }
}

void mt_get(void *dst, const void *src, enum mt_where where, size_t bytes)
{
    if (bytes == 0) {
        return;
    }
    if ((where == MT_HOST) || (device < 0)) {
        memcpy(dst, src, bytes);
    } else if (api.copy != NULL) {
        require(api.copy(dst, src, bytes, 2), "copying from the device");
    } else {
        require(api.copy_from(dst, (uint64_t)(uintptr_t)src, bytes), "copying from the device");
    }
}
