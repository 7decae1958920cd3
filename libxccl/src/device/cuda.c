/* SPDX-License-Identifier: BSD-3-Clause */
/* CUDA through its driver API, which every CUDA program has in its process. */
#include <pthread.h>
#include <stdint.h>

#include "base/log.h"
#include "device/cuda.h"
#include "device/runtimes.h"
#include "device/symbols.h"

/* Numbers of cuda.h. */
enum {
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_NOT_READY = 600,
    CU_MEMORYTYPE_UNIFIED = 4,
    CU_STREAM_NON_BLOCKING = 1,
    CU_EVENT_DISABLE_TIMING = 2,
    CU_STREAM_CAPTURE_MODE_RELAXED = 2,
    CU_STREAM_CAPTURE_STATUS_NONE = 0,
};

#define CU_STREAM_PER_THREAD ((CUstream)2)

/* CUDA_MEMCPY2D_v2 of cuda.h. Of UNIFIED memory the fields "device" hold the address. */
struct memcpy_2d_side {
    size_t      x_bytes, y;
    unsigned    memory_type;
    const void *host;
    CUdeviceptr device;
    void       *array;
    size_t      pitch;
};
struct xc_cuda_copy_2d {
    struct memcpy_2d_side src, dst;
    size_t                width, height;
};
_Static_assert((sizeof(void *) != 8) || (sizeof(struct xc_cuda_copy_2d) == 128), "as in cuda.h");

struct xc_cuda_driver xc_cuda;

static const struct xc_symbol symbols[] = {
#define ROW(name, symbol, args) {symbol, offsetof(__typeof__(xc_cuda), name)},
    XC_CUDA_FUNCTIONS(ROW)
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

    if (!xc_symbols_open(sonames, only_loaded, symbols, sizeof(symbols) / sizeof(symbols[0]),
                         &xc_cuda, missing_p)) {
        return false;
    }
    xc_symbols_open(sonames, true, id_symbol, 1, &ctx_id, &unused);
    return true;
}

xcclResult_t xc_cuda_failed(CUresult res, const char *what)
{
    const char *text = NULL;

    if ((xc_cuda.error_string(res, &text) != CUDA_SUCCESS) || (text == NULL)) {
        text = "unknown error";
    }
    return xc_fail(xcclUnhandledCudaError, "%s failed: %s (CUDA error %d)%s", what, text, (int)res,
                   xc_crash_hint((int)res));
}

int xc_cuda_relax(void)
{
    int mode = CU_STREAM_CAPTURE_MODE_RELAXED;

    return (xc_cuda.exchange_mode(&mode) == CUDA_SUCCESS) ? mode : CU_STREAM_CAPTURE_MODE_RELAXED;
}

void xc_cuda_restore(int mode)
{
    xc_cuda.exchange_mode(&mode);
}

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
    if (xc_cuda.ctx_get(&ctx) != CUDA_SUCCESS) {
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
    XC_CUDA_CHECK(xc_cuda.init(0), "cuInit");
    XC_CUDA_CHECK(xc_cuda.device_count(&count), "cuDeviceGetCount");
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
    return (xc_cuda.primary_state(device, &flags, &active) == CUDA_SUCCESS) && (active != 0);
}

unsigned xc_cuda_resets(int device, bool look)
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

static xcclResult_t cuda_count(int *count_p)
{
    int count;

    XC_CUDA_CHECK(xc_cuda.device_count(&count), "cuDeviceGetCount");
    *count_p = count;
    return xcclSuccess;
}

static xcclResult_t cuda_current(int *device_p)
{
    CUcontext ctx = NULL;
    CUdevice  device;

    XC_CUDA_CHECK(xc_cuda.ctx_get(&ctx), "cuCtxGetCurrent");
    if (ctx == NULL) {
        *device_p = -1;
        return xcclSuccess;
    }
    XC_CUDA_CHECK(xc_cuda.ctx_device(&device), "cuCtxGetDevice");
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
    xc_cuda_resets(device, true);
    CUcontext ctx = __atomic_load_n(&primary[device], __ATOMIC_ACQUIRE);
    if ((ctx == NULL) || __atomic_load_n(&contexts[device].gone, __ATOMIC_ACQUIRE)) {
        XC_CUDA_CHECK(xc_cuda.device_get(&handle, device), "cuDeviceGet");
        XC_CUDA_CHECK_RELAXED(xc_cuda.primary_retain(&ctx, handle), "cuDevicePrimaryCtxRetain");
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
    XC_CUDA_CHECK(xc_cuda.ctx_get(&now), "cuCtxGetCurrent");
    if (now == want) {
        *saved_p = NULL;
        return xcclSuccess;
    }
    XC_CUDA_CHECK(xc_cuda.ctx_push(want), "cuCtxPushCurrent");
    *saved_p = (void *)((uintptr_t)beneath | ENTERED);
    beneath = now;
    return xcclSuccess;
}

static void cuda_leave(void *saved)
{
    CUcontext popped;

    if (saved != NULL) {
        xc_cuda.ctx_pop(&popped);
        beneath = (CUcontext)((uintptr_t)saved & ~(uintptr_t)ENTERED);
    }
}

static xcclResult_t cuda_stream_create(xcclStream_t *stream_p)
{
    XC_CUDA_CHECK_RELAXED(xc_cuda.stream_create((CUstream *)stream_p, CU_STREAM_NON_BLOCKING),
                          "cuStreamCreate");
    return xcclSuccess;
}

static xcclResult_t cuda_stream_create_urgent(xcclStream_t *stream_p)
{
    int least, greatest;

    XC_CUDA_CHECK(xc_cuda.stream_priorities(&least, &greatest), "cuCtxGetStreamPriorityRange");
    XC_CUDA_CHECK_RELAXED(
        xc_cuda.stream_create_first((CUstream *)stream_p, CU_STREAM_NON_BLOCKING, greatest),
        "cuStreamCreateWithPriority");
    return xcclSuccess;
}

static xcclResult_t cuda_stream_destroy(xcclStream_t stream)
{
    XC_CUDA_CHECK_RELAXED(xc_cuda.stream_destroy(stream), "cuStreamDestroy");
    return xcclSuccess;
}

static xcclResult_t cuda_stream_query(xcclStream_t stream)
{
    int      mode = xc_cuda_relax();
    CUresult res = xc_cuda.stream_query(stream);

    xc_cuda_restore(mode);
    if (res == CUDA_ERROR_NOT_READY) {
        return xcclInProgress;
    }
    XC_CUDA_CHECK(res, "work on a stream");
    return xcclSuccess;
}

static xcclResult_t cuda_stream_sync(xcclStream_t stream)
{
    XC_CUDA_CHECK_RELAXED(xc_cuda.stream_sync(stream), "work on a stream");
    return xcclSuccess;
}

/* One of the default streams. */
static xcclResult_t after(xcclStream_t stream, CUstream before)
{
    CUevent event;
    int     captures = CU_STREAM_CAPTURE_STATUS_NONE;

    /* Where it is captured, or one that blocks towards it is, any use of it would spoil that; to
     * ask this does not. */
    if ((xc_cuda.stream_captures(before, &captures) != CUDA_SUCCESS) ||
        (captures != CU_STREAM_CAPTURE_STATUS_NONE)) {
        return xcclSuccess;
    }
    CUresult res = xc_cuda.stream_query(before);
    if (res != CUDA_ERROR_NOT_READY) { /* usually it is idle: one cheap question */
        XC_CUDA_CHECK(res, "work on the default stream");
        return xcclSuccess;
    }
    XC_CUDA_CHECK(xc_cuda.event_create(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    res = xc_cuda.event_record(event, before);
    if (res == CUDA_SUCCESS) {
        res = xc_cuda.stream_wait(stream, event, 0);
    }
    xc_cuda.event_destroy(event); /* the driver keeps it until it has happened */
    XC_CUDA_CHECK(res, "waiting for the default stream");
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
    int          mode = xc_cuda_relax(); /* another stream's capture may forbid questions to any */
    xcclResult_t res = after_both(stream);

    if ((res == xcclSuccess) && (beneath != NULL) && (xc_cuda.ctx_push(beneath) == CUDA_SUCCESS)) {
        res = after_both(stream);
        xc_cuda.ctx_pop(&popped);
    }
    xc_cuda_restore(mode);
    return res;
}

static xcclResult_t cuda_event_create(void **event_p)
{
    XC_CUDA_CHECK_RELAXED(xc_cuda.event_create(event_p, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    return xcclSuccess;
}

static xcclResult_t cuda_event_destroy(void *event)
{
    XC_CUDA_CHECK_RELAXED(xc_cuda.event_destroy(event), "cuEventDestroy");
    return xcclSuccess;
}

static xcclResult_t cuda_event_record(void *event, xcclStream_t stream)
{
    XC_CUDA_CHECK(xc_cuda.event_record(event, stream), "cuEventRecord");
    return xcclSuccess;
}

static xcclResult_t cuda_event_query(void *event)
{
    int      mode = xc_cuda_relax();
    CUresult res = xc_cuda.event_query(event);

    xc_cuda_restore(mode);
    if (res == CUDA_ERROR_NOT_READY) {
        return xcclInProgress;
    }
    XC_CUDA_CHECK(res, "work before an event");
    return xcclSuccess;
}

static xcclResult_t cuda_copy_async(void *dst, const void *src, size_t bytes, xcclStream_t stream)
{
    XC_CUDA_CHECK(xc_cuda.copy_async((CUdeviceptr)dst, (CUdeviceptr)src, bytes, stream),
                  "cuMemcpyAsync");
    return xcclSuccess;
}

static xcclResult_t cuda_copy_2d_async(void *dst, size_t dst_pitch, const void *src,
                                       size_t src_pitch, size_t width, size_t height,
                                       xcclStream_t stream)
{
    struct xc_cuda_copy_2d copy = {.width = width, .height = height};

    copy.src.memory_type = copy.dst.memory_type = CU_MEMORYTYPE_UNIFIED;
    copy.src.device = (CUdeviceptr)src;
    copy.src.pitch = src_pitch;
    copy.dst.device = (CUdeviceptr)dst;
    copy.dst.pitch = dst_pitch;
    CUresult res = xc_cuda.copy_2d_async(&copy, stream);
    if (res != CUDA_ERROR_INVALID_VALUE) {
        XC_CUDA_CHECK(res, "cuMemcpy2DAsync");
        return xcclSuccess;
    }
    /* A pitch may be too large, or not to a device's liking: then each row goes by itself. */
    for (size_t i = 0; i < height; i++) {
        XC_CUDA_CHECK(xc_cuda.copy_async((CUdeviceptr)dst + i * dst_pitch,
                                         (CUdeviceptr)src + i * src_pitch, width, stream),
                      "cuMemcpyAsync");
    }
    return xcclSuccess;
}

static xcclResult_t cuda_set_async(void *dst, int byte, size_t bytes, xcclStream_t stream)
{
    XC_CUDA_CHECK(xc_cuda.set_async((CUdeviceptr)dst, (unsigned char)byte, bytes, stream),
                  "cuMemsetD8Async");
    return xcclSuccess;
}

static xcclResult_t cuda_module_load(void **module_p, const void *image)
{
    XC_CUDA_CHECK_RELAXED(xc_cuda.module_load(module_p, image), "cuModuleLoadData");
    return xcclSuccess;
}

static xcclResult_t cuda_module_function(void **function_p, void *module, const char *name)
{
    XC_CUDA_CHECK(xc_cuda.module_function(function_p, module, name), "cuModuleGetFunction");
    return xcclSuccess;
}

static xcclResult_t cuda_launch(void *function, const unsigned grid[2], unsigned threads,
                                const void *arguments, xcclStream_t stream)
{
    void *list[] = {(void *)(uintptr_t)arguments};

    XC_CUDA_CHECK(
        xc_cuda.launch(function, grid[0], grid[1], 1, threads, 1, 1, 0, stream, list, NULL),
        "cuLaunchKernel");
    return xcclSuccess;
}

const struct xc_device_ops xc_cuda_ops = {
    .name = "cuda",
    .active = cuda_active,
    .mem_query = xc_cuda_mem_query,
    .mem_make_synchronous = xc_cuda_mem_make_synchronous,
    .resets = xc_cuda_resets,
    .count = cuda_count,
    .current = cuda_current,
    .enter = cuda_enter,
    .leave = cuda_leave,
    .relax = xc_cuda_relax,
    .restore = xc_cuda_restore,
    .name_of = xc_cuda_name_of,
    .uuid_of = xc_cuda_uuid_of,
    .bus_id_of = xc_cuda_bus_id_of,
    .multiprocessors_of = xc_cuda_multiprocessors_of,
    .runs_processes_at_once = xc_cuda_runs_processes_at_once,
    .managed_is_exclusive = xc_cuda_managed_is_exclusive,
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
    .mem_alloc = xc_cuda_mem_alloc,
    .mem_free = xc_cuda_mem_free,
    .host_alloc = xc_cuda_host_alloc,
    .host_free = xc_cuda_host_free,
    .host_pin = xc_cuda_host_pin,
    .host_unpin = xc_cuda_host_unpin,
    .mem_left = xc_cuda_mem_left,
    .mem_allocation = xc_cuda_mem_allocation,
    .ipc_export = xc_cuda_ipc_export,
    .ipc_open = xc_cuda_ipc_open,
    .ipc_close = xc_cuda_ipc_close,
    .ipc_opens_unseen = true, /* since CUDA 10.1 */
    .mem_reachable = xc_cuda_mem_reachable,
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
