/* SPDX-License-Identifier: BSD-3-Clause */
/* AMD GPUs through the HIP runtime. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "device/hip.h"
#include "device/identity.h"
#include "device/runtimes.h"
#include "device/symbols.h"

/* Numbers of hip_runtime_api.h. */
enum {
    HIP_ERROR_INVALID_VALUE = 1,
    HIP_ERROR_INVALID_PITCH_VALUE = 12,
    HIP_ERROR_NOT_READY = 600,
    HIP_STREAM_NON_BLOCKING = 1,
    HIP_EVENT_DISABLE_TIMING = 2,
    HIP_STREAM_CAPTURE_MODE_RELAXED = 2,
    HIP_STREAM_CAPTURE_STATUS_NONE = 0,
    HIP_MEMCPY_DEFAULT = 4,
};

#define HIP_STREAM_PER_THREAD ((void *)2)

struct xc_hip_runtime xc_hip;

/* Returns a text, unlike the rest. */
static const char *(*error_string)(hipError_t);

static const struct xc_symbol symbols[] = {
#define ROW(name, symbol, args) {symbol, offsetof(__typeof__(xc_hip), name)},
    XC_HIP_FUNCTIONS(ROW)
#undef ROW
};
static const struct xc_symbol text_symbol[] = {{"hipGetErrorString", 0}};

/* Newest first; the plain name is the development package's link. */
static const char *const sonames[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
                                      "libamdhip64.so", NULL};

static bool               loaded; /* atomic */
static unsigned long long seen_generation;
static pthread_mutex_t    lock = PTHREAD_MUTEX_INITIALIZER;

xcclResult_t xc_hip_failed(hipError_t res, const char *what)
{
    xc_hip.take_error(); /* the program must not find our failure as its own */
    return xc_fail(xcclUnhandledDeviceError, "%s failed: %s (HIP error %d)%s", what,
                   error_string(res), (int)res, xc_crash_hint((int)res));
}

int xc_hip_relax(void)
{
    int mode = HIP_STREAM_CAPTURE_MODE_RELAXED;

    return (xc_hip.exchange_mode(&mode) == HIP_SUCCESS) ? mode : HIP_STREAM_CAPTURE_MODE_RELAXED;
}

void xc_hip_restore(int mode)
{
    xc_hip.exchange_mode(&mode);
}

/* With the lock held. */
static bool open_library(bool only_loaded, const char **missing_p)
{
    if (__atomic_load_n(&loaded, __ATOMIC_ACQUIRE)) {
        return true;
    }
    if (!xc_symbols_open(sonames, only_loaded, symbols, sizeof(symbols) / sizeof(symbols[0]),
                         &xc_hip, missing_p) ||
        !xc_symbols_open(sonames, true, text_symbol, 1, &error_string, missing_p)) {
        return false;
    }
    xc_hip_memory_open(sonames);
    __atomic_store_n(&loaded, true, __ATOMIC_RELEASE);
    return true;
}

/*
 * ROCm's own HIP is in many processes that will never use it, and asking it anything there starts
 * it, at best in vain. Without the kernel's node it has no device. Another implementation of HIP
 * may need no node; it does not depend on ROCm's runtime, which may be here without HIP, for UCX.
 */
static bool has_no_device(void)
{
    bool rocm = false;

    for (const char *const *name = sonames; !rocm && (*name != NULL); name++) {
        void *hip_library = dlopen(*name, RTLD_LAZY | RTLD_NOLOAD);
        if (hip_library != NULL) {
            rocm = (dlsym(hip_library, "hsa_init") != NULL); /* also of what it depends on */
            dlclose(hip_library);
        }
    }
    return rocm && (access("/dev/kfd", F_OK) != 0);
}

/*
 * HIP initialises itself at any call and has none that tells whether it did, so here a loaded
 * library counts as active where there can be a device.
 */
static bool hip_active(void)
{
    const char *missing = NULL;

    if (__atomic_load_n(&loaded, __ATOMIC_ACQUIRE)) {
        return true;
    }
    unsigned long long generation = xc_symbols_generation();
    if (generation == __atomic_load_n(&seen_generation, __ATOMIC_ACQUIRE)) {
        return false;
    }
    pthread_mutex_lock(&lock);
    bool found = !has_no_device() && open_library(true, &missing);
    if (!found) {
        if (missing != NULL) {
            xc_warn("libamdhip64.so lacks %s: AMD memory is not recognised; ROCm is too old",
                    missing);
        }
        __atomic_store_n(&seen_generation, generation, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
    return found;
}

bool xc_hip_loaded(void)
{
    return __atomic_load_n(&loaded, __ATOMIC_ACQUIRE);
}

xcclResult_t xc_hip_start(void)
{
    const char *missing = NULL;
    int         count = 0;

    pthread_mutex_lock(&lock);
    bool found = open_library(false, &missing);
    pthread_mutex_unlock(&lock);
    if (!found && (missing != NULL)) {
        return xc_fail(xcclLibraryNotFound, "libamdhip64.so lacks %s: ROCm is too old", missing);
    }
    if (!found) {
        return xc_fail(xcclLibraryNotFound, "libamdhip64.so was not found: no ROCm here");
    }
    XC_HIP_CHECK(xc_hip.init(0), "hipInit");
    XC_HIP_CHECK(xc_hip.device_count(&count), "hipGetDeviceCount");
    if (count == 0) {
        return xc_fail(xcclUnhandledDeviceError,
                       "HIP shows no device; see ROCR_VISIBLE_DEVICES and HIP_VISIBLE_DEVICES");
    }
    return xcclSuccess;
}

static xcclResult_t hip_count(int *count_p)
{
    int count;

    XC_HIP_CHECK(xc_hip.device_count(&count), "hipGetDeviceCount");
    *count_p = count;
    return xcclSuccess;
}

static xcclResult_t hip_current(int *device_p)
{
    int device;

    XC_HIP_CHECK(xc_hip.device_get(&device), "hipGetDevice");
    *device_p = device;
    return xcclSuccess;
}

/* saved is the device to go back to, plus one; NULL when there is nothing to do. */
static xcclResult_t hip_enter(int device, void **saved_p)
{
    int now;

    xc_hip_resets(device, true);
    XC_HIP_CHECK(xc_hip.device_get(&now), "hipGetDevice");
    if (now == device) {
        *saved_p = NULL;
        return xcclSuccess;
    }
    XC_HIP_CHECK(xc_hip.device_set(device), "hipSetDevice");
    *saved_p = (void *)((intptr_t)now + 1);
    return xcclSuccess;
}

static void hip_leave(void *saved)
{
    if (saved != NULL) {
        xc_hip.device_set((int)((intptr_t)saved - 1));
    }
}

static xcclResult_t hip_name_of(int device, char *buf, size_t len)
{
    XC_HIP_CHECK(xc_hip.device_name(buf, (int)len, device), "hipDeviceGetName");
    return xcclSuccess;
}

static xcclResult_t hip_uuid_of(int device, unsigned char uuid[XC_DEVICE_UUID_BYTES])
{
    unsigned char id[XC_DEVICE_UUID_BYTES];
    char          bus[64];

    XC_HIP_CHECK(xc_hip.device_uuid(id, device), "hipDeviceGetUuid");
    if (xc_uuid_is_none(id)) {
        XC_HIP_CHECK(xc_hip.device_bus_id(bus, (int)sizeof(bus), device), "hipDeviceGetPCIBusId");
        xc_uuid_of_place(bus, id);
    }
    memcpy(uuid, id, XC_DEVICE_UUID_BYTES);
    return xcclSuccess;
}

static xcclResult_t hip_multiprocessors_of(int device, int *count_p)
{
    enum { hipDeviceAttributeMultiprocessorCount = 63 };

    XC_HIP_CHECK(xc_hip.device_attribute(count_p, hipDeviceAttributeMultiprocessorCount, device),
                 "hipDeviceGetAttribute");
    return xcclSuccess;
}

static xcclResult_t hip_bus_id_of(int device, char *buf, size_t len)
{
    XC_HIP_CHECK(xc_hip.device_bus_id(buf, (int)len, device), "hipDeviceGetPCIBusId");
    return xcclSuccess;
}

static xcclResult_t hip_stream_create(xcclStream_t *stream_p)
{
    XC_HIP_CHECK_RELAXED(xc_hip.stream_create(stream_p, HIP_STREAM_NON_BLOCKING),
                         "hipStreamCreate");
    xc_hip_give_sign_to(*stream_p);
    return xcclSuccess;
}

static xcclResult_t hip_stream_create_urgent(xcclStream_t *stream_p)
{
    int least, greatest;

    XC_HIP_CHECK(xc_hip.stream_priorities(&least, &greatest), "hipDeviceGetStreamPriorityRange");
    XC_HIP_CHECK_RELAXED(xc_hip.stream_create_first(stream_p, HIP_STREAM_NON_BLOCKING, greatest),
                         "hipStreamCreateWithPriority");
    xc_hip_give_sign_to(*stream_p);
    return xcclSuccess;
}

static xcclResult_t hip_stream_destroy(xcclStream_t stream)
{
    xc_hip_take_sign_from(stream);
    XC_HIP_CHECK_RELAXED(xc_hip.stream_destroy(stream), "hipStreamDestroy");
    return xcclSuccess;
}

/* "Not ready" is no failure, but HIP keeps it as the last error: take it back. */
static xcclResult_t query_result(hipError_t res, const char *what)
{
    if (res == HIP_ERROR_NOT_READY) {
        xc_hip.take_error();
        return xcclInProgress;
    }
    XC_HIP_CHECK(res, what);
    return xcclSuccess;
}

static xcclResult_t hip_stream_query(xcclStream_t stream)
{
    int        mode = xc_hip_relax();
    hipError_t res = xc_hip.stream_query(stream);

    xc_hip_restore(mode);
    return query_result(res, "work on a stream");
}

static xcclResult_t hip_stream_sync(xcclStream_t stream)
{
    XC_HIP_CHECK_RELAXED(xc_hip.stream_sync(stream), "work on a stream");
    return xcclSuccess;
}

/* One of the default streams. */
static xcclResult_t after(xcclStream_t stream, void *before)
{
    void *event;
    int   captures = HIP_STREAM_CAPTURE_STATUS_NONE;

    /* Where it is captured, or one that blocks towards it is, any use of it would spoil that; to
     * ask this does not. */
    if (xc_hip.stream_captures(before, &captures) != HIP_SUCCESS) {
        xc_hip.take_error();
        return xcclSuccess;
    }
    if (captures != HIP_STREAM_CAPTURE_STATUS_NONE) {
        return xcclSuccess;
    }
    xcclResult_t idle = query_result(xc_hip.stream_query(before), "work on the default stream");
    if (idle != xcclInProgress) { /* usually it is idle: one cheap question */
        return idle;
    }
    XC_HIP_CHECK(xc_hip.event_create(&event, HIP_EVENT_DISABLE_TIMING), "hipEventCreate");
    hipError_t res = xc_hip.event_record(event, before);
    if (res == HIP_SUCCESS) {
        res = xc_hip.stream_wait(stream, event, 0);
    }
    xc_hip.event_destroy(event); /* the runtime keeps it until it has happened */
    XC_HIP_CHECK(res, "waiting for the default stream");
    return xcclSuccess;
}

/* The second is the calling thread's own, for programs with a default stream for each thread. */
static xcclResult_t hip_stream_after_default(xcclStream_t stream)
{
    int          mode = xc_hip_relax(); /* another stream's capture may forbid questions to any */
    xcclResult_t res = after(stream, NULL);

    if (res == xcclSuccess) {
        res = after(stream, HIP_STREAM_PER_THREAD);
    }
    xc_hip_restore(mode);
    return res;
}

static xcclResult_t hip_event_create(void **event_p)
{
    XC_HIP_CHECK_RELAXED(xc_hip.event_create(event_p, HIP_EVENT_DISABLE_TIMING), "hipEventCreate");
    return xcclSuccess;
}

static xcclResult_t hip_event_destroy(void *event)
{
    XC_HIP_CHECK_RELAXED(xc_hip.event_destroy(event), "hipEventDestroy");
    return xcclSuccess;
}

static xcclResult_t hip_event_record(void *event, xcclStream_t stream)
{
    XC_HIP_CHECK(xc_hip.event_record(event, stream), "hipEventRecord");
    return xcclSuccess;
}

static xcclResult_t hip_event_query(void *event)
{
    int        mode = xc_hip_relax();
    hipError_t res = xc_hip.event_query(event);

    xc_hip_restore(mode);
    return query_result(res, "work before an event");
}

static xcclResult_t hip_copy_async(void *dst, const void *src, size_t bytes, xcclStream_t stream)
{
    XC_HIP_CHECK(xc_hip.copy_async(dst, src, bytes, HIP_MEMCPY_DEFAULT, stream), "hipMemcpyAsync");
    return xcclSuccess;
}

static xcclResult_t hip_copy_2d_async(void *dst, size_t dst_pitch, const void *src,
                                      size_t src_pitch, size_t width, size_t height,
                                      xcclStream_t stream)
{
    hipError_t res = xc_hip.copy_2d_async(dst, dst_pitch, src, src_pitch, width, height,
                                          HIP_MEMCPY_DEFAULT, stream);

    if ((res != HIP_ERROR_INVALID_VALUE) && (res != HIP_ERROR_INVALID_PITCH_VALUE)) {
        XC_HIP_CHECK(res, "hipMemcpy2DAsync");
        return xcclSuccess;
    }
    xc_hip.take_error(); /* a pitch may be too large: then each row goes by itself */
    for (size_t i = 0; i < height; i++) {
        XC_HIP_CHECK(xc_hip.copy_async((char *)dst + i * dst_pitch,
                                       (const char *)src + i * src_pitch, width, HIP_MEMCPY_DEFAULT,
                                       stream),
                     "hipMemcpyAsync");
    }
    return xcclSuccess;
}

static xcclResult_t hip_set_async(void *dst, int byte, size_t bytes, xcclStream_t stream)
{
    XC_HIP_CHECK(xc_hip.set_async(dst, byte, bytes, stream), "hipMemsetAsync");
    return xcclSuccess;
}

static xcclResult_t hip_module_load(void **module_p, const void *image)
{
    XC_HIP_CHECK_RELAXED(xc_hip.module_load(module_p, image), "hipModuleLoadData");
    return xcclSuccess;
}

static xcclResult_t hip_module_function(void **function_p, void *module, const char *name)
{
    XC_HIP_CHECK(xc_hip.module_function(function_p, module, name), "hipModuleGetFunction");
    return xcclSuccess;
}

static xcclResult_t hip_launch(void *function, const unsigned grid[2], unsigned threads,
                               const void *arguments, xcclStream_t stream)
{
    void *list[] = {(void *)(uintptr_t)arguments};

    XC_HIP_CHECK(xc_hip.launch(function, grid[0], grid[1], 1, threads, 1, 1, 0, stream, list, NULL),
                 "hipModuleLaunchKernel");
    return xcclSuccess;
}

const struct xc_device_ops xc_hip_ops = {
    .name = "rocm",
    .active = hip_active,
    .mem_query = xc_hip_mem_query,
    .mem_make_synchronous = xc_hip_mem_make_synchronous,
    .resets = xc_hip_resets,
    .count = hip_count,
    .current = hip_current,
    .enter = hip_enter,
    .leave = hip_leave,
    .relax = xc_hip_relax,
    .restore = xc_hip_restore,
    .name_of = hip_name_of,
    .uuid_of = hip_uuid_of,
    .bus_id_of = hip_bus_id_of,
    .multiprocessors_of = hip_multiprocessors_of,
    .stream_create = hip_stream_create,
    .stream_create_urgent = hip_stream_create_urgent,
    .stream_destroy = hip_stream_destroy,
    .stream_query = hip_stream_query,
    .stream_sync = hip_stream_sync,
    .stream_after_default = hip_stream_after_default,
    .event_create = hip_event_create,
    .event_destroy = hip_event_destroy,
    .event_record = hip_event_record,
    .event_query = hip_event_query,
    .copy_async = hip_copy_async,
    .copy_2d_async = hip_copy_2d_async,
    .set_async = hip_set_async,
    .mem_alloc = xc_hip_mem_alloc,
    .mem_alloc_shared = xc_hip_mem_alloc_shared,
    .mem_free = xc_hip_mem_free,
    .host_alloc = xc_hip_host_alloc,
    .host_free = xc_hip_host_free,
    .mem_left = xc_hip_mem_left,
    .ipc_export = xc_hip_ipc_export,
    .ipc_open = xc_hip_ipc_open,
    .ipc_close = xc_hip_ipc_close,
    .mem_reachable = xc_hip_mem_reachable,
    .module_load = hip_module_load,
    .module_function = hip_module_function,
    .launch = hip_launch,
};
