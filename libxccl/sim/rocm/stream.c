/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams and events. */
#include <stdlib.h>

#include "core/graph.h"
#include "rocm/hip.h"

int hipStreamCreateWithPriority(hipStream_t *stream, unsigned flags, int priority)
{
    struct xs_ctx *ctx;
    int            res = (stream == NULL) ? XS_INVALID_VALUE : xs_hip_ctx(&ctx);

    if (res == XS_OK) {
        res = (int)xs_stream_create(ctx, flags, priority, (struct xs_stream **)stream);
    }
    return xs_hip_result(res);
}

int hipStreamCreateWithFlags(hipStream_t *stream, unsigned flags)
{
    return hipStreamCreateWithPriority(stream, flags, 0);
}

int hipStreamCreate(hipStream_t *stream)
{
    return hipStreamCreateWithPriority(stream, 0, 0);
}

int hipStreamDestroy(hipStream_t handle)
{
    struct xs_stream *stream;
    int res = ((uintptr_t)handle <= 2) ? XS_INVALID_HANDLE : xs_hip_stream(handle, &stream);

    return xs_hip_result((res != XS_OK) ? res : (int)xs_stream_destroy(stream));
}

int hipStreamQuery(hipStream_t handle)
{
    struct xs_stream *stream;
    int               res = xs_hip_stream(handle, &stream);

    if (res == XS_OK) {
        res = (int)xs_stream_refuse_question(stream);
    }
    if (res == XS_OK) {
        res = xs_stream_done(stream) ? XS_OK : XS_NOT_READY;
    }
    return xs_hip_result(res);
}

int hipStreamSynchronize(hipStream_t handle)
{
    struct xs_stream *stream;
    int               res = xs_hip_stream(handle, &stream);

    if (res == XS_OK) {
        res = (int)xs_stream_refuse_question(stream);
    }
    if (res == XS_OK) {
        xs_stream_sync(stream);
    }
    return xs_hip_result(res);
}

int hipStreamGetFlags(hipStream_t handle, unsigned *flags)
{
    struct xs_stream *stream;
    int               res = xs_hip_stream(handle, &stream);

    if (res == XS_OK) {
        *flags = xs_stream_flags(stream);
    }
    return xs_hip_result(res);
}

int hipStreamGetPriority(hipStream_t handle, int *priority)
{
    struct xs_stream *stream;
    int               res = xs_hip_stream(handle, &stream);

    if (res == XS_OK) {
        *priority = xs_stream_priority(stream);
    }
    return xs_hip_result(res);
}

int hipStreamGetDevice(hipStream_t handle, int *device)
{
    struct xs_stream *stream;
    int               res = xs_hip_stream(handle, &stream);

    if (res == XS_OK) {
        *device = xs_stream_ctx(stream)->device;
    }
    return xs_hip_result(res);
}

int hipStreamIsCapturing(hipStream_t handle, int *status)
{
    struct xs_stream *stream;
    int               res = xs_hip_stream(handle, &stream);

    if (res == XS_OK) {
        res = (int)xs_stream_capture_status(stream, status);
    }
    return xs_hip_result(res);
}

int hipStreamWaitEvent(hipStream_t handle, hipEvent_t event, unsigned flags)
{
    struct xs_stream *stream;
    int               res = (flags > 1) ? XS_INVALID_VALUE : xs_hip_stream(handle, &stream);

    return xs_hip_result((res != XS_OK) ? res : (int)xs_event_wait(stream, event));
}

int hipLaunchHostFunc(hipStream_t handle, void (*fn)(void *), void *data)
{
    struct xs_stream *stream;
    int               res = (fn == NULL) ? XS_INVALID_VALUE : xs_hip_stream(handle, &stream);

    if ((res == XS_OK) && xs_fault(XS_FAULT_CALL, NULL)) {
        res = XS_OUT_OF_MEMORY;
    }
    return xs_hip_result((res != XS_OK) ? res : (int)xs_call_async(stream, fn, data));
}

struct callback {
    void (*fn)(hipStream_t, int, void *);
    hipStream_t stream;
    void       *data;
};

static void run_callback(void *arg)
{
    struct callback callback = *(struct callback *)arg;

    free(arg);
    callback.fn(callback.stream, XS_OK, callback.data);
}

int hipStreamAddCallback(hipStream_t handle, void (*fn)(hipStream_t, int, void *), void *data,
                         unsigned flags)
{
    struct xs_stream *stream;
    int res = ((fn == NULL) || (flags != 0)) ? XS_INVALID_VALUE : xs_hip_stream(handle, &stream);

    if (res != XS_OK) {
        return xs_hip_result(res);
    }
    struct callback *callback = malloc(sizeof(*callback));
    if (callback == NULL) {
        return xs_hip_result(XS_OUT_OF_MEMORY);
    }
    *callback = (struct callback){fn, handle, data};
    res = (int)xs_call_async(stream, run_callback, callback);
    if (res != XS_OK) {
        free(callback);
    }
    return xs_hip_result(res);
}

/* A mask that leaves bits out is not simulated. */
int hipStreamWaitValue32(hipStream_t handle, void *ptr, uint32_t value, unsigned flags,
                         uint32_t mask)
{
    struct xs_stream *stream;
    int res = (mask != UINT32_MAX) ? XS_NOT_SUPPORTED : xs_hip_stream(handle, &stream);

    return xs_hip_result((res != XS_OK) ? res : (int)xs_wait_value(stream, ptr, value, 4, flags));
}

int hipStreamWriteValue32(hipStream_t handle, void *ptr, uint32_t value, unsigned flags)
{
    struct xs_stream *stream;
    int               res = (flags != 0) ? XS_INVALID_VALUE : xs_hip_stream(handle, &stream);

    return xs_hip_result((res != XS_OK) ? res : (int)xs_write_value(stream, ptr, value, 4));
}

int hipEventCreateWithFlags(hipEvent_t *event, unsigned flags)
{
    struct xs_ctx *ctx;
    int            res = (event == NULL) ? XS_INVALID_VALUE : xs_hip_ctx(&ctx);

    return xs_hip_result((res != XS_OK) ? res : (int)xs_event_create(ctx, flags, event));
}

int hipEventCreate(hipEvent_t *event)
{
    return hipEventCreateWithFlags(event, 0);
}

int hipEventDestroy(hipEvent_t event)
{
    return xs_hip_result((int)xs_event_destroy(event));
}

int hipEventRecord(hipEvent_t event, hipStream_t handle)
{
    struct xs_stream *stream;
    int               res = xs_hip_stream(handle, &stream);

    return xs_hip_result((res != XS_OK) ? res : (int)xs_event_record(event, stream));
}

int hipEventQuery(hipEvent_t event)
{
    return xs_hip_result((int)xs_event_query(event));
}

int hipEventSynchronize(hipEvent_t event)
{
    return xs_hip_result((int)xs_event_sync(event));
}

int hipEventElapsedTime(float *ms, hipEvent_t from, hipEvent_t to)
{
    return xs_hip_result((ms == NULL) ? XS_INVALID_VALUE : (int)xs_event_elapsed(from, to, ms));
}
