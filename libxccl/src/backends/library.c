/* SPDX-License-Identifier: BSD-3-Clause */
#include "backends/library.h"

#include <stdio.h>
#include <string.h>

#include "device/device.h"

void xc_library_describe(const struct xc_vendor_row *row, const struct xc_vendor_lib *file,
                         int version, struct xc_library *lib_p)
{
    _Static_assert(sizeof(lib_p->path) == sizeof(file->path), "a path fits");
    lib_p->name = row->name;
    memcpy(lib_p->path, file->path, sizeof(lib_p->path));
    snprintf(lib_p->found_by, sizeof(lib_p->found_by), "%s", xc_found_by_name(file->found_by));
    lib_p->version = version;
    lib_p->id_bytes = row->id_bytes;
    lib_p->device = row->device;
}

static xcclResult_t active_device(const struct xc_vendor_row  *row,
                                  const struct xc_device_ops **device_p)
{
    const struct xc_device_ops *device = xc_device_by_name(row->device);

    if ((device == NULL) || !device->active()) {
        return xc_fail(xcclInvalidUsage,
                       "no device memory: the program has not started its %s runtime; choose a "
                       "device first, or acquire one (synDeviceAcquire)",
                       row->device);
    }
    *device_p = device;
    return xcclSuccess;
}

xcclResult_t xc_library_mem_alloc(const struct xc_vendor_row *row, void **ptr_p, size_t bytes)
{
    const struct xc_device_ops *device = NULL;
    xcclResult_t                rc = active_device(row, &device);

    return (rc == xcclSuccess) ? device->mem_alloc(ptr_p, bytes) : rc;
}

xcclResult_t xc_library_mem_free(const struct xc_vendor_row *row, void *ptr)
{
    const struct xc_device_ops *device = NULL;
    xcclResult_t                rc = active_device(row, &device);

    return (rc == xcclSuccess) ? device->mem_free(ptr) : rc;
}
