/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A kernel that is launched again and again, as a graph of its own: setting its arguments and
 * launching the graph takes 1.6 us less than launching the kernel, from the call to the kernel's
 * first word in host memory (H200, driver 580). What the next launch will most likely have is set
 * while the kernel runs, in a second graph: to set what is launched may wait until it is over.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "device/cuda.h"
#include "device/runtimes.h"
#include "device/symbols.h"

/* CUDA_KERNEL_NODE_PARAMS_v2 of cuda.h. */
struct node_params {
    void    *function;
    unsigned grid[3], block[3], shared;
    void   **arguments, **extra;
    void    *kernel, *context; /* not looked at where there is a function */
};
_Static_assert((sizeof(void *) != 8) || (sizeof(struct node_params) == 72), "as in cuda.h");

/* Drivers before CUDA 12 lack some of them. */
#define GRAPH_FUNCTIONS(X)                                                                         \
    X(create, "cuGraphCreate", (void **, unsigned))                                                \
    X(add_kernel, "cuGraphAddKernelNode_v2",                                                       \
      (void **, void *, void *const *, size_t, const struct node_params *))                        \
    X(instantiate, "cuGraphInstantiateWithFlags", (void **, void *, unsigned long long))           \
    X(upload, "cuGraphUpload", (void *, void *))                                                   \
    X(set_kernel, "cuGraphExecKernelNodeSetParams_v2",                                             \
      (void *, void *, const struct node_params *))                                                \
    X(launch, "cuGraphLaunch", (void *, void *))                                                   \
    X(exec_destroy, "cuGraphExecDestroy", (void *))                                                \
    X(destroy, "cuGraphDestroy", (void *))

static struct {
#define FIELD(name, symbol, args) CUresult(*name) args;
    GRAPH_FUNCTIONS(FIELD)
#undef FIELD
} graph;

static const struct xc_symbol symbols[] = {
#define ROW(name, symbol, args) {symbol, offsetof(__typeof__(graph), name)},
    GRAPH_FUNCTIONS(ROW)
#undef ROW
};

struct repeat {
    void           *function, *graph, *node;
    void           *execs[2]; /* the second is there if a next launch may be told of */
    unsigned        turn;     /* of which is launched next */
    xcclStream_t    stream;
    pthread_mutex_t lock; /* an executable graph is no matter for two threads */
    bool            prepared;
    unsigned        grid[2], threads; /* of what is prepared */
    size_t          bytes;
    char            arguments[];
};

static bool available;

static void find_functions(void)
{
    static const char *const sonames[] = {"libcuda.so.1", NULL};
    const char              *missing;

    available = xc_symbols_open(sonames, true, symbols, sizeof(symbols) / sizeof(symbols[0]),
                                &graph, &missing);
}

static struct node_params params_of(void *function, const unsigned grid[2], unsigned threads,
                                    void **arguments)
{
    return (struct node_params){.function = function,
                                .grid = {grid[0], grid[1], 1},
                                .block = {threads, 1, 1},
                                .arguments = arguments};
}

static CUresult instantiate(struct repeat *r, void **exec_p)
{
    CUresult res = graph.instantiate(exec_p, r->graph, 0);

    return (res == CUDA_SUCCESS) ? graph.upload(*exec_p, r->stream) : res;
}

static xcclResult_t make(struct repeat *r, const void *arguments)
{
    const unsigned     one[2] = {1, 1};
    void              *list[] = {(void *)(uintptr_t)arguments};
    struct node_params params = params_of(r->function, one, 1, list);
    int                mode = xc_device_relax(&xc_cuda_ops);
    CUresult           res = graph.create(&r->graph, 0);

    if (res == CUDA_SUCCESS) {
        res = graph.add_kernel(&r->node, r->graph, NULL, 0, &params);
    }
    if (res == CUDA_SUCCESS) {
        res = instantiate(r, &r->execs[0]);
    }
    if ((res == CUDA_SUCCESS) && (r->bytes > 0)) {
        res = instantiate(r, &r->execs[1]);
    }
    xc_device_restore(&xc_cuda_ops, mode);
    return (res == CUDA_SUCCESS)
               ? xcclSuccess
               : xc_fail(xcclUnhandledCudaError, "no graph for a kernel (CUDA error %d)", (int)res);
}

xcclResult_t xc_cuda_repeat_create(void **repeat_p, void *function, const void *arguments,
                                   size_t bytes, xcclStream_t stream)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, find_functions);
    if (!available) {
        return xc_fail(xcclUnsupported, "this CUDA driver is too old for graphs of kernels");
    }
    struct repeat *r = calloc(1, sizeof(*r) + bytes);
    if (r == NULL) {
        return xc_fail(xcclSystemError, "out of memory");
    }
    r->function = function;
    r->stream = stream;
    r->bytes = bytes;
    pthread_mutex_init(&r->lock, NULL);
    xcclResult_t res = make(r, arguments);
    if (res == xcclSuccess) {
        *repeat_p = r;
    } else {
        xc_cuda_repeat_destroy(r);
    }
    return res;
}

void xc_cuda_repeat_destroy(void *repeat)
{
    struct repeat *r = repeat;
    int            mode = xc_device_relax(&xc_cuda_ops);

    for (int i = 0; i < 2; i++) {
        if (r->execs[i] != NULL) {
            graph.exec_destroy(r->execs[i]);
        }
    }
    if (r->graph != NULL) {
        graph.destroy(r->graph);
    }
    xc_device_restore(&xc_cuda_ops, mode);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

static CUresult set(struct repeat *r, const unsigned grid[2], unsigned threads,
                    const void *arguments)
{
    void              *list[] = {(void *)(uintptr_t)arguments};
    struct node_params params = params_of(r->function, grid, threads, list);

    return graph.set_kernel(r->execs[r->turn], r->node, &params);
}

static bool is_prepared(const struct repeat *r, const unsigned grid[2], unsigned threads,
                        const void *arguments)
{
    return r->prepared && (r->grid[0] == grid[0]) && (r->grid[1] == grid[1]) &&
           (r->threads == threads) && (memcmp(r->arguments, arguments, r->bytes) == 0);
}

/* Where that fails, the next launch sets it, and says so. */
static void prepare(struct repeat *r, const unsigned grid[2], unsigned threads, const void *next)
{
    r->turn = 1 - r->turn;
    r->prepared = (set(r, grid, threads, next) == CUDA_SUCCESS);
    r->grid[0] = grid[0];
    r->grid[1] = grid[1];
    r->threads = threads;
    memcpy(r->arguments, next, r->bytes);
}

xcclResult_t xc_cuda_repeat_launch(void *repeat, const unsigned grid[2], unsigned threads,
                                   const void *arguments, const void *next)
{
    struct repeat *r = repeat;
    CUresult       res = CUDA_SUCCESS;

    pthread_mutex_lock(&r->lock);
    if (!is_prepared(r, grid, threads, arguments)) {
        res = set(r, grid, threads, arguments);
    }
    if (res == CUDA_SUCCESS) {
        res = graph.launch(r->execs[r->turn], r->stream);
    }
    r->prepared = false;
    if ((res == CUDA_SUCCESS) && (next != NULL) && (r->bytes > 0)) {
        prepare(r, grid, threads, next);
    }
    pthread_mutex_unlock(&r->lock);
    return (res == CUDA_SUCCESS)
               ? xcclSuccess
               : xc_fail(xcclUnhandledCudaError, "cuGraphLaunch failed (CUDA error %d)%s", (int)res,
                         xc_crash_hint((int)res));
}
