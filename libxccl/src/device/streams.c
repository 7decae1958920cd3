/* SPDX-License-Identifier: BSD-3-Clause */
/* CUDA's driver API and HIP: the same functions, but for the device of a stream and the wait. */
#include "device/streams.h"

#include <pthread.h>
#include <string.h>

#include "device/symbols.h"

enum { SUCCESS = 0, WAIT_AT_LEAST = 0, HIP_WAIT_AT_LEAST = 0 };

typedef int (*wait_cuda_fn)(void *, uintptr_t, uint32_t, unsigned);
typedef int (*wait_hip_fn)(void *, void *, uint32_t, unsigned, uint32_t);

struct functions {
    int (*is_capturing)(void *, int *);
    int (*host_func)(void *, void (*)(void *), void *);
    void (*wait)(void);                  /* wait_cuda_fn or wait_hip_fn */
    int (*stream_device)(void *, int *); /* HIP */
    int (*stream_ctx)(void *, void **);  /* CUDA, from here on */
    int (*ctx_push)(void *);
    int (*ctx_pop)(void **);
    int (*ctx_device)(int *);
};

#define ROW(field, name) {name, offsetof(struct functions, field)}
static const struct xc_symbol cuda_symbols[] = {
    ROW(is_capturing, "cuStreamIsCapturing"), ROW(host_func, "cuLaunchHostFunc"),
    ROW(wait, "cuStreamWaitValue32_v2"),      ROW(stream_ctx, "cuStreamGetCtx"),
    ROW(ctx_push, "cuCtxPushCurrent_v2"),     ROW(ctx_pop, "cuCtxPopCurrent_v2"),
    ROW(ctx_device, "cuCtxGetDevice"),
};
static const struct xc_symbol hip_symbols[] = {
    ROW(is_capturing, "hipStreamIsCapturing"),
    ROW(host_func, "hipLaunchHostFunc"),
    ROW(wait, "hipStreamWaitValue32"),
    ROW(stream_device, "hipStreamGetDevice"),
};
#undef ROW

static const char *const cuda_names[] = {"libcuda.so.1", NULL};
static const char *const hip_names[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
                                        "libamdhip64.so", NULL};

static pthread_mutex_t  lock = PTHREAD_MUTEX_INITIALIZER;
static struct functions fns;
static bool             is_cuda;
static int              ready; /* atomic */

static xcclResult_t result_of(int res, const char *what)
{
    return (res == SUCCESS) ? xcclSuccess
                            : xc_fail(xcclUnhandledDeviceError, "%s failed (%s error %d)", what,
                                      is_cuda ? "CUDA" : "HIP", res);
}

static int cuda_device(void *stream, int *device_p)
{
    void *ctx = NULL, *popped;
    int   res = fns.stream_ctx(stream, &ctx);

    if (res != SUCCESS) {
        return res;
    }
    res = fns.ctx_push(ctx);
    if (res != SUCCESS) {
        return res;
    }
    res = fns.ctx_device(device_p);
    fns.ctx_pop(&popped);
    return res;
}

static xcclResult_t stream_device(xcclStream_t stream, int *device_p)
{
    return result_of(is_cuda ? cuda_device(stream, device_p) : fns.stream_device(stream, device_p),
                     "asking for the device of a stream");
}

static xcclResult_t capturing(xcclStream_t stream, bool *capturing_p)
{
    int status = 0;
    int res = fns.is_capturing(stream, &status);

    *capturing_p = (status != 0);
    return result_of(res, "asking whether a stream captures");
}

static xcclResult_t call(void (*fn)(void *), void *arg, xcclStream_t stream)
{
    return result_of(fns.host_func(stream, fn, arg), "enqueueing a host function");
}

static xcclResult_t wait_for(const uint32_t *word, uint32_t least, xcclStream_t stream)
{
    wait_cuda_fn cuda;
    wait_hip_fn  hip;
    int          res;

    if (is_cuda) {
        memcpy(&cuda, &fns.wait, sizeof(cuda));
        res = cuda(stream, (uintptr_t)word, least, WAIT_AT_LEAST);
    } else {
        memcpy(&hip, &fns.wait, sizeof(hip));
        res = hip(stream, (void *)(uintptr_t)word, least, HIP_WAIT_AT_LEAST, UINT32_MAX);
    }
    return result_of(res, "enqueueing a wait for a word of host memory");
}

static const struct xc_stream_ops stream_ops = {
    .device = stream_device, .capturing = capturing, .call = call, .wait = wait_for};

/* A process has one runtime that is active. */
const struct xc_stream_ops *xc_streams_of(const struct xc_device_ops *dev)
{
    const char *missing = NULL;
    bool        cuda = (strcmp(dev->name, "cuda") == 0);

    if (strcmp(dev->name, "hpu") == 0) {
        xc_fail(xcclUnsupported, "stream-ordered calls need host functions on streams, which a "
                                 "Gaudi's runtime lacks");
        return NULL;
    }
    if (__atomic_load_n(&ready, __ATOMIC_ACQUIRE) != 0) {
        return &stream_ops;
    }
    pthread_mutex_lock(&lock);
    is_cuda = cuda;
    bool found =
        cuda ? xc_symbols_open(cuda_names, true, cuda_symbols,
                               sizeof(cuda_symbols) / sizeof(cuda_symbols[0]), &fns, &missing)
             : xc_symbols_open(hip_names, true, hip_symbols,
                               sizeof(hip_symbols) / sizeof(hip_symbols[0]), &fns, &missing);
    __atomic_store_n(&ready, found ? 1 : 0, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
    if (!found) {
        xc_fail(xcclUnsupported, "stream-ordered calls need %s, which this device runtime lacks",
                (missing != NULL) ? missing : dev->name);
    }
    return found ? &stream_ops : NULL;
}
