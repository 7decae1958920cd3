/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of ncclMemAlloc. NCCL takes it from virtual memory management on CUDA: whole multiples of
 * the granularity, open to all devices, and without a handle of cuIpcGetMemHandle. The libraries of
 * other devices, and MSCCL++, allocate plainly.
 */
#include "ccl/ccl.h"

static bool maps_itself(void)
{
    return (xs_config()->flavour == XS_CUDA) && (xs_config()->library != XS_MSCCLPP);
}

static enum xs_error open_to_all(void *ptr, size_t bytes)
{
    enum xs_error res = XS_OK;

    for (int i = 0; (i < xs_config()->devices) && (res == XS_OK); i++) {
        struct xs_access_desc desc = {{XS_LOCATION_DEVICE, i}, XS_ACCESS_READ_WRITE};
        res = xs_virtual_set_access(ptr, bytes, &desc, 1);
    }
    return res;
}

static enum xs_error map_new(const struct xs_ctx *ctx, size_t size, void **ptr_p)
{
    struct xs_allocation_prop prop = {.type = XS_ALLOCATION_PINNED,
                                      .handle_types = XS_HANDLE_POSIX_FD,
                                      .location = {XS_LOCATION_DEVICE, ctx->device}};
    size_t                    bytes = (size + XS_GRANULARITY - 1) / XS_GRANULARITY * XS_GRANULARITY;
    struct xs_backing        *backing;
    void                     *ptr;
    enum xs_error             res = xs_virtual_create(bytes, &prop, &backing);

    if (res != XS_OK) {
        return res;
    }
    res = xs_virtual_reserve(bytes, XS_GRANULARITY, &ptr);
    if (res != XS_OK) {
        goto release;
    }
    res = xs_virtual_map(ptr, bytes, 0, backing);
    if (res != XS_OK) {
        goto unreserve;
    }
    res = open_to_all(ptr, bytes);
    if (res == XS_OK) {
        *ptr_p = ptr;
        goto release; /* it lives as long as it is mapped */
    }
    xs_virtual_unmap(ptr, bytes);
unreserve:
    xs_virtual_unreserve(ptr, bytes);
release:
    xs_virtual_release(backing);
    return res;
}

enum xs_error xs_ccl_alloc(struct xs_ctx *ctx, size_t size, void **ptr_p)
{
    return maps_itself() ? map_new(ctx, size, ptr_p)
                         : xs_mem_alloc(ctx, XS_MEM_DEVICE, size, 0, ptr_p);
}

enum xs_error xs_ccl_free(void *ptr)
{
    struct xs_range range;
    uintptr_t       base;
    size_t          bytes;
    int             handle_types;

    if (!xs_mem_find(ptr, &range) || (range.reservation == NULL)) {
        return xs_mem_free(ptr, XS_MEM_DEVICE);
    }
    xs_virtual_describe(&range, &base, &bytes, &handle_types);
    enum xs_error res = xs_virtual_unmap((void *)base, bytes);
    return (res == XS_OK) ? xs_virtual_unreserve((void *)base, bytes) : res;
}
