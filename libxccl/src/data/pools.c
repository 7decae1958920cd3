/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/pools.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/log.h"
#include "base/params.h"
#include "comms/wait.h"
#include "data/events.h"
#include "data/idle.h"
#include "data/outstanding.h"
#include "data/pages.h"

/*
 * Idle blocks beyond this many bytes a pool are freed rather than kept: it is the program's memory.
 * Of host memory, which takes longest to get, that is so once they have been idle for a while: a
 * program that exchanges GiB does so again.
 */
static const size_t keep_bytes = (size_t)256 << 20;
enum { KEEP_MS = 10 * 1000 };
/* Of these only addresses are taken. */
static const size_t keep_lazy_bytes = (size_t)4 << 30;
/* Less is not worth an allocation of its own. A block of this size is for any smaller one. */
static const size_t least_bytes = (size_t)1 << 16;
/* But of pinned memory there is little, and each of many small messages under way has a block. */
static const size_t least_pinned = (size_t)1 << 12;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t          pinned; /* bytes of pinned memory, idle or in use */
bool                   xm_pools_hold_much;

enum { STREAMS_OF_DEVICE = 2, MAX_STREAMS = 64 * STREAMS_OF_DEVICE };
static struct {
    const struct xc_device_ops *dev;
    int                         device, which;
    unsigned                    resets; /* of the device before it was made */
    xcclStream_t                stream;
} streams[MAX_STREAMS];
static int num_streams;

/* With the lock held; num_streams: there is none. */
static int find_stream(const struct xc_device_ops *dev, int device, int which)
{
    int i = 0;

    while ((i < num_streams) && ((streams[i].dev != dev) || (streams[i].device != device) ||
                                 (streams[i].which != which))) {
        i++;
    }
    return i;
}

void xm_scratch_begin(struct xm_scratch *scratch, const struct xc_device_ops *dev, int device)
{
    scratch->dev = dev;
    scratch->device = device;
    scratch->count = 0;
    scratch->filled = false;
    scratch->ordered = false;
    scratch->beyond = false;
}

void xm_scratch_begin_ordered(struct xm_scratch *scratch, const struct xc_device_ops *dev,
                              int device)
{
    xm_scratch_begin(scratch, dev, device);
    scratch->ordered = true;
}

static size_t least_of(enum xm_pool pool)
{
    return (pool == XM_POOL_HOST) ? least_pinned : least_bytes;
}

/* A block has room for so much, without wasting more than three quarters of what counts. */
static size_t most_for(size_t bytes)
{
    size_t most = (bytes < SIZE_MAX / 4) ? 4 * bytes + 3 : SIZE_MAX;

    return (most > least_bytes) ? most : least_bytes;
}

/* With the lock held. What the program's reset of the device took along is not the driver's. */
static void forget_lost(const struct xc_device_ops *dev, int device, unsigned resets)
{
    enum { DEVICES = 64 };
    static unsigned            forgotten[DEVICES]; /* resets that this was done for */
    struct xm_block_of_memory *b;

    if ((device < 0) || (device >= DEVICES) || (forgotten[device] == resets)) {
        return;
    }
    forgotten[device] = resets;
    while ((b = xm_idle_take_lost(dev, device, resets)) != NULL) {
        pinned -= (b->pool == XM_POOL_HOST) ? b->bytes : 0;
        if (b->mapped) {
            xm_pages_unmap(b->ptr, b->bytes);
        }
        free(b);
    }
}

static struct xm_block_of_memory *reuse(const struct xm_scratch *scratch, enum xm_pool pool,
                                        size_t bytes)
{
    unsigned resets = xc_device_resets(scratch->dev, scratch->device, false);

    forget_lost(scratch->dev, scratch->device, resets);
    return xm_idle_take(scratch->dev, scratch->device, resets, pool, bytes, most_for(bytes),
                        scratch->ordered);
}

/* One call of the driver's, on a thread; waits: it may wait for the device. */
struct driver_call {
    struct xm_job              job;
    struct xm_block_of_memory *block;
    bool                       waits;
    xcclResult_t               result;
    char                       detail[256];
};

static void free_block(struct xm_block_of_memory *b);

/*
 * Idle blocks of a device that is full. Freeing waits for what runs there, which may wait for the
 * rank that waits here for memory: then they stay.
 */
static bool free_idle(void)
{
    struct xm_block_of_memory *idle = NULL, *b;

    if (!xm_alone_try()) {
        return false;
    }
    pthread_mutex_lock(&lock);
    while ((b = xm_idle_take_oldest(XM_POOL_DEVICE)) != NULL) {
        b->older = idle;
        idle = b;
    }
    pthread_mutex_unlock(&lock);
    bool any = (idle != NULL);
    while (idle != NULL) {
        b = idle;
        idle = b->older;
        free_block(b);
    }
    xm_alone_end();
    return any;
}

static bool map(struct xm_block_of_memory *b)
{
    b->ptr = (b->bytes % XM_PAGES_HUGE == 0) ? xm_pages_map(b->bytes) : NULL;
    b->mapped = (b->ptr != NULL);
    return b->mapped;
}

static void unmap(struct xm_block_of_memory *b)
{
    xm_pages_unmap(b->ptr, b->bytes);
    b->mapped = false;
}

static xcclResult_t ask_for_pinned(struct xm_block_of_memory *b)
{
    if ((b->dev->host_pin != NULL) && map(b)) {
        if (b->dev->host_pin(b->ptr, b->bytes) == xcclSuccess) {
            return xcclSuccess;
        }
        unmap(b);
    }
    return b->dev->host_alloc(&b->ptr, b->bytes);
}

static xcclResult_t ask_for(struct xm_block_of_memory *b)
{
    return (b->pool == XM_POOL_HOST) ? ask_for_pinned(b) : b->dev->mem_alloc(&b->ptr, b->bytes);
}

static void run_allocate(struct xm_job *job)
{
    struct driver_call        *call = (struct driver_call *)job;
    struct xm_block_of_memory *b = call->block;
    void                      *saved;

    call->result = b->dev->enter(b->device, &saved);
    if (call->result == xcclSuccess) {
        b->resets = xc_device_resets(b->dev, b->device, false);
        call->result = ask_for(b);
        if ((call->result != xcclSuccess) && call->waits && free_idle()) {
            call->result = ask_for(b);
        }
        b->dev->leave(saved);
    }
    if (call->result != xcclSuccess) {
        snprintf(call->detail, sizeof(call->detail), "%s", xc_last_detail());
    }
}

static void free_block_later(struct xm_block_of_memory *b);

static void free_all(struct xm_block_of_memory *dropped)
{
    while (dropped != NULL) {
        struct xm_block_of_memory *b = dropped;
        dropped = b->older;
        free_block_later(b);
    }
}

static void push(struct xm_block_of_memory *b, struct xm_block_of_memory **list)
{
    b->older = *list;
    *list = b;
}

/* Idle pinned blocks give way to one of a size that they do not fit. */
static void drop_idle_pinned(void)
{
    struct xm_block_of_memory *dropped = NULL, *kept = NULL, *b;

    pthread_mutex_lock(&lock);
    while ((b = xm_idle_take_oldest(XM_POOL_HOST)) != NULL) {
        push(b, b->pageable ? &kept : &dropped);
        pinned -= b->pageable ? 0 : b->bytes;
    }
    while (kept != NULL) {
        b = kept;
        kept = b->older;
        xm_idle_add(b);
    }
    pthread_mutex_unlock(&lock);
    free_all(dropped);
}

/* Does so much more pinned memory stay within XCCL_STAGING, or may it exceed that? It is counted
 * then. */
static bool may_pin(size_t bytes, bool beyond)
{
    static bool said;
    size_t      most = (size_t)xc_params()->staging << 20;

    for (int attempt = 0; attempt < 2; attempt++) {
        pthread_mutex_lock(&lock);
        bool within = beyond || ((bytes <= most) && (pinned <= most - bytes));
        pinned += within ? bytes : 0;
        pthread_mutex_unlock(&lock);
        if (within) {
            return true;
        }
        drop_idle_pinned();
    }
    if (!__atomic_exchange_n(&said, true, __ATOMIC_RELAXED)) {
        xc_info("staging needs more than %ld MiB of pinned memory (XCCL_STAGING): the rest is "
                "ordinary memory, which is slower",
                xc_params()->staging);
    }
    return false;
}

static void unpin(size_t bytes)
{
    pthread_mutex_lock(&lock);
    pinned -= bytes;
    pthread_mutex_unlock(&lock);
}

/* By the driver, on a thread. */
static xcclResult_t ask_driver(struct xm_block_of_memory *b, bool here)
{
    struct driver_call call = {
        .job = {.run = run_allocate}, .block = b, .waits = !here && (b->pool == XM_POOL_DEVICE)};
    xcclResult_t res = xcclSuccess;

    if (here) {
        run_allocate(&call.job);
    } else {
        res = xm_offload(&call.job, "for memory from the driver");
    }
    if ((res == xcclSuccess) && (call.result != xcclSuccess)) {
        res = xc_fail(call.result, "%s", call.detail); /* found by another thread */
    }
    return res;
}

static xcclResult_t map_lazily(struct xm_block_of_memory *b)
{
    b->ptr = xm_pages_map_lazily(b->bytes);
    return (b->ptr != NULL) ? xcclSuccess : xc_fail(xcclSystemError, "out of memory");
}

static xcclResult_t ask_for_ordinary(struct xm_block_of_memory *b)
{
    b->pageable = true;
    if (!map(b)) {
        b->ptr = malloc(b->bytes);
    }
    return (b->ptr != NULL) ? xcclSuccess : xc_fail(xcclSystemError, "out of memory");
}

/* Sizes in powers of two fit more calls; large ones would waste too much. */
static size_t bytes_for(enum xm_pool pool, size_t bytes)
{
    size_t rounded = least_of(pool);

    if (bytes > keep_bytes / 4) {
        size_t over = bytes % XM_PAGES_HUGE;
        return ((over > 0) && (bytes <= SIZE_MAX - XM_PAGES_HUGE)) ? bytes - over + XM_PAGES_HUGE
                                                                   : bytes;
    }
    while (rounded < bytes) {
        rounded *= 2;
    }
    return rounded;
}

static xcclResult_t allocate(const struct xm_scratch *scratch, enum xm_pool pool, size_t bytes,
                             struct xm_block_of_memory **block_p)
{
    struct xm_block_of_memory *b = calloc(1, sizeof(*b));

    if (b == NULL) {
        return xc_fail(xcclSystemError, "out of memory");
    }
    b->dev = scratch->dev;
    b->device = scratch->device;
    b->pool = pool;
    b->bytes = bytes_for(pool, bytes);
    xcclResult_t res = xcclSystemError;
    if (pool == XM_POOL_LAZY) {
        res = map_lazily(b);
    } else if (pool == XM_POOL_DEVICE) {
        res = ask_driver(b, scratch->ordered);
    } else if ((pool == XM_POOL_HOST) && may_pin(b->bytes, scratch->beyond)) {
        res = ask_driver(b, scratch->ordered);
        if (res != xcclSuccess) {
            unpin(b->bytes);
            xc_info("no %zu bytes of pinned memory; staging through ordinary memory", b->bytes);
        }
    }
    if ((res != xcclSuccess) && (pool == XM_POOL_HOST) && scratch->beyond) {
        xc_fail(res, "no %zu bytes of pinned memory; raise the limit of locked memory (ulimit -l)",
                b->bytes);
    } else if ((res != xcclSuccess) && (pool == XM_POOL_HOST) && scratch->ordered) {
        xc_fail(res, "staging needs more than %ld MiB of pinned memory; set XCCL_STAGING to more",
                xc_params()->staging);
    } else if ((res != xcclSuccess) && (pool == XM_POOL_HOST)) {
        res = ask_for_ordinary(b);
    }
    if (res != xcclSuccess) {
        free(b);
        return res;
    }
    *block_p = b;
    return xcclSuccess;
}

bool xm_scratch_reuse(struct xm_scratch *scratch, enum xm_pool pool, size_t bytes, void **ptr_p,
                      xcclStream_t *stream_p)
{
    struct xm_block_of_memory *b = NULL;

    bytes = (bytes > least_of(pool)) ? bytes : least_of(pool);
    unsigned resets = xc_device_resets(scratch->dev, scratch->device, false);
    pthread_mutex_lock(&lock);
    int i = find_stream(scratch->dev, scratch->device, 0);
    if ((i < num_streams) && (streams[i].resets == resets)) {
        *stream_p = streams[i].stream;
        b = reuse(scratch, pool, bytes);
    }
    pthread_mutex_unlock(&lock);
    if (b == NULL) {
        return false;
    }
    scratch->blocks[scratch->count++] = b;
    *ptr_p = b->ptr;
    return true;
}

xcclResult_t xm_scratch_take(struct xm_scratch *scratch, enum xm_pool pool, size_t bytes,
                             void **ptr_p)
{
    if (scratch->count == XM_SCRATCH_MAX) {
        return xc_fail(xcclInternalError, "a call took more than %d scratch blocks",
                       XM_SCRATCH_MAX);
    }
    bytes = (bytes > least_of(pool)) ? bytes : least_of(pool); /* as allocate() makes them */
    pthread_mutex_lock(&lock);
    struct xm_block_of_memory *b = reuse(scratch, pool, bytes);
    pthread_mutex_unlock(&lock);
    if (b == NULL) {
        xcclResult_t res = allocate(scratch, pool, bytes, &b);
        if (res != xcclSuccess) {
            return res;
        }
    }
    scratch->blocks[scratch->count++] = b;
    *ptr_p = b->ptr;
    return xcclSuccess;
}

xcclResult_t xm_scratch_take_device(struct xm_scratch *scratch, size_t bytes, void **ptr_p)
{
    bool         beyond = scratch->beyond;
    xcclResult_t res = xm_scratch_take(scratch, XM_POOL_DEVICE, bytes, ptr_p);

    if ((res != xcclSuccess) && scratch->ordered) {
        char why[256];
        snprintf(why, sizeof(why), "%s", xc_last_detail());
        scratch->beyond = true;
        res = xm_scratch_take(scratch, XM_POOL_HOST, bytes, ptr_p);
        scratch->beyond = beyond;
        if (res != xcclSuccess) {
            return xc_fail(res, "no %zu bytes of device memory, nor of pinned memory: %s", bytes,
                           why);
        }
        xc_info("no %zu bytes of device memory for an enqueued call (%s): pinned memory takes its "
                "place, which is slower",
                bytes, why);
    }
    return res;
}

/* With its device entered. */
static void give_to_driver(struct xm_block_of_memory *b)
{
    if (b->mapped) {
        b->dev->host_unpin(b->ptr);
    } else if (b->pool == XM_POOL_HOST) {
        b->dev->host_free(b->ptr);
    } else {
        b->dev->mem_free(b->ptr);
    }
}

static void free_block(struct xm_block_of_memory *b)
{
    void *saved;

    if (xm_block_is_drivers(b) && xc_device_enter_kept(b->dev, b->device, b->resets, &saved)) {
        give_to_driver(b);
        b->dev->leave(saved);
    }
    if (b->mapped || (b->pool == XM_POOL_LAZY)) {
        xm_pages_unmap(b->ptr, b->bytes);
    } else if (b->pageable) {
        free(b->ptr);
    }
    free(b);
}

/* Freeing waits for the device; nobody waits for it. */
struct later {
    struct xm_alone_job        job; /* first */
    struct xm_block_of_memory *block;
};

static void run_free(struct xm_alone_job *job)
{
    struct later *later = (struct later *)job;

    free_block(later->block);
    free(later);
}

static void free_block_later(struct xm_block_of_memory *b)
{
    struct later *later = xm_block_is_drivers(b) ? calloc(1, sizeof(*later)) : NULL;

    if (later != NULL) {
        later->job.run = run_free;
        later->block = b;
        if (xm_alone_start(&later->job) == xcclSuccess) {
            return;
        }
        free(later);
    }
    free_block(b);
}

static uint64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* How much of the pool may be idle at all. */
static size_t most_idle(enum xm_pool pool)
{
    size_t staging = (size_t)xc_params()->staging << 20;

    if (pool == XM_POOL_LAZY) {
        return keep_lazy_bytes;
    }
    return ((pool == XM_POOL_HOST) && (staging > keep_bytes)) ? staging : keep_bytes;
}

/* With the lock held. A block of the pool that is to be freed, or NULL. */
static struct xm_block_of_memory *surplus(enum xm_pool pool)
{
    size_t idle = xm_idle_bytes(pool);

    if (idle > most_idle(pool)) {
        return xm_idle_take_oldest(pool);
    }
    if ((pool != XM_POOL_HOST) || (idle <= keep_bytes)) {
        return NULL;
    }
    return (now_ms() - xm_idle_oldest(pool)->when_ms >= KEEP_MS) ? xm_idle_take_oldest(pool) : NULL;
}

static void drop(struct xm_block_of_memory *b, struct xm_block_of_memory **dropped_p)
{
    if ((b->pool == XM_POOL_HOST) && !b->pageable) {
        pinned -= b->bytes;
    }
    push(b, dropped_p);
}

static void look_at_host(void)
{
    __atomic_store_n(&xm_pools_hold_much, xm_idle_bytes(XM_POOL_HOST) > keep_bytes,
                     __ATOMIC_RELAXED);
}

/*
 * It is idle from now on. What has been so for long, of sizes that the program has left behind,
 * makes room: *dropped_p.
 */
static void retire(struct xm_block_of_memory *b, bool filled, struct xm_block_of_memory **dropped_p)
{
    enum xm_pool pool = b->pool;
    bool lost = xm_block_is_drivers(b) && (xc_device_resets(b->dev, b->device, false) != b->resets);

    if (lost || (b->bytes > most_idle(pool)) || ((pool == XM_POOL_LAZY) && filled)) {
        drop(b, dropped_p);
    } else {
        b->when_ms = now_ms();
        xm_idle_add(b);
    }
    while ((b = surplus(pool)) != NULL) {
        drop(b, dropped_p);
    }
    look_at_host();
}

void xm_pools_age_now(void)
{
    struct xm_block_of_memory *dropped = NULL, *b;

    pthread_mutex_lock(&lock);
    while ((b = surplus(XM_POOL_HOST)) != NULL) {
        drop(b, &dropped);
    }
    look_at_host();
    pthread_mutex_unlock(&lock);
    free_all(dropped);
}

void xm_scratch_trim(struct xm_scratch *scratch, int count)
{
    struct xm_block_of_memory *dropped = NULL;

    if (scratch->count <= count) {
        return;
    }
    pthread_mutex_lock(&lock);
    for (int i = count; i < scratch->count; i++) {
        retire(scratch->blocks[i], scratch->filled, &dropped);
    }
    pthread_mutex_unlock(&lock);
    scratch->count = count;
    free_all(dropped);
}

void xm_scratch_end(struct xm_scratch *scratch)
{
    xm_scratch_trim(scratch, 0);
}

static xcclResult_t copy_stream(const struct xc_device_ops *dev, int device, int which,
                                xcclStream_t *stream_p)
{
    xcclResult_t res = xcclSuccess;
    unsigned     resets = xc_device_resets(dev, device, false);

    pthread_mutex_lock(&lock);
    int i = find_stream(dev, device, which);
    if (i == MAX_STREAMS) {
        res = xc_fail(xcclInternalError, "more than %d devices in one process",
                      MAX_STREAMS / STREAMS_OF_DEVICE);
    } else if ((i == num_streams) || (streams[i].resets != resets)) {
        res = dev->stream_create(&streams[i].stream);
        if (res == xcclSuccess) {
            streams[i].dev = dev;
            streams[i].device = device;
            streams[i].which = which;
            streams[i].resets = resets;
            num_streams += (i == num_streams);
        }
    }
    if (res == xcclSuccess) {
        *stream_p = streams[i].stream;
    }
    pthread_mutex_unlock(&lock);
    return res;
}

xcclResult_t xm_copy_stream(const struct xc_device_ops *dev, int device, xcclStream_t *stream_p)
{
    return copy_stream(dev, device, 0, stream_p);
}

xcclResult_t xm_next_copy_stream(const struct xc_device_ops *dev, int device,
                                 xcclStream_t *stream_p)
{
    static unsigned turn; /* atomic */

    return copy_stream(dev, device,
                       (int)(__atomic_fetch_add(&turn, 1, __ATOMIC_RELAXED) % STREAMS_OF_DEVICE),
                       stream_p);
}

/* Nothing of it is in use any more. */
void xm_memory_finalize(void)
{
    void *saved;

    xm_events_finalize();
    for (int pool = 0; pool < XM_NUM_POOLS; pool++) {
        struct xm_block_of_memory *b;
        while ((b = xm_idle_take_oldest((enum xm_pool)pool)) != NULL) {
            pinned -= ((pool == XM_POOL_HOST) && !b->pageable) ? b->bytes : 0;
            free_block(b);
        }
    }
    for (int i = 0; i < num_streams; i++) {
        if (xc_device_enter_kept(streams[i].dev, streams[i].device, streams[i].resets, &saved)) {
            streams[i].dev->stream_destroy(streams[i].stream);
            streams[i].dev->leave(saved);
        }
    }
    num_streams = 0;
}
