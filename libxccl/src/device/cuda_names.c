/* SPDX-License-Identifier: BSD-3-Clause */
/* What tells a device from others: its name, its UUID, and its place on the bus. */
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "base/log.h"
#include "device/cuda.h"
#include "device/symbols.h"

enum { MAX_DEVICES = 64 };

#define NAME_FUNCTIONS(X)                                                                          \
    X(device_get, "cuDeviceGet", (CUdevice *, int))                                                \
    X(name, "cuDeviceGetName", (char *, int, CUdevice))                                            \
    X(uuid, "cuDeviceGetUuid", (unsigned char *, CUdevice))                                        \
    X(bus_id, "cuDeviceGetPCIBusId", (char *, int, CUdevice))

static struct {
#define FIELD(name, symbol, args) CUresult(*name) args;
    NAME_FUNCTIONS(FIELD)
#undef FIELD
} names;

static const struct xc_symbol symbols[] = {
#define ROW(name, symbol, args) {symbol, offsetof(__typeof__(names), name)},
    NAME_FUNCTIONS(ROW)
#undef ROW
};

static bool available;

static void find_functions(void)
{
    static const char *const sonames[] = {"libcuda.so.1", NULL};
    const char              *missing;

    available = xc_symbols_open(sonames, true, symbols, sizeof(symbols) / sizeof(symbols[0]),
                                &names, &missing);
}

static bool find_device(int device, CUdevice *handle_p)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, find_functions);
    return available && (names.device_get(handle_p, device) == CUDA_SUCCESS);
}

static xcclResult_t answer(bool given, int device, const char *function)
{
    return given ? xcclSuccess
                 : xc_fail(xcclUnhandledCudaError, "%s fails for device %d", function, device);
}

xcclResult_t xc_cuda_name_of(int device, char *buf, size_t len)
{
    CUdevice handle;
    bool     given =
        find_device(device, &handle) && (names.name(buf, (int)len, handle) == CUDA_SUCCESS);

    return answer(given, device, "cuDeviceGetName");
}

xcclResult_t xc_cuda_bus_id_of(int device, char *buf, size_t len)
{
    CUdevice handle;
    bool     given =
        find_device(device, &handle) && (names.bus_id(buf, (int)len, handle) == CUDA_SUCCESS);

    return answer(given, device, "cuDeviceGetPCIBusId");
}

/* Each message says it, so it is kept. */
xcclResult_t xc_cuda_uuid_of(int device, unsigned char uuid[XC_DEVICE_UUID_BYTES])
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct {
        bool          known; /* atomic */
        unsigned char uuid[XC_DEVICE_UUID_BYTES];
    } devices[MAX_DEVICES];
    CUdevice handle;
    bool     kept = (device >= 0) && (device < MAX_DEVICES);

    if (kept && __atomic_load_n(&devices[device].known, __ATOMIC_ACQUIRE)) {
        memcpy(uuid, devices[device].uuid, XC_DEVICE_UUID_BYTES);
        return xcclSuccess;
    }
    bool given = find_device(device, &handle) && (names.uuid(uuid, handle) == CUDA_SUCCESS);
    if (given && kept) {
        pthread_mutex_lock(&lock);
        if (!devices[device].known) {
            memcpy(devices[device].uuid, uuid, XC_DEVICE_UUID_BYTES);
            __atomic_store_n(&devices[device].known, true, __ATOMIC_RELEASE);
        }
        pthread_mutex_unlock(&lock);
    }
    return answer(given, device, "cuDeviceGetUuid");
}
