/* SPDX-License-Identifier: BSD-3-Clause */
/* Virtual memory management. Memory belongs to a device, not to a context. */
#include "cuda/driver.h"

static struct xs_backing *backing(CUmemGenericAllocationHandle handle)
{
    return (struct xs_backing *)(uintptr_t)handle;
}

int cuMemGetAllocationGranularity(size_t *bytes, const struct xs_allocation_prop *prop, int option)
{
    CU_NEED_INIT;
    return (int)xs_virtual_granularity(prop, option, bytes);
}

/* An address that the program would like is a wish. */
int cuMemAddressReserve(CUdeviceptr *ptr, size_t bytes, size_t alignment, CUdeviceptr wish,
                        unsigned long long flags)
{
    (void)wish;
    CU_NEED_INIT;
    return (flags != 0) ? XS_INVALID_VALUE
                        : (int)xs_virtual_reserve(bytes, alignment, (void **)ptr);
}

int cuMemAddressFree(CUdeviceptr ptr, size_t bytes)
{
    CU_NEED_INIT;
    return (int)xs_virtual_unreserve((void *)ptr, bytes);
}

int cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                const struct xs_allocation_prop *prop, unsigned long long flags)
{
    struct xs_backing *made = NULL;

    CU_NEED_INIT;
    if ((handle == NULL) || (flags != 0)) {
        return XS_INVALID_VALUE;
    }
    enum xs_error res = xs_virtual_create(bytes, prop, &made);
    if (res == XS_OK) {
        *handle = (uintptr_t)made;
    }
    return (int)res;
}

int cuMemRelease(CUmemGenericAllocationHandle handle)
{
    CU_NEED_INIT;
    return (int)xs_virtual_release(backing(handle));
}

int cuMemMap(CUdeviceptr ptr, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
             unsigned long long flags)
{
    CU_NEED_INIT;
    return (flags != 0) ? XS_INVALID_VALUE
                        : (int)xs_virtual_map((void *)ptr, bytes, offset, backing(handle));
}

int cuMemUnmap(CUdeviceptr ptr, size_t bytes)
{
    CU_NEED_INIT;
    return (int)xs_virtual_unmap((void *)ptr, bytes);
}

int cuMemSetAccess(CUdeviceptr ptr, size_t bytes, const struct xs_access_desc *descs, size_t count)
{
    CU_NEED_INIT;
    return (int)xs_virtual_set_access((void *)ptr, bytes, descs, count);
}

int cuMemGetAccess(unsigned long long *flags, const struct xs_location *location, CUdeviceptr ptr)
{
    CU_NEED_INIT;
    return (int)xs_virtual_get_access((const void *)ptr, location, flags);
}

int cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *ptr)
{
    struct xs_backing *found = NULL;

    CU_NEED_INIT;
    enum xs_error res = (handle == NULL) ? XS_INVALID_VALUE : xs_virtual_retain(ptr, &found);
    if (res == XS_OK) {
        *handle = (uintptr_t)found;
    }
    return (int)res;
}

int cuMemGetAllocationPropertiesFromHandle(struct xs_allocation_prop   *prop,
                                           CUmemGenericAllocationHandle handle)
{
    CU_NEED_INIT;
    return (int)xs_virtual_properties(backing(handle), prop);
}

int cuMemExportToShareableHandle(void *shareable, CUmemGenericAllocationHandle handle, int type,
                                 unsigned long long flags)
{
    CU_NEED_INIT;
    return (flags != 0) ? XS_INVALID_VALUE
                        : (int)xs_virtual_export(backing(handle), type, shareable);
}

/* Of a file descriptor the pointer is the number. */
int cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shareable, int type)
{
    struct xs_backing *made = NULL;

    CU_NEED_INIT;
    enum xs_error res = (handle == NULL) ? XS_INVALID_VALUE
                                         : xs_virtual_import((int)(intptr_t)shareable, type, &made);
    if (res == XS_OK) {
        *handle = (uintptr_t)made;
    }
    return (int)res;
}
