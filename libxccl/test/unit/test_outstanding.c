/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that wait for a device and work that waits for other ranks keep out of each other's way. */
#include <pthread.h>
#include <unistd.h>

#include "check.h"
#include "comms/worker.h"
#include "data/outstanding.h"

enum { SOON_US = 20000, TIMES = 20 };

static struct xm_outstanding_stream *recorded_anew; /* while it is asked for, or NULL */

static int  under_way, alone_now, ended, disturbed; /* atomic */
static bool busy;                                   /* the event of the program's stream; atomic */
static int  resets_now;

static xcclResult_t enter(int device, void **saved_p)
{
    (void)device;
    *saved_p = NULL;
    return xcclSuccess;
}

static void leave(void *saved)
{
    (void)saved;
}

static xcclResult_t query(void *event)
{
    bool was_busy = __atomic_load_n(&busy, __ATOMIC_ACQUIRE);

    (void)event;
    if (recorded_anew != NULL) { /* by another thread, just now */
        __atomic_store_n(&busy, true, __ATOMIC_RELEASE);
        __atomic_store_n(&recorded_anew->recorded, true, __ATOMIC_RELEASE);
    }
    return was_busy ? xcclInProgress : xcclSuccess;
}

static unsigned resets(int device, bool look)
{
    (void)device;
    (void)look;
    return (unsigned)resets_now;
}

static const struct xc_device_ops dev = {
    .name = "fake", .enter = enter, .leave = leave, .event_query = query, .resets = resets};

static int       threads_made;
static bool      no_threads;
static pthread_t made;

static void *work(void *job)
{
    ((struct xm_job *)job)->run(job);
    return NULL;
}

xcclResult_t xm_worker_start(struct xm_job *job)
{
    if (no_threads) {
        return xcclSystemError;
    }
    threads_made++;
    return (pthread_create(&made, NULL, work, job) == 0) ? xcclSuccess : xcclSystemError;
}

static void *be_alone(void *times)
{
    for (int i = 0; i < *(const int *)times; i++) {
        xm_alone_begin();
        __atomic_store_n(&alone_now, 1, __ATOMIC_RELEASE);
        __atomic_add_fetch(&disturbed, __atomic_load_n(&under_way, __ATOMIC_ACQUIRE),
                           __ATOMIC_RELAXED);
        usleep(100);
        __atomic_store_n(&alone_now, 0, __ATOMIC_RELEASE);
        xm_alone_end();
    }
    __atomic_add_fetch(&ended, 1, __ATOMIC_ACQ_REL);
    return NULL;
}

static bool has_ended(void)
{
    usleep(SOON_US);
    return __atomic_load_n(&ended, __ATOMIC_ACQUIRE) > 0;
}

static void begin(pthread_t *thread)
{
    static const int once = 1;

    ended = 0;
    pthread_create(thread, NULL, be_alone, (void *)(uintptr_t)&once);
}

static void test_waits(void)
{
    pthread_t thread;

    xm_outstanding_begin();
    xm_outstanding_begin();
    begin(&thread);
    CHECK(!has_ended(), "two are outstanding");
    xm_outstanding_end();
    CHECK(!has_ended() && xm_outstanding_any(), "one is left");
    xm_outstanding_begin();
    xm_outstanding_end();
    xm_outstanding_end();
    pthread_join(thread, NULL);
    CHECK((ended == 1) && !xm_outstanding_any(), "none is");
}

/* One after the other, with no time in between. */
static void test_back_to_back(void)
{
    static const int times = TIMES;
    pthread_t        threads[2];
    long             calls = 0, beside = 0;

    ended = 0;
    for (int i = 0; i < 2; i++) {
        pthread_create(&threads[i], NULL, be_alone, (void *)(uintptr_t)&times);
    }
    while (__atomic_load_n(&ended, __ATOMIC_ACQUIRE) < 2) {
        xm_outstanding_begin();
        __atomic_store_n(&under_way, 1, __ATOMIC_RELEASE);
        beside += __atomic_load_n(&alone_now, __ATOMIC_ACQUIRE);
        __atomic_store_n(&under_way, 0, __ATOMIC_RELEASE);
        xm_outstanding_end();
        calls++;
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK(disturbed == 0, "%d times something was begun meanwhile", disturbed);
    CHECK(beside == 0, "%ld of %ld calls beside one that is alone", beside, calls);
}

/* Nobody waits for the end of what is on a stream: an event tells. */
static void test_streams(void)
{
    struct xm_outstanding_stream stream = {.dev = &dev, .recorded = true}, idle = {.dev = &dev};
    pthread_t                    thread;

    busy = true;
    xm_outstanding_add(&stream);
    xm_outstanding_add(&idle);
    begin(&thread);
    CHECK(!has_ended() && xm_outstanding_any(), "a stream has work");
    xm_outstanding_begin();
    xm_outstanding_end();
    CHECK(!has_ended(), "still");
    __atomic_store_n(&busy, false, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    CHECK(!stream.recorded && !xm_outstanding_any(), "it is over");

    busy = stream.recorded = true;
    resets_now = 1;
    begin(&thread);
    pthread_join(thread, NULL);
    CHECK(ended == 1, "a reset has ended it");
    resets_now = 0;
    stream.recorded = true;
    xm_outstanding_remove(&stream);
    begin(&thread);
    pthread_join(thread, NULL);
    CHECK(ended == 1, "the communicator is freed");
    xm_outstanding_remove(&idle);
    xm_outstanding_remove(&idle);
}

/* A thread that only asks takes nothing for over that another one has enqueued meanwhile. */
static void test_recorded_anew(void)
{
    struct xm_outstanding_stream stream = {.dev = &dev, .recorded = true};
    pthread_t                    thread;

    xm_outstanding_add(&stream);
    busy = false;
    recorded_anew = &stream;
    CHECK(!xm_outstanding_any(), "it was over when it was asked for");
    recorded_anew = NULL;
    begin(&thread);
    CHECK(!has_ended() && xm_outstanding_any(), "what was enqueued then is not over");
    __atomic_store_n(&busy, false, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    xm_outstanding_remove(&stream);
}

/* ---- jobs, one after the other on one thread ---- */

struct job {
    struct xm_alone_job job;
    int                 prepared; /* when it was, and */
    int                 run;
};

static int order; /* atomic */

static void prepare(struct xm_alone_job *job)
{
    ((struct job *)job)->prepared = __atomic_add_fetch(&order, 1, __ATOMIC_ACQ_REL);
}

static void run(struct xm_alone_job *job)
{
    CHECK(!xm_alone_try(), "another would be, too");
    ((struct job *)job)->run = __atomic_add_fetch(&order, 1, __ATOMIC_ACQ_REL);
}

static void test_jobs(void)
{
    struct job jobs[3] = {
        {.job = {prepare, run, NULL}}, {.job = {NULL, run, NULL}}, {.job = {prepare, run, NULL}}};

    xm_outstanding_begin();
    CHECK(!xm_alone_try(), "something is outstanding");
    for (int i = 0; i < 3; i++) {
        CHECK(xm_alone_start(&jobs[i].job) == xcclSuccess, "job %d", i);
    }
    usleep(SOON_US);
    CHECK((threads_made == 1) && (__atomic_load_n(&order, __ATOMIC_ACQUIRE) <= 2),
          "%d threads wait", threads_made);
    xm_outstanding_end();
    pthread_join(made, NULL);
    for (int i = 0; i < 3; i++) {
        CHECK((jobs[i].run > 0) && (jobs[i].run > jobs[i].prepared), "job %d was run", i);
    }
    CHECK((jobs[0].prepared > 0) && (jobs[1].prepared == 0), "what is to be prepared was");
    CHECK(xm_alone_try(), "nothing is outstanding");
    xm_alone_end();

    no_threads = true;
    CHECK(xm_alone_start(&jobs[0].job) == xcclSystemError, "there is no thread");
    no_threads = false;
    order = jobs[1].run = 0;
    CHECK(xm_alone_start(&jobs[1].job) == xcclSuccess, "now there is one");
    pthread_join(made, NULL);
    CHECK((threads_made == 2) && (order == 1) && (jobs[1].run == 1), "for that job alone");
}

int main(void)
{
    test_jobs();
    test_waits();
    test_back_to_back();
    test_streams();
    test_recorded_anew();
    return xt_done("what is outstanding");
}
