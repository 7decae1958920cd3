/* SPDX-License-Identifier: BSD-3-Clause */
/* AMD GPUs through the HIP runtime. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "device/hip_signs.h"
#include "device/identity.h"
#include "device/runtimes.h"
#include "device/symbols.h"

/* Numbers of hip_runtime_api.h. */
enum {
    HIP_SUCCESS = 0,
    HIP_ERROR_INVALID_VALUE = 1,
    HIP_ERROR_INVALID_PITCH_VALUE = 12,
    HIP_ERROR_NOT_READY = 600,
    HIP_STREAM_NON_BLOCKING = 1,
    HIP_EVENT_DISABLE_TIMING = 2,
    HIP_HOST_MALLOC_PORTABLE = 1,
    HIP_HOST_MALLOC_MAPPED = 2,
    HIP_HOST_MALLOC_COHERENT = 0x40000000,
    HIP_MALLOC_FINE_GRAINED = 1,
    HIP_MALLOC_UNCACHED = 3,
    HIP_STREAM_CAPTURE_MODE_RELAXED = 2,
    HIP_STREAM_CAPTURE_STATUS_NONE = 0,
    HIP_MEMCPY_DEFAULT = 4,
    HIP_POINTER_ATTRIBUTE_BUFFER_ID = 7,
    HIP_IPC_MEM_LAZY_ENABLE_PEER_ACCESS = 1,
    HIP_FIRST_VERSION_6 = 60000000,
};

typedef int hipError_t;
typedef struct {
    char reserved[64];
} hipIpcMemHandle_t;

/* The same layout in every release; the meaning of `type` changed with ROCm 6. */
#define HIP_STREAM_PER_THREAD ((void *)2)

struct hip_pointer_attributes {
    int      type;
    int      device;
    void    *device_pointer;
    void    *host_pointer;
    int      is_managed;
    unsigned flags;
};

#define HIP_FUNCTIONS(X)                                                                           \
    X(init, "hipInit", (unsigned))                                                                 \
    X(runtime_version, "hipRuntimeGetVersion", (int *))                                            \
    X(device_count, "hipGetDeviceCount", (int *))                                                  \
    X(device_get, "hipGetDevice", (int *))                                                         \
    X(device_set, "hipSetDevice", (int))                                                           \
    X(device_name, "hipDeviceGetName", (char *, int, int))                                         \
    X(device_uuid, "hipDeviceGetUuid", (unsigned char *, int))                                     \
    X(device_bus_id, "hipDeviceGetPCIBusId", (char *, int, int))                                   \
    X(device_attribute, "hipDeviceGetAttribute", (int *, int, int))                                \
    X(pointer_attributes, "hipPointerGetAttributes",                                               \
      (struct hip_pointer_attributes *, const void *))                                             \
    X(pointer_attribute, "hipPointerGetAttribute", (void *, int, void *))                          \
    X(peek_error, "hipPeekAtLastError", (void))                                                    \
    X(take_error, "hipGetLastError", (void))                                                       \
    X(stream_create, "hipStreamCreateWithFlags", (void **, unsigned))                              \
    X(stream_priorities, "hipDeviceGetStreamPriorityRange", (int *, int *))                        \
    X(stream_create_first, "hipStreamCreateWithPriority", (void **, unsigned, int))                \
    X(stream_destroy, "hipStreamDestroy", (void *))                                                \
    X(stream_query, "hipStreamQuery", (void *))                                                    \
    X(stream_sync, "hipStreamSynchronize", (void *))                                               \
    X(stream_captures, "hipStreamIsCapturing", (void *, int *))                                    \
    X(exchange_mode, "hipThreadExchangeStreamCaptureMode", (int *))                                \
    X(stream_wait, "hipStreamWaitEvent", (void *, void *, unsigned))                               \
    X(event_create, "hipEventCreateWithFlags", (void **, unsigned))                                \
    X(event_destroy, "hipEventDestroy", (void *))                                                  \
    X(event_record, "hipEventRecord", (void *, void *))                                            \
    X(event_query, "hipEventQuery", (void *))                                                      \
    X(copy_async, "hipMemcpyAsync", (void *, const void *, size_t, int, void *))                   \
    X(copy_2d_async, "hipMemcpy2DAsync",                                                           \
      (void *, size_t, const void *, size_t, size_t, size_t, int, void *))                         \
    X(set_async, "hipMemsetAsync", (void *, int, size_t, void *))                                  \
    X(mem_alloc, "hipMalloc", (void **, size_t))                                                   \
    X(mem_free, "hipFree", (void *))                                                               \
    X(host_alloc, "hipHostMalloc", (void **, size_t, unsigned))                                    \
    X(host_free, "hipHostFree", (void *))                                                          \
    X(mem_range, "hipMemGetAddressRange", (void **, size_t *, void *))                             \
    X(ipc_export, "hipIpcGetMemHandle", (hipIpcMemHandle_t *, void *))                             \
    X(ipc_open, "hipIpcOpenMemHandle", (void **, hipIpcMemHandle_t, unsigned))                     \
    X(ipc_close, "hipIpcCloseMemHandle", (void *))                                                 \
    X(module_load, "hipModuleLoadData", (void **, const void *))                                   \
    X(module_function, "hipModuleGetFunction", (void **, void *, const char *))                    \
    X(launch, "hipModuleLaunchKernel",                                                             \
      (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,       \
       void **, void **))

static struct {
#define FIELD(name, symbol, args) hipError_t(*name) args;
    HIP_FUNCTIONS(FIELD)
#undef FIELD
} hip;

/* Returns a text, unlike the rest. */
static const char *(*error_string)(hipError_t);

static const struct xc_symbol symbols[] = {
#define ROW(name, symbol, args) {symbol, offsetof(__typeof__(hip), name)},
    HIP_FUNCTIONS(ROW)
#undef ROW
};
static const struct xc_symbol text_symbol[] = {{"hipGetErrorString", 0}};

/* Newest first; the plain name is the development package's link. */
static const char *const sonames[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
                                      "libamdhip64.so", NULL};

static bool               loaded; /* atomic */
static unsigned long long seen_generation;
static pthread_mutex_t    lock = PTHREAD_MUTEX_INITIALIZER;
static bool               old_memory_types; /* numbering before ROCm 6 */

/* In the order of a stream, and so without waiting for others. */
static struct {
    hipError_t (*alloc)(void **, size_t, void *);
    hipError_t (*free)(void *, void *);
} pool;
static const struct xc_symbol pool_symbols[] = {
    {"hipMallocAsync", offsetof(__typeof__(pool), alloc)},
    {"hipFreeAsync", offsetof(__typeof__(pool), free)},
};

/* For what other devices write to meanwhile. */
static struct {
    hipError_t (*alloc)(void **, size_t, unsigned);
} shared;
static const struct xc_symbol shared_symbol[] = {{"hipExtMallocWithFlags", 0}};

static xcclResult_t failed(hipError_t res, const char *what)
{
    hip.take_error(); /* the program must not find our failure as its own */
    return xc_fail(xcclUnhandledDeviceError, "%s failed: %s (HIP error %d)%s", what,
                   error_string(res), (int)res, xc_crash_hint((int)res));
}

#define CHECK(call, what)                                                                          \
    do {                                                                                           \
        hipError_t check_res = (call);                                                             \
        if (check_res != HIP_SUCCESS) {                                                            \
            return failed(check_res, what);                                                        \
        }                                                                                          \
    } while (0)

/* What is called so touches nothing that is captured. */
static int relax(void)
{
    int mode = HIP_STREAM_CAPTURE_MODE_RELAXED;

    return (hip.exchange_mode(&mode) == HIP_SUCCESS) ? mode : HIP_STREAM_CAPTURE_MODE_RELAXED;
}

static void restore(int mode)
{
    hip.exchange_mode(&mode);
}

/* CHECK() of a call that a capture may forbid. */
#define CHECK_RELAXED(call, what)                                                                  \
    do {                                                                                           \
        int        check_mode = relax();                                                           \
        hipError_t relaxed_res = (call);                                                           \
        restore(check_mode);                                                                       \
        CHECK(relaxed_res, what);                                                                  \
    } while (0)

/* With the lock held. */
static bool open_library(bool only_loaded, const char **missing_p)
{
    int version = 0;

    if (__atomic_load_n(&loaded, __ATOMIC_ACQUIRE)) {
        return true;
    }
    if (!xc_symbols_open(sonames, only_loaded, symbols, sizeof(symbols) / sizeof(symbols[0]), &hip,
                         missing_p) ||
        !xc_symbols_open(sonames, true, text_symbol, 1, &error_string, missing_p)) {
        return false;
    }
    const char *unused;
    if (!xc_symbols_open(sonames, true, pool_symbols,
                         sizeof(pool_symbols) / sizeof(pool_symbols[0]), &pool, &unused)) {
        pool.alloc = NULL;
    }
    if (!xc_symbols_open(sonames, true, shared_symbol, 1, &shared, &unused)) {
        shared.alloc = NULL;
    }
    if (hip.runtime_version(&version) == HIP_SUCCESS) {
        old_memory_types = (version < HIP_FIRST_VERSION_6);
    }
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
    CHECK(hip.init(0), "hipInit");
    CHECK(hip.device_count(&count), "hipGetDeviceCount");
    if (count == 0) {
        return xc_fail(xcclUnhandledDeviceError,
                       "HIP shows no device; see ROCR_VISIBLE_DEVICES and HIP_VISIBLE_DEVICES");
    }
    return xcclSuccess;
}

static unsigned id_of(void *ptr)
{
    unsigned long long id = 0; /* HIP sets 32 bits of it */
    hipError_t         before = hip.peek_error();

    if (hip.pointer_attribute(&id, HIP_POINTER_ATTRIBUTE_BUFFER_ID, ptr) != HIP_SUCCESS) {
        if (before == HIP_SUCCESS) {
            hip.take_error();
        }
        return 0;
    }
    return (unsigned)id;
}

static unsigned hip_resets(int device, bool look)
{
    return xc_hip_sign_resets(device, look ? id_of : NULL);
}

/* New memory of ours, on the device entered. */
static bool make_sign(void *ptr, xcclStream_t stream)
{
    int device;

    return (hip.device_get(&device) == HIP_SUCCESS) &&
           xc_hip_sign_add(device, ptr, id_of(ptr), stream);
}

/* A stream may be all that there is of ours. */
static void give_sign_to(xcclStream_t stream)
{
    void *ptr = NULL;

    if (pool.alloc == NULL) {
        return;
    }
    int mode = relax();
    if (pool.alloc(&ptr, 1, stream) != HIP_SUCCESS) {
        hip.take_error();
    } else if (!make_sign(ptr, stream)) {
        pool.free(ptr, stream);
    }
    restore(mode);
}

static void take_sign_from(xcclStream_t stream)
{
    void *ptr = xc_hip_sign_take(stream);

    if ((ptr != NULL) && (pool.free(ptr, stream) != HIP_SUCCESS)) {
        hip.take_error();
    }
}

static struct xc_mem_info hip_mem_query(const void *ptr)
{
    struct hip_pointer_attributes attr = {0};
    struct xc_mem_info            info = {.kind = XC_MEM_HOST, .device = -1};
    hipError_t                    before = hip.peek_error();

    if (hip.pointer_attributes(&attr, ptr) != HIP_SUCCESS) {
        if (before == HIP_SUCCESS) {
            hip.take_error(); /* host memory that HIP does not know is an error to it */
        }
        return info;
    }
    int device_type = old_memory_types ? 1 : 2;
    if (attr.is_managed != 0) {
        info.kind = XC_MEM_MANAGED;
        info.device = attr.device;
    } else if (attr.type == device_type) {
        info.kind = XC_MEM_DEVICE;
        info.device = attr.device;
        hip_resets(attr.device, true); /* before anything of ours there is used for it */
    }
    return info;
}

/* ROCm has no such flag that holds for every kind of memory. */
static bool hip_mem_make_synchronous(const void *ptr)
{
    (void)ptr;
    return false;
}

static xcclResult_t hip_count(int *count_p)
{
    int count;

    CHECK(hip.device_count(&count), "hipGetDeviceCount");
    *count_p = count;
    return xcclSuccess;
}

static xcclResult_t hip_current(int *device_p)
{
    int device;

    CHECK(hip.device_get(&device), "hipGetDevice");
    *device_p = device;
    return xcclSuccess;
}

/* saved is the device to go back to, plus one; NULL when there is nothing to do. */
static xcclResult_t hip_enter(int device, void **saved_p)
{
    int now;

    hip_resets(device, true);
    CHECK(hip.device_get(&now), "hipGetDevice");
    if (now == device) {
        *saved_p = NULL;
        return xcclSuccess;
    }
    CHECK(hip.device_set(device), "hipSetDevice");
    *saved_p = (void *)((intptr_t)now + 1);
    return xcclSuccess;
}

static void hip_leave(void *saved)
{
    if (saved != NULL) {
        hip.device_set((int)((intptr_t)saved - 1));
    }
}

static xcclResult_t hip_name_of(int device, char *buf, size_t len)
{
    CHECK(hip.device_name(buf, (int)len, device), "hipDeviceGetName");
    return xcclSuccess;
}

static xcclResult_t hip_uuid_of(int device, unsigned char uuid[XC_DEVICE_UUID_BYTES])
{
    unsigned char id[XC_DEVICE_UUID_BYTES];
    char          bus[64];

    CHECK(hip.device_uuid(id, device), "hipDeviceGetUuid");
    if (xc_uuid_is_none(id)) {
        CHECK(hip.device_bus_id(bus, (int)sizeof(bus), device), "hipDeviceGetPCIBusId");
        xc_uuid_of_place(bus, id);
    }
    memcpy(uuid, id, XC_DEVICE_UUID_BYTES);
    return xcclSuccess;
}

static xcclResult_t hip_multiprocessors_of(int device, int *count_p)
{
    enum { hipDeviceAttributeMultiprocessorCount = 63 };

    CHECK(hip.device_attribute(count_p, hipDeviceAttributeMultiprocessorCount, device),
          "hipDeviceGetAttribute");
    return xcclSuccess;
}

static xcclResult_t hip_bus_id_of(int device, char *buf, size_t len)
{
    CHECK(hip.device_bus_id(buf, (int)len, device), "hipDeviceGetPCIBusId");
    return xcclSuccess;
}

static xcclResult_t hip_stream_create(xcclStream_t *stream_p)
{
    CHECK_RELAXED(hip.stream_create(stream_p, HIP_STREAM_NON_BLOCKING), "hipStreamCreate");
    give_sign_to(*stream_p);
    return xcclSuccess;
}

static xcclResult_t hip_stream_create_urgent(xcclStream_t *stream_p)
{
    int least, greatest;

    CHECK(hip.stream_priorities(&least, &greatest), "hipDeviceGetStreamPriorityRange");
    CHECK_RELAXED(hip.stream_create_first(stream_p, HIP_STREAM_NON_BLOCKING, greatest),
                  "hipStreamCreateWithPriority");
    give_sign_to(*stream_p);
    return xcclSuccess;
}

static xcclResult_t hip_stream_destroy(xcclStream_t stream)
{
    take_sign_from(stream);
    CHECK_RELAXED(hip.stream_destroy(stream), "hipStreamDestroy");
    return xcclSuccess;
}

/* "Not ready" is no failure, but HIP keeps it as the last error: take it back. */
static xcclResult_t query_result(hipError_t res, const char *what)
{
    if (res == HIP_ERROR_NOT_READY) {
        hip.take_error();
        return xcclInProgress;
    }
    CHECK(res, what);
    return xcclSuccess;
}

static xcclResult_t hip_stream_query(xcclStream_t stream)
{
    int        mode = relax();
    hipError_t res = hip.stream_query(stream);

    restore(mode);
    return query_result(res, "work on a stream");
}

static xcclResult_t hip_stream_sync(xcclStream_t stream)
{
    CHECK_RELAXED(hip.stream_sync(stream), "work on a stream");
    return xcclSuccess;
}

/* One of the default streams. */
static xcclResult_t after(xcclStream_t stream, void *before)
{
    void *event;
    int   captures = HIP_STREAM_CAPTURE_STATUS_NONE;

    /* Where it is captured, or one that blocks towards it is, any use of it would spoil that; to
     * ask this does not. */
    if (hip.stream_captures(before, &captures) != HIP_SUCCESS) {
        hip.take_error();
        return xcclSuccess;
    }
    if (captures != HIP_STREAM_CAPTURE_STATUS_NONE) {
        return xcclSuccess;
    }
    xcclResult_t idle = query_result(hip.stream_query(before), "work on the default stream");
    if (idle != xcclInProgress) { /* usually it is idle: one cheap question */
        return idle;
    }
    CHECK(hip.event_create(&event, HIP_EVENT_DISABLE_TIMING), "hipEventCreate");
    hipError_t res = hip.event_record(event, before);
    if (res == HIP_SUCCESS) {
        res = hip.stream_wait(stream, event, 0);
    }
    hip.event_destroy(event); /* the runtime keeps it until it has happened */
    CHECK(res, "waiting for the default stream");
    return xcclSuccess;
}

/* The second is the calling thread's own, for programs with a default stream for each thread. */
static xcclResult_t hip_stream_after_default(xcclStream_t stream)
{
    int          mode = relax(); /* another stream's capture may forbid questions to any */
    xcclResult_t res = after(stream, NULL);

    if (res == xcclSuccess) {
        res = after(stream, HIP_STREAM_PER_THREAD);
    }
    restore(mode);
    return res;
}

static xcclResult_t hip_event_create(void **event_p)
{
    CHECK_RELAXED(hip.event_create(event_p, HIP_EVENT_DISABLE_TIMING), "hipEventCreate");
    return xcclSuccess;
}

static xcclResult_t hip_event_destroy(void *event)
{
    CHECK_RELAXED(hip.event_destroy(event), "hipEventDestroy");
    return xcclSuccess;
}

static xcclResult_t hip_event_record(void *event, xcclStream_t stream)
{
    CHECK(hip.event_record(event, stream), "hipEventRecord");
    return xcclSuccess;
}

static xcclResult_t hip_event_query(void *event)
{
    int        mode = relax();
    hipError_t res = hip.event_query(event);

    restore(mode);
    return query_result(res, "work before an event");
}

static xcclResult_t hip_copy_async(void *dst, const void *src, size_t bytes, xcclStream_t stream)
{
    CHECK(hip.copy_async(dst, src, bytes, HIP_MEMCPY_DEFAULT, stream), "hipMemcpyAsync");
    return xcclSuccess;
}

static xcclResult_t hip_copy_2d_async(void *dst, size_t dst_pitch, const void *src,
                                      size_t src_pitch, size_t width, size_t height,
                                      xcclStream_t stream)
{
    hipError_t res = hip.copy_2d_async(dst, dst_pitch, src, src_pitch, width, height,
                                       HIP_MEMCPY_DEFAULT, stream);

    if ((res != HIP_ERROR_INVALID_VALUE) && (res != HIP_ERROR_INVALID_PITCH_VALUE)) {
        CHECK(res, "hipMemcpy2DAsync");
        return xcclSuccess;
    }
    hip.take_error(); /* a pitch may be too large: then each row goes by itself */
    for (size_t i = 0; i < height; i++) {
        CHECK(hip.copy_async((char *)dst + i * dst_pitch, (const char *)src + i * src_pitch, width,
                             HIP_MEMCPY_DEFAULT, stream),
              "hipMemcpyAsync");
    }
    return xcclSuccess;
}

static xcclResult_t hip_set_async(void *dst, int byte, size_t bytes, xcclStream_t stream)
{
    CHECK(hip.set_async(dst, byte, bytes, stream), "hipMemsetAsync");
    return xcclSuccess;
}

static xcclResult_t hip_mem_alloc(void **ptr_p, size_t bytes)
{
    CHECK_RELAXED(hip.mem_alloc(ptr_p, bytes), "hipMalloc");
    make_sign(*ptr_p, NULL);
    return xcclSuccess;
}

/*
 * What hipMalloc gives is coarse-grained: a kernel that runs may never see what another device has
 * written there since. Uncached memory is what ROCm's own libraries take; older releases know the
 * fine-grained one alone, and some cannot export the other.
 */
static bool alloc_shared(void **ptr_p, size_t bytes, unsigned flags)
{
    hipIpcMemHandle_t handle;

    if (shared.alloc(ptr_p, bytes, flags) == HIP_SUCCESS) {
        if (hip.ipc_export(&handle, *ptr_p) == HIP_SUCCESS) {
            return true;
        }
        hip.mem_free(*ptr_p);
    }
    hip.take_error();
    return false;
}

static xcclResult_t hip_mem_alloc_shared(void **ptr_p, size_t bytes)
{
    bool made = false;

    if (shared.alloc != NULL) {
        int mode = relax();
        made = alloc_shared(ptr_p, bytes, HIP_MALLOC_UNCACHED) ||
               alloc_shared(ptr_p, bytes, HIP_MALLOC_FINE_GRAINED);
        restore(mode);
    }
    if (made) {
        make_sign(*ptr_p, NULL);
        return xcclSuccess;
    }
    return xc_fail(xcclUnhandledDeviceError,
                   "HIP gives no %zu bytes that several devices may use at the same time", bytes);
}

static xcclResult_t hip_mem_free(void *ptr)
{
    xc_hip_sign_remove(ptr);
    CHECK_RELAXED(hip.mem_free(ptr), "hipFree");
    return xcclSuccess;
}

static xcclResult_t hip_host_alloc(void **ptr_p, size_t bytes)
{
    /* Portable alone is coarse-grained: what host and kernel write while it runs might not be seen.
     */
    unsigned flags = HIP_HOST_MALLOC_PORTABLE | HIP_HOST_MALLOC_MAPPED | HIP_HOST_MALLOC_COHERENT;

    CHECK_RELAXED(hip.host_alloc(ptr_p, bytes, flags), "hipHostMalloc");
    make_sign(*ptr_p, NULL);
    return xcclSuccess;
}

static xcclResult_t hip_host_free(void *ptr)
{
    xc_hip_sign_remove(ptr);
    CHECK_RELAXED(hip.host_free(ptr), "hipHostFree");
    return xcclSuccess;
}

static size_t hip_mem_left(const void *ptr)
{
    void  *base;
    size_t bytes;

    return (hip.mem_range(&base, &bytes, (void *)(uintptr_t)ptr) == HIP_SUCCESS)
               ? (size_t)((uintptr_t)base + bytes - (uintptr_t)ptr)
               : 0;
}

/* Handles come again with an address. Where HIP does not number allocations, nothing is shared. */
static xcclResult_t hip_ipc_export(const void *ptr, struct xc_ipc *ipc_p)
{
    enum { REFUSED = 16 };
    /* Numbers of memory that the runtime did not export, as of pools: it is not asked again. */
    static __thread unsigned long long refused[REFUSED];
    struct xc_ipc                      made;
    unsigned long long                 id = 0; /* HIP sets 32 bits of it */
    hipIpcMemHandle_t                  handle;
    void                              *base;
    size_t                             bytes;

    CHECK(hip.pointer_attribute(&id, HIP_POINTER_ATTRIBUTE_BUFFER_ID, (void *)(uintptr_t)ptr),
          "hipPointerGetAttribute");
    if ((id != 0) && (refused[id % REFUSED] == id)) {
        return xc_fail(xcclUnsupported, "memory that HIP has refused to share before");
    }
    CHECK(hip.mem_range(&base, &bytes, (void *)(uintptr_t)ptr), "hipMemGetAddressRange");
    int        mode = relax();
    hipError_t res = hip.ipc_export(&handle, base);
    restore(mode);
    refused[id % REFUSED] = (res != HIP_SUCCESS) ? id : 0;
    CHECK(res, "hipIpcGetMemHandle");
    memcpy(made.handle, handle.reserved, sizeof(made.handle));
    made.id = id;
    made.base = (uint64_t)(uintptr_t)base;
    made.bytes = bytes;
    *ipc_p = made;
    return xcclSuccess;
}

static xcclResult_t hip_ipc_open(const struct xc_ipc *ipc, void **base_p)
{
    hipIpcMemHandle_t handle;
    void             *base = NULL;

    memcpy(handle.reserved, ipc->handle, sizeof(handle.reserved));
    CHECK_RELAXED(hip.ipc_open(&base, handle, HIP_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
                  "hipIpcOpenMemHandle");
    *base_p = base;
    return xcclSuccess;
}

static xcclResult_t hip_ipc_close(void *base)
{
    CHECK_RELAXED(hip.ipc_close(base), "hipIpcCloseMemHandle");
    return xcclSuccess;
}

static bool hip_mem_reachable(const void *ptr)
{
    struct hip_pointer_attributes attributes = {.type = 0};
    hipError_t                    before = hip.peek_error();

    if (hip.pointer_attributes(&attributes, ptr) != HIP_SUCCESS) {
        if (before == HIP_SUCCESS) {
            hip.take_error();
        }
        return false;
    }
    return attributes.device_pointer == ptr;
}

static xcclResult_t hip_module_load(void **module_p, const void *image)
{
    CHECK_RELAXED(hip.module_load(module_p, image), "hipModuleLoadData");
    return xcclSuccess;
}

static xcclResult_t hip_module_function(void **function_p, void *module, const char *name)
{
    CHECK(hip.module_function(function_p, module, name), "hipModuleGetFunction");
    return xcclSuccess;
}

static xcclResult_t hip_launch(void *function, const unsigned grid[2], unsigned threads,
                               const void *arguments, xcclStream_t stream)
{
    void *list[] = {(void *)(uintptr_t)arguments};

    CHECK(hip.launch(function, grid[0], grid[1], 1, threads, 1, 1, 0, stream, list, NULL),
          "hipModuleLaunchKernel");
    return xcclSuccess;
}

const struct xc_device_ops xc_hip_ops = {
    .name = "rocm",
    .active = hip_active,
    .mem_query = hip_mem_query,
    .mem_make_synchronous = hip_mem_make_synchronous,
    .resets = hip_resets,
    .count = hip_count,
    .current = hip_current,
    .enter = hip_enter,
    .leave = hip_leave,
    .relax = relax,
    .restore = restore,
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
    .mem_alloc = hip_mem_alloc,
    .mem_alloc_shared = hip_mem_alloc_shared,
    .mem_free = hip_mem_free,
    .host_alloc = hip_host_alloc,
    .host_free = hip_host_free,
    .mem_left = hip_mem_left,
    .ipc_export = hip_ipc_export,
    .ipc_open = hip_ipc_open,
    .ipc_close = hip_ipc_close,
    .mem_reachable = hip_mem_reachable,
    .module_load = hip_module_load,
    .module_function = hip_module_function,
    .launch = hip_launch,
};
