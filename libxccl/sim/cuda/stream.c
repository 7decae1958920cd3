/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams and events. */
#include <stdlib.h>

#include "core/graph.h"
#include "cuda/driver.h"

/* The current context is needed for default streams only; other streams know theirs. */
static int find(CUstream handle, struct xs_stream **stream_p)
{
    CU_NEED_INIT;
    return (int)xs_stream_get(xs_ctx_current(), handle, stream_p);
}

int cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
    CU_NEED_CTX(ctx);
    if (stream == NULL) {
        return XS_INVALID_VALUE;
    }
    return (int)xs_stream_create(ctx, flags, priority, (struct xs_stream **)stream);
}

int cuStreamCreate(CUstream *stream, unsigned flags)
{
    return cuStreamCreateWithPriority(stream, flags, 0);
}

int cuStreamDestroy_v2(CUstream handle)
{
    struct xs_stream *stream;
    int               res = ((uintptr_t)handle <= 2) ? XS_INVALID_HANDLE : find(handle, &stream);

    return (res != XS_OK) ? res : (int)xs_stream_destroy(stream);
}

int cuStreamQuery(CUstream handle)
{
    struct xs_stream *stream;
    int               res = find(handle, &stream);

    if (res == XS_OK) {
        res = (int)xs_stream_refuse_question(stream);
    }
    if (res != XS_OK) {
        return res;
    }
    return xs_stream_done(stream) ? XS_OK : XS_NOT_READY;
}

int cuStreamSynchronize(CUstream handle)
{
    struct xs_stream *stream;
    int               res = find(handle, &stream);

    if (res == XS_OK) {
        res = (int)xs_stream_refuse_question(stream);
    }
    if (res == XS_OK) {
        xs_stream_sync(stream);
    }
    return res;
}

int cuStreamGetFlags(CUstream handle, unsigned *flags)
{
    struct xs_stream *stream;
    int               res = find(handle, &stream);

    if (res == XS_OK) {
        *flags = xs_stream_flags(stream);
    }
    return res;
}

int cuStreamGetPriority(CUstream handle, int *priority)
{
    struct xs_stream *stream;
    int               res = find(handle, &stream);

    if (res == XS_OK) {
        *priority = xs_stream_priority(stream);
    }
    return res;
}

int cuStreamGetId(CUstream handle, unsigned long long *id)
{
    struct xs_stream *stream;
    int               res = find(handle, &stream);

    if (res == XS_OK) {
        *id = xs_stream_id(stream);
    }
    return res;
}

int cuStreamGetCtx(CUstream handle, CUcontext *ctx)
{
    struct xs_stream *stream;
    int               res = find(handle, &stream);

    if (res == XS_OK) {
        *ctx = xs_stream_ctx(stream);
    }
    return res;
}

int cuStreamGetDevice(CUstream handle, int *device)
{
    struct xs_stream *stream;
    int               res = find(handle, &stream);

    if (res == XS_OK) {
        *device = xs_stream_ctx(stream)->device;
    }
    return res;
}

int cuStreamIsCapturing(CUstream handle, int *status)
{
    struct xs_stream *stream;
    int               res = find(handle, &stream);

    if (res == XS_OK) {
        res = (int)xs_stream_capture_status(stream, status);
    }
    return res;
}

int cuStreamWaitEvent(CUstream handle, CUevent event, unsigned flags)
{
    struct xs_stream *stream;
    int               res = find(handle, &stream);

    if ((res == XS_OK) && (flags > 1)) {
        return XS_INVALID_VALUE;
    }
    return (res != XS_OK) ? res : (int)xs_event_wait(stream, event);
}

int cuLaunchHostFunc(CUstream handle, void (*fn)(void *), void *data)
{
    struct xs_stream *stream;
    int               res = (fn == NULL) ? XS_INVALID_VALUE : find(handle, &stream);

    if ((res == XS_OK) && xs_fault(XS_FAULT_CALL, NULL)) {
        res = XS_OUT_OF_MEMORY;
    }
    return (res != XS_OK) ? res : (int)xs_call_async(stream, fn, data);
}

struct callback {
    void (*fn)(CUstream, int, void *);
    CUstream stream;
    void    *data;
};

static void run_callback(void *arg)
{
    struct callback callback = *(struct callback *)arg;

    free(arg);
    callback.fn(callback.stream, XS_OK, callback.data);
}

int cuStreamAddCallback(CUstream handle, void (*fn)(CUstream, int, void *), void *data,
                        unsigned flags)
{
    struct xs_stream *stream;
    int res = ((fn == NULL) || (flags != 0)) ? XS_INVALID_VALUE : find(handle, &stream);

    if (res != XS_OK) {
        return res;
    }
    struct callback *callback = malloc(sizeof(*callback));
    if (callback == NULL) {
        return XS_OUT_OF_MEMORY;
    }
    *callback = (struct callback){fn, handle, data};
    res = (int)xs_call_async(stream, run_callback, callback);
    if (res != XS_OK) {
        free(callback);
    }
    return res;
}

#define WAIT_FLUSH (1U << 30)

int cuStreamWaitValue32_v2(CUstream handle, CUdeviceptr ptr, uint32_t value, unsigned flags)
{
    struct xs_stream *stream;
    int               res = find(handle, &stream);

    return (res != XS_OK) ? res
                          : (int)xs_wait_value(stream, (void *)ptr, value, 4, flags & ~WAIT_FLUSH);
}

int cuStreamWaitValue64_v2(CUstream handle, CUdeviceptr ptr, uint64_t value, unsigned flags)
{
    struct xs_stream *stream;
    int               res = find(handle, &stream);

    return (res != XS_OK) ? res
                          : (int)xs_wait_value(stream, (void *)ptr, value, 8, flags & ~WAIT_FLUSH);
}

int cuStreamWriteValue32_v2(CUstream handle, CUdeviceptr ptr, uint32_t value, unsigned flags)
{
    struct xs_stream *stream;
    int               res = (flags > 1) ? XS_INVALID_VALUE : find(handle, &stream);

    return (res != XS_OK) ? res : (int)xs_write_value(stream, (void *)ptr, value, 4);
}

int cuStreamWriteValue64_v2(CUstream handle, CUdeviceptr ptr, uint64_t value, unsigned flags)
{
    struct xs_stream *stream;
    int               res = (flags > 1) ? XS_INVALID_VALUE : find(handle, &stream);

    return (res != XS_OK) ? res : (int)xs_write_value(stream, (void *)ptr, value, 8);
}

int cuEventCreate(CUevent *event, unsigned flags)
{
    CU_NEED_CTX(ctx);
    if ((event == NULL) || (flags > 7)) {
        return XS_INVALID_VALUE;
    }
    return (int)xs_event_create(ctx, flags, event);
}

int cuEventDestroy_v2(CUevent event)
{
    CU_NEED_INIT;
    return (int)xs_event_destroy(event);
}

int cuEventRecord(CUevent event, CUstream handle)
{
    struct xs_stream *stream;
    int               res = find(handle, &stream);

    return (res != XS_OK) ? res : (int)xs_event_record(event, stream);
}

int cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags)
{
    return (flags > 1) ? XS_INVALID_VALUE : cuEventRecord(event, stream);
}

int cuEventQuery(CUevent event)
{
    CU_NEED_INIT;
    return (int)xs_event_query(event);
}

int cuEventSynchronize(CUevent event)
{
    CU_NEED_INIT;
    return (int)xs_event_sync(event);
}

int cuEventElapsedTime_v2(float *ms, CUevent from, CUevent to)
{
    CU_NEED_INIT;
    return (ms == NULL) ? XS_INVALID_VALUE : (int)xs_event_elapsed(from, to, ms);
}

int cuEventElapsedTime(float *ms, CUevent from, CUevent to)
{
    return cuEventElapsedTime_v2(ms, from, to);
}
