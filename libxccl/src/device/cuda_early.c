/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A kernel that is on the device before the kernel ahead of it on its stream has ended, and waits
 * there: what a launch takes passes meanwhile. CUDA's programmatic dependent launch.
 */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "device/cuda.h"
#include "device/runtimes.h"
#include "device/symbols.h"

/* CUfunction_attribute and CUlaunchAttributeID of cuda.h */
enum { PTX_VERSION = 5, PROGRAMMATIC_STREAM_SERIALIZATION = 6 };
/* Graphs have such edges since CUDA 12.3, and kernels can wait since compute capability 9.0. */
enum { LEAST_DRIVER = 12030, LEAST_PTX = 90 };

struct attribute {
    int      id;
    unsigned padding;
    union {
        int  allowed;
        char all[64];
    } value;
};

/* CUlaunchConfig */
struct config {
    unsigned          grid[3], block[3], shared;
    xcclStream_t      stream;
    struct attribute *attributes;
    unsigned          count;
};
_Static_assert((sizeof(void *) != 8) || (sizeof(struct config) == 56), "as in cuda.h");
_Static_assert(sizeof(struct attribute) == 72, "as in cuda.h");

#define EARLY_FUNCTIONS(X)                                                                         \
    X(version, "cuDriverGetVersion", (int *))                                                      \
    X(attribute, "cuFuncGetAttribute", (int *, int, void *))                                       \
    X(launch, "cuLaunchKernelEx", (const struct config *, void *, void **, void **))

static struct {
#define FIELD(name, symbol, args) CUresult(*name) args;
    EARLY_FUNCTIONS(FIELD)
#undef FIELD
} early;

static const struct xc_symbol symbols[] = {
#define ROW(name, symbol, args) {symbol, offsetof(__typeof__(early), name)},
    EARLY_FUNCTIONS(ROW)
#undef ROW
};

static bool available;

static void find_functions(void)
{
    static const char *const sonames[] = {"libcuda.so.1", NULL};
    const char              *missing;
    int                      version = 0;

    available = xc_symbols_open(sonames, true, symbols, sizeof(symbols) / sizeof(symbols[0]),
                                &early, &missing) &&
                (early.version(&version) == CUDA_SUCCESS) && (version >= LEAST_DRIVER);
}

/* Compiled for older devices, it would not wait. */
bool xc_cuda_waits_itself(void *function)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int                   ptx = 0;

    pthread_once(&once, find_functions);
    return available && (early.attribute(&ptx, PTX_VERSION, function) == CUDA_SUCCESS) &&
           (ptx >= LEAST_PTX);
}

xcclResult_t xc_cuda_launch_early(void *function, const unsigned grid[2], unsigned threads,
                                  const void *arguments, xcclStream_t stream)
{
    struct attribute    attribute = {.id = PROGRAMMATIC_STREAM_SERIALIZATION, .value.allowed = 1};
    const struct config config = {.grid = {grid[0], grid[1], 1},
                                  .block = {threads, 1, 1},
                                  .stream = stream,
                                  .attributes = &attribute,
                                  .count = 1};
    void               *list[] = {(void *)(uintptr_t)arguments};
    CUresult            res = early.launch(&config, function, list, NULL);

    return (res == CUDA_SUCCESS)
               ? xcclSuccess
               : xc_fail(xcclUnhandledCudaError, "cuLaunchKernelEx failed (CUDA error %d)%s",
                         (int)res, xc_crash_hint((int)res));
}
