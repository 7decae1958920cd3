/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/outstanding.h"

#include <pthread.h>
#include <time.h>

#include "comms/worker.h"

/* Above the count of what is outstanding. WANTED: somebody waits to be alone. */
enum { WANTED = 1 << 30, ALONE = 1 << 29 };
enum { LOOK_NS = 1000 * 1000 }; /* at events, which wake nobody */

/* In a line of its own: every small call writes to it. */
static uint32_t                      state __attribute__((aligned(64))); /* atomic */
static pthread_mutex_t               turn = PTHREAD_MUTEX_INITIALIZER;   /* of being alone */
static pthread_mutex_t               streams_lock = PTHREAD_MUTEX_INITIALIZER;
static struct xm_outstanding_stream *streams;                          /* atomic: any? */
static pthread_mutex_t               lock = PTHREAD_MUTEX_INITIALIZER; /* of sleeping */
static pthread_cond_t                changed = PTHREAD_COND_INITIALIZER;

static void tell(void)
{
    pthread_mutex_lock(&lock);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static bool is_alone(void)
{
    return (__atomic_load_n(&state, __ATOMIC_ACQUIRE) & ALONE) != 0;
}

static void wait_while_alone(void)
{
    pthread_mutex_lock(&lock);
    while (is_alone()) {
        pthread_cond_wait(&changed, &lock);
    }
    pthread_mutex_unlock(&lock);
}

void xm_outstanding_begin(void)
{
    uint32_t seen = __atomic_load_n(&state, __ATOMIC_RELAXED);

    do {
        while (__builtin_expect((seen & ALONE) != 0, 0)) {
            wait_while_alone();
            seen = __atomic_load_n(&state, __ATOMIC_RELAXED);
        }
    } while (!__atomic_compare_exchange_n(&state, &seen, seen + 1, true, __ATOMIC_ACQ_REL,
                                          __ATOMIC_RELAXED));
}

static bool become_alone(void)
{
    uint32_t none = WANTED;

    return __atomic_compare_exchange_n(&state, &none, WANTED | ALONE, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED);
}

/*
 * Between two calls of a program that makes one after the other there may be no time for a thread
 * to wake: it is given its turn. Not where it may find that a stream still has work.
 */
void xm_outstanding_end(void)
{
    uint32_t left = __atomic_sub_fetch(&state, 1, __ATOMIC_ACQ_REL);

    if (__builtin_expect(left == WANTED, 0)) {
        if (__atomic_load_n(&streams, __ATOMIC_ACQUIRE) == NULL) {
            (void)become_alone();
        }
        tell();
    }
}

void xm_outstanding_add(struct xm_outstanding_stream *stream)
{
    pthread_mutex_lock(&streams_lock);
    stream->next = streams;
    __atomic_store_n(&streams, stream, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&streams_lock);
}

void xm_outstanding_remove(struct xm_outstanding_stream *stream)
{
    struct xm_outstanding_stream **at = &streams;

    pthread_mutex_lock(&streams_lock);
    while ((*at != NULL) && (*at != stream)) {
        at = &(*at)->next;
    }
    if (*at != NULL) {
        __atomic_store_n(at, stream->next, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&streams_lock);
}

/*
 * A reset of the device has ended what was on it; its event must not be touched then. What has been
 * found to be over is not asked for again, if it is alone that asks: else the event may be recorded
 * anew meanwhile.
 */
static bool has_work(struct xm_outstanding_stream *s, bool alone)
{
    void *saved;

    if (!__atomic_load_n(&s->recorded, __ATOMIC_ACQUIRE) ||
        !xc_device_enter_kept(s->dev, s->device, s->resets, &saved)) {
        return false;
    }
    int          mode = xc_device_relax(s->dev);
    xcclResult_t res = s->dev->event_query(s->event);
    xc_device_restore(s->dev, mode);
    s->dev->leave(saved);
    if (alone && (res != xcclInProgress)) {
        __atomic_store_n(&s->recorded, false, __ATOMIC_RELEASE);
    }
    return res == xcclInProgress;
}

static bool streams_have_work(bool alone)
{
    bool found = false;

    pthread_mutex_lock(&streams_lock);
    for (struct xm_outstanding_stream *s = streams; (s != NULL) && !found; s = s->next) {
        found = has_work(s, alone);
    }
    pthread_mutex_unlock(&streams_lock);
    return found;
}

bool xm_outstanding_any(void)
{
    return ((__atomic_load_n(&state, __ATOMIC_ACQUIRE) & ~(uint32_t)(WANTED | ALONE)) != 0) ||
           ((__atomic_load_n(&streams, __ATOMIC_ACQUIRE) != NULL) && streams_have_work(false));
}

static void admit(uint32_t bits)
{
    __atomic_fetch_and(&state, ~bits, __ATOMIC_ACQ_REL);
    tell();
}

/* Streams are looked at when nobody enqueues. */
static bool try_alone(void)
{
    if (!is_alone() && !become_alone()) {
        return false;
    }
    if (streams_have_work(true)) {
        admit(ALONE);
        return false;
    }
    return true;
}

static void sleep_a_little(void)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += LOOK_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&lock);
    if (!is_alone()) {
        pthread_cond_timedwait(&changed, &lock, &until);
    }
    pthread_mutex_unlock(&lock);
}

void xm_alone_begin(void)
{
    pthread_mutex_lock(&turn);
    __atomic_fetch_or(&state, WANTED, __ATOMIC_ACQ_REL);
    while (!try_alone()) {
        sleep_a_little();
    }
}

bool xm_alone_try(void)
{
    if (pthread_mutex_trylock(&turn) != 0) {
        return false;
    }
    __atomic_fetch_or(&state, WANTED, __ATOMIC_ACQ_REL);
    if (try_alone()) {
        return true;
    }
    xm_alone_end();
    return false;
}

void xm_alone_end(void)
{
    admit(ALONE | WANTED);
    pthread_mutex_unlock(&turn);
}

static pthread_mutex_t      jobs_lock = PTHREAD_MUTEX_INITIALIZER;
static struct xm_alone_job *jobs; /* that no thread has taken yet, the last one first */
static bool                 served;

static struct xm_alone_job *take_jobs(void)
{
    pthread_mutex_lock(&jobs_lock);
    struct xm_alone_job *taken = jobs;
    jobs = NULL;
    served = (taken != NULL);
    pthread_mutex_unlock(&jobs_lock);
    return taken;
}

static void serve(struct xm_job *unused)
{
    struct xm_alone_job *taken;

    (void)unused;
    while ((taken = take_jobs()) != NULL) {
        for (struct xm_alone_job *job = taken; job != NULL; job = job->next) {
            if (job->prepare != NULL) {
                job->prepare(job);
            }
        }
        xm_alone_begin();
        while (taken != NULL) {
            struct xm_alone_job *job = taken;
            taken = job->next;
            job->run(job);
        }
        xm_alone_end();
    }
}

static void take_back(struct xm_alone_job *job)
{
    struct xm_alone_job **at = &jobs;

    pthread_mutex_lock(&jobs_lock);
    while (*at != job) {
        at = &(*at)->next;
    }
    *at = job->next;
    served = false; /* what others have started meanwhile waits for the next one */
    pthread_mutex_unlock(&jobs_lock);
}

xcclResult_t xm_alone_start(struct xm_alone_job *job)
{
    static struct xm_job server = {.run = serve};

    pthread_mutex_lock(&jobs_lock);
    bool first = !served;
    served = true;
    job->next = jobs;
    jobs = job;
    pthread_mutex_unlock(&jobs_lock);
    xcclResult_t res = first ? xm_worker_start(&server) : xcclSuccess;
    if (res != xcclSuccess) {
        take_back(job);
    }
    return res;
}
