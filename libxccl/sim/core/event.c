/* SPDX-License-Identifier: BSD-3-Clause */
/* Events: each record is numbered; a wait means the record that was the last one when it was
 * called. */
#include <stdlib.h>
#include <time.h>

#include "core/graph.h"

#define EVENT_MAGIC 0x45564e54U
#define EVENT_DISABLE_TIMING 2U
#define EVENT_INTERPROCESS 4U

struct xs_event {
    uint32_t         magic; /* 0 once destroyed */
    unsigned         flags;
    struct xs_ctx   *ctx;
    struct xs_event *next; /* unused ones */
    struct xs_event *also; /* all that were ever made */
    pthread_mutex_t  lock;
    pthread_cond_t   done_more;
    uint64_t         recorded;
    uint64_t         done;
    double           when; /* ms, of the last one done */
    int              users;
    bool             captured; /* last recorded in a stream that captures */
    bool             orphan;   /* its context is gone */
};

static struct xs_event *unused; /* kept for ever, as streams are */
static struct xs_event *all;
static pthread_mutex_t  unused_lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_event(const struct xs_event *event)
{
    return (event != NULL) && (event->magic == EVENT_MAGIC);
}

/* Does the handle name one, that can be used? */
static enum xs_error check(const struct xs_event *event)
{
    if (!is_event(event)) {
        return ((event != NULL) && event->orphan) ? xs_orphan_used(event->ctx, "an event")
                                                  : XS_INVALID_HANDLE;
    }
    return xs_crashed();
}

static void event_unuse(struct xs_event *event)
{
    pthread_mutex_lock(&unused_lock);
    if (--event->users == 0) {
        event->next = unused;
        unused = event;
    }
    pthread_mutex_unlock(&unused_lock);
}

static void event_use(struct xs_event *event)
{
    pthread_mutex_lock(&unused_lock);
    event->users++;
    pthread_mutex_unlock(&unused_lock);
}

enum xs_error xs_event_create(struct xs_ctx *ctx, unsigned flags, struct xs_event **event_p)
{
    struct xs_event *event;

    if ((flags & EVENT_INTERPROCESS) != 0) {
        return XS_NOT_SUPPORTED;
    }
    enum xs_error res = xs_crashed();
    if (res != XS_OK) {
        return res;
    }
    xs_ctx_pass(ctx);
    pthread_mutex_lock(&unused_lock);
    event = unused;
    if (event != NULL) {
        unused = event->next;
    }
    pthread_mutex_unlock(&unused_lock);
    if (event == NULL) {
        event = calloc(1, sizeof(*event));
        if (event == NULL) {
            return XS_OUT_OF_MEMORY;
        }
        pthread_mutex_init(&event->lock, NULL);
        pthread_cond_init(&event->done_more, NULL);
        pthread_mutex_lock(&unused_lock);
        event->also = all;
        all = event;
        pthread_mutex_unlock(&unused_lock);
    }
    event->flags = flags;
    event->ctx = ctx;
    event->recorded = 0;
    event->done = 0;
    event->users = 1;
    event->captured = false;
    event->magic = EVENT_MAGIC;
    xs_live(XS_LIVE_EVENT, 1);
    *event_p = event;
    return XS_OK;
}

enum xs_error xs_event_destroy(struct xs_event *event)
{
    enum xs_error res = check(event);

    if (res != XS_OK) {
        return res;
    }
    event->magic = 0;
    xs_live(XS_LIVE_EVENT, -1);
    event_unuse(event);
    return XS_OK;
}

void xs_events_orphan(const struct xs_ctx *ctx)
{
    pthread_mutex_lock(&unused_lock);
    for (struct xs_event *event = all; event != NULL; event = event->also) {
        if ((event->ctx == ctx) && (event->magic == EVENT_MAGIC)) {
            event->magic = 0;
            event->orphan = true; /* and never used again */
            xs_live(XS_LIVE_EVENT, -1);
        }
    }
    pthread_mutex_unlock(&unused_lock);
}

struct event_work {
    struct xs_event *event;
    uint64_t         number;
};

static void run_record(void *arg)
{
    struct event_work *work = arg;
    struct xs_event   *event = work->event;
    struct timespec    now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    pthread_mutex_lock(&event->lock);
    if (work->number > event->done) {
        event->done = work->number;
        event->when = (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
    }
    pthread_cond_broadcast(&event->done_more);
    pthread_mutex_unlock(&event->lock);
    event_unuse(event);
    free(work);
}

static void event_wait_number(struct xs_event *event, uint64_t number)
{
    pthread_mutex_lock(&event->lock);
    while (event->done < number) {
        pthread_cond_wait(&event->done_more, &event->lock);
    }
    pthread_mutex_unlock(&event->lock);
}

static void run_wait(void *arg)
{
    struct event_work *work = arg;

    event_wait_number(work->event, work->number);
    event_unuse(work->event);
    free(work);
}

static enum xs_error enqueue(struct xs_stream *stream, xs_work_fn *run, struct xs_event *event,
                             uint64_t number)
{
    struct event_work *work = malloc(sizeof(*work));

    if (work == NULL) {
        return XS_OUT_OF_MEMORY;
    }
    *work = (struct event_work){event, number};
    event_use(event);
    enum xs_error res = xs_stream_enqueue(stream, run, NULL, work);
    if (res != XS_OK) {
        event_unuse(event);
        free(work);
    }
    return res;
}

enum xs_error xs_event_record(struct xs_event *event, struct xs_stream *stream)
{
    enum xs_error res = check(event);

    if (res != XS_OK) {
        return res;
    }
    if (event->ctx->device != xs_stream_ctx(stream)->device) {
        return XS_INVALID_HANDLE; /* an event belongs to its context's device */
    }
    event->captured = (xs_stream_capture(stream) != NULL);
    if (event->captured) {
        return XS_OK; /* an edge of the graph, which is a line */
    }
    xs_stream_pass(stream);
    pthread_mutex_lock(&event->lock);
    uint64_t number = ++event->recorded;
    pthread_mutex_unlock(&event->lock);
    return enqueue(stream, run_record, event, number);
}

static uint64_t last_record(struct xs_event *event)
{
    pthread_mutex_lock(&event->lock);
    uint64_t number = event->recorded;
    pthread_mutex_unlock(&event->lock);
    return number;
}

enum xs_error xs_event_query(struct xs_event *event)
{
    enum xs_error res = check(event);

    if (res == XS_OK) {
        res = event->captured ? XS_CAPTURED_EVENT : xs_capture_guard();
    }
    if (res != XS_OK) {
        return res;
    }
    pthread_mutex_lock(&event->lock);
    bool done = (event->done >= event->recorded);
    pthread_mutex_unlock(&event->lock);
    return done ? XS_OK : XS_NOT_READY;
}

enum xs_error xs_event_sync(struct xs_event *event)
{
    enum xs_error res = check(event);

    if (res == XS_OK) {
        res = event->captured ? XS_CAPTURED_EVENT : xs_capture_guard();
    }
    if (res != XS_OK) {
        return res;
    }
    event_wait_number(event, last_record(event));
    return XS_OK;
}

enum xs_error xs_event_wait(struct xs_stream *stream, struct xs_event *event)
{
    enum xs_error res = check(event);

    if (res != XS_OK) {
        return res;
    }
    bool captures = (xs_stream_capture(stream) != NULL);
    if (captures || event->captured) {
        /* Within one capture it is in order already; branches are not simulated. */
        return (captures && event->captured) ? XS_OK
               : captures                    ? xs_capture_refuse(stream, XS_CAPTURE_ISOLATION)
                                             : XS_NOT_SUPPORTED;
    }
    uint64_t number = last_record(event);
    return (number == 0) ? XS_OK : enqueue(stream, run_wait, event, number);
}

enum xs_error xs_event_elapsed(struct xs_event *from, struct xs_event *to, float *ms_p)
{
    struct xs_event *const both[] = {from, to};
    double                 when[2];

    for (int i = 0; i < 2; i++) {
        if (!is_event(both[i]) || ((both[i]->flags & EVENT_DISABLE_TIMING) != 0) ||
            (last_record(both[i]) == 0)) {
            return XS_INVALID_HANDLE;
        }
        if (xs_event_query(both[i]) != XS_OK) {
            return XS_NOT_READY;
        }
        when[i] = both[i]->when;
    }
    *ms_p = (float)(when[1] - when[0]);
    return XS_OK;
}
