/* SPDX-License-Identifier: BSD-3-Clause */
#include "device.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Pointers to device memory are 64-bit integers in one API and pointers in the other: on the
 * machines that have either, both are passed alike. */
static struct {
    int (*init)(unsigned flags);
    int (*count)(int *count);
    int (*retain)(void **context, int device); /* CUDA */
    int (*use_context)(void *context);         /* CUDA */
    int (*use_device)(int device);             /* HIP */
    int (*alloc)(void **ptr, size_t bytes);
    int (*free)(void *ptr);
    int (*put)(void *device, const void *host, size_t bytes);
    int (*get)(void *host, const void *device, size_t bytes);
    int (*stream_new)(void **stream, unsigned flags);
    int (*stream_free)(void *stream);
    int (*stream_sync)(void *stream);
} api;
static void *context;
static int   chosen;

enum { NON_BLOCKING = 1 };

struct name {
    const char *cuda, *hip;
    void       *slot;
};

static const struct name names[] = {
    {"cuInit", "hipInit", &api.init},
    {"cuDeviceGetCount", "hipGetDeviceCount", &api.count},
    {"cuDevicePrimaryCtxRetain", NULL, &api.retain},
    {"cuCtxSetCurrent", NULL, &api.use_context},
    {NULL, "hipSetDevice", &api.use_device},
    {"cuMemAlloc_v2", "hipMalloc", &api.alloc},
    {"cuMemFree_v2", "hipFree", &api.free},
    {"cuMemcpyHtoD_v2", "hipMemcpyHtoD", &api.put},
    {"cuMemcpyDtoH_v2", "hipMemcpyDtoH", &api.get},
    {"cuStreamCreate", "hipStreamCreateWithFlags", &api.stream_new},
    {"cuStreamDestroy_v2", "hipStreamDestroy", &api.stream_free},
    {"cuStreamSynchronize", "hipStreamSynchronize", &api.stream_sync},
};

static void need(int rc, const char *what)
{
    if (rc != 0) {
        fprintf(stderr, "the device's %s failed with %d\n", what, rc);
        exit(3);
    }
}

static void *open_runtime(int hip)
{
    static const char *const files[2][3] = {
        {"libcuda.so.1", NULL, NULL}, {"libamdhip64.so.6", "libamdhip64.so.7", "libamdhip64.so"}};
    void *handle = NULL;

    for (int i = 0; (handle == NULL) && (i < 3) && (files[hip][i] != NULL); i++) {
        handle = dlopen(files[hip][i], RTLD_NOW | RTLD_GLOBAL);
    }
    if (handle == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(3);
    }
    return handle;
}

/* Host memory in the place of a device's. */
static int host_alloc(void **ptr, size_t bytes)
{
    *ptr = malloc((bytes > 0) ? bytes : 1);
    return (*ptr != NULL) ? 0 : 1;
}

static int host_free(void *ptr)
{
    free(ptr);
    return 0;
}

static int host_copy(void *dst, const void *src, size_t bytes)
{
    memcpy(dst, src, bytes);
    return 0;
}

static int host_stream_new(void **stream, unsigned flags)
{
    (void)flags;
    *stream = NULL;
    return 0;
}

static int host_stream(void *stream)
{
    return (stream == NULL) ? 0 : 1;
}

static void open_host(void)
{
    api.alloc = host_alloc;
    api.free = host_free;
    api.put = host_copy;
    api.get = host_copy;
    api.stream_new = host_stream_new;
    api.stream_free = host_stream;
    api.stream_sync = host_stream;
}

/* Gaudi's runtime: a process acquires its device, and copies go over streams and mapped memory. */
static struct {
    int (*initialize)(void);
    int (*acquire)(unsigned *device, const char *bus);
    int (*alloc)(unsigned device, uint64_t bytes, uint64_t wanted, unsigned flags,
                 uint64_t *address);
    int (*free)(unsigned device, uint64_t address, unsigned flags);
    int (*map)(unsigned device, uint64_t bytes, const void *ptr);
    int (*unmap)(unsigned device, const void *ptr);
    int (*copy)(void *stream, uint64_t src, uint64_t bytes, uint64_t dst, int direction);
    int (*stream_new)(void **stream, unsigned device, unsigned flags);
    int (*stream_sync)(void *stream);
} syn;
static unsigned the_device;
static void    *copies; /* a stream */

static int hpu_alloc(void **ptr, size_t bytes)
{
    uint64_t address = 0;
    int      rc = syn.alloc(the_device, (bytes > 0) ? bytes : 1, 0, 0, &address);

    *ptr = (void *)(uintptr_t)address;
    return rc;
}

static int hpu_free(void *ptr)
{
    return syn.free(the_device, (uintptr_t)ptr, 0);
}

static int hpu_copy(void *dst, const void *src, size_t bytes, int direction)
{
    const void *host = (direction == 0) ? src : dst;
    int         rc = syn.map(the_device, bytes, host);

    if (rc == 0) {
        rc = syn.copy(copies, (uintptr_t)src, bytes, (uintptr_t)dst, direction);
    }
    if (rc == 0) {
        rc = syn.stream_sync(copies);
    }
    return (rc == 0) ? syn.unmap(the_device, host) : rc;
}

static int hpu_put(void *device, const void *host, size_t bytes)
{
    return hpu_copy(device, host, bytes, 0);
}

static int hpu_get(void *host, const void *device, size_t bytes)
{
    return hpu_copy(host, device, bytes, 1);
}

static int hpu_stream_new(void **stream, unsigned flags)
{
    (void)flags;
    return syn.stream_new(stream, the_device, 0);
}

/* The end of a copy to the device is waited for by xt_put() on a NULL stream. */
static int hpu_stream_sync(void *stream)
{
    return (stream == NULL) ? 0 : syn.stream_sync(stream);
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
        {"synStreamDestroy", &api.stream_free},
    };
    void *handle = dlopen("libSynapse.so", RTLD_NOW | RTLD_GLOBAL);

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        void *address = (handle != NULL) ? dlsym(handle, rows[i].name) : NULL;
        need(address == NULL, rows[i].name);
        memcpy(rows[i].slot, &address, sizeof(address));
    }
    need(syn.initialize(), "initialisation");
    need(syn.acquire(&the_device, NULL), "acquisition");
    need(syn.stream_new(&copies, the_device, 0), "stream for copies");
    api.alloc = hpu_alloc;
    api.free = hpu_free;
    api.put = hpu_put;
    api.get = hpu_get;
    api.stream_new = hpu_stream_new;
    api.stream_sync = hpu_stream_sync;
}

void xt_device_open(const char *flavour, int device)
{
    if (strcmp(flavour, "host") == 0) {
        open_host();
        return;
    }
    if (strcmp(flavour, "hpu") == 0) {
        open_hpu();
        return;
    }

    int   hip = (strcmp(flavour, "rocm") == 0);
    void *handle = open_runtime(hip);
    int   count = 0;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *name = hip ? names[i].hip : names[i].cuda;
        void       *address = (name != NULL) ? dlsym(handle, name) : NULL;
        if ((name != NULL) && (address == NULL)) {
            fprintf(stderr, "the device runtime has no %s\n", name);
            exit(3);
        }
        memcpy(names[i].slot, &address, sizeof(address));
    }
    need(api.init(0), "init");
    need(api.count(&count), "count");
    if (device >= count) {
        fprintf(stderr, "device %d is wanted but there are %d\n", device, count);
        exit(3);
    }
    chosen = device;
    if (!hip) {
        need(api.retain(&context, device), "primary context");
    }
    xt_device_enter();
}

void xt_device_enter(void)
{
    if (api.use_device != NULL) {
        need(api.use_device(chosen), "choice");
    } else {
        need(api.use_context(context), "context");
    }
}

void *xt_alloc(size_t bytes)
{
    void *ptr = NULL;

    need(api.alloc(&ptr, bytes), "allocation");
    return ptr;
}

void xt_free(void *ptr)
{
    need(api.free(ptr), "free");
}

void xt_put(void *device, const void *host, size_t bytes)
{
    if (bytes > 0) {
        need(api.put(device, host, bytes), "copy to the device");
        /* It may return before the data has arrived, and other streams do not wait for it. */
        need(api.stream_sync(NULL), "end of a copy to the device");
    }
}

void xt_get(void *host, const void *device, size_t bytes)
{
    if (bytes > 0) {
        need(api.get(host, device, bytes), "copy from the device");
    }
}

void *xt_stream_new(void)
{
    void *stream = NULL;

    need(api.stream_new(&stream, NON_BLOCKING), "stream");
    return stream;
}

void xt_stream_free(void *stream)
{
    need(api.stream_free(stream), "end of a stream");
}

void xt_stream_sync(void *stream)
{
    need(api.stream_sync(stream), "synchronisation");
}
