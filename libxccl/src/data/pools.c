/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/pools.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/log.h"
#include "base/params.h"
#include "comms/wait.h"

struct block {
    const struct xc_device_ops *dev;
    int                         device;
    enum xm_pool                pool;
    size_t                      bytes;
    void                       *ptr;
    bool                        pageable; /* there was no pinned memory */
    unsigned                    resets;   /* of the device before it was made */
    struct block               *next;
};

/* Idle blocks beyond this many bytes a pool are freed rather than kept: it is the program's memory.
 */
static const size_t keep_bytes = (size_t)256 << 20;
/* Of these only addresses are taken. */
static const size_t keep_lazy_bytes = (size_t)4 << 30;
/* Less is not worth an allocation of its own. A block of this size is for any smaller one. */
static const size_t least_bytes = (size_t)1 << 16;
/* But of pinned memory there is little, and each of many small messages under way has a block. */
static const size_t least_pinned = (size_t)1 << 12;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block   *idle;
static size_t          idle_bytes[XM_NUM_POOLS];
static size_t          pinned; /* bytes of pinned memory, idle or in use */

enum { STREAMS_OF_DEVICE = 2, MAX_STREAMS = 64 * STREAMS_OF_DEVICE };
static struct {
    const struct xc_device_ops *dev;
    int                         device, which;
    unsigned                    resets; /* of the device before it was made; so of events */
    xcclStream_t                stream;
} streams[MAX_STREAMS];
static int num_streams;

enum { MAX_EVENTS = 256 };
static struct idle_event {
    const struct xc_device_ops *dev;
    int                         device;
    unsigned                    resets;
    void                       *event;
} events[MAX_EVENTS];
static int num_events;

void xm_scratch_begin(struct xm_scratch *scratch, const struct xc_device_ops *dev, int device)
{
    scratch->dev = dev;
    scratch->device = device;
    scratch->count = 0;
    scratch->filled = false;
    scratch->ordered = false;
}

void xm_scratch_begin_ordered(struct xm_scratch *scratch, const struct xc_device_ops *dev,
                              int device)
{
    xm_scratch_begin(scratch, dev, device);
    scratch->ordered = true;
}

/* Blocks come in powers of two, but for the largest: then none is smaller and fits. */
static bool is_best(struct block *const *at, size_t bytes)
{
    return (at != NULL) && ((*at)->bytes / 2 < bytes);
}

static size_t least_of(enum xm_pool pool)
{
    return (pool == XM_POOL_HOST) ? least_pinned : least_bytes;
}

/* Has it room for so much, without wasting more than three quarters of what counts? */
static bool fits(const struct block *b, size_t bytes)
{
    return (b->bytes >= bytes) && ((b->bytes <= least_bytes) || (b->bytes / 4 <= bytes));
}

static bool is_drivers(const struct block *b)
{
    return (b->pool != XM_POOL_LAZY) && !b->pageable;
}

/* With the lock held. What the program's reset of the device took along is not the driver's. */
static void forget_lost(const struct xm_scratch *scratch)
{
    unsigned now = xc_device_resets(scratch->dev, scratch->device, false);

    for (struct block **at = &idle; *at != NULL;) {
        struct block *b = *at;
        if ((b->dev == scratch->dev) && (b->device == scratch->device) && is_drivers(b) &&
            (b->resets != now)) {
            *at = b->next;
            idle_bytes[b->pool] -= b->bytes;
            pinned -= (b->pool == XM_POOL_HOST) ? b->bytes : 0;
            free(b);
        } else {
            at = &b->next;
        }
    }
}

/* The smallest idle block that fits. */
static struct block *reuse(const struct xm_scratch *scratch, enum xm_pool pool, size_t bytes)
{
    struct block **best = NULL;

    forget_lost(scratch);
    for (struct block **at = &idle; (*at != NULL) && !is_best(best, bytes); at = &(*at)->next) {
        struct block *b = *at;
        if ((b->dev == scratch->dev) && (b->device == scratch->device) && (b->pool == pool) &&
            fits(b, bytes) && !(scratch->ordered && b->pageable) &&
            ((best == NULL) || (b->bytes < (*best)->bytes))) {
            best = at;
        }
    }
    if (best == NULL) {
        return NULL;
    }
    struct block *found = *best;
    *best = found->next;
    idle_bytes[pool] -= found->bytes;
    return found;
}

/* One call of the driver's, on a thread. */
struct driver_call {
    struct xm_job job;
    struct block *block;
    xcclResult_t  result;
    char          detail[256];
};

static void run_allocate(struct xm_job *job)
{
    struct driver_call *call = (struct driver_call *)job;
    struct block       *b = call->block;
    void               *saved;

    call->result = b->dev->enter(b->device, &saved);
    if (call->result == xcclSuccess) {
        b->resets = xc_device_resets(b->dev, b->device, false);
        call->result = (b->pool == XM_POOL_HOST) ? b->dev->host_alloc(&b->ptr, b->bytes)
                                                 : b->dev->mem_alloc(&b->ptr, b->bytes);
        b->dev->leave(saved);
    }
    if (call->result != xcclSuccess) {
        snprintf(call->detail, sizeof(call->detail), "%s", xc_last_detail());
    }
}

static void free_block_later(struct block *b);

/* Idle pinned blocks give way to one of a size that they do not fit. */
static void drop_idle_pinned(void)
{
    struct block *dropped = NULL;

    pthread_mutex_lock(&lock);
    for (struct block **at = &idle; *at != NULL;) {
        struct block *b = *at;
        if ((b->pool == XM_POOL_HOST) && !b->pageable) {
            *at = b->next;
            b->next = dropped;
            dropped = b;
            idle_bytes[XM_POOL_HOST] -= b->bytes;
            pinned -= b->bytes;
        } else {
            at = &b->next;
        }
    }
    pthread_mutex_unlock(&lock);
    while (dropped != NULL) {
        struct block *b = dropped;
        dropped = b->next;
        free_block_later(b);
    }
}

/* Does so much more pinned memory stay within XCCL_STAGING? It is counted then. */
static bool may_pin(size_t bytes)
{
    static bool said;
    size_t      most = (size_t)xc_params()->staging << 20;

    for (int attempt = 0; attempt < 2; attempt++) {
        pthread_mutex_lock(&lock);
        bool within = (bytes <= most) && (pinned <= most - bytes);
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
static xcclResult_t ask_driver(struct block *b, bool here)
{
    struct driver_call call = {.job = {.run = run_allocate}, .block = b};
    xcclResult_t       res = xcclSuccess;

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

/* One page of it is written to: without huge ones, or that would clear 2 MiB. */
static xcclResult_t map_lazily(struct block *b)
{
    void *at = mmap(NULL, b->bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (at == MAP_FAILED) {
        return xc_fail(xcclSystemError, "out of memory");
    }
    madvise(at, b->bytes, MADV_NOHUGEPAGE);
    b->ptr = at;
    return xcclSuccess;
}

static xcclResult_t allocate(const struct xm_scratch *scratch, enum xm_pool pool, size_t bytes,
                             struct block **block_p)
{
    struct block *b = calloc(1, sizeof(*b));

    if (b == NULL) {
        return xc_fail(xcclSystemError, "out of memory");
    }
    b->dev = scratch->dev;
    b->device = scratch->device;
    b->pool = pool;
    /* Sizes in powers of two fit more calls; large ones would waste too much. */
    b->bytes = (bytes > keep_bytes / 4) ? bytes : least_of(pool);
    while (b->bytes < bytes) {
        b->bytes *= 2;
    }
    xcclResult_t res = xcclSystemError;
    if (pool == XM_POOL_LAZY) {
        res = map_lazily(b);
    } else if (pool == XM_POOL_DEVICE) {
        res = ask_driver(b, scratch->ordered);
    } else if ((pool == XM_POOL_HOST) && may_pin(b->bytes)) {
        res = ask_driver(b, scratch->ordered);
        if (res != xcclSuccess) {
            unpin(b->bytes);
            xc_info("no %zu bytes of pinned memory; staging through ordinary memory", b->bytes);
        }
    }
    if ((res != xcclSuccess) && (pool == XM_POOL_HOST) && scratch->ordered) {
        xc_fail(res, "staging needs more than %ld MiB of pinned memory; set XCCL_STAGING to more",
                xc_params()->staging);
    } else if ((res != xcclSuccess) && (pool == XM_POOL_HOST)) {
        b->ptr = malloc(b->bytes);
        b->pageable = true;
        res = (b->ptr != NULL) ? xcclSuccess : xc_fail(xcclSystemError, "out of memory");
    }
    if (res != xcclSuccess) {
        free(b);
        return res;
    }
    *block_p = b;
    return xcclSuccess;
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
    struct block *b = reuse(scratch, pool, bytes);
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

static void free_block(struct block *b)
{
    void *saved;

    if (b->pool == XM_POOL_LAZY) {
        munmap(b->ptr, b->bytes);
    } else if (b->pageable) {
        free(b->ptr);
    } else if (xc_device_enter_kept(b->dev, b->device, b->resets, &saved)) {
        if (b->pool == XM_POOL_HOST) {
            b->dev->host_free(b->ptr);
        } else {
            b->dev->mem_free(b->ptr);
        }
        b->dev->leave(saved);
    }
    free(b);
}

/* Freeing waits for the device; nobody waits for it. */
static void run_free(struct xm_job *job)
{
    struct driver_call *call = (struct driver_call *)job;

    free_block(call->block);
    free(call);
}

static void free_block_later(struct block *b)
{
    struct driver_call *call = is_drivers(b) ? calloc(1, sizeof(*call)) : NULL;

    if (call != NULL) {
        call->job.run = run_free;
        call->block = b;
        if (xm_worker_start(&call->job) == xcclSuccess) {
            return;
        }
        free(call);
    }
    free_block(b);
}

/* With the lock held: the block of this pool that has been idle for longest. */
static struct block *take_oldest(enum xm_pool pool)
{
    struct block **oldest = NULL;

    for (struct block **at = &idle; *at != NULL; at = &(*at)->next) {
        oldest = ((*at)->pool == pool) ? at : oldest;
    }
    if (oldest == NULL) {
        return NULL;
    }
    struct block *b = *oldest;
    *oldest = b->next;
    idle_bytes[pool] -= b->bytes;
    return b;
}

/*
 * It is idle from now on. What has been so for long, of sizes that the program has left behind,
 * makes room: *dropped_p.
 */
static void retire(struct block *b, bool filled, struct block **dropped_p)
{
    bool   lazy = (b->pool == XM_POOL_LAZY);
    size_t most = lazy ? keep_lazy_bytes : keep_bytes;

    if ((b->bytes <= most) && !(lazy && filled)) {
        b->next = idle;
        idle = b;
        idle_bytes[b->pool] += b->bytes;
        b = (idle_bytes[b->pool] > most) ? take_oldest(b->pool) : NULL;
    }
    while (b != NULL) {
        enum xm_pool pool = b->pool;
        if ((pool == XM_POOL_HOST) && !b->pageable) {
            pinned -= b->bytes;
        }
        b->next = *dropped_p;
        *dropped_p = b;
        b = (idle_bytes[pool] > most) ? take_oldest(pool) : NULL;
    }
}

void xm_scratch_end(struct xm_scratch *scratch)
{
    struct block *dropped = NULL;

    pthread_mutex_lock(&lock);
    for (int i = 0; i < scratch->count; i++) {
        retire(scratch->blocks[i], scratch->filled, &dropped);
    }
    pthread_mutex_unlock(&lock);
    scratch->count = 0;
    while (dropped != NULL) {
        struct block *b = dropped;
        dropped = b->next;
        free_block_later(b);
    }
}

static xcclResult_t copy_stream(const struct xc_device_ops *dev, int device, int which,
                                xcclStream_t *stream_p)
{
    xcclResult_t res = xcclSuccess;
    unsigned     resets = xc_device_resets(dev, device, false);

    pthread_mutex_lock(&lock);
    int i = 0;
    while ((i < num_streams) && ((streams[i].dev != dev) || (streams[i].device != device) ||
                                 (streams[i].which != which))) {
        i++;
    }
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

xcclResult_t xm_event_take(const struct xc_device_ops *dev, int device, void **event_p)
{
    void    *event = NULL;
    unsigned resets = xc_device_resets(dev, device, false);

    pthread_mutex_lock(&lock);
    for (int i = num_events - 1; (i >= 0) && (event == NULL); i--) {
        if ((events[i].dev == dev) && (events[i].device == device)) {
            event = (events[i].resets == resets) ? events[i].event : NULL;
            events[i] = events[--num_events];
        }
    }
    pthread_mutex_unlock(&lock);
    if (event == NULL) {
        return dev->event_create(event_p);
    }
    *event_p = event;
    return xcclSuccess;
}

void xm_event_give(const struct xc_device_ops *dev, int device, void *event)
{
    bool     kept = false;
    unsigned resets = xc_device_resets(dev, device, false);

    if (event == NULL) {
        return;
    }
    pthread_mutex_lock(&lock);
    if (num_events < MAX_EVENTS) {
        events[num_events++] = (struct idle_event){dev, device, resets, event};
        kept = true;
    }
    pthread_mutex_unlock(&lock);
    if (!kept) {
        dev->event_destroy(event);
    }
}

void xm_memory_finalize(void)
{
    void *saved;

    while (num_events > 0) {
        struct idle_event *e = &events[--num_events];
        if (xc_device_enter_kept(e->dev, e->device, e->resets, &saved)) {
            e->dev->event_destroy(e->event);
            e->dev->leave(saved);
        }
    }

    while (idle != NULL) {
        struct block *b = idle;
        idle = b->next;
        free_block(b);
    }
    memset(idle_bytes, 0, sizeof(idle_bytes));
    for (int i = 0; i < num_streams; i++) {
        if (xc_device_enter_kept(streams[i].dev, streams[i].device, streams[i].resets, &saved)) {
            streams[i].dev->stream_destroy(streams[i].stream);
            streams[i].dev->leave(saved);
        }
    }
    num_streams = 0;
}
