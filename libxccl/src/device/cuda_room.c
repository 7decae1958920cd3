/* SPDX-License-Identifier: BSD-3-Clause */
/* What room a device has for kernels, and who may do what while one runs. */
#include <pthread.h>
#include <stddef.h>

#include "base/log.h"
#include "device/cuda.h"
#include "device/symbols.h"

/* CUdevice_attribute of cuda.h */
enum { MULTIPROCESSOR_COUNT = 16, CONCURRENT_MANAGED_ACCESS = 89, MPS_ENABLED = 133 };

#define ROOM_FUNCTIONS(X)                                                                          \
    X(device_get, "cuDeviceGet", (CUdevice *, int))                                                \
    X(attribute, "cuDeviceGetAttribute", (int *, int, CUdevice))                                   \
    X(occupancy, "cuOccupancyMaxActiveBlocksPerMultiprocessor", (int *, void *, int, size_t))

static struct {
#define FIELD(name, symbol, args) CUresult(*name) args;
    ROOM_FUNCTIONS(FIELD)
#undef FIELD
} room;

static const struct xc_symbol symbols[] = {
#define ROW(name, symbol, args) {symbol, offsetof(__typeof__(room), name)},
    ROOM_FUNCTIONS(ROW)
#undef ROW
};

static bool available;

static void find_functions(void)
{
    static const char *const sonames[] = {"libcuda.so.1", NULL};
    const char              *missing;

    available = xc_symbols_open(sonames, true, symbols, sizeof(symbols) / sizeof(symbols[0]), &room,
                                &missing);
}

static xcclResult_t ask(int device, int attribute, int *value_p)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    CUdevice              handle;

    pthread_once(&once, find_functions);
    if (!available || (room.device_get(&handle, device) != CUDA_SUCCESS) ||
        (room.attribute(value_p, attribute, handle) != CUDA_SUCCESS)) {
        return xc_fail(xcclUnhandledCudaError, "device %d does not know attribute %d", device,
                       attribute);
    }
    return xcclSuccess;
}

xcclResult_t xc_cuda_multiprocessors_of(int device, int *count_p)
{
    return ask(device, MULTIPROCESSOR_COUNT, count_p);
}

/* Drivers before that of CUDA 12.1 do not know the question: no. */
bool xc_cuda_runs_processes_at_once(int device)
{
    int enabled = 0;

    return (ask(device, MPS_ENABLED, &enabled) == xcclSuccess) && (enabled != 0);
}

bool xc_cuda_managed_is_exclusive(int device)
{
    int concurrent = 1;

    return (ask(device, CONCURRENT_MANAGED_ACCESS, &concurrent) == xcclSuccess) &&
           (concurrent == 0);
}

xcclResult_t xc_cuda_blocks_at_once(int device, void *function, unsigned threads, int *count_p)
{
    int          each = 0, processors = 0;
    xcclResult_t res = xc_cuda_multiprocessors_of(device, &processors);

    if ((res == xcclSuccess) &&
        (room.occupancy(&each, function, (int)threads, 0) != CUDA_SUCCESS)) {
        res = xc_fail(xcclUnhandledCudaError,
                      "cuOccupancyMaxActiveBlocksPerMultiprocessor failed on device %d", device);
    }
    *count_p = each * processors;
    return res;
}
