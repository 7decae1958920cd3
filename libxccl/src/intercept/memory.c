/* SPDX-License-Identifier: BSD-3-Clause */
#include "intercept/memory.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/log.h"

struct block {
    const struct xc_device_ops *dev;
    int                         device;
    enum xm_pool                pool;
    size_t                      bytes;
    void                       *ptr;
    struct block               *next;
};

/* Idle blocks beyond this many bytes a pool are freed rather than kept: it is the program's memory.
 */
static const size_t keep_bytes = (size_t)256 << 20;
/* Less is not worth an allocation of its own. */
static const size_t least_bytes = (size_t)1 << 16;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block   *idle;
static size_t          idle_bytes[2];

enum { MAX_STREAMS = 64 };
static struct {
    const struct xc_device_ops *dev;
    int                         device;
    xcclStream_t                stream;
} streams[MAX_STREAMS];
static int num_streams;

void xm_scratch_begin(struct xm_scratch *scratch, const struct xc_device_ops *dev, int device)
{
    scratch->dev = dev;
    scratch->device = device;
    scratch->count = 0;
}

/* The smallest idle block that fits without wasting more than three quarters of it. */
static struct block *reuse(const struct xm_scratch *scratch, enum xm_pool pool, size_t bytes)
{
    struct block **best = NULL;

    for (struct block **at = &idle; *at != NULL; at = &(*at)->next) {
        struct block *b = *at;
        if ((b->dev == scratch->dev) && (b->device == scratch->device) && (b->pool == pool) &&
            (b->bytes >= bytes) && (b->bytes / 4 <= bytes) &&
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
    b->bytes = least_bytes;
    while (b->bytes < bytes) {
        b->bytes *= 2;
    }
    /* Sizes in powers of two fit more calls; large ones would waste too much. */
    if (b->bytes > keep_bytes / 4) {
        b->bytes = bytes;
    }
    xcclResult_t res = (pool == XM_POOL_HOST) ? b->dev->host_alloc(&b->ptr, b->bytes)
                                              : b->dev->mem_alloc(&b->ptr, b->bytes);
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
    bytes = (bytes > least_bytes) ? bytes : least_bytes; /* as allocate() makes them */
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

    if (b->dev->enter(b->device, &saved) == xcclSuccess) {
        if (b->pool == XM_POOL_HOST) {
            b->dev->host_free(b->ptr);
        } else {
            b->dev->mem_free(b->ptr);
        }
        b->dev->leave(saved);
    }
    free(b);
}

void xm_scratch_end(struct xm_scratch *scratch)
{
    for (int i = 0; i < scratch->count; i++) {
        struct block *b = scratch->blocks[i];
        pthread_mutex_lock(&lock);
        bool keep = (idle_bytes[b->pool] + b->bytes <= keep_bytes);
        if (keep) {
            b->next = idle;
            idle = b;
            idle_bytes[b->pool] += b->bytes;
        }
        pthread_mutex_unlock(&lock);
        if (!keep) {
            free_block(b);
        }
    }
    scratch->count = 0;
}

xcclResult_t xm_copy_stream(const struct xc_device_ops *dev, int device, xcclStream_t *stream_p)
{
    xcclResult_t res = xcclSuccess;

    pthread_mutex_lock(&lock);
    int i = 0;
    while ((i < num_streams) && ((streams[i].dev != dev) || (streams[i].device != device))) {
        i++;
    }
    if (i == MAX_STREAMS) {
        res = xc_fail(xcclInternalError, "more than %d devices in one process", MAX_STREAMS);
    } else if (i == num_streams) {
        res = dev->stream_create(&streams[i].stream);
        if (res == xcclSuccess) {
            streams[i].dev = dev;
            streams[i].device = device;
            num_streams++;
        }
    }
    if (res == xcclSuccess) {
        *stream_p = streams[i].stream;
    }
    pthread_mutex_unlock(&lock);
    return res;
}

void xm_memory_finalize(void)
{
    void *saved;

    while (idle != NULL) {
        struct block *b = idle;
        idle = b->next;
        free_block(b);
    }
    idle_bytes[XM_POOL_HOST] = idle_bytes[XM_POOL_DEVICE] = 0;
    for (int i = 0; i < num_streams; i++) {
        if (streams[i].dev->enter(streams[i].device, &saved) == xcclSuccess) {
            streams[i].dev->stream_destroy(streams[i].stream);
            streams[i].dev->leave(saved);
        }
    }
    num_streams = 0;
}
