/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory as CUDA's driver tells of it, gives it and lets other processes map it. */
#include <string.h>

#include "base/log.h"
#include "device/cuda.h"

/* Numbers of cuda.h. */
enum {
    CUDA_ERROR_ALREADY_MAPPED = 208,
    CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
    CU_POINTER_ATTRIBUTE_DEVICE_POINTER = 3,
    CU_POINTER_ATTRIBUTE_SYNC_MEMOPS = 6,
    CU_POINTER_ATTRIBUTE_BUFFER_ID = 7,
    CU_POINTER_ATTRIBUTE_IS_MANAGED = 8,
    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
    CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE = 10,
    CU_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11,
    CU_POINTER_ATTRIBUTE_RANGE_SIZE = 12,
    CU_MEMORYTYPE_DEVICE = 2,
    CU_MEMHOSTALLOC_PORTABLE = 1,
    CU_MEMHOSTREGISTER_PORTABLE = 1,
    CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS = 1,
};

struct xc_mem_info xc_cuda_mem_query(const void *ptr)
{
    /* One call for all: newer drivers are slow on single queries of host pointers. */
    int                attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                       CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                       CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                       CU_POINTER_ATTRIBUTE_SYNC_MEMOPS,
                                       CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
                                       CU_POINTER_ATTRIBUTE_BUFFER_ID};
    unsigned           type = 0, managed = 0, synchronous = 0, shareable = 0;
    int                ordinal = -1;
    unsigned long long id = 0;
    void              *data[] = {&type, &managed, &ordinal, &synchronous, &shareable, &id};

    struct xc_mem_info info = {.kind = XC_MEM_HOST, .device = -1};
    if (xc_cuda.pointer_attributes(6, attributes, data, (CUdeviceptr)ptr) != CUDA_SUCCESS) {
        return info;
    }
    if (managed != 0) {
        info.kind = XC_MEM_MANAGED;
        info.device = ordinal;
    } else if (type == CU_MEMORYTYPE_DEVICE) {
        info.kind = XC_MEM_DEVICE;
        info.device = ordinal;
        /* Memory that the program mapped itself says so, too, but is not (driver 13.0, H200). */
        info.synchronous = (synchronous != 0) && (shareable != 0);
        info.allocation = (shareable != 0) ? id : 0;
        xc_cuda_resets(ordinal, true); /* before anything of ours there is used for it */
    }
    return info;
}

/* Memory of pools cannot be. */
bool xc_cuda_mem_make_synchronous(const void *ptr)
{
    const unsigned yes = 1;
    int            mode = xc_cuda_relax();
    CUresult res = xc_cuda.pointer_set(&yes, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, (CUdeviceptr)ptr);

    xc_cuda_restore(mode);
    return res == CUDA_SUCCESS;
}

xcclResult_t xc_cuda_mem_alloc(void **ptr_p, size_t bytes)
{
    CUdeviceptr ptr = 0;

    XC_CUDA_CHECK_RELAXED(xc_cuda.mem_alloc(&ptr, bytes), "cuMemAlloc");
    *ptr_p = (void *)ptr;
    return xcclSuccess;
}

xcclResult_t xc_cuda_mem_free(void *ptr)
{
    XC_CUDA_CHECK_RELAXED(xc_cuda.mem_free((CUdeviceptr)ptr), "cuMemFree");
    return xcclSuccess;
}

xcclResult_t xc_cuda_host_alloc(void **ptr_p, size_t bytes)
{
    XC_CUDA_CHECK_RELAXED(xc_cuda.host_alloc(ptr_p, bytes, CU_MEMHOSTALLOC_PORTABLE),
                          "cuMemHostAlloc");
    return xcclSuccess;
}

xcclResult_t xc_cuda_host_free(void *ptr)
{
    XC_CUDA_CHECK_RELAXED(xc_cuda.host_free(ptr), "cuMemFreeHost");
    return xcclSuccess;
}

size_t xc_cuda_mem_left(const void *ptr)
{
    CUdeviceptr base;
    size_t      bytes;

    return (xc_cuda.mem_range(&base, &bytes, (CUdeviceptr)ptr) == CUDA_SUCCESS)
               ? (size_t)((uintptr_t)base + bytes - (uintptr_t)ptr)
               : 0;
}

/* What cannot be shared between processes comes from a pool, or is mapped by the program itself. */
bool xc_cuda_mem_allocation(const void *ptr, struct xc_allocation *allocation_p)
{
    unsigned long long id = 0;
    size_t             bytes = 0;
    CUdeviceptr        base = 0;
    unsigned           shareable = 0;
    int   attributes[] = {CU_POINTER_ATTRIBUTE_BUFFER_ID, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                          CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                          CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE};
    void *data[] = {&id, &base, &bytes, &shareable};

    if ((xc_cuda.pointer_attributes(4, attributes, data, (CUdeviceptr)ptr) != CUDA_SUCCESS) ||
        (id == 0) || (shareable == 0)) {
        return false;
    }
    *allocation_p = (struct xc_allocation){(uint64_t)base, bytes, id};
    return true;
}

xcclResult_t xc_cuda_ipc_export(const void *ptr, struct xc_ipc *ipc_p)
{
    struct xc_ipc      made;
    CUipcMemHandle     handle;
    CUdeviceptr        base;
    size_t             bytes;
    unsigned long long id = 0;
    int                attribute = CU_POINTER_ATTRIBUTE_BUFFER_ID;
    void              *data = &id;

    XC_CUDA_CHECK(xc_cuda.mem_range(&base, &bytes, (CUdeviceptr)ptr), "cuMemGetAddressRange");
    XC_CUDA_CHECK_RELAXED(xc_cuda.ipc_export(&handle, base), "cuIpcGetMemHandle");
    XC_CUDA_CHECK(xc_cuda.pointer_attributes(1, &attribute, &data, (CUdeviceptr)ptr),
                  "cuPointerGetAttributes");
    memcpy(made.handle, handle.reserved, sizeof(made.handle));
    made.base = (uint64_t)base;
    made.bytes = bytes;
    made.id = id;
    *ipc_p = made;
    return xcclSuccess;
}

xcclResult_t xc_cuda_ipc_open(const struct xc_ipc *ipc, void **base_p)
{
    CUipcMemHandle handle;
    CUdeviceptr    base = 0;

    memcpy(handle.reserved, ipc->handle, sizeof(handle.reserved));
    int      mode = xc_cuda_relax();
    CUresult res = xc_cuda.ipc_open(&base, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    xc_cuda_restore(mode);
    if (res == CUDA_ERROR_ALREADY_MAPPED) {
        return xcclInProgress;
    }
    XC_CUDA_CHECK(res, "cuIpcOpenMemHandle");
    *base_p = (void *)base;
    return xcclSuccess;
}

xcclResult_t xc_cuda_ipc_close(void *base)
{
    XC_CUDA_CHECK_RELAXED(xc_cuda.ipc_close((CUdeviceptr)base), "cuIpcCloseMemHandle");
    return xcclSuccess;
}

bool xc_cuda_mem_reachable(const void *ptr)
{
    CUdeviceptr address = 0;
    int         attribute = CU_POINTER_ATTRIBUTE_DEVICE_POINTER;
    void       *data = &address;

    /* Memory that is mapped to another address would need that one. */
    return (xc_cuda.pointer_attributes(1, &attribute, &data, (CUdeviceptr)ptr) == CUDA_SUCCESS) &&
           (address == (CUdeviceptr)ptr);
}

xcclResult_t xc_cuda_host_unpin(void *ptr)
{
    XC_CUDA_CHECK_RELAXED(xc_cuda.host_unpin(ptr), "cuMemHostUnregister");
    return xcclSuccess;
}

xcclResult_t xc_cuda_host_pin(void *ptr, size_t bytes)
{
    XC_CUDA_CHECK_RELAXED(xc_cuda.host_pin(ptr, bytes, CU_MEMHOSTREGISTER_PORTABLE),
                          "cuMemHostRegister");
    if (!xc_cuda_mem_reachable(ptr)) {
        xc_cuda_host_unpin(ptr);
        return xc_fail(xcclUnsupported, "device memory has another address for it");
    }
    return xcclSuccess;
}
