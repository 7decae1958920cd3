/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory, what a pointer is, handles for other processes, copies and fills. */
#include <string.h>

#include "rocm/hip.h"

static int allocate(enum xs_kind kind, void **ptr, size_t bytes, unsigned flags)
{
    struct xs_ctx *ctx;
    int            res = (ptr == NULL) ? XS_INVALID_VALUE : xs_hip_ctx(&ctx);

    if ((res == XS_OK) && (bytes == 0)) {
        *ptr = NULL; /* no bytes are no error in HIP */
        return XS_OK;
    }
    return xs_hip_result((res != XS_OK) ? res : (int)xs_mem_alloc(ctx, kind, bytes, flags, ptr));
}

int hipMalloc(void **ptr, size_t bytes)
{
    return allocate(XS_MEM_DEVICE, ptr, bytes, 0);
}

int hipExtMallocWithFlags(void **ptr, size_t bytes, unsigned flags)
{
    return allocate(XS_MEM_DEVICE, ptr, bytes, flags);
}

int hipMallocManaged(void **ptr, size_t bytes, unsigned flags)
{
    return allocate(XS_MEM_MANAGED, ptr, bytes, flags);
}

int hipMallocAsync(void **ptr, size_t bytes, hipStream_t handle)
{
    struct xs_stream *stream;
    int               res = (ptr == NULL) ? XS_INVALID_VALUE : xs_hip_stream(handle, &stream);

    if (res == XS_OK) {
        res = (int)xs_mem_take(xs_stream_ctx(stream), XS_MEM_DEVICE, bytes, XS_MEM_POOL, ptr);
    }
    return xs_hip_result(res);
}

int hipFree(void *ptr)
{
    return xs_hip_result((ptr == NULL) ? XS_OK : (int)xs_mem_free(ptr, XS_MEM_DEVICE));
}

int hipFreeAsync(void *ptr, hipStream_t handle)
{
    struct xs_stream *stream;
    struct xs_range   range;
    int               res = xs_hip_stream(handle, &stream);

    if ((res == XS_OK) && (!xs_mem_find(ptr, &range) || (range.base != (uintptr_t)ptr) ||
                           (range.kind != XS_MEM_DEVICE) || (range.reservation != NULL))) {
        res = XS_INVALID_VALUE;
    }
    return xs_hip_result((res != XS_OK) ? res : (int)xs_mem_release_async(stream, &range));
}

int hipHostMalloc(void **ptr, size_t bytes, unsigned flags)
{
    enum { COHERENT = 0x40000000 };
    const unsigned both = COHERENT | 0x80000000U; /* and its opposite */

    if ((flags & both) == both) {
        return xs_hip_result(XS_INVALID_VALUE);
    }
    return allocate(XS_MEM_HOST, ptr, bytes, flags);
}

int hipHostFree(void *ptr)
{
    return xs_hip_result((ptr == NULL) ? XS_OK : (int)xs_mem_free(ptr, XS_MEM_HOST));
}

int hipHostRegister(void *ptr, size_t bytes, unsigned flags)
{
    struct xs_ctx *ctx;
    int            res = xs_hip_ctx(&ctx);

    return xs_hip_result((res != XS_OK) ? res : (int)xs_mem_register(ctx, ptr, bytes, flags));
}

int hipHostUnregister(void *ptr)
{
    return xs_hip_result((int)xs_mem_unregister(ptr));
}

static bool is_host(const struct xs_range *range)
{
    return (range->kind == XS_MEM_HOST) || (range->kind == XS_MEM_REGISTERED);
}

int hipHostGetDevicePointer(void **device, void *host, unsigned flags)
{
    struct xs_range range;

    if ((device == NULL) || (flags != 0) || !xs_mem_find(host, &range) || !is_host(&range)) {
        return xs_hip_result(XS_INVALID_VALUE);
    }
    *device = host;
    return XS_OK;
}

int hipHostGetFlags(unsigned *flags, void *ptr)
{
    struct xs_range range;

    if ((flags == NULL) || !xs_mem_find(ptr, &range) || (range.kind != XS_MEM_HOST)) {
        return xs_hip_result(XS_INVALID_VALUE);
    }
    *flags = range.flags;
    return XS_OK;
}

int hipMemGetInfo(size_t *free_bytes, size_t *total)
{
    struct xs_ctx *ctx;
    int res = ((free_bytes == NULL) || (total == NULL)) ? XS_INVALID_VALUE : xs_hip_ctx(&ctx);

    if (res == XS_OK) {
        xs_mem_info(ctx->device, free_bytes, total);
    }
    return xs_hip_result(res);
}

int hipMemGetAddressRange(void **base, size_t *size, void *ptr)
{
    struct xs_range range;

    if (!xs_mem_find(ptr, &range)) {
        return xs_hip_result(XS_NOT_FOUND);
    }
    if (base != NULL) {
        *base = (void *)range.base;
    }
    if (size != NULL) {
        *size = range.size;
    }
    return XS_OK;
}

/* hipMemoryType: ROCm 6 put "unregistered" first, and answers for such memory instead of failing.
 */
static int type_of(const struct xs_range *range)
{
    static const int old_types[] = {
        [XS_MEM_HOST] = 0, [XS_MEM_REGISTERED] = 0, [XS_MEM_DEVICE] = 1, [XS_MEM_MANAGED] = 1};
    static const int new_types[] = {
        [XS_MEM_HOST] = 1, [XS_MEM_REGISTERED] = 1, [XS_MEM_DEVICE] = 2, [XS_MEM_MANAGED] = 3};

    return (xs_config()->hip_major < 6) ? old_types[range->kind] : new_types[range->kind];
}

int hipPointerGetAttributes(hipPointerAttribute_t *attributes, const void *ptr)
{
    struct xs_range range;
    int             res = (attributes == NULL) ? XS_INVALID_VALUE : (int)xs_init_implicit();

    if (res != XS_OK) {
        return xs_hip_result(res);
    }
    memset(attributes, 0, sizeof(*attributes));
    if (!xs_mem_find(ptr, &range)) {
        if (xs_config()->hip_major < 6) {
            return xs_hip_result(XS_INVALID_VALUE);
        }
        attributes->device = -2; /* hipInvalidDeviceId */
        return XS_OK;
    }
    attributes->type = type_of(&range);
    attributes->device = range.device;
    attributes->devicePointer = (void *)(uintptr_t)ptr;
    attributes->hostPointer = (range.kind == XS_MEM_DEVICE) ? NULL : (void *)(uintptr_t)ptr;
    attributes->isManaged = (range.kind == XS_MEM_MANAGED);
    attributes->allocationFlags = range.flags & ~XS_MEM_POOL;
    return XS_OK;
}

/* HIP_POINTER_ATTRIBUTE_*: the common ones */
int hipPointerGetAttribute(void *data, int attribute, void *ptr)
{
    struct xs_range range;

    if ((data == NULL) || !xs_mem_find(ptr, &range)) {
        return xs_hip_result(XS_INVALID_VALUE);
    }
    switch (attribute) {
    case 2:
        *(unsigned *)data = (unsigned)type_of(&range);
        return XS_OK;
    case 7:
        *(unsigned *)data = (unsigned)range.id;
        return XS_OK;
    case 8:
        *(int *)data = (range.kind == XS_MEM_MANAGED);
        return XS_OK;
    case 9:
        *(int *)data = range.device;
        return XS_OK;
    case 11:
        *(void **)data = (void *)range.base;
        return XS_OK;
    case 12:
        *(size_t *)data = range.size;
        return XS_OK;
    default:
        return xs_hip_result(XS_INVALID_VALUE);
    }
}

int hipIpcGetMemHandle(hipIpcMemHandle_t *handle, void *ptr)
{
    return xs_hip_result((handle == NULL) ? XS_INVALID_VALUE
                                          : (int)xs_ipc_export(ptr, handle->reserved));
}

int hipIpcOpenMemHandle(void **ptr, hipIpcMemHandle_t handle, unsigned flags)
{
    struct xs_ctx *ctx;
    int            res = ((ptr == NULL) || (flags > 1)) ? XS_INVALID_VALUE : xs_hip_ctx(&ctx);

    return xs_hip_result((res != XS_OK) ? res : (int)xs_ipc_import(ctx, handle.reserved, ptr));
}

int hipIpcCloseMemHandle(void *ptr)
{
    return xs_hip_result((int)xs_ipc_close(ptr));
}

/* hipMemcpyKind: 0 host to host, 1 to device, 2 to host, 3 device to device, 4 as the pointers say
 */
static int check_kind(const void *dst, const void *src, int kind)
{
    struct xs_range to = {.kind = XS_MEM_HOST};
    struct xs_range from = {.kind = XS_MEM_HOST};

    if ((kind < 0) || (kind > 4)) {
        return HIP_INVALID_MEMCPY_DIRECTION;
    }
    (void)xs_mem_find(dst, &to);
    (void)xs_mem_find(src, &from);
    bool writes_host = (kind == 0) || (kind == 2);
    bool reads_host = (kind == 0) || (kind == 1);
    if ((writes_host && (to.kind == XS_MEM_DEVICE)) ||
        (reads_host && (from.kind == XS_MEM_DEVICE))) {
        return HIP_INVALID_MEMCPY_DIRECTION;
    }
    return XS_OK;
}

static int copy_on(void *handle, void *dst, const void *src, size_t bytes, int kind)
{
    struct xs_ctx *ctx;
    int            res = check_kind(dst, src, kind);

    if (res == XS_OK) {
        res = xs_hip_ctx(&ctx);
    }
    return xs_hip_result((res != XS_OK) ? res : (int)xs_copy(ctx, handle, dst, src, bytes));
}

int hipMemcpy(void *dst, const void *src, size_t bytes, int kind)
{
    return copy_on(NULL, dst, src, bytes, kind);
}

/* What programs call that are compiled with -fgpu-default-stream=per-thread. */
int hipMemcpy_spt(void *dst, const void *src, size_t bytes, int kind)
{
    return copy_on(XS_STREAM_PER_THREAD, dst, src, bytes, kind);
}

int hipMemcpyAsync(void *dst, const void *src, size_t bytes, int kind, hipStream_t handle)
{
    struct xs_stream *stream;
    int               res = check_kind(dst, src, kind);

    if (res == XS_OK) {
        res = xs_hip_stream(handle, &stream);
    }
    return xs_hip_result((res != XS_OK) ? res : (int)xs_copy_async(stream, dst, src, bytes));
}

static int check_2d(const struct xs_copy_2d *rows, int kind)
{
    if ((rows->width == 0) || (rows->height == 0)) {
        return XS_OK;
    }
    if ((rows->width > rows->dst_pitch) || (rows->width > rows->src_pitch) ||
        (rows->dst_pitch > XS_MAX_PITCH) || (rows->src_pitch > XS_MAX_PITCH)) {
        return HIP_INVALID_PITCH_VALUE;
    }
    return check_kind(rows->dst, rows->src, kind);
}

int hipMemcpy2D(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                size_t height, int kind)
{
    struct xs_copy_2d rows = {dst, dst_pitch, src, src_pitch, width, height};
    struct xs_ctx    *ctx;
    int               res = check_2d(&rows, kind);

    if (res == XS_OK) {
        res = xs_hip_ctx(&ctx);
    }
    return xs_hip_result((res != XS_OK) ? res : (int)xs_copy_2d(ctx, &rows));
}

int hipMemcpy2DAsync(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                     size_t height, int kind, hipStream_t handle)
{
    struct xs_copy_2d rows = {dst, dst_pitch, src, src_pitch, width, height};
    struct xs_stream *stream;
    int               res = check_2d(&rows, kind);

    if (res == XS_OK) {
        res = xs_hip_stream(handle, &stream);
    }
    return xs_hip_result((res != XS_OK) ? res : (int)xs_copy_2d_async(stream, &rows));
}

int hipMemcpyWithStream(void *dst, const void *src, size_t bytes, int kind, hipStream_t handle)
{
    struct xs_stream *stream;
    int               res = hipMemcpyAsync(dst, src, bytes, kind, handle);

    if ((res == XS_OK) && (xs_hip_stream(handle, &stream) == XS_OK)) {
        xs_stream_sync(stream);
    }
    return res;
}

int hipMemcpyHtoD(void *dst, const void *src, size_t bytes)
{
    return hipMemcpy(dst, src, bytes, 1);
}

int hipMemcpyDtoH(void *dst, const void *src, size_t bytes)
{
    return hipMemcpy(dst, src, bytes, 2);
}

int hipMemcpyDtoD(void *dst, const void *src, size_t bytes)
{
    return hipMemcpy(dst, src, bytes, 3);
}

int hipMemcpyHtoDAsync(void *dst, const void *src, size_t bytes, hipStream_t stream)
{
    return hipMemcpyAsync(dst, src, bytes, 1, stream);
}

int hipMemcpyDtoHAsync(void *dst, const void *src, size_t bytes, hipStream_t stream)
{
    return hipMemcpyAsync(dst, src, bytes, 2, stream);
}

int hipMemcpyDtoDAsync(void *dst, const void *src, size_t bytes, hipStream_t stream)
{
    return hipMemcpyAsync(dst, src, bytes, 3, stream);
}

int hipMemcpyPeer(void *dst, int dst_device, const void *src, int src_device, size_t bytes)
{
    (void)dst_device;
    (void)src_device;
    return hipMemcpy(dst, src, bytes, 3);
}

int hipMemcpyPeerAsync(void *dst, int dst_device, const void *src, int src_device, size_t bytes,
                       hipStream_t stream)
{
    (void)dst_device;
    (void)src_device;
    return hipMemcpyAsync(dst, src, bytes, 3, stream);
}

static int fill(void *dst, uint32_t value, unsigned width, size_t count)
{
    struct xs_ctx *ctx;
    int            res = xs_hip_ctx(&ctx);

    return xs_hip_result((res != XS_OK) ? res : (int)xs_fill(ctx, dst, value, width, count));
}

static int fill_async(void *dst, uint32_t value, unsigned width, size_t count, hipStream_t handle)
{
    struct xs_stream *stream;
    int               res = xs_hip_stream(handle, &stream);

    return xs_hip_result((res != XS_OK) ? res
                                        : (int)xs_fill_async(stream, dst, value, width, count));
}

int hipMemset(void *dst, int value, size_t bytes)
{
    return fill(dst, (uint32_t)value, 1, bytes);
}

int hipMemsetD8(void *dst, unsigned char value, size_t count)
{
    return fill(dst, value, 1, count);
}

int hipMemsetD32(void *dst, int value, size_t count)
{
    return fill(dst, (uint32_t)value, 4, count);
}

int hipMemsetAsync(void *dst, int value, size_t bytes, hipStream_t stream)
{
    return fill_async(dst, (uint32_t)value, 1, bytes, stream);
}

int hipMemsetD8Async(void *dst, unsigned char value, size_t count, hipStream_t stream)
{
    return fill_async(dst, value, 1, count, stream);
}

int hipMemsetD32Async(void *dst, int value, size_t count, hipStream_t stream)
{
    return fill_async(dst, (uint32_t)value, 4, count, stream);
}
