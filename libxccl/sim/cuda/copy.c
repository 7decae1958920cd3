/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies and fills. */
#include "cuda/driver.h"

int cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t bytes)
{
    CU_NEED_CTX(ctx);
    return (int)xs_copy(ctx, NULL, (void *)dst, (const void *)src, bytes);
}

int cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream handle)
{
    struct xs_stream *stream;

    CU_NEED_CTX(ctx);
    enum xs_error res = xs_stream_get(ctx, handle, &stream);
    return (res != XS_OK) ? (int)res
                          : (int)xs_copy_async(stream, (void *)dst, (const void *)src, bytes);
}

/* The forms that say which side is the device's insist on it. */
static bool on_device(CUdeviceptr ptr)
{
    struct xs_range range;

    return xs_mem_find((const void *)ptr, &range);
}

int cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t bytes)
{
    CU_NEED_INIT;
    return ((bytes > 0) && !on_device(dst)) ? XS_INVALID_VALUE
                                            : cuMemcpy(dst, (CUdeviceptr)src, bytes);
}

int cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t bytes)
{
    CU_NEED_INIT;
    return ((bytes > 0) && !on_device(src)) ? XS_INVALID_VALUE
                                            : cuMemcpy((CUdeviceptr)dst, src, bytes);
}

/* What programs call that are compiled with --default-stream per-thread. */
static int copy_per_thread(CUdeviceptr on_a_device, void *dst, const void *src, size_t bytes)
{
    CU_NEED_CTX(ctx);
    return ((bytes > 0) && !on_device(on_a_device))
               ? XS_INVALID_VALUE
               : (int)xs_copy(ctx, XS_STREAM_PER_THREAD, dst, src, bytes);
}

int cuMemcpyHtoD_v2_ptds(CUdeviceptr dst, const void *src, size_t bytes)
{
    return copy_per_thread(dst, (void *)dst, src, bytes);
}

int cuMemcpyDtoH_v2_ptds(void *dst, CUdeviceptr src, size_t bytes)
{
    return copy_per_thread(src, dst, (const void *)src, bytes);
}

int cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes)
{
    CU_NEED_INIT;
    return ((bytes > 0) && (!on_device(dst) || !on_device(src))) ? XS_INVALID_VALUE
                                                                 : cuMemcpy(dst, src, bytes);
}

int cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream)
{
    CU_NEED_INIT;
    return ((bytes > 0) && !on_device(dst)) ? XS_INVALID_VALUE
                                            : cuMemcpyAsync(dst, (CUdeviceptr)src, bytes, stream);
}

int cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
    CU_NEED_INIT;
    return ((bytes > 0) && !on_device(src)) ? XS_INVALID_VALUE
                                            : cuMemcpyAsync((CUdeviceptr)dst, src, bytes, stream);
}

int cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
    CU_NEED_INIT;
    return ((bytes > 0) && (!on_device(dst) || !on_device(src)))
               ? XS_INVALID_VALUE
               : cuMemcpyAsync(dst, src, bytes, stream);
}

int cuMemcpyPeer(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx,
                 size_t bytes)
{
    if (!xs_ctx_valid(dst_ctx) || !xs_ctx_valid(src_ctx)) {
        return XS_INVALID_CONTEXT;
    }
    return cuMemcpyDtoD_v2(dst, src, bytes);
}

int cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx,
                      size_t bytes, CUstream stream)
{
    if (!xs_ctx_valid(dst_ctx) || !xs_ctx_valid(src_ctx)) {
        return XS_INVALID_CONTEXT;
    }
    return cuMemcpyDtoDAsync_v2(dst, src, bytes, stream);
}

/*
 * One side of a copy of rows: where it begins, or NULL. The memory must be of the kind that the
 * structure says, and there are no arrays here.
 */
static const void *side_of(unsigned type, const void *host, CUdeviceptr device, size_t at)
{
    struct xs_range range;

    if (type == CU_MEMORYTYPE_HOST) {
        bool known = (host != NULL) && xs_mem_find((const char *)host + at, &range);

        return ((host == NULL) || (known && (range.kind == XS_MEM_DEVICE)))
                   ? NULL
                   : (const char *)host + at;
    }
    if ((type == CU_MEMORYTYPE_UNIFIED) ||
        ((type == CU_MEMORYTYPE_DEVICE) && on_device(device + at))) {
        return (const void *)(device + at);
    }
    return NULL;
}

static enum xs_error read_2d(const CUDA_MEMCPY2D *copy, struct xs_copy_2d *rows)
{
    if (copy == NULL) {
        return XS_INVALID_VALUE;
    }
    *rows = (struct xs_copy_2d){.dst_pitch = copy->dstPitch,
                                .src_pitch = copy->srcPitch,
                                .width = copy->WidthInBytes,
                                .height = copy->Height};
    if ((rows->width == 0) || (rows->height == 0)) {
        return XS_OK;
    }
    if ((copy->srcXInBytes + rows->width > rows->src_pitch) ||
        (copy->dstXInBytes + rows->width > rows->dst_pitch)) {
        return XS_INVALID_VALUE;
    }
    rows->src = side_of(copy->srcMemoryType, copy->srcHost, copy->srcDevice,
                        copy->srcY * copy->srcPitch + copy->srcXInBytes);
    rows->dst = (void *)(uintptr_t)side_of(copy->dstMemoryType, copy->dstHost, copy->dstDevice,
                                           copy->dstY * copy->dstPitch + copy->dstXInBytes);
    return ((rows->src == NULL) || (rows->dst == NULL)) ? XS_INVALID_VALUE : XS_OK;
}

int cuMemcpy2D_v2(const CUDA_MEMCPY2D *copy)
{
    struct xs_copy_2d rows;

    CU_NEED_CTX(ctx);
    enum xs_error res = read_2d(copy, &rows);
    return (res != XS_OK) ? (int)res : (int)xs_copy_2d(ctx, &rows);
}

int cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *copy)
{
    return cuMemcpy2D_v2(copy);
}

int cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy, CUstream handle)
{
    struct xs_stream *stream;
    struct xs_copy_2d rows;

    CU_NEED_CTX(ctx);
    enum xs_error res = read_2d(copy, &rows);
    if (res == XS_OK) {
        res = xs_stream_get(ctx, handle, &stream);
    }
    return (res != XS_OK) ? (int)res : (int)xs_copy_2d_async(stream, &rows);
}

static int fill(CUdeviceptr dst, uint32_t value, unsigned width, size_t count)
{
    CU_NEED_CTX(ctx);
    return (int)xs_fill(ctx, (void *)dst, value, width, count);
}

static int fill_async(CUdeviceptr dst, uint32_t value, unsigned width, size_t count,
                      CUstream handle)
{
    struct xs_stream *stream;

    CU_NEED_CTX(ctx);
    enum xs_error res = xs_stream_get(ctx, handle, &stream);
    return (res != XS_OK) ? (int)res : (int)xs_fill_async(stream, (void *)dst, value, width, count);
}

int cuMemsetD8_v2(CUdeviceptr dst, unsigned char value, size_t count)
{
    return fill(dst, value, 1, count);
}

int cuMemsetD16_v2(CUdeviceptr dst, unsigned short value, size_t count)
{
    return fill(dst, value, 2, count);
}

int cuMemsetD32_v2(CUdeviceptr dst, unsigned value, size_t count)
{
    return fill(dst, value, 4, count);
}

int cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t count, CUstream stream)
{
    return fill_async(dst, value, 1, count, stream);
}

int cuMemsetD16Async(CUdeviceptr dst, unsigned short value, size_t count, CUstream stream)
{
    return fill_async(dst, value, 2, count, stream);
}

int cuMemsetD32Async(CUdeviceptr dst, unsigned value, size_t count, CUstream stream)
{
    return fill_async(dst, value, 4, count, stream);
}
