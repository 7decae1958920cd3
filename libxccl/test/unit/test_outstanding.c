/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that wait for a device and work that waits for other ranks keep out of each other's way. */
#include <pthread.h>
#include <unistd.h>

#include "check.h"
#include "data/outstanding.h"

enum { SOON_US = 20000, TIMES = 20 };

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
    (void)event;
    return __atomic_load_n(&busy, __ATOMIC_ACQUIRE) ? xcclInProgress : xcclSuccess;
}

static unsigned resets(int device, bool look)
{
    (void)device;
    (void)look;
    return (unsigned)resets_now;
}

static const struct xc_device_ops dev = {
    .name = "fake", .enter = enter, .leave = leave, .event_query = query, .resets = resets};

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

int main(void)
{
    test_waits();
    test_back_to_back();
    test_streams();
    return xt_done("what is outstanding");
}
