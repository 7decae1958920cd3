/* SPDX-License-Identifier: BSD-3-Clause */
/* CUDA through its driver API, which every CUDA program has in its process. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "device/runtimes.h"
#include "device/symbols.h"

/* Numbers of cuda.h. */
enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_ALREADY_MAPPED = 208,
    CUDA_ERROR_NOT_READY = 600,
    CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
    CU_POINTER_ATTRIBUTE_DEVICE_POINTER = 3,
    CU_POINTER_ATTRIBUTE_SYNC_MEMOPS = 6,
    CU_POINTER_ATTRIBUTE_BUFFER_ID = 7,
    CU_POINTER_ATTRIBUTE_IS_MANAGED = 8,
    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
    CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE = 10,
    CU_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11,
    CU_POINTER_ATTRIBUTE_RANGE_SIZE = 12,
    CU_MEMORYTYPE_DEVICE = 2,
    CU_MEMORYTYPE_UNIFIED = 4,
    CU_STREAM_NON_BLOCKING = 1,
    CU_EVENT_DISABLE_TIMING = 2,
    CU_MEMHOSTALLOC_PORTABLE = 1,
    CU_MEMHOSTREGISTER_PORTABLE = 1,
    CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS = 1,
    CU_STREAM_CAPTURE_MODE_RELAXED = 2,
    CU_STREAM_CAPTURE_STATUS_NONE = 0,
};

typedef int       CUresult;
typedef int       CUdevice;
typedef void     *CUcontext;
typedef uintptr_t CUdeviceptr;
typedef void     *CUstream;
#define CU_STREAM_PER_THREAD ((CUstream)2)
typedef void *CUevent;
typedef struct {
    unsigned char reserved[64];
} CUipcMemHandle;

/* CUDA_MEMCPY2D_v2 of cuda.h. Of UNIFIED memory the fields "device" hold the address. */
struct memcpy_2d_side {
    size_t      x_bytes, y;
    unsigned    memory_type;
    const void *host;
    CUdeviceptr device;
    void       *array;
    size_t      pitch;
};
struct memcpy_2d {
    struct memcpy_2d_side src, dst;
    size_t                width, height;
};
_Static_assert((sizeof(void *) != 8) || (sizeof(struct memcpy_2d) == 128), "as in cuda.h");

/* result, function, symbol, arguments */
#define CUDA_FUNCTIONS(X)                                                                          \
    X(init, "cuInit", (unsigned))                                                                  \
    X(device_count, "cuDeviceGetCount", (int *))                                                   \
    X(device_get, "cuDeviceGet", (CUdevice *, int))                                                \
    X(primary_retain, "cuDevicePrimaryCtxRetain", (CUcontext *, CUdevice))                         \
    X(primary_state, "cuDevicePrimaryCtxGetState", (CUdevice, unsigned *, int *))                  \
    X(ctx_get, "cuCtxGetCurrent", (CUcontext *))                                                   \
    X(ctx_device, "cuCtxGetDevice", (CUdevice *))                                                  \
    X(ctx_push, "cuCtxPushCurrent_v2", (CUcontext))                                                \
    X(ctx_pop, "cuCtxPopCurrent_v2", (CUcontext *))                                                \
    X(pointer_attributes, "cuPointerGetAttributes", (unsigned, int *, void **, CUdeviceptr))       \
    X(pointer_set, "cuPointerSetAttribute", (const void *, int, CUdeviceptr))                      \
    X(stream_create, "cuStreamCreate", (CUstream *, unsigned))                                     \
    X(stream_priorities, "cuCtxGetStreamPriorityRange", (int *, int *))                            \
    X(stream_create_first, "cuStreamCreateWithPriority", (CUstream *, unsigned, int))              \
    X(stream_destroy, "cuStreamDestroy_v2", (CUstream))                                            \
    X(stream_query, "cuStreamQuery", (CUstream))                                                   \
    X(stream_sync, "cuStreamSynchronize", (CUstream))                                              \
    X(stream_captures, "cuStreamIsCapturing", (CUstream, int *))                                   \
    X(exchange_mode, "cuThreadExchangeStreamCaptureMode", (int *))                                 \
    X(stream_wait, "cuStreamWaitEvent", (CUstream, CUevent, unsigned))                             \
    X(event_create, "cuEventCreate", (CUevent *, unsigned))                                        \
    X(event_destroy, "cuEventDestroy_v2", (CUevent))                                               \
    X(event_record, "cuEventRecord", (CUevent, CUstream))                                          \
    X(event_query, "cuEventQuery", (CUevent))                                                      \
    X(copy_async, "cuMemcpyAsync", (CUdeviceptr, CUdeviceptr, size_t, CUstream))                   \
    X(copy_2d_async, "cuMemcpy2DAsync_v2", (const struct memcpy_2d *, CUstream))                   \
    X(set_async, "cuMemsetD8Async", (CUdeviceptr, unsigned char, size_t, CUstream))                \
    X(mem_alloc, "cuMemAlloc_v2", (CUdeviceptr *, size_t))                                         \
    X(mem_free, "cuMemFree_v2", (CUdeviceptr))                                                     \
    X(host_alloc, "cuMemHostAlloc", (void **, size_t, unsigned))                                   \
    X(host_free, "cuMemFreeHost", (void *))                                                        \
    X(host_pin, "cuMemHostRegister_v2", (void *, size_t, unsigned))                                \
    X(host_unpin, "cuMemHostUnregister", (void *))                                                 \
    X(mem_range, "cuMemGetAddressRange_v2", (CUdeviceptr *, size_t *, CUdeviceptr))                \
    X(ipc_export, "cuIpcGetMemHandle", (CUipcMemHandle *, CUdeviceptr))                            \
    X(ipc_open, "cuIpcOpenMemHandle_v2", (CUdeviceptr *, CUipcMemHandle, unsigned))                \
    X(ipc_close, "cuIpcCloseMemHandle", (CUdeviceptr))                                             \
    X(module_load, "cuModuleLoadData", (void **, const void *))                                    \
    X(module_function, "cuModuleGetFunction", (void **, void *, const char *))                     \
    X(launch, "cuLaunchKernel",                                                                    \
      (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,     \
       void **, void **))                                                                          \
    X(error_string, "cuGetErrorString", (CUresult, const char **))

static struct {
#define FIELD(name, symbol, args) CUresult(*name) args;
    CUDA_FUNCTIONS(FIELD)
#undef FIELD
} cu;

static const struct xc_symbol symbols[] = {
#define ROW(name, symbol, args) {symbol, offsetof(__typeof__(cu), name)},
    CUDA_FUNCTIONS(ROW)
#undef ROW
};

static const char *const sonames[] = {"libcuda.so.1", NULL};

enum { MAX_DEVICES = 64 };

enum state { UNKNOWN, LOADED, INITIALISED };

static int                state; /* enum state, atomic */
static unsigned long long seen_generation;
static pthread_mutex_t    lock = PTHREAD_MUTEX_INITIALIZER;
static CUcontext          primary[MAX_DEVICES]; /* retained; NULL until used */

/* Of the primary contexts, all atomic. A handle stays the same over a reset. */
static struct {
    unsigned long long id;     /* when it was retained */
    bool               gone;   /* since then, and not retained anew */
    unsigned           resets; /* how often it was */
} contexts[MAX_DEVICES];

/* NULL in drivers before 12.0. */
static CUresult (*ctx_id)(CUcontext, unsigned long long *);
static const struct xc_symbol id_symbol[] = {{"cuCtxGetId", 0}};

/* With the lock held: all that there is of the library. */
static bool open_driver(bool only_loaded, const char **missing_p)
{
    const char *unused;

    if (!xc_symbols_open(sonames, only_loaded, symbols, sizeof(symbols) / sizeof(symbols[0]), &cu,
                         missing_p)) {
        return false;
    }
    xc_symbols_open(sonames, true, id_symbol, 1, &ctx_id, &unused);
    return true;
}

static xcclResult_t failed(CUresult res, const char *what)
{
    const char *text = NULL;

    if ((cu.error_string(res, &text) != CUDA_SUCCESS) || (text == NULL)) {
        text = "unknown error";
    }
    return xc_fail(xcclUnhandledCudaError, "%s failed: %s (CUDA error %d)%s", what, text, (int)res,
                   xc_crash_hint((int)res));
}

#define CHECK(call, what)                                                                          \
    do {                                                                                           \
        CUresult check_res = (call);                                                               \
        if (check_res != CUDA_SUCCESS) {                                                           \
            return failed(check_res, what);                                                        \
        }                                                                                          \
    } while (0)

/* What is called so touches nothing that is captured. */
static int relax(void)
{
    int mode = CU_STREAM_CAPTURE_MODE_RELAXED;

    return (cu.exchange_mode(&mode) == CUDA_SUCCESS) ? mode : CU_STREAM_CAPTURE_MODE_RELAXED;
}

static void restore(int mode)
{
    cu.exchange_mode(&mode);
}

/* CHECK() of a call that a capture may forbid. */
#define CHECK_RELAXED(call, what)                                                                  \
    do {                                                                                           \
        int      check_mode = relax();                                                             \
        CUresult relaxed_res = (call);                                                             \
        restore(check_mode);                                                                       \
        CHECK(relaxed_res, what);                                                                  \
    } while (0)

/* Look for a libcuda that the program loaded, but only after it has loaded something new. */
static bool find_loaded(void)
{
    unsigned long long generation = xc_symbols_generation();
    const char        *missing;
    bool               found = false;

    if (generation == __atomic_load_n(&seen_generation, __ATOMIC_ACQUIRE)) {
        return false;
    }
    pthread_mutex_lock(&lock);
    if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) != UNKNOWN) {
        found = true;
    } else if (open_driver(true, &missing)) {
        __atomic_store_n(&state, LOADED, __ATOMIC_RELEASE);
        found = true;
    } else {
        if (missing != NULL) {
            xc_warn("libcuda.so.1 lacks %s: CUDA memory is not recognised; the driver is too old",
                    missing);
        }
        __atomic_store_n(&seen_generation, generation, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static bool cuda_active(void)
{
    int now = __atomic_load_n(&state, __ATOMIC_ACQUIRE);

    if (now == INITIALISED) {
        return true;
    }
    if ((now == UNKNOWN) && !find_loaded()) {
        return false;
    }
    CUcontext ctx; /* the cheapest call that says NOT_INITIALIZED */
    if (cu.ctx_get(&ctx) != CUDA_SUCCESS) {
        return false;
    }
    __atomic_store_n(&state, INITIALISED, __ATOMIC_RELEASE);
    return true;
}

bool xc_cuda_initialised(void)
{
    return __atomic_load_n(&state, __ATOMIC_ACQUIRE) == INITIALISED;
}

bool xc_cuda_loaded(void)
{
    return __atomic_load_n(&state, __ATOMIC_ACQUIRE) != UNKNOWN;
}

xcclResult_t xc_cuda_start(void)
{
    const char *missing;
    int         count = 0;

    pthread_mutex_lock(&lock);
    if ((__atomic_load_n(&state, __ATOMIC_ACQUIRE) == UNKNOWN) && !open_driver(false, &missing)) {
        pthread_mutex_unlock(&lock);
        if (missing != NULL) {
            return xc_fail(xcclLibraryNotFound, "libcuda.so.1 lacks %s: the driver is too old",
                           missing);
        }
        return xc_fail(xcclLibraryNotFound, "libcuda.so.1 was not found: no NVIDIA driver here");
    }
    __atomic_store_n(&state, LOADED, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
    CHECK(cu.init(0), "cuInit");
    CHECK(cu.device_count(&count), "cuDeviceGetCount");
    if (count == 0) {
        return xc_fail(xcclUnhandledCudaError,
                       "the NVIDIA driver shows no device; see CUDA_VISIBLE_DEVICES");
    }
    __atomic_store_n(&state, INITIALISED, __ATOMIC_RELEASE);
    return xcclSuccess;
}

/* That of the context now; 0: it is not in use. Without ids only that can be told. */
static unsigned long long id_of(int device, CUcontext ctx)
{
    unsigned long long id = 0;
    unsigned           flags;
    int                active = 0;

    if (ctx_id != NULL) {
        return (ctx_id(ctx, &id) == CUDA_SUCCESS) ? id : 0;
    }
    return (cu.primary_state(device, &flags, &active) == CUDA_SUCCESS) && (active != 0);
}

static unsigned cuda_resets(int device, bool look)
{
    if ((device < 0) || (device >= MAX_DEVICES)) {
        return 0;
    }
    CUcontext ctx = __atomic_load_n(&primary[device], __ATOMIC_ACQUIRE);
    bool      known = (ctx != NULL) && !__atomic_load_n(&contexts[device].gone, __ATOMIC_ACQUIRE);
    if (look && known &&
        (id_of(device, ctx) != __atomic_load_n(&contexts[device].id, __ATOMIC_ACQUIRE)) &&
        !__atomic_exchange_n(&contexts[device].gone, true, __ATOMIC_ACQ_REL)) {
        xc_info("the program has reset device %d", device);
        __atomic_add_fetch(&contexts[device].resets, 1, __ATOMIC_ACQ_REL);
    }
    return __atomic_load_n(&contexts[device].resets, __ATOMIC_ACQUIRE);
}

static struct xc_mem_info cuda_mem_query(const void *ptr)
{
    /* One call for all: newer drivers are slow on single queries of host pointers. */
    int                attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                       CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                       CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                       CU_POINTER_ATTRIBUTE_SYNC_MEMOPS,
                                       CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
                                       CU_POINTER_ATTRIBUTE_BUFFER_ID};
    unsigned           type = 0, managed = 0, synchronous = 0, shareable = 0;
    int                ordinal = -1;
    unsigned long long id = 0;
    void              *data[] = {&type, &managed, &ordinal, &synchronous, &shareable, &id};

    struct xc_mem_info info = {.kind = XC_MEM_HOST, .device = -1};
    if (cu.pointer_attributes(6, attributes, data, (CUdeviceptr)ptr) != CUDA_SUCCESS) {
        return info;
    }
    if (managed != 0) {
        info.kind = XC_MEM_MANAGED;
        info.device = ordinal;
    } else if (type == CU_MEMORYTYPE_DEVICE) {
        info.kind = XC_MEM_DEVICE;
        info.device = ordinal;
        /* Memory that the program mapped itself says so, too, but is not (driver 13.0, H200). */
        info.synchronous = (synchronous != 0) && (shareable != 0);
        info.allocation = (shareable != 0) ? id : 0;
        cuda_resets(ordinal, true); /* before anything of ours there is used for it */
    }
    return info;
}

/* Memory of pools cannot be. */
static bool cuda_mem_make_synchronous(const void *ptr)
{
    const unsigned yes = 1;
    int            mode = relax();
    CUresult       res = cu.pointer_set(&yes, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, (CUdeviceptr)ptr);

    restore(mode);
    return res == CUDA_SUCCESS;
}

static xcclResult_t cuda_count(int *count_p)
{
    int count;

    CHECK(cu.device_count(&count), "cuDeviceGetCount");
    *count_p = count;
    return xcclSuccess;
}

static xcclResult_t cuda_current(int *device_p)
{
    CUcontext ctx = NULL;
    CUdevice  device;

    CHECK(cu.ctx_get(&ctx), "cuCtxGetCurrent");
    if (ctx == NULL) {
        *device_p = -1;
        return xcclSuccess;
    }
    CHECK(cu.ctx_device(&device), "cuCtxGetDevice");
    *device_p = device;
    return xcclSuccess;
}

/* The primary context is the one that the CUDA runtime and NCCL use. */
static xcclResult_t primary_of(int device, CUcontext *ctx_p)
{
    CUdevice handle;

    if ((device < 0) || (device >= MAX_DEVICES)) {
        return xc_fail(xcclInvalidArgument, "device %d is out of range", device);
    }
    cuda_resets(device, true);
    CUcontext ctx = __atomic_load_n(&primary[device], __ATOMIC_ACQUIRE);
    if ((ctx == NULL) || __atomic_load_n(&contexts[device].gone, __ATOMIC_ACQUIRE)) {
        CHECK(cu.device_get(&handle, device), "cuDeviceGet");
        CHECK_RELAXED(cu.primary_retain(&ctx, handle), "cuDevicePrimaryCtxRetain");
        /* Retained once more if two threads meet here: harmless, it is never released. */
        __atomic_store_n(&contexts[device].id, id_of(device, ctx), __ATOMIC_RELEASE);
        __atomic_store_n(&primary[device], ctx, __ATOMIC_RELEASE);
        __atomic_store_n(&contexts[device].gone, false, __ATOMIC_RELEASE);
    }
    *ctx_p = ctx;
    return xcclSuccess;
}

/* Of this thread while it is in a primary one: the program's, which has default streams, too. */
static __thread CUcontext beneath;
/* That of before is what is saved: a device may be entered within another one. */
enum { ENTERED = 1 }; /* a bit that no address has */

static xcclResult_t cuda_enter(int device, void **saved_p)
{
    CUcontext want = NULL, now = NULL;

    xcclResult_t res = primary_of(device, &want);
    if (res != xcclSuccess) {
        return res;
    }
    CHECK(cu.ctx_get(&now), "cuCtxGetCurrent");
    if (now == want) {
        *saved_p = NULL;
        return xcclSuccess;
    }
    CHECK(cu.ctx_push(want), "cuCtxPushCurrent");
    *saved_p = (void *)((uintptr_t)beneath | ENTERED);
    beneath = now;
    return xcclSuccess;
}

static void cuda_leave(void *saved)
{
    CUcontext popped;

    if (saved != NULL) {
        cu.ctx_pop(&popped);
        beneath = (CUcontext)((uintptr_t)saved & ~(uintptr_t)ENTERED);
    }
}

static xcclResult_t cuda_stream_create(xcclStream_t *stream_p)
{
    CHECK_RELAXED(cu.stream_create((CUstream *)stream_p, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    return xcclSuccess;
}

static xcclResult_t cuda_stream_create_urgent(xcclStream_t *stream_p)
{
    int least, greatest;

    CHECK(cu.stream_priorities(&least, &greatest), "cuCtxGetStreamPriorityRange");
    CHECK_RELAXED(cu.stream_create_first((CUstream *)stream_p, CU_STREAM_NON_BLOCKING, greatest),
                  "cuStreamCreateWithPriority");
    return xcclSuccess;
}

static xcclResult_t cuda_stream_destroy(xcclStream_t stream)
{
    CHECK_RELAXED(cu.stream_destroy(stream), "cuStreamDestroy");
    return xcclSuccess;
}

static xcclResult_t cuda_stream_query(xcclStream_t stream)
{
    int      mode = relax();
    CUresult res = cu.stream_query(stream);

    restore(mode);
    if (res == CUDA_ERROR_NOT_READY) {
        return xcclInProgress;
    }
    CHECK(res, "work on a stream");
    return xcclSuccess;
}

static xcclResult_t cuda_stream_sync(xcclStream_t stream)
{
    CHECK_RELAXED(cu.stream_sync(stream), "work on a stream");
    return xcclSuccess;
}

/* One of the default streams. */
static xcclResult_t after(xcclStream_t stream, CUstream before)
{
    CUevent event;
    int     captures = CU_STREAM_CAPTURE_STATUS_NONE;

    /* Where it is captured, or one that blocks towards it is, any use of it would spoil that; to
     * ask this does not. */
    if ((cu.stream_captures(before, &captures) != CUDA_SUCCESS) ||
        (captures != CU_STREAM_CAPTURE_STATUS_NONE)) {
        return xcclSuccess;
    }
    CUresult res = cu.stream_query(before);
    if (res != CUDA_ERROR_NOT_READY) { /* usually it is idle: one cheap question */
        CHECK(res, "work on the default stream");
        return xcclSuccess;
    }
    CHECK(cu.event_create(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    res = cu.event_record(event, before);
    if (res == CUDA_SUCCESS) {
        res = cu.stream_wait(stream, event, 0);
    }
    cu.event_destroy(event); /* the driver keeps it until it has happened */
    CHECK(res, "waiting for the default stream");
    return xcclSuccess;
}

/* The second is the calling thread's own, for programs with --default-stream per-thread. */
static xcclResult_t after_both(xcclStream_t stream)
{
    xcclResult_t res = after(stream, NULL);

    return (res == xcclSuccess) ? after(stream, CU_STREAM_PER_THREAD) : res;
}

/* A program with a context of its own copies in that one. */
static xcclResult_t cuda_stream_after_default(xcclStream_t stream)
{
    CUcontext    popped;
    int          mode = relax(); /* another stream's capture may forbid questions to any */
    xcclResult_t res = after_both(stream);

    if ((res == xcclSuccess) && (beneath != NULL) && (cu.ctx_push(beneath) == CUDA_SUCCESS)) {
        res = after_both(stream);
        cu.ctx_pop(&popped);
    }
    restore(mode);
    return res;
}

static xcclResult_t cuda_event_create(void **event_p)
{
    CHECK_RELAXED(cu.event_create(event_p, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    return xcclSuccess;
}

static xcclResult_t cuda_event_destroy(void *event)
{
    CHECK_RELAXED(cu.event_destroy(event), "cuEventDestroy");
    return xcclSuccess;
}

static xcclResult_t cuda_event_record(void *event, xcclStream_t stream)
{
    CHECK(cu.event_record(event, stream), "cuEventRecord");
    return xcclSuccess;
}

static xcclResult_t cuda_event_query(void *event)
{
    int      mode = relax();
    CUresult res = cu.event_query(event);

    restore(mode);
    if (res == CUDA_ERROR_NOT_READY) {
        return xcclInProgress;
    }
    CHECK(res, "work before an event");
    return xcclSuccess;
}

static xcclResult_t cuda_copy_async(void *dst, const void *src, size_t bytes, xcclStream_t stream)
{
    CHECK(cu.copy_async((CUdeviceptr)dst, (CUdeviceptr)src, bytes, stream), "cuMemcpyAsync");
    return xcclSuccess;
}

static xcclResult_t cuda_copy_2d_async(void *dst, size_t dst_pitch, const void *src,
                                       size_t src_pitch, size_t width, size_t height,
                                       xcclStream_t stream)
{
    struct memcpy_2d copy = {.width = width, .height = height};

    copy.src.memory_type = copy.dst.memory_type = CU_MEMORYTYPE_UNIFIED;
    copy.src.device = (CUdeviceptr)src;
    copy.src.pitch = src_pitch;
    copy.dst.device = (CUdeviceptr)dst;
    copy.dst.pitch = dst_pitch;
    CUresult res = cu.copy_2d_async(&copy, stream);
    if (res != CUDA_ERROR_INVALID_VALUE) {
        CHECK(res, "cuMemcpy2DAsync");
        return xcclSuccess;
    }
    /* A pitch may be too large, or not to a device's liking: then each row goes by itself. */
    for (size_t i = 0; i < height; i++) {
        CHECK(cu.copy_async((CUdeviceptr)dst + i * dst_pitch, (CUdeviceptr)src + i * src_pitch,
                            width, stream),
              "cuMemcpyAsync");
    }
    return xcclSuccess;
}

static xcclResult_t cuda_set_async(void *dst, int byte, size_t bytes, xcclStream_t stream)
{
    CHECK(cu.set_async((CUdeviceptr)dst, (unsigned char)byte, bytes, stream), "cuMemsetD8Async");
    return xcclSuccess;
}

static xcclResult_t cuda_mem_alloc(void **ptr_p, size_t bytes)
{
    CUdeviceptr ptr = 0;

    CHECK_RELAXED(cu.mem_alloc(&ptr, bytes), "cuMemAlloc");
    *ptr_p = (void *)ptr;
    return xcclSuccess;
}

static xcclResult_t cuda_mem_free(void *ptr)
{
    CHECK_RELAXED(cu.mem_free((CUdeviceptr)ptr), "cuMemFree");
    return xcclSuccess;
}

static xcclResult_t cuda_host_alloc(void **ptr_p, size_t bytes)
{
    CHECK_RELAXED(cu.host_alloc(ptr_p, bytes, CU_MEMHOSTALLOC_PORTABLE), "cuMemHostAlloc");
    return xcclSuccess;
}

static xcclResult_t cuda_host_free(void *ptr)
{
    CHECK_RELAXED(cu.host_free(ptr), "cuMemFreeHost");
    return xcclSuccess;
}

static size_t cuda_mem_left(const void *ptr)
{
    CUdeviceptr base;
    size_t      bytes;

    return (cu.mem_range(&base, &bytes, (CUdeviceptr)ptr) == CUDA_SUCCESS)
               ? (size_t)((uintptr_t)base + bytes - (uintptr_t)ptr)
               : 0;
}

/* What cannot be shared between processes comes from a pool, or is mapped by the program itself. */
static bool cuda_mem_allocation(const void *ptr, struct xc_allocation *allocation_p)
{
    unsigned long long id = 0;
    size_t             bytes = 0;
    CUdeviceptr        base = 0;
    unsigned           shareable = 0;
    int   attributes[] = {CU_POINTER_ATTRIBUTE_BUFFER_ID, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                          CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                          CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE};
    void *data[] = {&id, &base, &bytes, &shareable};

    if ((cu.pointer_attributes(4, attributes, data, (CUdeviceptr)ptr) != CUDA_SUCCESS) ||
        (id == 0) || (shareable == 0)) {
        return false;
    }
    *allocation_p = (struct xc_allocation){(uint64_t)base, bytes, id};
    return true;
}

static xcclResult_t cuda_ipc_export(const void *ptr, struct xc_ipc *ipc_p)
{
    struct xc_ipc      made;
    CUipcMemHandle     handle;
    CUdeviceptr        base;
    size_t             bytes;
    unsigned long long id = 0;
    int                attribute = CU_POINTER_ATTRIBUTE_BUFFER_ID;
    void              *data = &id;

    CHECK(cu.mem_range(&base, &bytes, (CUdeviceptr)ptr), "cuMemGetAddressRange");
    CHECK_RELAXED(cu.ipc_export(&handle, base), "cuIpcGetMemHandle");
    CHECK(cu.pointer_attributes(1, &attribute, &data, (CUdeviceptr)ptr), "cuPointerGetAttributes");
    memcpy(made.handle, handle.reserved, sizeof(made.handle));
    made.base = (uint64_t)base;
    made.bytes = bytes;
    made.id = id;
    *ipc_p = made;
    return xcclSuccess;
}

static xcclResult_t cuda_ipc_open(const struct xc_ipc *ipc, void **base_p)
{
    CUipcMemHandle handle;
    CUdeviceptr    base = 0;

    memcpy(handle.reserved, ipc->handle, sizeof(handle.reserved));
    int      mode = relax();
    CUresult res = cu.ipc_open(&base, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    restore(mode);
    if (res == CUDA_ERROR_ALREADY_MAPPED) {
        return xcclInProgress;
    }
    CHECK(res, "cuIpcOpenMemHandle");
    *base_p = (void *)base;
    return xcclSuccess;
}

static xcclResult_t cuda_ipc_close(void *base)
{
    CHECK_RELAXED(cu.ipc_close((CUdeviceptr)base), "cuIpcCloseMemHandle");
    return xcclSuccess;
}

static bool cuda_mem_reachable(const void *ptr)
{
    CUdeviceptr address = 0;
    int         attribute = CU_POINTER_ATTRIBUTE_DEVICE_POINTER;
    void       *data = &address;

    /* Memory that is mapped to another address would need that one. */
    return (cu.pointer_attributes(1, &attribute, &data, (CUdeviceptr)ptr) == CUDA_SUCCESS) &&
           (address == (CUdeviceptr)ptr);
}

static xcclResult_t cuda_host_unpin(void *ptr)
{
    CHECK_RELAXED(cu.host_unpin(ptr), "cuMemHostUnregister");
    return xcclSuccess;
}

static xcclResult_t cuda_host_pin(void *ptr, size_t bytes)
{
    CHECK_RELAXED(cu.host_pin(ptr, bytes, CU_MEMHOSTREGISTER_PORTABLE), "cuMemHostRegister");
    if (!cuda_mem_reachable(ptr)) {
        cuda_host_unpin(ptr);
        return xc_fail(xcclUnsupported, "device memory has another address for it");
    }
    return xcclSuccess;
}

static xcclResult_t cuda_module_load(void **module_p, const void *image)
{
    CHECK_RELAXED(cu.module_load(module_p, image), "cuModuleLoadData");
    return xcclSuccess;
}

static xcclResult_t cuda_module_function(void **function_p, void *module, const char *name)
{
    CHECK(cu.module_function(function_p, module, name), "cuModuleGetFunction");
    return xcclSuccess;
}

static xcclResult_t cuda_launch(void *function, const unsigned grid[2], unsigned threads,
                                const void *arguments, xcclStream_t stream)
{
    void *list[] = {(void *)(uintptr_t)arguments};

    CHECK(cu.launch(function, grid[0], grid[1], 1, threads, 1, 1, 0, stream, list, NULL),
          "cuLaunchKernel");
    return xcclSuccess;
}

const struct xc_device_ops xc_cuda_ops = {
    .name = "cuda",
    .active = cuda_active,
    .mem_query = cuda_mem_query,
    .mem_make_synchronous = cuda_mem_make_synchronous,
    .resets = cuda_resets,
    .count = cuda_count,
    .current = cuda_current,
    .enter = cuda_enter,
    .leave = cuda_leave,
    .relax = relax,
    .restore = restore,
    .name_of = xc_cuda_name_of,
    .uuid_of = xc_cuda_uuid_of,
    .bus_id_of = xc_cuda_bus_id_of,
    .multiprocessors_of = xc_cuda_multiprocessors_of,
    .runs_processes_at_once = xc_cuda_runs_processes_at_once,
    .stream_create = cuda_stream_create,
    .stream_create_urgent = cuda_stream_create_urgent,
    .stream_destroy = cuda_stream_destroy,
    .stream_query = cuda_stream_query,
    .stream_sync = cuda_stream_sync,
    .stream_after_default = cuda_stream_after_default,
    .event_create = cuda_event_create,
    .event_destroy = cuda_event_destroy,
    .event_record = cuda_event_record,
    .event_query = cuda_event_query,
    .copy_async = cuda_copy_async,
    .copy_2d_async = cuda_copy_2d_async,
    .set_async = cuda_set_async,
    .mem_alloc = cuda_mem_alloc,
    .mem_free = cuda_mem_free,
    .host_alloc = cuda_host_alloc,
    .host_free = cuda_host_free,
    .host_pin = cuda_host_pin,
    .host_unpin = cuda_host_unpin,
    .mem_left = cuda_mem_left,
    .mem_allocation = cuda_mem_allocation,
    .ipc_export = cuda_ipc_export,
    .ipc_open = cuda_ipc_open,
    .ipc_close = cuda_ipc_close,
    .ipc_opens_unseen = true, /* since CUDA 10.1 */
    .mem_reachable = cuda_mem_reachable,
    .module_load = cuda_module_load,
    .module_function = cuda_module_function,
    .blocks_at_once = xc_cuda_blocks_at_once,
    .launch = cuda_launch,
    .waits_itself = xc_cuda_waits_itself,
    .launch_early = xc_cuda_launch_early,
    .repeat_create = xc_cuda_repeat_create,
    .repeat_launch = xc_cuda_repeat_launch,
    .repeat_destroy = xc_cuda_repeat_destroy,
};
