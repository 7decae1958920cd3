/* SPDX-License-Identifier: BSD-3-Clause */
/* Capture and graphs. */
#include "core/graph.h"
#include "rocm/hip.h"

int hipStreamBeginCapture(hipStream_t handle, int mode)
{
    struct xs_stream *stream;
    int               res = xs_hip_stream(handle, &stream);

    return xs_hip_result((res != XS_OK) ? res : (int)xs_capture_begin(stream, mode));
}

int hipStreamEndCapture(hipStream_t handle, hipGraph_t *graph)
{
    struct xs_stream *stream;
    int               res = (graph == NULL) ? XS_INVALID_VALUE : xs_hip_stream(handle, &stream);

    return xs_hip_result((res != XS_OK) ? res : (int)xs_capture_end(stream, graph));
}

int hipThreadExchangeStreamCaptureMode(int *mode)
{
    return xs_hip_result((int)xs_capture_exchange(mode));
}

int hipGraphInstantiate(hipGraphExec_t *exec, hipGraph_t graph, void **node, char *log,
                        size_t log_bytes)
{
    (void)node;
    (void)log;
    (void)log_bytes;
    return xs_hip_result((exec == NULL) ? XS_INVALID_VALUE
                                        : (int)xs_graph_instantiate(graph, exec));
}

int hipGraphLaunch(hipGraphExec_t exec, hipStream_t handle)
{
    struct xs_stream *stream;
    int               res = xs_hip_stream(handle, &stream);

    return xs_hip_result((res != XS_OK) ? res : (int)xs_graph_launch(exec, stream));
}

int hipGraphExecDestroy(hipGraphExec_t exec)
{
    return xs_hip_result((int)xs_exec_destroy(exec));
}

int hipGraphDestroy(hipGraph_t graph)
{
    return xs_hip_result((int)xs_graph_destroy(graph));
}
