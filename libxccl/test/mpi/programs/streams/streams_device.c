/* SPDX-License-Identifier: BSD-3-Clause */
#include "streams_device.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support.h"

static bool is_cuda;

static struct {
    int (*stream_create)(void **, unsigned);
    int (*stream_destroy)(void *);
    int (*stream_sync)(void *);
    int (*copy_cuda)(uintptr_t, uintptr_t, size_t, void *);
    int (*copy_hip)(void *, const void *, size_t, int, void *);
    int (*host_func)(void *, void (*)(void *), void *);
    int (*pinned)(void **, size_t, unsigned);
    int (*pinned_free)(void *);
    int (*begin)(void *, int);
    int (*end)(void *, void **);
    int (*is_capturing)(void *, int *);
    int (*instantiate_cuda)(void **, void *, unsigned long long);
    int (*instantiate_hip)(void **, void *, void *, char *, size_t);
    int (*launch)(void *, void *);
    int (*exec_destroy)(void *);
    int (*graph_destroy)(void *);
} api;

static void must(int status, const char *what)
{
    if (status != 0) {
        fprintf(stderr, "rank %d: %s failed with status %d\n", mt_rank(), what, status);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

#define BIND(field, cuda, hip) (*(void **)&api.field = mt_driver(cuda, hip))

void ms_open(void)
{
    is_cuda = (strcmp(mt_runtime(), "cuda") == 0);
    BIND(stream_create, "cuStreamCreate", "hipStreamCreateWithFlags");
    BIND(stream_destroy, "cuStreamDestroy_v2", "hipStreamDestroy");
    BIND(stream_sync, "cuStreamSynchronize", "hipStreamSynchronize");
    BIND(copy_cuda, "cuMemcpyAsync", "hipMemcpyAsync");
    BIND(copy_hip, "cuMemcpyAsync", "hipMemcpyAsync");
    BIND(host_func, "cuLaunchHostFunc", "hipLaunchHostFunc");
    BIND(pinned, "cuMemHostAlloc", "hipHostMalloc");
    BIND(pinned_free, "cuMemFreeHost", "hipHostFree");
    BIND(begin, "cuStreamBeginCapture_v2", "hipStreamBeginCapture");
    BIND(end, "cuStreamEndCapture", "hipStreamEndCapture");
    BIND(is_capturing, "cuStreamIsCapturing", "hipStreamIsCapturing");
    BIND(instantiate_cuda, "cuGraphInstantiateWithFlags", "hipGraphInstantiate");
    BIND(instantiate_hip, "cuGraphInstantiateWithFlags", "hipGraphInstantiate");
    BIND(launch, "cuGraphLaunch", "hipGraphLaunch");
    BIND(exec_destroy, "cuGraphExecDestroy", "hipGraphExecDestroy");
    BIND(graph_destroy, "cuGraphDestroy", "hipGraphDestroy");
}

static void *make(unsigned flags)
{
    void *stream = NULL;

    must(api.stream_create(&stream, flags), "making a stream");
    return stream;
}

void *ms_stream_make(void)
{
    return make(1);
}

void *ms_blocking_stream_make(void)
{
    return make(0);
}

void ms_stream_free(void *stream)
{
    must(api.stream_destroy(stream), "destroying a stream");
}

void ms_sync(void *stream)
{
    must(api.stream_sync(stream), "synchronising a stream");
}

void ms_copy(void *stream, void *to, const void *from, size_t bytes)
{
    must(is_cuda ? api.copy_cuda((uintptr_t)to, (uintptr_t)from, bytes, stream)
                 : api.copy_hip(to, from, bytes, 4, stream),
         "copying on a stream");
}

static void doze(void *arg)
{
    const struct timespec time = {0, 1000000};

    (void)arg;
    nanosleep(&time, NULL);
}

void ms_delay(void *stream)
{
    must(api.host_func(stream, doze, NULL), "a host function");
}

static void stay(void *arg)
{
    const struct timespec time = {0, 100000};

    while (__atomic_load_n((bool *)arg, __ATOMIC_ACQUIRE)) {
        nanosleep(&time, NULL);
    }
}

void ms_hold(void *stream, bool *held)
{
    *held = true;
    must(api.host_func(stream, stay, held), "a host function");
}

void ms_let_go(bool *held)
{
    __atomic_store_n(held, false, __ATOMIC_RELEASE);
}

void *ms_pinned(size_t bytes)
{
    void *ptr = NULL;

    must(api.pinned(&ptr, bytes, 0), "allocating pinned memory");
    return ptr;
}

void ms_pinned_free(void *ptr)
{
    must(api.pinned_free(ptr), "freeing pinned memory");
}

void ms_capture_begin(void *stream, int mode)
{
    must(api.begin(stream, mode), "beginning a capture");
}

bool ms_capture_lasts(void *stream)
{
    enum { ACTIVE = 1, INVALIDATED = 2 };
    int status = INVALIDATED;

    must(api.is_capturing(stream, &status), "asking for a capture");
    return status == ACTIVE;
}

void *ms_capture_end(void *stream)
{
    void *graph = NULL, *exec = NULL;

    if ((api.end(stream, &graph) != 0) || (graph == NULL)) {
        return NULL;
    }
    must(is_cuda ? api.instantiate_cuda(&exec, graph, 0)
                 : api.instantiate_hip(&exec, graph, NULL, NULL, 0),
         "instantiating a graph");
    must(api.graph_destroy(graph), "destroying a graph");
    return exec;
}

void ms_launch(void *graph, void *stream)
{
    must(api.launch(graph, stream), "launching a graph");
}

void ms_graph_free(void *graph)
{
    must(api.exec_destroy(graph), "destroying a graph");
}
