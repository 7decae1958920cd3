/* SPDX-License-Identifier: BSD-3-Clause */
/* Host memory that stands for a device's, where jobs are done at once and kernels are there. */
#ifndef XT_HOST_ARENA_H
#define XT_HOST_ARENA_H

#include <stdlib.h>
#include <string.h>

#include "comms/wait.h"
#include "data/mappings.h"
#include "direct/arena.h"

/* Number of the last operation; a device whose memory nobody maps, and one that is not there. */
enum { LAST = 1000, NOT_SHARED = 8, NO_DEVICE = 9 };

static int host_device_entered;
static int queues, cleared, blocks, mapped;

static bool           hold_jobs; /* until the test runs it */
static struct xm_job *held_job;

xcclResult_t xm_worker_start(struct xm_job *job)
{
    if (hold_jobs) {
        CHECK(held_job == NULL, "one job at a time");
        held_job = job;
    } else {
        job->run(job);
    }
    return xcclSuccess;
}

struct xm_kernels *xm_collective_kernels_of(const struct xc_device_ops *dev, int device)
{
    static int kernels;

    (void)dev;
    (void)device;
    return (struct xm_kernels *)(void *)&kernels;
}

bool xm_collective_kernels_failed(const struct xc_device_ops *dev, int device)
{
    (void)dev;
    (void)device;
    return false;
}

/* Blocks that a device has room for, and whether it runs several processes at once. */
static unsigned room;
static bool     at_once;

unsigned xm_kernels_room(const struct xm_kernels *k)
{
    (void)k;
    return at_once ? room : 0;
}

static bool runs_processes_at_once(int device)
{
    (void)device;
    return at_once;
}

uint32_t xm_kernels_last_number(const struct xm_kernels *k)
{
    (void)k;
    return LAST;
}

uint64_t xm_now_ns(void)
{
    return 0;
}

static xcclResult_t host_count(int *count_p)
{
    *count_p = 1;
    return xcclSuccess;
}

static xcclResult_t host_enter(int device, void **saved_p)
{
    *saved_p = NULL;
    host_device_entered = device;
    return (device != NO_DEVICE) ? xcclSuccess : xcclSystemError;
}

static void host_leave(void *saved)
{
    (void)saved;
}

xcclResult_t xm_kernel_queue_create(struct xm_kernels *k, struct xm_kernel_queue *q)
{
    (void)k;
    *q = (struct xm_kernel_queue){.stream = (xcclStream_t)malloc(1)};
    queues++;
    return xcclSuccess;
}

void xm_kernel_queue_destroy(struct xm_kernels *k, struct xm_kernel_queue *q)
{
    (void)k;
    free((void *)q->stream);
    queues--;
}

static xcclResult_t stream_sync(xcclStream_t stream)
{
    (void)stream;
    return xcclSuccess;
}

static xcclResult_t set_async(void *to, int byte, size_t bytes, xcclStream_t stream)
{
    (void)stream;
    memset(to, byte, bytes);
    cleared++;
    return xcclSuccess;
}

static xcclResult_t alloc(void **ptr_p, size_t bytes)
{
    *ptr_p = malloc(bytes);
    blocks++;
    return xcclSuccess;
}

static xcclResult_t release(void *ptr)
{
    free(ptr);
    blocks--;
    return xcclSuccess;
}

static xcclResult_t ipc_export(const void *ptr, struct xc_ipc *ipc)
{
    *ipc = (struct xc_ipc){.base = (uint64_t)(uintptr_t)ptr};
    return (host_device_entered != NOT_SHARED) ? xcclSuccess
                                               : xc_fail(xcclUnsupported, "it cannot be shared");
}

/* Something lies where this would be, and so many questions later it is unmapped. */
static uint64_t in_the_way;
static int      goes_after;

bool xm_mappings_make_way(const struct xc_device_ops *dev, const struct xc_ipc *ipc)
{
    (void)dev;
    return (ipc->base == in_the_way) && (goes_after-- > 0);
}

static xcclResult_t ipc_open(const struct xc_ipc *ipc, void **ptr_p)
{
    if ((ipc->base == in_the_way) && (goes_after > 0)) {
        return xcclInProgress;
    }
    *ptr_p = (void *)(uintptr_t)ipc->base;
    mapped += (ipc->base != 0);
    return (ipc->base != 0) ? xcclSuccess : xc_fail(xcclUnhandledCudaError, "out of reach");
}

static xcclResult_t ipc_close(void *base)
{
    (void)base;
    mapped--;
    return xcclSuccess;
}

static xcclResult_t uuid_of(int device, unsigned char uuid[XC_DEVICE_UUID_BYTES])
{
    memset(uuid, device, XC_DEVICE_UUID_BYTES);
    return xcclSuccess;
}

static const struct xc_device_ops host_device = {
    .runs_processes_at_once = runs_processes_at_once,
    .name = "host",
    .count = host_count,
    .enter = host_enter,
    .leave = host_leave,
    .stream_sync = stream_sync,
    .set_async = set_async,
    .mem_alloc = alloc,
    .mem_free = release,
    .host_alloc = alloc,
    .host_free = release,
    .ipc_export = ipc_export,
    .ipc_open = ipc_open,
    .ipc_close = ipc_close,
    .uuid_of = uuid_of,
};

#endif
