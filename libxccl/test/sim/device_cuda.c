/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdint.h>

#include "device.h"
#include "ranks.h"

typedef uintptr_t CUdeviceptr;
int               cuInit(unsigned flags);
int               cuDevicePrimaryCtxRetain(void **ctx, int device);
int               cuCtxSetCurrent(void *ctx);
int               cuMemAlloc_v2(CUdeviceptr *ptr, size_t bytes);
int               cuMemFree_v2(CUdeviceptr ptr);
int               cuMemHostAlloc(void **ptr, size_t bytes, unsigned flags);
int               cuMemHostRegister_v2(void *ptr, size_t bytes, unsigned flags);
int               cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t bytes);
int               cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, void *stream);
int               cuStreamCreate(void **stream, unsigned flags);
int               cuStreamDestroy_v2(void *stream);
int               cuStreamSynchronize(void *stream);
int               cuStreamQuery(void *stream);

void dev_use(int device)
{
    void *ctx;

    CHECK_EQ(cuInit(0), 0);
    CHECK_EQ(cuDevicePrimaryCtxRetain(&ctx, device), 0);
    CHECK_EQ(cuCtxSetCurrent(ctx), 0);
}

int dev_try_alloc(size_t bytes, void **ptr_p)
{
    return cuMemAlloc_v2((CUdeviceptr *)ptr_p, bytes);
}

void *dev_alloc(size_t bytes)
{
    void *ptr;

    CHECK_EQ(dev_try_alloc(bytes, &ptr), 0);
    return ptr;
}

void *dev_pinned(size_t bytes)
{
    void *ptr;

    CHECK_EQ(cuMemHostAlloc(&ptr, bytes, 0), 0);
    return ptr;
}

void dev_register(void *ptr, size_t bytes)
{
    CHECK_EQ(cuMemHostRegister_v2(ptr, bytes, 0), 0);
}

void dev_free(void *ptr)
{
    CHECK_EQ(cuMemFree_v2((CUdeviceptr)ptr), 0);
}

void dev_put(void *dst, const void *src, size_t bytes)
{
    CHECK_EQ(cuMemcpy((CUdeviceptr)dst, (CUdeviceptr)src, bytes), 0);
}

void dev_get(void *dst, const void *src, size_t bytes)
{
    dev_put(dst, src, bytes);
}

dev_stream_t dev_stream(void)
{
    void *stream;

    CHECK_EQ(cuStreamCreate(&stream, 1), 0);
    return stream;
}

void dev_stream_free(dev_stream_t stream)
{
    CHECK_EQ(cuStreamDestroy_v2(stream), 0);
}

int dev_try_copy(void *dst, const void *src, size_t bytes, dev_stream_t stream)
{
    return cuMemcpyAsync((CUdeviceptr)dst, (CUdeviceptr)src, bytes, stream);
}

void dev_sync(dev_stream_t stream)
{
    CHECK_EQ(cuStreamSynchronize(stream), 0);
}

int dev_idle(dev_stream_t stream)
{
    return cuStreamQuery(stream) == 0;
}
