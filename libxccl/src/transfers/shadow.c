/* SPDX-License-Identifier: BSD-3-Clause */
#include "transfers/shadow.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/params.h"
#include "comms/wait.h"
#include "data/pools.h"

/*
 * Bytes that are looked at together; and of equal ones between two that differ, at most so many are
 * copied to the device with them, with the contents that they have there.
 */
enum { CHUNK = 1 << 20, LOOK = 256, GAP = 64 };

struct xm_shadow {
    const struct xc_device_ops *dev;
    struct xc_mem_info          mem;
    size_t                      bytes;
    char *private;        /* the program's, on the device */
    char *public;         /* MPI's; others change it at any time */
    char           *last; /* what both had when they were exchanged last */
    pthread_mutex_t lock;
};

/* Pinned memory for a chunk of each, and the stream of the copies. */
struct work {
    struct xm_scratch scratch;
    xcclStream_t      stream;
    char             *mine; /* of the device */
    char             *both;
};

static size_t held; /* atomic: bytes of all shadows */

static size_t first_difference(const char *a, const char *b, size_t from, size_t end)
{
    while (from < end) {
        size_t n = (end - from < LOOK) ? end - from : LOOK;
        if (memcmp(a + from, b + from, n) != 0) {
            while (a[from] == b[from]) {
                from++;
            }
            return from;
        }
        from += n;
    }
    return end;
}

/* Of bytes that differ from `from` on, with at most `gap` equal ones in between. */
static size_t end_of_run(const char *a, const char *b, size_t from, size_t end, size_t gap)
{
    size_t behind = from + 1;

    for (size_t i = behind; (i < end) && (i - behind <= gap); i++) {
        if (a[i] != b[i]) {
            behind = i + 1;
        }
    }
    return behind;
}

/* What this process stored: no other byte of the public copy is written, it may just be put. */
static void publish(struct xm_shadow *s, size_t offset, size_t n, const char *mine, char *both)
{
    const char *last = s->last + offset;

    for (size_t i = 0; (i = first_difference(mine, last, i, n)) < n;) {
        size_t end = end_of_run(mine, last, i, n, 0);
        memcpy(s->public + offset + i, mine + i, end - i);
        memcpy(both + i, mine + i, end - i);
        i = end;
    }
}

/* What others put. Between two such stretches the device has what `both` has. */
static xcclResult_t take(struct xm_shadow *s, size_t offset, size_t n, const char *mine,
                         const struct work *w)
{
    xcclResult_t res = xcclSuccess;

    for (size_t i = 0; (res == xcclSuccess) && ((i = first_difference(w->both, mine, i, n)) < n);) {
        size_t end = end_of_run(w->both, mine, i, n, GAP);
        res = s->dev->copy_async(s->private + offset + i, w->both + i, end - i, w->stream);
        i = end;
    }
    return (res == xcclSuccess) ? xm_stream_wait(s->dev, w->stream) : res;
}

static xcclResult_t exchange_chunk(struct xm_shadow *s, size_t offset, size_t n, bool fetches,
                                   const struct work *w)
{
    const char  *mine = fetches ? s->last + offset : w->mine;
    xcclResult_t res = xcclSuccess;

    if (!fetches) {
        res = s->dev->copy_async(w->mine, s->private + offset, n, w->stream);
        res = (res == xcclSuccess) ? xm_stream_wait(s->dev, w->stream) : res;
    }
    if (res != xcclSuccess) {
        return res;
    }
    memcpy(w->both, s->public + offset, n);
    if (!fetches) {
        publish(s, offset, n, mine, w->both);
    }
    res = take(s, offset, n, mine, w);
    memcpy(s->last + offset, w->both, n);
    return res;
}

static xcclResult_t begin_work(struct xm_shadow *s, struct work *w)
{
    void *at;

    xm_scratch_begin(&w->scratch, s->dev, s->mem.device);
    xcclResult_t res = xm_copy_stream(s->dev, s->mem.device, &w->stream);
    for (int i = 0; (i < 2) && (res == xcclSuccess); i++) {
        res = xm_scratch_take(&w->scratch, XM_POOL_HOST, CHUNK, &at);
        *((i == 0) ? &w->mine : &w->both) = at;
    }
    if ((res == xcclSuccess) && !s->mem.synchronous) { /* as in every copy: stream_after_default */
        bool made = s->dev->mem_make_synchronous(s->private);
        res = s->dev->stream_after_default(w->stream);
        s->mem.synchronous = made && (res == xcclSuccess);
    }
    return res;
}

/* With the device entered. */
static xcclResult_t exchange_all(struct xm_shadow *s, bool fetches)
{
    struct work  w;
    xcclResult_t res = begin_work(s, &w);

    for (size_t at = 0; (at < s->bytes) && (res == xcclSuccess); at += CHUNK) {
        size_t n = (s->bytes - at < CHUNK) ? s->bytes - at : CHUNK;
        res = exchange_chunk(s, at, n, fetches, &w);
    }
    if (res == xcclSuccess) { /* otherwise the device may still be using what was taken */
        xm_scratch_end(&w.scratch);
    }
    return res;
}

static xcclResult_t exchange(struct xm_shadow *s, bool fetches)
{
    void *saved;

    pthread_mutex_lock(&s->lock);
    xcclResult_t res = s->dev->enter(s->mem.device, &saved);
    if (res == xcclSuccess) {
        res = exchange_all(s, fetches);
        s->dev->leave(saved);
    }
    pthread_mutex_unlock(&s->lock);
    return res;
}

xcclResult_t xm_shadow_exchange(struct xm_shadow *shadow)
{
    return exchange(shadow, false);
}

xcclResult_t xm_shadow_fetch(struct xm_shadow *shadow)
{
    return exchange(shadow, true);
}

char *xm_shadow_public(const struct xm_shadow *shadow)
{
    return shadow->public;
}

char *xm_shadow_private(const struct xm_shadow *shadow)
{
    return shadow->private;
}

/* Two copies of it; false: they are too much. */
static bool reserve(size_t bytes)
{
    size_t most = (size_t)xc_params()->staging << 20;
    size_t all = __atomic_add_fetch(&held, 2 * bytes, __ATOMIC_ACQ_REL);

    if (all > most) {
        __atomic_sub_fetch(&held, 2 * bytes, __ATOMIC_ACQ_REL);
        xc_fail(xcclUnsupported,
                "a window of %zu bytes of device memory takes twice that of host memory, and with "
                "other windows more than %ld MiB (XCCL_STAGING)",
                bytes, xc_params()->staging);
        return false;
    }
    return true;
}

xcclResult_t xm_shadow_make(const struct xm_buffer *buffer, struct xm_shadow **shadow_p)
{
    size_t            bytes = (size_t)buffer->bytes;
    xcclResult_t      res = xcclSystemError;
    struct xm_shadow *s = calloc(1, sizeof(*s));

    if (s == NULL) {
        return xc_fail(res, "out of memory for a window");
    }
    if (!reserve(bytes)) {
        free(s);
        return xcclUnsupported;
    }
    s->dev = xc_device_active();
    s->mem = buffer->mem;
    s->bytes = bytes;
    s->private = buffer->buf + buffer->low;
    /* All zeros, so what differs from that is taken from the device. */
    s->public = calloc(bytes, 1);
    s->last = calloc(bytes, 1);
    pthread_mutex_init(&s->lock, NULL);
    if ((s->public == NULL) || (s->last == NULL)) {
        xc_fail(res, "out of memory for a window of %zu bytes", bytes);
    } else {
        res = xm_shadow_exchange(s);
    }
    if (res == xcclSuccess) {
        *shadow_p = s;
    } else {
        xm_shadow_free(s);
    }
    return res;
}

void xm_shadow_free(struct xm_shadow *shadow)
{
    __atomic_sub_fetch(&held, 2 * shadow->bytes, __ATOMIC_ACQ_REL);
    pthread_mutex_destroy(&shadow->lock);
    free(shadow->public);
    free(shadow->last);
    free(shadow);
}
