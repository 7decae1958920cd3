/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory, what a pointer is, and handles for other processes. */
#include "core/graph.h"
#include "cuda/driver.h"

/* CUpointer_attribute */
enum {
    ATTRIBUTE_CONTEXT = 1,
    ATTRIBUTE_MEMORY_TYPE = 2,
    ATTRIBUTE_DEVICE_POINTER = 3,
    ATTRIBUTE_HOST_POINTER = 4,
    ATTRIBUTE_SYNC_MEMOPS = 6,
    ATTRIBUTE_BUFFER_ID = 7,
    ATTRIBUTE_IS_MANAGED = 8,
    ATTRIBUTE_DEVICE_ORDINAL = 9,
    ATTRIBUTE_IS_IPC_CAPABLE = 10,
    ATTRIBUTE_RANGE_START = 11,
    ATTRIBUTE_RANGE_SIZE = 12,
    ATTRIBUTE_MAPPED = 13,
    ATTRIBUTE_ALLOWED_HANDLE_TYPES = 14,
    ATTRIBUTE_IS_RDMA_CAPABLE = 15,
    ATTRIBUTE_ACCESS_FLAGS = 16,
    ATTRIBUTE_MEMPOOL = 17,
};
enum { MEMORYTYPE_HOST = 1, MEMORYTYPE_DEVICE = 2 };
enum { HOST_PORTABLE = 1, HOST_DEVICEMAP = 2, HOST_WRITECOMBINED = 4 };

int cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    CU_NEED_CTX(ctx);
    if ((free_bytes == NULL) || (total == NULL)) {
        return XS_INVALID_VALUE;
    }
    xs_mem_info(ctx->device, free_bytes, total);
    return XS_OK;
}

int cuMemAlloc_v2(CUdeviceptr *ptr, size_t bytes)
{
    CU_NEED_CTX(ctx);
    return (int)xs_mem_alloc(ctx, XS_MEM_DEVICE, bytes, 0, (void **)ptr);
}

/* Freeing nothing is fine. */
int cuMemFree_v2(CUdeviceptr ptr)
{
    CU_NEED_CTX(ctx);
    return (ptr == 0) ? XS_OK : (int)xs_mem_free((void *)ptr, XS_MEM_DEVICE);
}

/* In the order of a stream the memory exists from now on, which is a little earlier than asked. */
int cuMemAllocAsync(CUdeviceptr *ptr, size_t bytes, CUstream stream)
{
    (void)stream;
    CU_NEED_CTX(ctx);
    return (int)xs_mem_take(ctx, XS_MEM_DEVICE, bytes, XS_MEM_POOL, (void **)ptr);
}

int cuMemFreeAsync(CUdeviceptr ptr, CUstream handle)
{
    struct xs_stream *stream;
    struct xs_range   range;

    CU_NEED_CTX(ctx);
    enum xs_error res = xs_stream_get(ctx, handle, &stream);
    if (res != XS_OK) {
        return (int)res;
    }
    if (!xs_mem_find((void *)ptr, &range) || (range.base != ptr) || (range.kind != XS_MEM_DEVICE) ||
        (range.reservation != NULL)) {
        return XS_INVALID_VALUE;
    }
    return (int)xs_mem_release_async(stream, &range);
}

int cuMemAllocManaged(CUdeviceptr *ptr, size_t bytes, unsigned flags)
{
    CU_NEED_CTX(ctx);
    if ((flags != 1) && (flags != 2)) { /* GLOBAL, HOST */
        return XS_INVALID_VALUE;
    }
    return (int)xs_mem_alloc(ctx, XS_MEM_MANAGED, bytes, flags, (void **)ptr);
}

int cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr ptr)
{
    struct xs_range range;

    CU_NEED_CTX(ctx);
    enum xs_error res = xs_crashed();
    if (res != XS_OK) {
        return (int)res;
    }
    if (!xs_mem_find((void *)ptr, &range) || ((range.reservation != NULL) && (range.access == 0))) {
        return XS_NOT_FOUND;
    }
    if (base != NULL) {
        *base = range.base;
    }
    if (size != NULL) {
        *size = range.size;
    }
    return XS_OK;
}

int cuMemHostAlloc(void **ptr, size_t bytes, unsigned flags)
{
    CU_NEED_CTX(ctx);
    if ((flags & ~(unsigned)(HOST_PORTABLE | HOST_DEVICEMAP | HOST_WRITECOMBINED)) != 0) {
        return XS_INVALID_VALUE;
    }
    return (int)xs_mem_alloc(ctx, XS_MEM_HOST, bytes, flags, ptr);
}

int cuMemAllocHost_v2(void **ptr, size_t bytes)
{
    return cuMemHostAlloc(ptr, bytes, 0);
}

int cuMemFreeHost(void *ptr)
{
    CU_NEED_CTX(ctx);
    return (int)xs_mem_free(ptr, XS_MEM_HOST);
}

static bool is_host(const struct xs_range *range)
{
    return (range->kind == XS_MEM_HOST) || (range->kind == XS_MEM_REGISTERED);
}

int cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *host, unsigned flags)
{
    struct xs_range range;

    CU_NEED_CTX(ctx);
    if ((device == NULL) || (flags != 0) || !xs_mem_find(host, &range) || !is_host(&range)) {
        return XS_INVALID_VALUE;
    }
    *device = (CUdeviceptr)host;
    return XS_OK;
}

int cuMemHostGetFlags(unsigned *flags, void *ptr)
{
    struct xs_range range;

    CU_NEED_CTX(ctx);
    if ((flags == NULL) || !xs_mem_find(ptr, &range) || (range.kind != XS_MEM_HOST)) {
        return XS_INVALID_VALUE;
    }
    *flags = range.flags;
    return XS_OK;
}

int cuMemHostRegister_v2(void *ptr, size_t bytes, unsigned flags)
{
    CU_NEED_CTX(ctx);
    if ((flags & ~0xfU) != 0) {
        return XS_INVALID_VALUE;
    }
    return (int)xs_mem_register(ctx, ptr, bytes, flags);
}

int cuMemHostUnregister(void *ptr)
{
    CU_NEED_CTX(ctx);
    return (int)xs_mem_unregister(ptr);
}

/* What differs where the program has mapped the memory itself; -1: nothing. */
static int answer_mapped(const struct xs_range *range, int attribute, void *data)
{
    uintptr_t base;
    size_t    bytes;
    int       handle_types;

    if (range->reservation == NULL) {
        return -1;
    }
    xs_virtual_describe(range, &base, &bytes, &handle_types);
    switch (attribute) {
    case ATTRIBUTE_DEVICE_POINTER:
        return (range->access != 0) ? -1 : XS_INVALID_VALUE;
    case ATTRIBUTE_SYNC_MEMOPS: /* though it cannot be set, and copies return early */
        *(unsigned *)data = 1;
        return XS_OK;
    case ATTRIBUTE_IS_IPC_CAPABLE:
        *(unsigned *)data = 0;
        return XS_OK;
    case ATTRIBUTE_RANGE_START: /* not of this mapping alone */
        *(CUdeviceptr *)data = base;
        return XS_OK;
    case ATTRIBUTE_RANGE_SIZE:
        *(size_t *)data = bytes;
        return XS_OK;
    case ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        *(unsigned long long *)data = (unsigned)handle_types;
        return XS_OK;
    case ATTRIBUTE_ACCESS_FLAGS:
        *(unsigned *)data = (range->access != 0) ? XS_ACCESS_READ_WRITE : XS_ACCESS_NONE;
        return XS_OK;
    default:
        return -1;
    }
}

static int answer(const struct xs_range *range, int attribute, CUdeviceptr ptr, void *data)
{
    int res = answer_mapped(range, attribute, data);

    if (res >= 0) {
        return res;
    }
    switch (attribute) {
    case ATTRIBUTE_CONTEXT:
        *(CUcontext *)data = range->ctx;
        return XS_OK;
    case ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)data = is_host(range) ? MEMORYTYPE_HOST : MEMORYTYPE_DEVICE;
        return XS_OK;
    case ATTRIBUTE_DEVICE_POINTER:
        *(CUdeviceptr *)data = ptr;
        return XS_OK;
    case ATTRIBUTE_HOST_POINTER:
        *(CUdeviceptr *)data = (range->kind == XS_MEM_DEVICE) ? 0 : ptr;
        return (range->kind == XS_MEM_DEVICE) ? XS_INVALID_VALUE : XS_OK;
    case ATTRIBUTE_BUFFER_ID:
        *(unsigned long long *)data = range->id;
        return XS_OK;
    case ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)data = range->device;
        return XS_OK;
    case ATTRIBUTE_RANGE_START:
        *(CUdeviceptr *)data = range->base;
        return XS_OK;
    case ATTRIBUTE_RANGE_SIZE:
        *(size_t *)data = range->size;
        return XS_OK;
    case ATTRIBUTE_IS_MANAGED:
        *(unsigned *)data = (range->kind == XS_MEM_MANAGED);
        return XS_OK;
    case ATTRIBUTE_IS_IPC_CAPABLE:
        *(unsigned *)data = (range->kind == XS_MEM_DEVICE) && !range->imported &&
                            ((range->flags & XS_MEM_POOL) == 0);
        return XS_OK;
    case ATTRIBUTE_MAPPED:
        *(unsigned *)data = 1;
        return XS_OK;
    case ATTRIBUTE_ACCESS_FLAGS:
        *(unsigned *)data = 3; /* read and write */
        return XS_OK;
    case ATTRIBUTE_MEMPOOL:
    case ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        *(unsigned long long *)data = 0;
        return XS_OK;
    case ATTRIBUTE_SYNC_MEMOPS:
        *(unsigned *)data = range->sync_memops;
        return XS_OK;
    case ATTRIBUTE_IS_RDMA_CAPABLE:
        *(unsigned *)data = 0;
        return XS_OK;
    default:
        return XS_INVALID_VALUE;
    }
}

int cuPointerGetAttribute(void *data, int attribute, CUdeviceptr ptr)
{
    struct xs_range range;

    CU_NEED_INIT;
    if ((data == NULL) || !xs_mem_find((void *)ptr, &range)) {
        return XS_INVALID_VALUE;
    }
    return answer(&range, attribute, ptr, data);
}

static void answer_unknown(int attribute, void *data)
{
    switch (attribute) {
    case ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)data = -2; /* CU_DEVICE_INVALID */
        break;
    case ATTRIBUTE_CONTEXT:
    case ATTRIBUTE_DEVICE_POINTER:
    case ATTRIBUTE_HOST_POINTER:
    case ATTRIBUTE_BUFFER_ID:
    case ATTRIBUTE_RANGE_START:
    case ATTRIBUTE_RANGE_SIZE:
    case ATTRIBUTE_MEMPOOL:
    case ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        *(unsigned long long *)data = 0;
        break;
    default:
        *(unsigned *)data = 0;
        break;
    }
}

/* Unlike the single form, this one answers zeros for memory that the driver does not know. */
int cuPointerGetAttributes(unsigned count, int *attributes, void **data, CUdeviceptr ptr)
{
    struct xs_range range;

    CU_NEED_INIT;
    if ((count == 0) || (attributes == NULL) || (data == NULL)) {
        return XS_INVALID_VALUE;
    }
    bool known = xs_mem_find((void *)ptr, &range);
    for (unsigned i = 0; i < count; i++) {
        if ((attributes[i] < 1) || (attributes[i] > ATTRIBUTE_MEMPOOL)) {
            return XS_INVALID_VALUE;
        }
        if (!known) {
            answer_unknown(attributes[i], data[i]);
        } else {
            (void)answer(&range, attributes[i], ptr, data[i]);
        }
    }
    return XS_OK;
}

/* The only attribute that a program may set. */
int cuPointerSetAttribute(const void *value, int attribute, CUdeviceptr ptr)
{
    CU_NEED_INIT;
    if ((value == NULL) || (attribute != ATTRIBUTE_SYNC_MEMOPS)) {
        return XS_INVALID_VALUE;
    }
    enum xs_error res = xs_capture_guard();
    return (int)((res == XS_OK)
                     ? xs_mem_sync_memops((const void *)ptr, *(const unsigned *)value != 0)
                     : res);
}

int cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr ptr)
{
    CU_NEED_CTX(ctx);
    return (handle == NULL) ? XS_INVALID_VALUE : (int)xs_ipc_export((void *)ptr, handle->reserved);
}

int cuIpcOpenMemHandle_v2(CUdeviceptr *ptr, CUipcMemHandle handle, unsigned flags)
{
    CU_NEED_CTX(ctx);
    if ((ptr == NULL) || (flags != 1)) { /* LAZY_ENABLE_PEER_ACCESS */
        return XS_INVALID_VALUE;
    }
    return (int)xs_ipc_import(ctx, handle.reserved, (void **)ptr);
}

int cuIpcCloseMemHandle(CUdeviceptr ptr)
{
    CU_NEED_CTX(ctx);
    return (int)xs_ipc_close((void *)ptr);
}
