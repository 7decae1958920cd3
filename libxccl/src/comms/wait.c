/* SPDX-License-Identifier: BSD-3-Clause */
#include "comms/wait.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>

#include "base/log.h"
#include "base/params.h"
#include "mpi/mpi.h"

/*
 * The short end decides latency, the long end how much a waiting rank takes from others on its
 * core: pure polling first, then the core is offered at each poll, then short naps.
 * Naps come only while nothing moves (base/calm.h).
 */
enum {
    POLLS_PER_PROGRESS = 8,
    POLLS_BEFORE_CLOCK = 64,
    YIELD_AFTER_NS = 50 * 1000,
    NAP_AFTER_NS = 20 * 1000 * 1000,
    SHARED_NAP_AFTER_NS = 1000 * 1000, /* on a core that others want: */
    LOST_NS = 3000,                    /* they had it while it was offered, */
    LOST_BEFORE_NAP = 4,               /* so many times in a row */
    NAP_NS = 50 * 1000,
    POLLS_PER_LOOK = 1024,
};

static const uint64_t second = 1000000000u;
/* Loading kernels takes some 0.1 s, more where many processes share a device. */
static const uint64_t settle_ns = 5000000000u;
/* The first warning of a wait; each later one comes after twice the time. */
static const uint64_t warn_after = 30;

/*
 * A generalised request that completes in MPI_Finalize. Testing an incomplete request moves
 * messages in every MPI; a probe does not: MPICH answers one on MPI_COMM_SELF without looking, and
 * one that finds a message returns at once.
 */
static MPI_Request     never = 0;
static bool            usable; /* atomic */
static pthread_mutex_t testing = PTHREAD_MUTEX_INITIALIZER;

static int query(void *extra, MPI_Status *status)
{
    (void)extra;
    xm_pmpi.Status_set_elements(status, XM_HANDLE(MPI_BYTE), 0);
    xm_pmpi.Status_set_cancelled(status, 0);
    return MPI_SUCCESS;
}

static int release(void *extra)
{
    (void)extra;
    return MPI_SUCCESS;
}

static int cancel(void *extra, int complete)
{
    (void)extra;
    (void)complete;
    return MPI_SUCCESS;
}

void xm_progress_init(void)
{
    bool made = (xm_pmpi.Grequest_start(query, release, cancel, NULL, &never) == MPI_SUCCESS);

    __atomic_store_n(&usable, made, __ATOMIC_RELEASE);
}

void xm_progress_finalize(void)
{
    if (__atomic_exchange_n(&usable, false, __ATOMIC_ACQ_REL)) {
        pthread_mutex_lock(&testing); /* nobody is inside any more */
        xm_pmpi.Grequest_complete(never);
        xm_pmpi.Wait(&never, MPI_STATUS_IGNORE);
        pthread_mutex_unlock(&testing);
    }
}

static __thread uint64_t paused_until; /* 0: it is not */

void xm_progress_pause(void)
{
    paused_until = xm_now_ns() + second;
}

void xm_progress_resume(void)
{
    paused_until = 0;
}

void (*xm_progress_beside)(void);

void xm_progress_all(void)
{
    void (*beside)(void) = __atomic_load_n(&xm_progress_beside, __ATOMIC_RELAXED);

    xm_progress();
    if (beside != NULL) {
        beside();
    }
}

void xm_progress(void)
{
    int flag;

    /* One thread at a time is enough, and MPI allows no two to test one request. */
    if (((paused_until != 0) && (xm_now_ns() < paused_until)) || xm_is_worker() ||
        !__atomic_load_n(&usable, __ATOMIC_ACQUIRE) || (pthread_mutex_trylock(&testing) != 0)) {
        return;
    }
    xm_pmpi.Test(&never, &flag, MPI_STATUS_IGNORE);
    pthread_mutex_unlock(&testing);
}

uint64_t xm_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * second + (uint64_t)t.tv_nsec;
}

struct xm_wait xm_wait_begin(const char *what)
{
    struct xm_wait wait = {.what = what,
                           .limit = (uint64_t)xc_params()->timeout * second,
                           .warn_next = warn_after * second};

    return wait;
}

struct xm_wait xm_wait_begin_for_ever(const char *what)
{
    struct xm_wait wait = xm_wait_begin(what);

    wait.limit = 0;
    wait.for_ever = true;
    return wait;
}

static void warn(struct xm_wait *wait, uint64_t elapsed)
{
    char text[900];

    if (wait->describe != NULL) {
        wait->describe(wait->arg, text, sizeof(text));
    } else {
        snprintf(text, sizeof(text), "%s", wait->what);
    }
    if (wait->for_ever) {
        xc_warn(
            "waiting for %llu s: %s; XCCL_TIMEOUT=<seconds> ends waits for collectives, not for "
            "messages, SIGUSR1 writes the last operations to a file",
            (unsigned long long)(elapsed / second), text);
    } else {
        xc_warn(
            "waiting for %llu s: %s; XCCL_TIMEOUT=<seconds> would end it with an error, SIGUSR1 "
            "writes the last operations to a file",
            (unsigned long long)(elapsed / second), text);
    }
    wait->warn_next = 2 * elapsed;
}

/* Of the processor by this thread. */
static uint64_t used_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * second + (uint64_t)t.tv_nsec;
}

/* After the poll of a long wait. */
static void rest(struct xm_wait *wait)
{
    const struct timespec nap = {0, NAP_NS};

    if (xc_is_calm(&wait->calm, used_ns(), xm_now_ns())) {
        nanosleep(&nap, NULL);
    } else {
        sched_yield();
    }
}

/*
 * Of a shorter one. Where many threads that wait share a core, they hand it to each other, and who
 * has work to do gets its share of the turns only.
 */
static void offer_core(struct xm_wait *wait, uint64_t elapsed)
{
    const struct timespec nap = {0, NAP_NS};
    uint64_t              before = xm_now_ns();

    if ((elapsed > SHARED_NAP_AFTER_NS) && (wait->lost >= LOST_BEFORE_NAP)) {
        nanosleep(&nap, NULL);
        wait->lost = 0;
        return;
    }
    sched_yield();
    wait->lost = (xm_now_ns() - before > LOST_NS) ? wait->lost + 1 : 0;
}

enum xm_wait_verdict xm_wait_step(struct xm_wait *wait)
{
    wait->polls++;
    if ((wait->polls % POLLS_PER_PROGRESS) == 0 && (wait->polls > wait->quiet)) {
        xm_progress_all();
    }
    if ((wait->polls < POLLS_BEFORE_CLOCK) || (wait->polls < wait->quiet)) {
        return XM_WAIT_ON;
    }
    uint64_t elapsed = xc_attended_at(&wait->attended, xm_now_ns());
    if ((wait->limit != 0) && (elapsed > wait->limit)) {
        return XM_WAIT_EXPIRED;
    }
    if (elapsed > wait->warn_next) {
        warn(wait, elapsed);
    }
    if (elapsed > NAP_AFTER_NS) {
        xm_progress_all();
        rest(wait);
        return ((wait->polls % (POLLS_PER_LOOK / 64)) == 0) ? XM_WAIT_LOOK : XM_WAIT_ON;
    }
    if (elapsed > YIELD_AFTER_NS) {
        offer_core(wait, elapsed);
    }
    return ((wait->polls % POLLS_PER_LOOK) == 0) ? XM_WAIT_LOOK : XM_WAIT_ON;
}

xcclResult_t xm_offload(struct xm_job *job, const char *what)
{
    /* The job's memory is the caller's: there is no leaving it behind. */
    struct xm_wait wait = xm_wait_begin_for_ever(what);

    if (xm_is_worker()) {
        job->run(job); /* may block here as well as there */
        return xcclSuccess;
    }
    job->waited_for = true;
    xcclResult_t res = xm_worker_start(job);
    if (res != xcclSuccess) {
        return res;
    }
    while (!xm_job_done(job)) {
        xm_wait_step(&wait);
    }
    return xcclSuccess;
}

void xm_settle_jobs(void)
{
    static bool    given_up; /* atomic */
    struct xm_wait wait = xm_wait_begin_for_ever("for kernels and memory of a device to be ready");

    if (xm_is_worker() || __atomic_load_n(&given_up, __ATOMIC_RELAXED)) {
        return;
    }
    wait.limit = settle_ns;
    while (__atomic_load_n(&xm_jobs_settling, __ATOMIC_ACQUIRE) > 0) {
        if (xm_wait_step(&wait) == XM_WAIT_EXPIRED) {
            xc_info("kernels are not loaded after %llu s: calls do not wait for it any more",
                    (unsigned long long)(settle_ns / second));
            __atomic_store_n(&given_up, true, __ATOMIC_RELAXED);
            return;
        }
    }
}

xcclResult_t xm_stream_wait(const struct xc_device_ops *dev, xcclStream_t stream)
{
    struct xm_wait wait = xm_wait_begin("for a copy between host and device memory");
    xcclResult_t   res;

    while ((res = dev->stream_query(stream)) == xcclInProgress) {
        if (xm_wait_step(&wait) == XM_WAIT_EXPIRED) {
            return xc_fail(xcclTimeout,
                           "a copy between host and device memory took longer than %ld s "
                           "(XCCL_TIMEOUT)",
                           xc_params()->timeout);
        }
    }
    return res;
}

xcclResult_t xm_stream_wait_apart(const struct xc_device_ops *dev, xcclStream_t stream)
{
    uint64_t     begun = xm_now_ns();
    xcclResult_t res;

    while ((res = dev->stream_query(stream)) == xcclInProgress) {
        uint64_t elapsed = xm_now_ns() - begun;
        if (elapsed > second) {
            return xm_stream_wait(dev, stream);
        }
        if (elapsed > YIELD_AFTER_NS) {
            sched_yield();
        }
    }
    return res;
}
