/* SPDX-License-Identifier: BSD-3-Clause */
/* Capture and graphs. */
#include "core/graph.h"
#include "cuda/driver.h"

static int find(CUstream handle, struct xs_stream **stream_p)
{
    CU_NEED_INIT;
    return (int)xs_stream_get(xs_ctx_current(), handle, stream_p);
}

int cuStreamBeginCapture_v2(CUstream handle, int mode)
{
    struct xs_stream *stream;
    int               res = find(handle, &stream);

    return (res != XS_OK) ? res : (int)xs_capture_begin(stream, mode);
}

int cuStreamEndCapture(CUstream handle, CUgraph *graph)
{
    struct xs_stream *stream;
    int               res = (graph == NULL) ? XS_INVALID_VALUE : find(handle, &stream);

    return (res != XS_OK) ? res : (int)xs_capture_end(stream, graph);
}

int cuThreadExchangeStreamCaptureMode(int *mode)
{
    return (int)xs_capture_exchange(mode);
}

int cuGraphCreate(CUgraph *graph, unsigned flags)
{
    CU_NEED_INIT;
    return ((graph == NULL) || (flags != 0)) ? XS_INVALID_VALUE : (int)xs_graph_create(graph);
}

static bool is_simple(const CUDA_KERNEL_NODE_PARAMS *p)
{
    return (p != NULL) && (p->func != NULL) && (p->kernelParams != NULL) && (p->extra == NULL) &&
           (p->gridDimZ == 1) && (p->blockDimY == 1) && (p->blockDimZ == 1);
}

int cuGraphAddKernelNode_v2(void **node, CUgraph graph, void *const *dependencies, size_t count,
                            const CUDA_KERNEL_NODE_PARAMS *params)
{
    CU_NEED_CTX(ctx);
    if ((node == NULL) || !is_simple(params) || ((dependencies == NULL) && (count > 0))) {
        return XS_INVALID_VALUE;
    }
    const unsigned grid[2] = {params->gridDimX, params->gridDimY};
    return (int)xs_graph_add_kernel(graph, node, ctx, params->func, grid, params->blockDimX,
                                    params->kernelParams[0]);
}

int cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, void *node,
                                      const CUDA_KERNEL_NODE_PARAMS *params)
{
    CU_NEED_CTX(ctx);
    if (!is_simple(params)) {
        return XS_INVALID_VALUE;
    }
    const unsigned grid[2] = {params->gridDimX, params->gridDimY};
    return (int)xs_exec_set_kernel(exec, node, ctx, params->func, grid, params->blockDimX,
                                   params->kernelParams[0]);
}

int cuGraphUpload(CUgraphExec exec, CUstream handle)
{
    struct xs_stream *stream;

    return (exec == NULL) ? XS_INVALID_VALUE : find(handle, &stream);
}

int cuGraphGetNodes(CUgraph graph, void **nodes, size_t *count)
{
    /* How many there are is all that is known of them. */
    return ((nodes != NULL) || (count == NULL)) ? XS_NOT_SUPPORTED
                                                : (int)xs_graph_count(graph, count);
}

int cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    enum xs_error res = xs_capture_guard();

    (void)flags;
    if (res != XS_OK) {
        return (int)res;
    }
    return (exec == NULL) ? XS_INVALID_VALUE : (int)xs_graph_instantiate(graph, exec);
}

int cuGraphLaunch(CUgraphExec exec, CUstream handle)
{
    struct xs_stream *stream;
    int               res = find(handle, &stream);

    return (res != XS_OK) ? res : (int)xs_graph_launch(exec, stream);
}

int cuGraphExecDestroy(CUgraphExec exec)
{
    enum xs_error res = xs_capture_guard();

    return (int)((res == XS_OK) ? xs_exec_destroy(exec) : res);
}

int cuGraphDestroy(CUgraph graph)
{
    return (int)xs_graph_destroy(graph);
}
