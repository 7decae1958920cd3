/* SPDX-License-Identifier: BSD-3-Clause */
/* The runtime, its devices and its errors. */
#include <string.h>
#include <strings.h>

#include "core/graph.h"
#include "rocm/hip.h"

static __thread int last_error;

int xs_hip_result(int res)
{
    if (res != XS_OK) {
        last_error = res;
    }
    return res;
}

int xs_hip_ctx(struct xs_ctx **ctx_p)
{
    enum xs_error res = xs_init_implicit();

    *ctx_p = xs_ctx_current();
    return (int)res;
}

int xs_hip_stream(hipStream_t handle, struct xs_stream **stream_p)
{
    struct xs_ctx *ctx;
    int            res = xs_hip_ctx(&ctx);

    return (res != XS_OK) ? res : (int)xs_stream_get(ctx, handle, stream_p);
}

int hipInit(unsigned flags)
{
    return xs_hip_result((flags != 0) ? XS_INVALID_VALUE : (int)xs_init_implicit());
}

int hipRuntimeGetVersion(int *version)
{
    static const int versions[] = {50221153, 60342133, 70051831}; /* of ROCm 5.2, 6.3, 7.0 */

    if (version == NULL) {
        return xs_hip_result(XS_INVALID_VALUE);
    }
    *version = versions[xs_config()->hip_major - 5];
    return XS_OK;
}

int hipDriverGetVersion(int *version)
{
    return hipRuntimeGetVersion(version);
}

int hipGetDeviceCount(int *count)
{
    int res = (count == NULL) ? XS_INVALID_VALUE : (int)xs_init_implicit();

    if (count != NULL) {
        *count = (res == XS_OK) ? xs_config()->devices : 0;
    }
    return xs_hip_result(res);
}

static int check_device(int device, const void *out)
{
    int res = (int)xs_init_implicit();

    if ((res == XS_OK) && (out == NULL)) {
        res = XS_INVALID_VALUE;
    }
    if ((res == XS_OK) && ((device < 0) || (device >= xs_config()->devices))) {
        res = XS_INVALID_DEVICE;
    }
    return xs_hip_result(res);
}

int hipGetDevice(int *device)
{
    int res = check_device(0, device);

    if (res == XS_OK) {
        *device = xs_ctx_current()->device;
    }
    return res;
}

int hipSetDevice(int device)
{
    struct xs_ctx *ctx;
    int            res = check_device(device, &device);

    if ((res == XS_OK) && (xs_ctx_current()->device != device)) {
        res = (int)xs_primary_retain(device, &ctx);
        if (res == XS_OK) {
            res = (int)xs_ctx_set(ctx);
        }
    }
    return xs_hip_result(res);
}

int hipDeviceGet(int *device, int ordinal)
{
    int res = check_device(ordinal, device);

    if (res == XS_OK) {
        *device = ordinal;
    }
    return res;
}

int hipDeviceGetName(char *name, int len, int device)
{
    int res = check_device(device, name);

    if ((res == XS_OK) && (len > 0)) {
        xs_device_name(device, name, (size_t)len);
    }
    return res;
}

int hipDeviceGetUuid(unsigned char *uuid, int device)
{
    int res = check_device(device, uuid);

    if (res == XS_OK) {
        static const unsigned char none[16] = "XX"; /* of "GPU-XX" */

        xs_device_uuid(device, uuid);
        if (!xs_config()->uuid) {
            memcpy(uuid, none, sizeof(none));
        }
    }
    return res;
}

int hipDeviceGetPCIBusId(char *id, int len, int device)
{
    int res = check_device(device, id);

    if ((res == XS_OK) && (len < 13)) {
        return xs_hip_result(XS_INVALID_VALUE);
    }
    if (res == XS_OK) {
        xs_device_bus_id(device, id, (size_t)len);
    }
    return res;
}

int hipDeviceGetByPCIBusId(int *device, const char *id)
{
    char mine[16];
    int  res = check_device(0, device);

    if ((res != XS_OK) || (id == NULL)) {
        return xs_hip_result((res != XS_OK) ? res : XS_INVALID_VALUE);
    }
    for (int i = 0; i < xs_config()->devices; i++) {
        xs_device_bus_id(i, mine, sizeof(mine));
        if (strcasecmp(mine, id) == 0) {
            *device = i;
            return XS_OK;
        }
    }
    return xs_hip_result(XS_INVALID_VALUE);
}

/* Numbers of hipDeviceAttribute_t, the same since ROCm 5. */
enum { ATTRIBUTE_PCI_BUS_ID = 67, ATTRIBUTE_LAST_COMMON = 127 };
static const struct {
    int attribute;
    int value;
} attributes[] = {
    {3, 1},       /* CanMapHostMemory */
    {5, 1000000}, /* ClockRate */
    {9, 1},       /* ConcurrentManagedAccess */
    {16, 0},      /* Integrated */
    {23, 9},      /* ComputeCapabilityMajor */
    {24, 1},      /* ManagedMemory */
    {56, 1024},   /* MaxThreadsPerBlock */
    {61, 0},      /* ComputeCapabilityMinor */
    {63, 32},     /* MultiprocessorCount */
    {65, 0},      /* PageableMemoryAccess */
    {68, 0},      /* PciDeviceId */
    {69, 0},      /* PciDomainID */
    {74, 65536},  /* MaxSharedMemoryPerBlock */
    {78, 1},      /* StreamPrioritiesSupported */
    {85, 1},      /* UnifiedAddressing */
    {87, 64},     /* WarpSize */
    {10013, 1},   /* CanUseStreamWaitValue */
};

int hipDeviceGetAttribute(int *value, int attribute, int device)
{
    int res = check_device(device, value);

    if (res != XS_OK) {
        return res;
    }
    if ((attribute < 0) || ((attribute > ATTRIBUTE_LAST_COMMON) && (attribute < 10000))) {
        return xs_hip_result(XS_INVALID_VALUE);
    }
    *value = (attribute == ATTRIBUTE_PCI_BUS_ID) ? xs_device_bus(device) : 0;
    for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++) {
        if (attributes[i].attribute == attribute) {
            *value = attributes[i].value;
        }
    }
    return XS_OK;
}

int hipDeviceTotalMem(size_t *bytes, int device)
{
    int res = check_device(device, bytes);

    if (res == XS_OK) {
        *bytes = xs_config()->memory;
    }
    return res;
}

int hipDeviceSynchronize(void)
{
    struct xs_ctx *ctx;
    int            res = xs_hip_ctx(&ctx);

    if (res == XS_OK) {
        res = (int)xs_capture_guard();
    }
    return xs_hip_result((res != XS_OK) ? res : (int)xs_ctx_sync(ctx));
}

int hipDeviceReset(void)
{
    struct xs_ctx *ctx;
    int            res = xs_hip_ctx(&ctx);

    if (res == XS_OK) {
        int device = ctx->device;

        res = (int)xs_primary_reset(device);
        if (res == XS_OK) {
            res = (int)xs_primary_retain(device, &ctx); /* the thread stays on its device */
        }
    }
    return xs_hip_result(res);
}

int hipSetDeviceFlags(unsigned flags)
{
    (void)flags; /* how the host waits is its own affair */
    return xs_hip_result((int)xs_init_implicit());
}

int hipDeviceCanAccessPeer(int *can, int device, int peer)
{
    int res = check_device(device, can);

    if (res == XS_OK) {
        res = check_device(peer, can);
    }
    if (res == XS_OK) {
        *can = (device != peer);
    }
    return res;
}

static int peer_access(int peer, bool enable)
{
    struct xs_ctx *ctx;
    int            res = xs_hip_ctx(&ctx);

    return xs_hip_result((res != XS_OK) ? res : (int)xs_peer_enable(ctx, peer, enable));
}

int hipDeviceEnablePeerAccess(int peer, unsigned flags)
{
    return (flags != 0) ? xs_hip_result(XS_INVALID_VALUE) : peer_access(peer, true);
}

int hipDeviceDisablePeerAccess(int peer)
{
    return peer_access(peer, false);
}

int hipDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    if (least != NULL) {
        *least = 0;
    }
    if (greatest != NULL) {
        *greatest = -5;
    }
    return xs_hip_result((int)xs_init_implicit());
}

int hipDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
    int res = check_device(device, flags);

    if ((res == XS_OK) && (active == NULL)) {
        res = XS_INVALID_VALUE;
    }
    return xs_hip_result((res != XS_OK) ? res : (int)xs_primary_state(device, flags, active));
}

int hipGetLastError(void)
{
    int res = last_error;

    last_error = XS_OK;
    return res;
}

int hipPeekAtLastError(void)
{
    return last_error;
}

static const struct {
    int         error;
    const char *name;
} names[] = {
    {XS_OK, "hipSuccess"},
    {XS_INVALID_VALUE, "hipErrorInvalidValue"},
    {XS_OUT_OF_MEMORY, "hipErrorOutOfMemory"},
    {XS_NOT_INITIALIZED, "hipErrorNotInitialized"},
    {HIP_INVALID_MEMCPY_DIRECTION, "hipErrorInvalidMemcpyDirection"},
    {XS_NO_DEVICE, "hipErrorNoDevice"},
    {XS_INVALID_DEVICE, "hipErrorInvalidDevice"},
    {XS_INVALID_CONTEXT, "hipErrorInvalidContext"},
    {XS_MAP_FAILED, "hipErrorMapFailed"},
    {XS_OPERATING_SYSTEM, "hipErrorOperatingSystem"},
    {XS_INVALID_HANDLE, "hipErrorInvalidHandle"},
    {XS_NOT_FOUND, "hipErrorNotFound"},
    {XS_NOT_READY, "hipErrorNotReady"},
    {XS_PEER_ACCESS_ALREADY_ENABLED, "hipErrorPeerAccessAlreadyEnabled"},
    {XS_PEER_ACCESS_NOT_ENABLED, "hipErrorPeerAccessNotEnabled"},
    {XS_CONTEXT_IS_DESTROYED, "hipErrorContextIsDestroyed"},
    {XS_HOST_ALREADY_REGISTERED, "hipErrorHostMemoryAlreadyRegistered"},
    {XS_HOST_NOT_REGISTERED, "hipErrorHostMemoryNotRegistered"},
    {XS_NOT_SUPPORTED, "hipErrorNotSupported"},
};

const char *hipGetErrorName(int error)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (names[i].error == error) {
            return names[i].name;
        }
    }
    return "hipErrorUnknown";
}

const char *hipGetErrorString(int error)
{
    const char *text = xs_error_text(error);

    if (error == HIP_INVALID_MEMCPY_DIRECTION) {
        return "invalid copy direction for memcpy";
    }
    return (text == NULL) ? "unknown error" : text;
}
