/* SPDX-License-Identifier: BSD-3-Clause */
#include "device.h"
#include "ranks.h"

int hipSetDevice(int device);
int hipMalloc(void **ptr, size_t bytes);
int hipFree(void *ptr);
int hipHostMalloc(void **ptr, size_t bytes, unsigned flags);
int hipHostRegister(void *ptr, size_t bytes, unsigned flags);
int hipMemcpy(void *dst, const void *src, size_t bytes, int kind);
int hipMemcpyAsync(void *dst, const void *src, size_t bytes, int kind, void *stream);
int hipStreamCreateWithFlags(void **stream, unsigned flags);
int hipStreamDestroy(void *stream);
int hipStreamSynchronize(void *stream);
int hipStreamQuery(void *stream);

void dev_use(int device)
{
    CHECK_EQ(hipSetDevice(device), 0);
}

int dev_try_alloc(size_t bytes, void **ptr_p)
{
    return hipMalloc(ptr_p, bytes);
}

void *dev_alloc(size_t bytes)
{
    void *ptr;

    CHECK_EQ(hipMalloc(&ptr, bytes), 0);
    return ptr;
}

void *dev_pinned(size_t bytes)
{
    void *ptr;

    CHECK_EQ(hipHostMalloc(&ptr, bytes, 0), 0);
    return ptr;
}

void dev_register(void *ptr, size_t bytes)
{
    CHECK_EQ(hipHostRegister(ptr, bytes, 0), 0);
}

void dev_free(void *ptr)
{
    CHECK_EQ(hipFree(ptr), 0);
}

void dev_put(void *dst, const void *src, size_t bytes)
{
    CHECK_EQ(hipMemcpy(dst, src, bytes, 4), 0);
}

void dev_get(void *dst, const void *src, size_t bytes)
{
    dev_put(dst, src, bytes);
}

dev_stream_t dev_stream(void)
{
    void *stream;

    CHECK_EQ(hipStreamCreateWithFlags(&stream, 1), 0);
    return stream;
}

void dev_stream_free(dev_stream_t stream)
{
    CHECK_EQ(hipStreamDestroy(stream), 0);
}

int dev_try_copy(void *dst, const void *src, size_t bytes, dev_stream_t stream)
{
    return hipMemcpyAsync(dst, src, bytes, 4, stream);
}

void dev_sync(dev_stream_t stream)
{
    CHECK_EQ(hipStreamSynchronize(stream), 0);
}

int dev_idle(dev_stream_t stream)
{
    return hipStreamQuery(stream) == 0;
}
