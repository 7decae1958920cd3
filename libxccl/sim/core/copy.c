/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies and fills with the waiting that both runtimes document: an asynchronous copy from pageable
 * memory has taken the bytes when it returns, one to pageable memory has delivered them, and only
 * pinned memory makes it really asynchronous.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/graph.h"

#define STAGED_BYTES ((size_t)64 << 10) /* of a pageable copy that need not wait */

struct copy_work {
    void       *dst;
    const void *src;
    size_t      bytes;
    void       *staged; /* freed afterwards, or NULL */
};

static void run_copy(void *arg)
{
    struct copy_work *copy = arg;

    memmove(copy->dst, copy->src, copy->bytes);
    free(copy->staged);
    free(copy);
}

static bool pageable(const struct xs_range *range)
{
    return range->base == 0;
}

static enum xs_error enqueue_copy(struct xs_stream *stream, void *dst, const void *src,
                                  size_t bytes, bool stage)
{
    struct copy_work *copy = malloc(sizeof(*copy));
    enum xs_error     res = XS_OUT_OF_MEMORY;

    if (copy == NULL) {
        return XS_OUT_OF_MEMORY;
    }
    *copy = (struct copy_work){dst, src, bytes, NULL};
    xs_stream_pass(stream);
    if (stage && (xs_stream_capture(stream) == NULL)) { /* a graph reads it when it runs */
        copy->staged = malloc(bytes);
        if (copy->staged == NULL) {
            goto free_copy;
        }
        memcpy(copy->staged, src, bytes);
        copy->src = copy->staged;
    }
    res = xs_stream_enqueue(stream, run_copy, xs_copy_flat, copy);
    if (res == XS_OK) {
        return XS_OK;
    }
    free(copy->staged);
free_copy:
    free(copy);
    return res;
}

enum xs_error xs_copy_async(struct xs_stream *stream, void *dst, const void *src, size_t bytes)
{
    struct xs_range from;
    struct xs_range to;

    if (bytes == 0) {
        return XS_OK;
    }
    void       *real_dst = xs_mem_touch(dst, bytes, &to);
    const void *real_src = xs_mem_touch(src, bytes, &from);
    if ((real_dst == NULL) || (real_src == NULL)) {
        return XS_INVALID_VALUE;
    }
    if (xs_fault(XS_FAULT_COPY, NULL)) {
        return XS_OPERATING_SYSTEM;
    }
    enum xs_error res =
        enqueue_copy(stream, real_dst, real_src, bytes, pageable(&from) && !pageable(&to));
    if ((res == XS_OK) && pageable(&to) && (xs_stream_capture(stream) == NULL)) {
        xs_stream_sync(stream);
    }
    return res;
}

/* A little time, in which a program that forgot to wait sees that the bytes are not there. */
static void delay(void *arg)
{
    const struct timespec time = {0, 1000000};

    (void)arg;
    nanosleep(&time, NULL);
}

/*
 * The runtimes' synchronous calls wait only where the host could notice at once: a fill, a copy
 * within a device, and a copy from pageable memory that fits a staging buffer are under way when
 * the call returns, unless the memory says otherwise.
 */
static bool returns_early(const struct xs_range *to, const struct xs_range *from, size_t bytes)
{
    if (!xs_config()->early || (to->kind != XS_MEM_DEVICE) || to->sync_memops) {
        return false;
    }
    if ((from == NULL) || pageable(from)) {
        return (from == NULL) || (bytes <= STAGED_BYTES);
    }
    return (from->kind == XS_MEM_DEVICE) && !from->sync_memops;
}

enum xs_error xs_copy(struct xs_ctx *ctx, void *handle, void *dst, const void *src, size_t bytes)
{
    struct xs_stream *stream;
    struct xs_range   from;
    struct xs_range   to;

    if (bytes == 0) {
        return XS_OK;
    }
    enum xs_error res = xs_capture_guard();
    if (res == XS_OK) {
        res = xs_stream_get(ctx, handle, &stream);
    }
    if (res != XS_OK) {
        return res;
    }
    void       *real_dst = xs_mem_touch(dst, bytes, &to);
    const void *real_src = xs_mem_touch(src, bytes, &from);
    if ((real_dst == NULL) || (real_src == NULL)) {
        return XS_INVALID_VALUE;
    }
    if (returns_early(&to, &from, bytes)) {
        res = xs_call_async(stream, delay, NULL);
        return (res != XS_OK) ? res
                              : enqueue_copy(stream, real_dst, real_src, bytes, pageable(&from));
    }
    if (xs_stream_idle(stream)) { /* spares two thread switches */
        memmove(real_dst, real_src, bytes);
        return XS_OK;
    }
    res = enqueue_copy(stream, real_dst, real_src, bytes, false);
    if (res == XS_OK) {
        xs_stream_sync(stream);
    }
    return res;
}

static void copy_rows(const struct xs_copy_2d *rows)
{
    for (size_t i = 0; i < rows->height; i++) {
        memmove((char *)rows->dst + i * rows->dst_pitch,
                (const char *)rows->src + i * rows->src_pitch, rows->width);
    }
}

struct rows_work {
    struct xs_copy_2d rows;
    void             *staged; /* freed afterwards, or NULL */
};

static void run_rows(void *arg)
{
    struct rows_work *work = arg;

    copy_rows(&work->rows);
    free(work->staged);
    free(work);
}

/* Take the rows now, close together. */
static bool stage_rows(struct rows_work *work)
{
    struct xs_copy_2d taken = work->rows;

    work->staged = malloc(taken.width * taken.height);
    if (work->staged == NULL) {
        return false;
    }
    taken.dst = work->staged;
    taken.dst_pitch = taken.width;
    copy_rows(&taken);
    work->rows.src = work->staged;
    work->rows.src_pitch = taken.width;
    return true;
}

static enum xs_error enqueue_rows(struct xs_stream *stream, const struct xs_copy_2d *rows,
                                  bool stage)
{
    struct rows_work *work = malloc(sizeof(*work));
    enum xs_error     res = XS_OUT_OF_MEMORY;

    if (work == NULL) {
        return res;
    }
    *work = (struct rows_work){*rows, NULL};
    xs_stream_pass(stream);
    if (!stage || (xs_stream_capture(stream) != NULL) || stage_rows(work)) {
        res = xs_stream_enqueue(stream, run_rows, xs_copy_flat, work);
    }
    if (res != XS_OK) {
        free(work->staged);
        free(work);
    }
    return res;
}

/* Both sides whole, from their first byte to their last: where the simulation may touch them. */
static enum xs_error touch_rows(struct xs_copy_2d *rows, struct xs_range *to, struct xs_range *from)
{
    size_t below = rows->height - 1;

    if ((rows->dst_pitch < rows->width) || (rows->src_pitch < rows->width) ||
        (rows->dst_pitch > XS_MAX_PITCH) || (rows->src_pitch > XS_MAX_PITCH)) {
        return XS_INVALID_VALUE;
    }
    rows->dst = xs_mem_touch(rows->dst, below * rows->dst_pitch + rows->width, to);
    rows->src = xs_mem_touch(rows->src, below * rows->src_pitch + rows->width, from);
    return ((rows->dst == NULL) || (rows->src == NULL)) ? XS_INVALID_VALUE : XS_OK;
}

enum xs_error xs_copy_2d_async(struct xs_stream *stream, const struct xs_copy_2d *what)
{
    struct xs_copy_2d rows = *what;
    struct xs_range   from;
    struct xs_range   to;

    if ((rows.width == 0) || (rows.height == 0)) {
        return XS_OK;
    }
    enum xs_error res = touch_rows(&rows, &to, &from);
    if (res == XS_OK) {
        res = enqueue_rows(stream, &rows, pageable(&from) && !pageable(&to));
    }
    if ((res == XS_OK) && pageable(&to) && (xs_stream_capture(stream) == NULL)) {
        xs_stream_sync(stream);
    }
    return res;
}

enum xs_error xs_copy_2d(struct xs_ctx *ctx, const struct xs_copy_2d *what)
{
    struct xs_stream *stream;
    enum xs_error     res = xs_capture_guard();

    if (res == XS_OK) {
        res = xs_stream_get(ctx, NULL, &stream);
    }
    if (res == XS_OK) {
        res = xs_copy_2d_async(stream, what);
    }
    if (res == XS_OK) {
        xs_stream_sync(stream);
    }
    return res;
}

struct fill_work {
    void    *dst;
    uint32_t value;
    unsigned width;
    size_t   count;
};

static void fill(const struct fill_work *work)
{
    if ((work->value == 0) && xs_mem_clear(work->dst, work->width * work->count)) {
        return;
    }
    if (work->width == 1) {
        memset(work->dst, (int)work->value, work->count);
        return;
    }
    for (size_t i = 0; i < work->count; i++) {
        if (work->width == 2) {
            ((uint16_t *)work->dst)[i] = (uint16_t)work->value;
        } else {
            ((uint32_t *)work->dst)[i] = work->value;
        }
    }
}

static void run_fill(void *arg)
{
    fill(arg);
    free(arg);
}

static enum xs_error check_fill(void **dst_p, unsigned width, size_t count)
{
    struct xs_range range;
    void           *real = xs_mem_touch(*dst_p, width * count, &range);

    if ((real == NULL) || pageable(&range) || ((uintptr_t)*dst_p % width != 0)) {
        return XS_INVALID_VALUE;
    }
    *dst_p = real;
    return XS_OK;
}

enum xs_error xs_fill_async(struct xs_stream *stream, void *dst, uint32_t value, unsigned width,
                            size_t count)
{
    enum xs_error res = (count == 0) ? XS_OK : check_fill(&dst, width, count);

    if ((res != XS_OK) || (count == 0)) {
        return res;
    }
    struct fill_work *work = malloc(sizeof(*work));
    if (work == NULL) {
        return XS_OUT_OF_MEMORY;
    }
    *work = (struct fill_work){dst, value, width, count};
    xs_stream_pass(stream);
    res = xs_stream_enqueue(stream, run_fill, xs_copy_flat, work);
    if (res != XS_OK) {
        free(work);
    }
    return res;
}

enum xs_error xs_fill(struct xs_ctx *ctx, void *dst, uint32_t value, unsigned width, size_t count)
{
    struct xs_stream *stream;
    struct xs_range   range = {.kind = XS_MEM_HOST};
    enum xs_error     res = xs_stream_get(ctx, NULL, &stream);

    (void)xs_mem_find(dst, &range);
    bool early = returns_early(&range, NULL, 0);
    if ((res == XS_OK) && early) {
        res = xs_call_async(stream, delay, NULL);
    }
    if (res == XS_OK) {
        res = xs_fill_async(stream, dst, value, width, count);
    }
    if ((res == XS_OK) && !early) {
        xs_stream_sync(stream);
    }
    return res;
}

struct call_work {
    void (*fn)(void *);
    void *arg;
};

static void run_call(void *arg)
{
    struct call_work work = *(struct call_work *)arg;

    free(arg);
    work.fn(work.arg);
}

enum xs_error xs_call_async(struct xs_stream *stream, void (*fn)(void *), void *arg)
{
    struct call_work *work = malloc(sizeof(*work));

    if (work == NULL) {
        return XS_OUT_OF_MEMORY;
    }
    *work = (struct call_work){fn, arg};
    xs_stream_pass(stream);
    enum xs_error res = xs_stream_enqueue(stream, run_call, xs_copy_flat, work);
    if (res != XS_OK) {
        free(work);
    }
    return res;
}

struct value_work {
    void    *ptr;
    uint64_t value;
    unsigned width;
    unsigned condition;
};

static bool value_fits(const struct value_work *work)
{
    uint64_t now;
    int64_t  ahead;

    if (work->width == 4) {
        now = __atomic_load_n((uint32_t *)work->ptr, __ATOMIC_ACQUIRE);
        ahead = (int32_t)((uint32_t)now - (uint32_t)work->value);
    } else {
        now = __atomic_load_n((uint64_t *)work->ptr, __ATOMIC_ACQUIRE);
        ahead = (int64_t)(now - work->value);
    }
    switch (work->condition) {
    case 0:
        return ahead >= 0;
    case 1:
        return ahead == 0;
    case 2:
        return (now & work->value) != 0;
    default:
        return ((work->width == 4) ? (uint32_t) ~(now | work->value) : ~(now | work->value)) != 0;
    }
}

static void run_wait_value(void *arg)
{
    struct value_work    *work = arg;
    const struct timespec nap = {0, 20000};

    while (!value_fits(work)) {
        nanosleep(&nap, NULL); /* nothing tells when memory changes */
    }
    free(work);
}

static void run_write_value(void *arg)
{
    struct value_work *work = arg;

    if (work->width == 4) {
        __atomic_store_n((uint32_t *)work->ptr, (uint32_t)work->value, __ATOMIC_RELEASE);
    } else {
        __atomic_store_n((uint64_t *)work->ptr, work->value, __ATOMIC_RELEASE);
    }
    free(work);
}

static enum xs_error enqueue_value(struct xs_stream *stream, xs_work_fn *run,
                                   const struct value_work *what)
{
    struct xs_range    range;
    struct value_work *work;
    void              *real = xs_mem_touch(what->ptr, what->width, &range);

    if ((real == NULL) || pageable(&range) || ((uintptr_t)real % what->width != 0) ||
        (what->condition > 3)) {
        return XS_INVALID_VALUE;
    }
    work = malloc(sizeof(*work));
    if (work == NULL) {
        return XS_OUT_OF_MEMORY;
    }
    *work = *what;
    work->ptr = real;
    enum xs_error res = xs_stream_enqueue(stream, run, xs_copy_flat, work);
    if (res != XS_OK) {
        free(work);
    }
    return res;
}

enum xs_error xs_wait_value(struct xs_stream *stream, const void *ptr, uint64_t value,
                            unsigned width, unsigned condition)
{
    struct value_work work = {(void *)(uintptr_t)ptr, value, width, condition};

    return enqueue_value(stream, run_wait_value, &work);
}

enum xs_error xs_write_value(struct xs_stream *stream, void *ptr, uint64_t value, unsigned width)
{
    struct value_work work = {ptr, value, width, 0};

    return enqueue_value(stream, run_write_value, &work);
}
