/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Streams: a queue each, run in order on a thread of its own that is started with the first work.
 * The legacy default stream and the blocking streams of a context wait for each other through
 * wait-work put into the queues; non-blocking streams take no part in that.
 */
#include <signal.h>
#include <stdlib.h>

#include "core/graph.h"

#define STREAM_MAGIC 0x5353534dU

struct work {
    struct work *next;
    xs_work_fn  *run;
    void        *arg;
};

struct xs_stream {
    uint32_t           magic; /* 0 once destroyed */
    unsigned           flags;
    int                priority;
    uint64_t           id;
    struct xs_ctx     *ctx;
    struct xs_stream  *next; /* in ctx, or in the list of unused ones */
    pthread_mutex_t    lock;
    pthread_cond_t     filled;
    pthread_cond_t     emptied;
    struct work       *head;
    struct work      **tail;
    uint64_t           enqueued;
    uint64_t           completed;
    int                users; /* the program, the thread, waits of other streams */
    bool               running;
    bool               closing;
    bool               orphan;  /* its context is gone */
    struct xs_capture *capture; /* atomic; NULL: it does not capture */
};

/* Destroyed streams are used again, never freed: a stale handle can be told from a good one. */
static struct xs_stream *unused;
static struct xs_stream *orphans;     /* whose contexts are gone */
static uint64_t          next_id = 3; /* 1 and 2 name default streams */
static pthread_mutex_t   unused_lock = PTHREAD_MUTEX_INITIALIZER;

static void stream_unuse(struct xs_stream *stream)
{
    pthread_mutex_lock(&unused_lock);
    if (__atomic_sub_fetch(&stream->users, 1, __ATOMIC_ACQ_REL) == 0) {
        stream->next = unused;
        unused = stream;
    }
    pthread_mutex_unlock(&unused_lock);
}

static struct xs_stream *stream_new(void)
{
    struct xs_stream *stream;

    pthread_mutex_lock(&unused_lock);
    stream = unused;
    if (stream != NULL) {
        unused = stream->next;
    } else {
        stream = calloc(1, sizeof(*stream));
        if (stream != NULL) {
            pthread_mutex_init(&stream->lock, NULL);
            pthread_cond_init(&stream->filled, NULL);
            pthread_cond_init(&stream->emptied, NULL);
        }
    }
    if (stream != NULL) {
        stream->id = next_id++;
    }
    pthread_mutex_unlock(&unused_lock);
    return stream;
}

static enum xs_error create(struct xs_ctx *ctx, unsigned flags, int priority,
                            struct xs_stream **stream_p)
{
    struct xs_stream *stream;

    if ((flags & ~(unsigned)XS_STREAM_NON_BLOCKING) != 0) {
        return XS_INVALID_VALUE;
    }
    stream = stream_new();
    if (stream == NULL) {
        return XS_OUT_OF_MEMORY;
    }
    stream->flags = flags;
    stream->priority = (priority < -5) ? -5 : (priority > 0) ? 0 : priority;
    stream->ctx = ctx;
    stream->head = NULL;
    stream->tail = &stream->head;
    stream->enqueued = 0;
    stream->completed = 0;
    stream->users = 1;
    stream->running = false;
    stream->closing = false;
    stream->capture = NULL;
    stream->magic = STREAM_MAGIC;
    xs_live(XS_LIVE_STREAM, 1);
    pthread_mutex_lock(&ctx->order);
    stream->next = ctx->streams;
    ctx->streams = stream;
    pthread_mutex_unlock(&ctx->order);
    *stream_p = stream;
    return XS_OK;
}

enum xs_error xs_stream_create(struct xs_ctx *ctx, unsigned flags, int priority,
                               struct xs_stream **stream_p)
{
    enum xs_error res = xs_crashed();

    if (res != XS_OK) {
        return res;
    }
    xs_ctx_pass(ctx);
    return create(ctx, flags, priority, stream_p);
}

static void *stream_thread(void *arg)
{
    struct xs_stream *stream = arg;

    pthread_mutex_lock(&stream->lock);
    for (;;) {
        while ((stream->head == NULL) && !stream->closing) {
            pthread_cond_wait(&stream->filled, &stream->lock);
        }
        struct work *work = stream->head;
        if (work == NULL) {
            break;
        }
        stream->head = work->next;
        if (stream->head == NULL) {
            stream->tail = &stream->head;
        }
        pthread_mutex_unlock(&stream->lock);
        work->run(work->arg);
        free(work);
        pthread_mutex_lock(&stream->lock);
        stream->completed++;
        pthread_cond_broadcast(&stream->emptied);
    }
    pthread_mutex_unlock(&stream->lock);
    stream_unuse(stream);
    return NULL;
}

/* The thread takes no signals: they are the program's. */
static enum xs_error stream_start(struct xs_stream *stream)
{
    pthread_t thread;
    sigset_t  all;
    sigset_t  before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    __atomic_add_fetch(&stream->users, 1, __ATOMIC_RELAXED);
    int res = pthread_create(&thread, NULL, stream_thread, stream);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (res != 0) {
        __atomic_sub_fetch(&stream->users, 1, __ATOMIC_RELAXED);
        return XS_OPERATING_SYSTEM;
    }
    pthread_detach(thread);
    stream->running = true;
    return XS_OK;
}

static enum xs_error append(struct xs_stream *stream, xs_work_fn *run, void *arg)
{
    enum xs_error res = XS_OK;
    struct work  *work = malloc(sizeof(*work));

    if (work == NULL) {
        return XS_OUT_OF_MEMORY;
    }
    *work = (struct work){NULL, run, arg};
    pthread_mutex_lock(&stream->lock);
    if (!stream->running) {
        res = stream_start(stream);
    }
    if (res == XS_OK) {
        *stream->tail = work;
        stream->tail = &work->next;
        stream->enqueued++;
    } else {
        free(work);
    }
    pthread_mutex_unlock(&stream->lock);
    pthread_cond_signal(&stream->filled); /* behind the lock, or its thread wakes to wait for it */
    return res;
}

struct wait_work {
    struct xs_stream *stream;
    uint64_t          target;
};

static void wait_until(struct xs_stream *stream, uint64_t target)
{
    pthread_mutex_lock(&stream->lock);
    while (stream->completed < target) {
        pthread_cond_wait(&stream->emptied, &stream->lock);
    }
    pthread_mutex_unlock(&stream->lock);
}

static void run_wait(void *arg)
{
    struct wait_work *wait = arg;

    wait_until(wait->stream, wait->target);
    stream_unuse(wait->stream);
    free(wait);
}

static uint64_t pending(struct xs_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    uint64_t target = (stream->completed < stream->enqueued) ? stream->enqueued : 0;
    pthread_mutex_unlock(&stream->lock);
    return target;
}

/* Order stream behind what other has now, if it has anything. */
static enum xs_error follow(struct xs_stream *stream, struct xs_stream *other)
{
    uint64_t target = pending(other);

    if (target == 0) {
        return XS_OK;
    }
    struct wait_work *wait = malloc(sizeof(*wait));
    if (wait == NULL) {
        return XS_OUT_OF_MEMORY;
    }
    __atomic_add_fetch(&other->users, 1, __ATOMIC_RELAXED);
    *wait = (struct wait_work){other, target};
    enum xs_error res = append(stream, run_wait, wait);
    if (res != XS_OK) {
        stream_unuse(other);
        free(wait);
    }
    return res;
}

static bool blocking(const struct xs_stream *stream)
{
    return (stream->flags & XS_STREAM_NON_BLOCKING) == 0;
}

/* What the legacy default stream's rules put in front of new work; ctx->order is held. */
static enum xs_error follow_default(struct xs_stream *stream)
{
    struct xs_ctx *ctx = stream->ctx;
    enum xs_error  res = XS_OK;

    if (!blocking(stream) || (ctx->legacy == NULL)) {
        return XS_OK;
    }
    if (stream != ctx->legacy) {
        return follow(stream, ctx->legacy);
    }
    for (struct xs_stream *s = ctx->streams; (s != NULL) && (res == XS_OK); s = s->next) {
        if ((s != stream) && blocking(s)) {
            res = follow(stream, s);
        }
    }
    return res;
}

struct xs_capture *xs_stream_capture(struct xs_stream *stream)
{
    return __atomic_load_n(&stream->capture, __ATOMIC_ACQUIRE);
}

enum xs_error xs_stream_set_capture(struct xs_stream *stream, struct xs_capture *capture)
{
    struct xs_capture *none = NULL;

    if (capture == NULL) {
        __atomic_store_n(&stream->capture, NULL, __ATOMIC_RELEASE);
        return XS_OK;
    }
    if ((stream == stream->ctx->legacy) ||
        !__atomic_compare_exchange_n(&stream->capture, &none, capture, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE)) {
        return XS_CAPTURE_UNSUPPORTED;
    }
    return XS_OK;
}

/* The legacy stream would wait for what a blocking stream captures; ctx->order is held. */
static enum xs_error refuse_implicit(const struct xs_stream *stream)
{
    enum xs_error res = XS_OK;

    for (struct xs_stream *s = stream->ctx->streams; (stream == stream->ctx->legacy) && (s != NULL);
         s = s->next) {
        if (blocking(s) && (xs_capture_refuse(s, XS_CAPTURE_IMPLICIT) != XS_OK)) {
            res = XS_CAPTURE_IMPLICIT;
        }
    }
    return res;
}

enum xs_error xs_stream_refuse_question(struct xs_stream *stream)
{
    enum xs_error res = xs_capture_refuse(stream, XS_CAPTURE_UNSUPPORTED);

    if (res == XS_OK) {
        res = xs_capture_guard();
    }
    if (res == XS_OK) {
        pthread_mutex_lock(&stream->ctx->order);
        res = refuse_implicit(stream);
        pthread_mutex_unlock(&stream->ctx->order);
    }
    return res;
}

enum xs_error xs_stream_capture_status(struct xs_stream *stream, int *status)
{
    struct xs_ctx *ctx = stream->ctx;
    enum xs_error  res = XS_OK;

    *status = xs_capture_status(stream);
    pthread_mutex_lock(&ctx->order);
    for (struct xs_stream *s = ctx->streams; (stream == ctx->legacy) && (s != NULL); s = s->next) {
        if (blocking(s) && (xs_stream_capture(s) != NULL)) {
            res = XS_CAPTURE_IMPLICIT;
        }
    }
    pthread_mutex_unlock(&ctx->order);
    return res;
}

enum xs_error xs_stream_enqueue(struct xs_stream *stream, xs_work_fn *work, xs_copy_fn *copy,
                                void *arg)
{
    struct xs_ctx     *ctx = stream->ctx;
    struct xs_capture *capture = xs_stream_capture(stream);

    if (capture != NULL) {
        return xs_capture_add(capture, work, copy, arg);
    }
    pthread_mutex_lock(&ctx->order);
    enum xs_error res = refuse_implicit(stream);
    if (res == XS_OK) {
        res = follow_default(stream);
    }
    if (res == XS_OK) {
        res = append(stream, work, arg);
    }
    pthread_mutex_unlock(&ctx->order);
    return res;
}

/* What is captured is not enqueued yet. */
void xs_stream_pass(struct xs_stream *stream)
{
    if (xs_stream_capture(stream) == NULL) {
        xs_ctx_pass(stream->ctx);
    }
}

enum xs_error xs_stream_follow(struct xs_stream *stream, struct xs_stream *other)
{
    return (stream == other) ? XS_OK : follow(stream, other);
}

/*
 * Is the stream's own work over? Of the legacy one CUDA does not say whether the answer counts what
 * blocking streams have, so nobody may rely on that.
 */
bool xs_stream_done(struct xs_stream *stream)
{
    return pending(stream) == 0;
}

/* Would new work on stream begin at once? */
bool xs_stream_idle(struct xs_stream *stream)
{
    struct xs_ctx *ctx = stream->ctx;
    bool           idle = (pending(stream) == 0);

    pthread_mutex_lock(&ctx->order);
    if (idle && (stream == ctx->legacy)) {
        for (struct xs_stream *s = ctx->streams; idle && (s != NULL); s = s->next) {
            idle = !blocking(s) || (pending(s) == 0);
        }
    }
    pthread_mutex_unlock(&ctx->order);
    return idle;
}

/* Synchronising the legacy stream waits for the blocking ones too. */
void xs_stream_sync(struct xs_stream *stream)
{
    struct xs_ctx *ctx = stream->ctx;

    if (stream == ctx->legacy) {
        pthread_mutex_lock(&ctx->order);
        (void)follow_default(stream);
        pthread_mutex_unlock(&ctx->order);
    }
    uint64_t target = pending(stream);
    if (target != 0) {
        wait_until(stream, target);
    }
}

/* Take it out of its context; what it has is still done. */
void xs_stream_shut(struct xs_stream *stream)
{
    struct xs_ctx     *ctx = stream->ctx;
    struct xs_stream **link = &ctx->streams;

    pthread_mutex_lock(&ctx->order);
    while ((*link != NULL) && (*link != stream)) {
        link = &(*link)->next;
    }
    if (*link != NULL) {
        *link = stream->next;
    }
    pthread_mutex_unlock(&ctx->order);
    pthread_mutex_lock(&stream->lock);
    stream->magic = 0;
    xs_live(XS_LIVE_STREAM, -1);
    stream->closing = true;
    pthread_cond_signal(&stream->filled);
    pthread_mutex_unlock(&stream->lock);
    stream_unuse(stream);
}

void xs_stream_orphan(struct xs_stream *stream)
{
    stream->orphan = true;
    __atomic_add_fetch(&stream->users, 1, __ATOMIC_RELAXED); /* by the list */
    xs_stream_shut(stream);
    pthread_mutex_lock(&unused_lock);
    stream->next = orphans;
    orphans = stream;
    pthread_mutex_unlock(&unused_lock);
}

enum xs_error xs_stream_destroy(struct xs_stream *stream)
{
    if ((stream->magic != STREAM_MAGIC) || (stream == stream->ctx->legacy) ||
        (stream == stream->ctx->shared)) {
        return XS_INVALID_HANDLE;
    }
    xs_stream_shut(stream);
    return XS_OK;
}

static enum xs_error default_stream(struct xs_ctx *ctx, struct xs_stream **slot,
                                    struct xs_stream **stream_p)
{
    static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
    enum xs_error          res = XS_OK;

    pthread_mutex_lock(&making);
    struct xs_stream *stream = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
    if (stream == NULL) {
        res = create(ctx, 0, 0, &stream);
        if (res == XS_OK) {
            xs_live(XS_LIVE_STREAM, -1); /* nobody can destroy it */
            __atomic_store_n(slot, stream, __ATOMIC_RELEASE);
        }
    }
    pthread_mutex_unlock(&making);
    *stream_p = stream;
    return res;
}

enum xs_error xs_stream_get(struct xs_ctx *ctx, void *handle, struct xs_stream **stream_p)
{
    struct xs_stream *stream = handle;
    uintptr_t         number = (uintptr_t)handle;
    enum xs_error     res = xs_crashed();

    if (res != XS_OK) {
        return res;
    }
    if (number <= 2) {
        if (!xs_ctx_valid(ctx)) {
            return (ctx == NULL) ? XS_INVALID_CONTEXT : XS_CONTEXT_IS_DESTROYED;
        }
        return default_stream(ctx, (number < 2) ? &ctx->legacy : &ctx->shared, stream_p);
    }
    if (stream->magic != STREAM_MAGIC) {
        return stream->orphan ? xs_orphan_used(stream->ctx, "a stream") : XS_INVALID_HANDLE;
    }
    *stream_p = stream;
    return XS_OK;
}

struct xs_ctx *xs_stream_ctx(const struct xs_stream *stream)
{
    return stream->ctx;
}

unsigned xs_stream_flags(const struct xs_stream *stream)
{
    return stream->flags;
}

int xs_stream_priority(const struct xs_stream *stream)
{
    return stream->priority;
}

uint64_t xs_stream_id(const struct xs_stream *stream)
{
    return stream->id;
}

/* Streams made or destroyed meanwhile by other threads are the program's mistake, as on a GPU. */
enum xs_error xs_ctx_sync(struct xs_ctx *ctx)
{
    pthread_mutex_lock(&ctx->order);
    size_t count = 0;
    for (struct xs_stream *s = ctx->streams; s != NULL; s = s->next) {
        count++;
    }
    struct wait_work *waits = calloc(count + 1, sizeof(*waits));
    count = 0;
    for (struct xs_stream *s = ctx->streams; (waits != NULL) && (s != NULL); s = s->next) {
        __atomic_add_fetch(&s->users, 1, __ATOMIC_RELAXED);
        waits[count++] = (struct wait_work){s, pending(s)};
    }
    pthread_mutex_unlock(&ctx->order);
    if (waits == NULL) {
        return XS_OUT_OF_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        wait_until(waits[i].stream, waits[i].target);
        stream_unuse(waits[i].stream);
    }
    free(waits);
    return XS_OK;
}

/* Threads that wait for a device and let no other enqueue. */
static int             alone[XS_MAX_DEVICES]; /* atomic */
static pthread_mutex_t alone_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t  alone_over = PTHREAD_COND_INITIALIZER;

void xs_ctx_sync_alone(struct xs_ctx *ctx)
{
    if (!xs_config()->free_admits) {
        pthread_mutex_lock(&alone_lock);
        __atomic_add_fetch(&alone[ctx->device], 1, __ATOMIC_RELEASE);
        pthread_mutex_unlock(&alone_lock);
    }
    xs_ctx_sync(ctx);
}

void xs_ctx_sync_alone_end(const struct xs_ctx *ctx)
{
    if (!xs_config()->free_admits) {
        pthread_mutex_lock(&alone_lock);
        __atomic_sub_fetch(&alone[ctx->device], 1, __ATOMIC_RELEASE);
        pthread_cond_broadcast(&alone_over);
        pthread_mutex_unlock(&alone_lock);
    }
}

void xs_ctx_pass(const struct xs_ctx *ctx)
{
    if (__atomic_load_n(&alone[ctx->device], __ATOMIC_ACQUIRE) == 0) {
        return;
    }
    pthread_mutex_lock(&alone_lock);
    while (__atomic_load_n(&alone[ctx->device], __ATOMIC_ACQUIRE) != 0) {
        pthread_cond_wait(&alone_over, &alone_lock);
    }
    pthread_mutex_unlock(&alone_lock);
}
