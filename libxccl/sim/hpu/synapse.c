/* SPDX-License-Identifier: BSD-3-Clause */
/* A process acquires one device, which is its number 0; streams block nobody, and host memory has
 * to be mapped before the device reaches it. */
#include "hpu/synapse.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { THE_DEVICE = 0, DEVICE_GAUDI2 = 4 };

static struct xs_ctx *acquired; /* atomic */

static int status_of(enum xs_error res)
{
    switch (res) {
    case XS_OK:
        return SYN_SUCCESS;
    case XS_NOT_READY:
        return SYN_BUSY;
    case XS_INVALID_VALUE:
    case XS_INVALID_HANDLE:
        return SYN_INVALID_ARGUMENT;
    case XS_OUT_OF_MEMORY:
        return SYN_OUT_OF_DEVICE_MEMORY;
    case XS_NOT_INITIALIZED:
        return SYN_UNINITIALIZED;
    default:
        return SYN_FAIL;
    }
}

struct xs_ctx *xs_hpu_enter(void)
{
    struct xs_ctx *ctx = __atomic_load_n(&acquired, __ATOMIC_ACQUIRE);

    if ((ctx != NULL) && (xs_ctx_current() != ctx)) {
        (void)xs_ctx_set(ctx);
    }
    return ctx;
}

int xs_hpu_stream(void *handle, struct xs_stream **stream_p)
{
    struct xs_ctx *ctx = xs_hpu_enter();

    return ((ctx == NULL) || ((uintptr_t)handle <= 2))
               ? SYN_INVALID_ARGUMENT
               : status_of(xs_stream_get(ctx, handle, stream_p));
}

int synInitialize(void)
{
    return (xs_init(XS_HPU) == XS_OK) ? SYN_SUCCESS : SYN_NO_DEVICE_FOUND;
}

int synDestroy(void)
{
    return SYN_SUCCESS;
}

int synDriverGetVersion(char *version, int len)
{
    snprintf(version, (size_t)len, "simulated");
    return SYN_SUCCESS;
}

int synDeviceGetCount(uint32_t *count)
{
    *count = (uint32_t)xs_config()->devices;
    return xs_initialised() ? SYN_SUCCESS : SYN_UNINITIALIZED;
}

static int acquire(uint32_t *device, int which)
{
    struct xs_ctx *ctx;

    if (!xs_initialised()) {
        return SYN_UNINITIALIZED;
    }
    if ((which < 0) || (which >= xs_config()->devices)) {
        return SYN_NO_DEVICE_FOUND;
    }
    if (__atomic_load_n(&acquired, __ATOMIC_ACQUIRE) != NULL) {
        return SYN_DEVICE_ALREADY_ACQUIRED;
    }
    int res = status_of(xs_primary_retain(which, &ctx));
    if (res == SYN_SUCCESS) {
        *device = THE_DEVICE;
        __atomic_store_n(&acquired, ctx, __ATOMIC_RELEASE);
    }
    return res;
}

/* Any free one: another process's is not. */
int synDeviceAcquire(uint32_t *device, const char *bus)
{
    char mine[16];
    int  devices = xs_config()->devices;

    if ((bus == NULL) || (bus[0] == '\0')) {
        return acquire(device, (devices > 0) ? xs_config()->rank % devices : -1);
    }
    for (int i = 0; i < devices; i++) {
        xs_device_bus_id(i, mine, sizeof(mine));
        if (strcasecmp(mine, bus) == 0) {
            return acquire(device, i);
        }
    }
    return SYN_NO_DEVICE_FOUND;
}

int synDeviceAcquireByModuleId(uint32_t *device, uint32_t module)
{
    return acquire(device, (int)module);
}

int synDeviceAcquireByDeviceType(uint32_t *device, int type)
{
    return (type == DEVICE_GAUDI2) ? synDeviceAcquire(device, NULL) : SYN_NO_DEVICE_FOUND;
}

/* The context of a device number; NULL: it is not acquired. */
static struct xs_ctx *ctx_of(uint32_t device)
{
    return (device == THE_DEVICE) ? xs_hpu_enter() : NULL;
}

int synDeviceRelease(uint32_t device)
{
    struct xs_ctx *ctx = ctx_of(device);

    if (ctx == NULL) {
        return SYN_INVALID_ARGUMENT;
    }
    (void)xs_ctx_set(NULL);
    __atomic_store_n(&acquired, NULL, __ATOMIC_RELEASE);
    return status_of(xs_primary_release(ctx->device));
}

int synDeviceSynchronize(uint32_t device)
{
    struct xs_ctx *ctx = ctx_of(device);

    return (ctx == NULL) ? SYN_INVALID_ARGUMENT : status_of(xs_ctx_sync(ctx));
}

int synDeviceGetName(char *name, int len, uint32_t device)
{
    struct xs_ctx *ctx = ctx_of(device);

    if ((ctx == NULL) || (len < 1)) {
        return SYN_INVALID_ARGUMENT;
    }
    xs_device_name(ctx->device, name, (size_t)len);
    return SYN_SUCCESS;
}

int synDeviceGetPCIBusId(char *bus, int len, uint32_t device)
{
    struct xs_ctx *ctx = ctx_of(device);

    if ((ctx == NULL) || (len < 13)) {
        return SYN_INVALID_ARGUMENT;
    }
    xs_device_bus_id(ctx->device, bus, (size_t)len);
    return SYN_SUCCESS;
}

int synDeviceGetInfoV2(uint32_t device, synDeviceInfoV2 *info)
{
    struct xs_ctx *ctx = ctx_of(device);
    uintptr_t      base;
    size_t         bytes;

    if ((ctx == NULL) || (info == NULL)) {
        return SYN_INVALID_ARGUMENT;
    }
    int res = status_of(xs_mem_arena(ctx->device, &base, &bytes));
    if (res == SYN_SUCCESS) {
        *info = (synDeviceInfoV2){.dramBaseAddress = base,
                                  .dramSize = bytes,
                                  .dramEnabled = 1,
                                  .deviceId = (uint32_t)ctx->device,
                                  .deviceType = DEVICE_GAUDI2,
                                  .deviceIndex = (uint8_t)ctx->device,
                                  .globalHbmBaseAddress = base};
    }
    return res;
}

int synDeviceGetMemoryInfo(uint32_t device, uint64_t *free_bytes, uint64_t *total)
{
    struct xs_ctx *ctx = ctx_of(device);
    size_t         unused, all;

    if (ctx == NULL) {
        return SYN_INVALID_ARGUMENT;
    }
    xs_mem_info(ctx->device, &unused, &all);
    *free_bytes = unused;
    *total = all;
    return SYN_SUCCESS;
}

int synStreamCreateGeneric(void **stream, uint32_t device, uint32_t flags)
{
    struct xs_ctx *ctx = ctx_of(device);

    return ((ctx == NULL) || (stream == NULL) || (flags != 0))
               ? SYN_INVALID_ARGUMENT
               : status_of(
                     xs_stream_create(ctx, XS_STREAM_NON_BLOCKING, 0, (struct xs_stream **)stream));
}

int synStreamDestroy(void *handle)
{
    struct xs_stream *stream;
    int               res = xs_hpu_stream(handle, &stream);

    return (res != SYN_SUCCESS) ? res : status_of(xs_stream_destroy(stream));
}

int synStreamWaitEvent(void *handle, struct xs_event *event, uint32_t flags)
{
    struct xs_stream *stream;
    int               res = (flags != 0) ? SYN_INVALID_ARGUMENT : xs_hpu_stream(handle, &stream);

    return (res != SYN_SUCCESS) ? res : status_of(xs_event_wait(stream, event));
}

int synStreamSynchronize(void *handle)
{
    struct xs_stream *stream;
    int               res = xs_hpu_stream(handle, &stream);

    if (res == SYN_SUCCESS) {
        xs_stream_sync(stream);
    }
    return res;
}

int synStreamQuery(void *handle)
{
    struct xs_stream *stream;
    int               res = xs_hpu_stream(handle, &stream);

    if (res == SYN_SUCCESS) {
        res = xs_stream_idle(stream) ? SYN_SUCCESS : SYN_BUSY;
    }
    return res;
}

int synEventCreate(struct xs_event **event, uint32_t device, uint32_t flags)
{
    struct xs_ctx *ctx = ctx_of(device);

    /* 1: it collects times */
    return ((ctx == NULL) || (flags > 1)) ? SYN_INVALID_ARGUMENT
                                          : status_of(xs_event_create(ctx, 0, event));
}

int synEventDestroy(struct xs_event *event)
{
    return status_of(xs_event_destroy(event));
}

int synEventRecord(struct xs_event *event, void *handle)
{
    struct xs_stream *stream;
    int               res = xs_hpu_stream(handle, &stream);

    return (res != SYN_SUCCESS) ? res : status_of(xs_event_record(event, stream));
}

int synEventQuery(struct xs_event *event)
{
    return status_of(xs_event_query(event));
}

int synEventSynchronize(struct xs_event *event)
{
    return status_of(xs_event_sync(event));
}

/* Is it memory of the device, or mapped memory of the host, as the direction says? */
static int check_side(const void *ptr, bool device)
{
    struct xs_range range;

    if (!xs_mem_find(ptr, &range)) {
        return device ? SYN_INVALID_ARGUMENT : SYN_MAPPING_NOT_FOUND;
    }
    return ((range.kind == XS_MEM_DEVICE) == device) ? SYN_SUCCESS : SYN_INVALID_ARGUMENT;
}

int synMemCopyAsync(void *handle, uint64_t src, uint64_t size, uint64_t dst, int direction)
{
    const void       *from = (const void *)(uintptr_t)src;
    void             *to = (void *)(uintptr_t)dst;
    struct xs_stream *stream;
    int               res = xs_hpu_stream(handle, &stream);

    if ((res == SYN_SUCCESS) && ((direction < HOST_TO_DRAM) || (direction > DRAM_TO_DRAM))) {
        res = SYN_INVALID_ARGUMENT;
    }
    if (res == SYN_SUCCESS) {
        res = check_side(from, direction != HOST_TO_DRAM);
    }
    if (res == SYN_SUCCESS) {
        res = check_side(to, direction != DRAM_TO_HOST);
    }
    return (res != SYN_SUCCESS) ? res : status_of(xs_copy_async(stream, to, from, size));
}

int synMemCopyAsyncMultiple(void *handle, const uint64_t *src, const uint64_t *size,
                            const uint64_t *dst, int direction, uint64_t copies)
{
    int res = SYN_SUCCESS;

    for (uint64_t i = 0; (i < copies) && (res == SYN_SUCCESS); i++) {
        res = synMemCopyAsync(handle, src[i], size[i], dst[i], direction);
    }
    return res;
}

static int fill(uint64_t dst, uint32_t value, unsigned width, size_t count, void *handle)
{
    struct xs_stream *stream;
    void             *to = (void *)(uintptr_t)dst;
    int               res = xs_hpu_stream(handle, &stream);

    if (res == SYN_SUCCESS) {
        res = check_side(to, true);
    }
    return (res != SYN_SUCCESS) ? res : status_of(xs_fill_async(stream, to, value, width, count));
}

int synMemsetD8Async(uint64_t dst, unsigned char value, size_t count, void *stream)
{
    return fill(dst, value, 1, count, stream);
}

int synMemsetD16Async(uint64_t dst, uint16_t value, size_t count, void *stream)
{
    return fill(dst, value, 2, count, stream);
}

int synMemsetD32Async(uint64_t dst, uint32_t value, size_t count, void *stream)
{
    return fill(dst, value, 4, count, stream);
}

int synHostMalloc(uint32_t device, uint64_t size, uint32_t flags, void **buffer)
{
    struct xs_ctx *ctx = ctx_of(device);

    return ((ctx == NULL) || (flags != 0))
               ? SYN_INVALID_ARGUMENT
               : status_of(xs_mem_alloc(ctx, XS_MEM_HOST, size, 0, buffer));
}

int synHostFree(uint32_t device, const void *buffer, uint32_t flags)
{
    return ((ctx_of(device) == NULL) || (flags != 0))
               ? SYN_INVALID_ARGUMENT
               : status_of(xs_mem_free((void *)(uintptr_t)buffer, XS_MEM_HOST));
}

int synHostMap(uint32_t device, uint64_t size, const void *buffer)
{
    struct xs_ctx *ctx = ctx_of(device);

    return (ctx == NULL) ? SYN_INVALID_ARGUMENT
                         : status_of(xs_mem_register(ctx, (void *)(uintptr_t)buffer, size, 0));
}

int synHostUnmap(uint32_t device, const void *buffer)
{
    return (ctx_of(device) == NULL) ? SYN_INVALID_ARGUMENT
                                    : status_of(xs_mem_unregister((void *)(uintptr_t)buffer));
}

int synDeviceMalloc(uint32_t device, uint64_t size, uint64_t wanted, uint32_t flags,
                    uint64_t *buffer)
{
    struct xs_ctx *ctx = ctx_of(device);
    void          *ptr;

    (void)wanted; /* a hint */
    if ((ctx == NULL) || (flags != 0) || (buffer == NULL)) {
        return SYN_INVALID_ARGUMENT;
    }
    int res = status_of(xs_mem_alloc(ctx, XS_MEM_DEVICE, size, 0, &ptr));
    if (res == SYN_SUCCESS) {
        *buffer = (uintptr_t)ptr;
    }
    return res;
}

int synDeviceFree(uint32_t device, uint64_t buffer, uint32_t flags)
{
    return ((ctx_of(device) == NULL) || (flags != 0))
               ? SYN_INVALID_ARGUMENT
               : status_of(xs_mem_free((void *)(uintptr_t)buffer, XS_MEM_DEVICE));
}
