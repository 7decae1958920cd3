/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The few functions of CUDA's runtime that MPICH's tests allocate memory with, over the driver's,
 * which is opened when it is needed: no SDK, and the simulated accelerator will do.
 */
#ifndef MT_CUDA_RUNTIME_API_H
#define MT_CUDA_RUNTIME_API_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef int cudaError_t;
enum { cudaSuccess = 0, cudaErrorMemoryAllocation = 2 };
enum cudaMemcpyKind { cudaMemcpyDefault = 4 };
enum { cudaMemAttachGlobal = 1 };

/* A function of the driver; without one the program ends, as it would without the library. */
static inline void *cudart_find(const char *name)
{
    static void *library = NULL;
    void        *address = NULL;

    if (library == NULL) {
        library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
        if (library != NULL) {
            ((int (*)(unsigned))dlsym(library, "cuInit"))(0);
        }
    }
    address = (library != NULL) ? dlsym(library, name) : NULL;
    if (address == NULL) {
        fprintf(stderr, "cudart: no %s: %s\n", name, dlerror());
        exit(70);
    }
    return address;
}

static inline cudaError_t cudaGetDeviceCount(int *count)
{
    return ((int (*)(int *))cudart_find("cuDeviceGetCount"))(count);
}

static inline cudaError_t cudaSetDevice(int number)
{
    void *context;
    int   device;
    int   status = ((int (*)(int *, int))cudart_find("cuDeviceGet"))(&device, number);

    if (status == 0) {
        status = ((int (*)(void **, int))cudart_find("cuDevicePrimaryCtxRetain"))(&context, device);
    }
    return (status == 0) ? ((int (*)(void *))cudart_find("cuCtxSetCurrent"))(context) : status;
}

/* The runtime makes device 0 current where nothing else is. */
static inline void cudart_enter(void)
{
    void *context = NULL;

    ((int (*)(void **))cudart_find("cuCtxGetCurrent"))(&context);
    if (context == NULL) {
        cudaSetDevice(0);
    }
}

static inline cudaError_t cudaMalloc(void **ptr, size_t bytes)
{
    cudart_enter();
    return ((int (*)(void **, size_t))cudart_find("cuMemAlloc_v2"))(ptr, bytes + (bytes == 0));
}

static inline cudaError_t cudaMallocManaged(void **ptr, size_t bytes, unsigned flags)
{
    cudart_enter();
    return ((int (*)(void **, size_t, unsigned))cudart_find("cuMemAllocManaged"))(
        ptr, bytes + (bytes == 0), flags);
}

static inline cudaError_t cudaMallocHost(void *ptr, size_t bytes)
{
    cudart_enter();
    return ((int (*)(void *, size_t, unsigned))cudart_find("cuMemHostAlloc"))(
        ptr, bytes + (bytes == 0), 0);
}

static inline cudaError_t cudaFree(void *ptr)
{
    return (ptr == NULL) ? 0 : ((int (*)(void *))cudart_find("cuMemFree_v2"))(ptr);
}

static inline cudaError_t cudaFreeHost(void *ptr)
{
    return (ptr == NULL) ? 0 : ((int (*)(void *))cudart_find("cuMemFreeHost"))(ptr);
}

/* The driver's cuMemcpy wants addresses it knows; pageable memory is copied by its own calls. */
static inline cudaError_t cudaMemcpy(void *dst, const void *src, size_t bytes,
                                     enum cudaMemcpyKind kind)
{
    unsigned type = 0;
    int (*ask)(void *, int, uint64_t);

    (void)kind;
    if (bytes == 0) {
        return 0;
    }
    *(void **)&ask = cudart_find("cuPointerGetAttribute");
    if ((ask(&type, 2, (uint64_t)(uintptr_t)src) == 0) && (type == 2)) {
        type = 0;
        if ((ask(&type, 2, (uint64_t)(uintptr_t)dst) == 0) && (type == 2)) {
            return ((int (*)(uint64_t, uint64_t, size_t))cudart_find("cuMemcpy"))(
                (uint64_t)(uintptr_t)dst, (uint64_t)(uintptr_t)src, bytes);
        }
        return ((int (*)(void *, uint64_t, size_t))cudart_find("cuMemcpyDtoH_v2"))(
            dst, (uint64_t)(uintptr_t)src, bytes);
    }
    return ((int (*)(uint64_t, const void *, size_t))cudart_find("cuMemcpyHtoD_v2"))(
        (uint64_t)(uintptr_t)dst, src, bytes);
}

#endif
