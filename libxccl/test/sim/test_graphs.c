/* SPDX-License-Identifier: BSD-3-Clause */
/* Capture and graphs: what they run, and what spoils a capture. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "driver_abi.h"
#include "kernels/kernels.h"
#include "ranks.h"

enum { GLOBAL, THREAD_LOCAL, RELAXED, BYTES = 4096 };

static CUstream start(unsigned flags)
{
    CUcontext ctx;
    CUstream  stream;

    CHECK_EQ(cuInit(0), CUDA_SUCCESS);
    CHECK_EQ(cuDevicePrimaryCtxRetain(&ctx, 0), CUDA_SUCCESS);
    CHECK_EQ(cuCtxSetCurrent(ctx), CUDA_SUCCESS);
    CHECK_EQ(cuStreamCreate(&stream, flags), CUDA_SUCCESS);
    return stream;
}

static void count(void *arg)
{
    atomic_fetch_add((atomic_int *)arg, 1);
}

static void nap(void *arg)
{
    (void)arg;
    usleep(50000);
}

static void replay(const struct world *world)
{
    CUstream    stream = start(CU_STREAM_NON_BLOCKING);
    CUdeviceptr device;
    CUgraph     graph;
    CUgraphExec exec;
    void       *from, *to;
    atomic_int  calls = 0;
    size_t      nodes = 0;
    int         status = -1;

    (void)world;
    CHECK_EQ(cuMemAlloc_v2(&device, BYTES), CUDA_SUCCESS);
    CHECK_EQ(cuMemHostAlloc(&from, BYTES, 0), CUDA_SUCCESS);
    CHECK_EQ(cuMemHostAlloc(&to, BYTES, 0), CUDA_SUCCESS);
    CHECK_EQ(cuStreamBeginCapture_v2(stream, GLOBAL), CUDA_SUCCESS);
    CHECK_EQ(cuStreamBeginCapture_v2(stream, GLOBAL), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK_EQ(cuStreamIsCapturing(stream, &status), CUDA_SUCCESS);
    CHECK_EQ(status, 1);
    CHECK_EQ(cuMemcpyAsync(device, (CUdeviceptr)(uintptr_t)from, BYTES, stream), CUDA_SUCCESS);
    CHECK_EQ(cuLaunchHostFunc(stream, count, &calls), CUDA_SUCCESS);
    CHECK_EQ(cuMemcpyAsync((CUdeviceptr)(uintptr_t)to, device, BYTES, stream), CUDA_SUCCESS);
    CHECK_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
    CHECK_EQ(cuGraphGetNodes(graph, NULL, &nodes), CUDA_SUCCESS);
    CHECK_EQ(nodes, 3);
    CHECK_EQ(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
    CHECK_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
    CHECK_EQ(atomic_load(&calls), 0);
    for (int i = 1; i <= 3; i++) {
        memset(from, i, BYTES);
        CHECK_EQ(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
        CHECK_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
        CHECK_EQ(memcmp(from, to, BYTES), 0);
        CHECK_EQ(atomic_load(&calls), i);
    }
    CHECK_EQ(cuGraphExecDestroy(exec), CUDA_SUCCESS);
    CHECK_EQ(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
}

static struct kernel_node copy_node(void *function, void **arguments)
{
    return (struct kernel_node){
        .function = function, .grid = {1, 1, 1}, .block = {1, 1, 1}, .arguments = arguments};
}

/*
 * Another executable graph can be set while one runs; that one when it is over. Nor does either
 * spoil a capture on a stream that has nothing to do with them.
 */
static void set_while_it_runs(CUgraphExec runs, CUgraphExec other, void *node,
                              const struct kernel_node *params, CUstream stream,
                              const volatile uint32_t *word)
{
    CUstream captured = start(CU_STREAM_NON_BLOCKING);
    CUgraph  graph;

    CHECK_EQ(cuStreamBeginCapture_v2(captured, GLOBAL), CUDA_SUCCESS);
    CHECK_EQ(cuGraphExecKernelNodeSetParams_v2(runs, node, params), CUDA_SUCCESS);
    CHECK_EQ(cuLaunchHostFunc(stream, nap, NULL), CUDA_SUCCESS);
    CHECK_EQ(cuGraphLaunch(runs, stream), CUDA_SUCCESS);
    CHECK_EQ(cuGraphExecKernelNodeSetParams_v2(other, node, params), CUDA_SUCCESS);
    CHECK_EQ(*word, 1);
    CHECK_EQ(cuGraphExecKernelNodeSetParams_v2(runs, node, params), CUDA_SUCCESS);
    CHECK_EQ(*word, 7);
    CHECK_EQ(cuStreamEndCapture(captured, &graph), CUDA_SUCCESS);
    CHECK_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
}

/* A graph made by hand; what is set anew counts for launches to come, and for one executable. */
static void by_hand(const struct world *world)
{
    CUstream               stream = start(CU_STREAM_NON_BLOCKING);
    const struct xk_image *image =
        dlsym(dlopen("libxccl-direct-cuda.so", RTLD_NOW), XK_IMAGE_SYMBOL);
    void              *module, *function, *node, *host;
    CUdeviceptr        device;
    CUgraph            graph;
    CUgraphExec        first, second;
    struct xk_batch    copies = {{{.bytes = 4, .value = 1, .blocks = 1}}};
    struct xk_copy    *copy = &copies.copy[0];
    void              *list[] = {&copies};
    struct kernel_node params;
    volatile uint32_t *words;

    (void)world;
    CHECK(image != NULL);
    CHECK_EQ(cuModuleLoadData(&module, image->local), CUDA_SUCCESS);
    CHECK_EQ(cuModuleGetFunction(&function, module, "xk_batch"), CUDA_SUCCESS);
    CHECK_EQ(cuMemAlloc_v2(&device, BYTES), CUDA_SUCCESS);
    CHECK_EQ(cuMemsetD8_v2(device, 0, BYTES), CUDA_SUCCESS);
    CHECK_EQ(cuMemHostAlloc(&host, BYTES, 0), CUDA_SUCCESS);
    words = host;
    copy->from = (uint64_t)(uintptr_t)host;
    copy->to = (uint64_t)(uintptr_t)host + 4;
    copy->finished = (uint32_t *)device;
    copy->done = (uint32_t *)host + 2;
    words[0] = 17;
    params = copy_node(function, list);
    CHECK_EQ(cuGraphCreate(&graph, 1), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
    CHECK_EQ(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &params), CUDA_SUCCESS);
    CHECK_EQ(cuGraphInstantiateWithFlags(&first, graph, 0), CUDA_SUCCESS);
    CHECK_EQ(cuGraphInstantiateWithFlags(&second, graph, 0), CUDA_SUCCESS);
    CHECK_EQ(cuGraphUpload(first, stream), CUDA_SUCCESS);
    for (uint32_t i = 2; i < 5; i++) {
        copy->value = i;
        words[0] = 100 + i;
        CHECK_EQ(cuGraphExecKernelNodeSetParams_v2(first, node, &params), CUDA_SUCCESS);
        copy->value = 99; /* taken over when it was set */
        CHECK_EQ(cuGraphLaunch(first, stream), CUDA_SUCCESS);
        CHECK_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
        CHECK_EQ(words[1], 100 + i);
        CHECK_EQ(words[2], i);
    }
    CHECK_EQ(cuGraphLaunch(second, stream), CUDA_SUCCESS);
    CHECK_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
    CHECK_EQ(words[2], 1);
    copy->value = 7;
    set_while_it_runs(first, second, node, &params, stream, &words[2]);
    params.grid[2] = 0;
    CHECK_EQ(cuGraphExecKernelNodeSetParams_v2(first, node, &params), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuGraphExecDestroy(first), CUDA_SUCCESS);
    CHECK_EQ(cuGraphExecDestroy(second), CUDA_SUCCESS);
    CHECK_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
}

/* The capture ends spoilt, and the stream can be used again. */
static void spoilt(CUstream stream)
{
    CUgraph graph = NULL;
    int     status = -1;

    CHECK_EQ(cuStreamIsCapturing(stream, &status), CUDA_SUCCESS);
    CHECK_EQ(status, 2);
    CHECK_EQ(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK(graph == NULL);
    CHECK_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
}

static void forbidden(const struct world *world)
{
    CUstream    stream = start(0);
    CUdeviceptr device;
    CUevent     event;
    CUgraph     graph;
    int         mode = RELAXED;

    (void)world;
    CHECK_EQ(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    CHECK_EQ(cuStreamBeginCapture_v2(stream, THREAD_LOCAL), CUDA_SUCCESS);
    CHECK_EQ(cuStreamSynchronize(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    spoilt(stream);
    CHECK_EQ(cuStreamBeginCapture_v2(stream, THREAD_LOCAL), CUDA_SUCCESS);
    CHECK_EQ(cuStreamQuery(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    spoilt(stream);
    CHECK_EQ(cuStreamBeginCapture_v2(stream, THREAD_LOCAL), CUDA_SUCCESS);
    CHECK_EQ(cuMemAlloc_v2(&device, BYTES), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    spoilt(stream);
    CHECK_EQ(cuStreamBeginCapture_v2(stream, GLOBAL), CUDA_SUCCESS);
    CHECK_EQ(cuCtxSynchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    spoilt(stream);
    CHECK_EQ(cuStreamBeginCapture_v2(stream, RELAXED), CUDA_SUCCESS);
    CHECK_EQ(cuMemAlloc_v2(&device, BYTES), CUDA_SUCCESS);
    CHECK_EQ(cuMemsetD32Async(device, 1, 1, NULL), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    spoilt(stream);
    /* Allowed for a thread that has asked for it. */
    CHECK_EQ(cuStreamBeginCapture_v2(stream, GLOBAL), CUDA_SUCCESS);
    CHECK_EQ(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
    CHECK_EQ(mode, GLOBAL);
    CHECK_EQ(cuEventQuery(event), CUDA_SUCCESS);
    CHECK_EQ(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
    CHECK_EQ(mode, RELAXED);
    CHECK_EQ(cuEventRecord(event, stream), CUDA_SUCCESS);
    CHECK_EQ(cuEventQuery(event), CUDA_ERROR_CAPTURED_EVENT);
    CHECK_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
    CHECK_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
    CHECK_EQ(cuEventDestroy_v2(event), CUDA_SUCCESS);
}

/* Calls that a thread may make after it has asked for it, and one that it may not, as on H200s. */
static void relaxed(const struct world *world)
{
    CUstream       stream = start(CU_STREAM_NON_BLOCKING);
    CUdeviceptr    device;
    CUgraph        graph, empty;
    CUgraphExec    exec;
    const unsigned yes = 1;
    int            mode = RELAXED;

    (void)world;
    CHECK_EQ(cuGraphCreate(&empty, 0), CUDA_SUCCESS);
    CHECK_EQ(cuMemAlloc_v2(&device, BYTES), CUDA_SUCCESS);
    CHECK_EQ(cuStreamBeginCapture_v2(stream, GLOBAL), CUDA_SUCCESS);
    CHECK_EQ(cuPointerSetAttribute(&yes, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, device),
             CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    spoilt(stream);
    CHECK_EQ(cuStreamBeginCapture_v2(stream, GLOBAL), CUDA_SUCCESS);
    CHECK_EQ(cuGraphInstantiateWithFlags(&exec, empty, 0), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    spoilt(stream);
    CHECK_EQ(cuGraphInstantiateWithFlags(&exec, empty, 0), CUDA_SUCCESS);
    CHECK_EQ(cuStreamBeginCapture_v2(stream, GLOBAL), CUDA_SUCCESS);
    CHECK_EQ(cuGraphExecDestroy(exec), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    spoilt(stream);
    CHECK_EQ(cuGraphExecDestroy(exec), CUDA_SUCCESS);
    CHECK_EQ(cuStreamBeginCapture_v2(stream, GLOBAL), CUDA_SUCCESS);
    CHECK_EQ(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
    CHECK_EQ(cuPointerSetAttribute(&yes, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, device), CUDA_SUCCESS);
    CHECK_EQ(cuGraphInstantiateWithFlags(&exec, empty, 0), CUDA_SUCCESS);
    CHECK_EQ(cuGraphExecDestroy(exec), CUDA_SUCCESS);
    CHECK_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
    CHECK_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
    CHECK_EQ(cuStreamBeginCapture_v2(stream, RELAXED), CUDA_SUCCESS);
    CHECK_EQ(cuCtxSynchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    spoilt(stream);
    CHECK_EQ(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
    CHECK_EQ(cuMemFree_v2(device), CUDA_SUCCESS);
    CHECK_EQ(cuGraphDestroy(empty), CUDA_SUCCESS);
}

/* While a blocking stream captures, the legacy one may be asked for nothing but that. */
static void legacy(const struct world *world)
{
    CUstream stream = start(0), apart = start(CU_STREAM_NON_BLOCKING);
    CUgraph  graph;
    int      status = -1, mode = RELAXED;

    (void)world;
    CHECK_EQ(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
    CHECK_EQ(cuStreamBeginCapture_v2(stream, GLOBAL), CUDA_SUCCESS);
    CHECK_EQ(cuStreamIsCapturing(NULL, &status), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    CHECK_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
    CHECK_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
    CHECK_EQ(cuStreamBeginCapture_v2(stream, GLOBAL), CUDA_SUCCESS);
    CHECK_EQ(cuStreamQuery(NULL), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    spoilt(stream);
    CHECK_EQ(cuStreamBeginCapture_v2(stream, GLOBAL), CUDA_SUCCESS);
    CHECK_EQ(cuStreamSynchronize(NULL), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    spoilt(stream);
    CHECK_EQ(cuStreamBeginCapture_v2(apart, GLOBAL), CUDA_SUCCESS);
    CHECK_EQ(cuStreamIsCapturing(NULL, &status), CUDA_SUCCESS);
    CHECK_EQ(status, 0);
    CHECK_EQ(cuStreamQuery(NULL), CUDA_SUCCESS);
    CHECK_EQ(cuStreamEndCapture(apart, &graph), CUDA_SUCCESS);
    CHECK_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
}

static CUstream shared;

/* Another thread's calls count for a capture of mode global; only its own thread ends one. */
static void *elsewhere(void *arg)
{
    CUcontext   ctx;
    CUdeviceptr device;
    CUgraph     graph;
    int         expected = *(int *)arg;

    CHECK_EQ(cuDevicePrimaryCtxRetain(&ctx, 0), CUDA_SUCCESS);
    CHECK_EQ(cuCtxSetCurrent(ctx), CUDA_SUCCESS);
    CHECK_EQ(cuStreamEndCapture(shared, &graph), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    CHECK_EQ(cuMemAlloc_v2(&device, BYTES), expected);
    return NULL;
}

static void threads(const struct world *world)
{
    CUgraph graph;

    (void)world;
    shared = start(CU_STREAM_NON_BLOCKING);
    for (int mode = GLOBAL; mode <= THREAD_LOCAL; mode++) {
        int expected = (mode == GLOBAL) ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
        pthread_t thread;
        CHECK_EQ(cuStreamBeginCapture_v2(shared, mode), CUDA_SUCCESS);
        CHECK_EQ(pthread_create(&thread, NULL, elsewhere, &expected), 0);
        pthread_join(thread, NULL);
        if (mode == GLOBAL) {
            spoilt(shared);
        } else {
            CHECK_EQ(cuStreamEndCapture(shared, &graph), CUDA_SUCCESS);
            CHECK_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
        }
    }
}

int main(int argc, char **argv)
{
    const struct test_case cases[] = {
        {"replay", replay, 1, "cuda:1", NULL, NULL, -1},
        {"by_hand", by_hand, 1, "cuda:1", NULL, NULL, -1},
        {"forbidden", forbidden, 1, "cuda:1", NULL, NULL, -1},
        {"relaxed", relaxed, 1, "cuda:1", NULL, NULL, -1},
        {"legacy", legacy, 1, "cuda:1", NULL, NULL, -1},
        {"threads", threads, 1, "cuda:1", NULL, NULL, -1},
    };

    return run_cases(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
