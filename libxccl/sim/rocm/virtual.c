/* SPDX-License-Identifier: BSD-3-Clause */
/* Virtual memory management: CUDA's, with pointers for handles. */
#include "rocm/hip.h"

/* HIP starts at any call. */
static int started(bool good)
{
    return !good ? XS_INVALID_VALUE : (int)xs_init_implicit();
}

int hipMemGetAllocationGranularity(size_t *bytes, const struct xs_allocation_prop *prop, int option)
{
    int res = started(bytes != NULL);

    return xs_hip_result((res != XS_OK) ? res : (int)xs_virtual_granularity(prop, option, bytes));
}

/* An address that the program would like is a wish. */
int hipMemAddressReserve(void **ptr, size_t bytes, size_t alignment, void *wish,
                         unsigned long long flags)
{
    int res = started((ptr != NULL) && (flags == 0));

    (void)wish;
    return xs_hip_result((res != XS_OK) ? res : (int)xs_virtual_reserve(bytes, alignment, ptr));
}

int hipMemAddressFree(void *ptr, size_t bytes)
{
    return xs_hip_result((int)xs_virtual_unreserve(ptr, bytes));
}

int hipMemCreate(hipMemGenericAllocationHandle_t *handle, size_t bytes,
                 const struct xs_allocation_prop *prop, unsigned long long flags)
{
    int res = started((handle != NULL) && (flags == 0));

    return xs_hip_result((res != XS_OK) ? res : (int)xs_virtual_create(bytes, prop, handle));
}

int hipMemRelease(hipMemGenericAllocationHandle_t handle)
{
    return xs_hip_result((int)xs_virtual_release(handle));
}

int hipMemMap(void *ptr, size_t bytes, size_t offset, hipMemGenericAllocationHandle_t handle,
              unsigned long long flags)
{
    return xs_hip_result((flags != 0) ? XS_INVALID_VALUE
                                      : (int)xs_virtual_map(ptr, bytes, offset, handle));
}

int hipMemUnmap(void *ptr, size_t bytes)
{
    return xs_hip_result((int)xs_virtual_unmap(ptr, bytes));
}

int hipMemSetAccess(void *ptr, size_t bytes, const struct xs_access_desc *descs, size_t count)
{
    return xs_hip_result((int)xs_virtual_set_access(ptr, bytes, descs, count));
}

int hipMemGetAccess(unsigned long long *flags, const struct xs_location *location, void *ptr)
{
    return xs_hip_result((int)xs_virtual_get_access(ptr, location, flags));
}

int hipMemRetainAllocationHandle(hipMemGenericAllocationHandle_t *handle, void *ptr)
{
    return xs_hip_result((int)xs_virtual_retain(ptr, handle));
}

int hipMemGetAllocationPropertiesFromHandle(struct xs_allocation_prop      *prop,
                                            hipMemGenericAllocationHandle_t handle)
{
    return xs_hip_result((int)xs_virtual_properties(handle, prop));
}

int hipMemExportToShareableHandle(void *shareable, hipMemGenericAllocationHandle_t handle, int type,
                                  unsigned long long flags)
{
    return xs_hip_result((flags != 0) ? XS_INVALID_VALUE
                                      : (int)xs_virtual_export(handle, type, shareable));
}

/* Of a file descriptor the pointer is the number. */
int hipMemImportFromShareableHandle(hipMemGenericAllocationHandle_t *handle, void *shareable,
                                    int type)
{
    return xs_hip_result((int)xs_virtual_import((int)(intptr_t)shareable, type, handle));
}
