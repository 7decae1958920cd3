/* SPDX-License-Identifier: BSD-3-Clause */
/* Scratch memory is kept and used again, whatever its size, within bounds. On a counting device. */
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "comms/wait.h"
#include "data/events.h"
#include "data/pools.h"

static long later_s; /* than it is */

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *t)
{
    int res = (int)syscall(SYS_clock_gettime, clock, t);

    t->tv_sec += later_s;
    return res;
}

/* Nothing here owes MPI progress. */
xcclResult_t xm_offload(struct xm_job *job, const char *what)
{
    (void)what;
    job->run(job);
    return xcclSuccess;
}

/* What is given back on a thread is given back here: the counts are exact. */
xcclResult_t xm_worker_start(struct xm_job *job)
{
    job->run(job);
    return xcclSuccess;
}

static int    host_allocs, device_allocs, frees, pins, unpins;
static bool   refuses_to_pin;
static size_t outstanding;

static xcclResult_t count_alloc(void **ptr_p, size_t bytes, int *counter)
{
    size_t *block = malloc(sizeof(*block));

    *block = bytes; /* the test's memory is never touched: only its size matters */
    *ptr_p = block;
    outstanding += bytes;
    (*counter)++;
    return xcclSuccess;
}

static xcclResult_t host_alloc(void **ptr_p, size_t bytes)
{
    return count_alloc(ptr_p, bytes, &host_allocs);
}

static size_t room; /* of the device; 0: it is never full */

static xcclResult_t mem_alloc(void **ptr_p, size_t bytes)
{
    if ((room > 0) && (outstanding + bytes > room)) {
        return xcclSystemError;
    }
    return count_alloc(ptr_p, bytes, &device_allocs);
}

static xcclResult_t count_free(void *ptr)
{
    outstanding -= *(size_t *)ptr;
    free(ptr);
    frees++;
    return xcclSuccess;
}

static xcclResult_t host_pin(void *ptr, size_t bytes)
{
    CHECK((uintptr_t)ptr % (2 << 20) == 0, "%p", ptr);
    CHECK(bytes % (2 << 20) == 0, "%zu bytes", bytes);
    if (refuses_to_pin) {
        return xcclSystemError;
    }
    pins++;
    return xcclSuccess;
}

static xcclResult_t host_unpin(void *ptr)
{
    (void)ptr;
    unpins++;
    return xcclSuccess;
}

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

static int events; /* that there are */

static xcclResult_t event_create(void **event_p)
{
    *event_p = malloc(1);
    events++;
    return xcclSuccess;
}

static xcclResult_t event_destroy(void *event)
{
    free(event);
    events--;
    return xcclSuccess;
}

static int streams;

static xcclResult_t stream_create(xcclStream_t *stream_p)
{
    *stream_p = malloc(1);
    streams++;
    return xcclSuccess;
}

static xcclResult_t stream_destroy(xcclStream_t stream)
{
    free(stream);
    streams--;
    return xcclSuccess;
}

static unsigned times_reset;

static unsigned resets(int number, bool look)
{
    (void)number;
    (void)look;
    return times_reset;
}

static const struct xc_device_ops device = {
    .name = "counting",
    .resets = resets,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .enter = enter,
    .leave = leave,
    .host_alloc = host_alloc,
    .host_free = count_free,
    .mem_alloc = mem_alloc,
    .mem_free = count_free,
};

/* The same, which pins memory of the process's own. */
static const struct xc_device_ops pinning = {
    .name = "pinning",
    .enter = enter,
    .leave = leave,
    .host_alloc = host_alloc,
    .host_free = count_free,
    .host_pin = host_pin,
    .host_unpin = host_unpin,
};

/* One call that takes a block of each pool. */
static void call(size_t bytes, int number)
{
    struct xm_scratch scratch;
    void             *ptr = NULL;

    xm_scratch_begin(&scratch, &device, number);
    CHECK(xm_scratch_take(&scratch, XM_POOL_HOST, bytes, &ptr) == xcclSuccess, "host");
    CHECK(*(size_t *)ptr >= bytes, "%zu bytes for %zu", *(size_t *)ptr, bytes);
    CHECK(xm_scratch_take(&scratch, XM_POOL_DEVICE, bytes, &ptr) == xcclSuccess, "device");
    CHECK(*(size_t *)ptr >= bytes, "%zu bytes for %zu", *(size_t *)ptr, bytes);
    xm_scratch_end(&scratch);
}

/* However small or large, a thousand calls allocate once. */
static void test_reuse(size_t bytes)
{
    int before = host_allocs + device_allocs;

    for (int i = 0; i < 1000; i++) {
        call(bytes, 0);
    }
    int made = host_allocs + device_allocs - before;
    CHECK(made <= 2, "%d allocations for calls of %zu bytes", made, bytes);
}

/* Idle memory of other sizes, as much as is kept at most, does not keep what comes later out. */
static void test_left_behind(void)
{
    enum { BLOCKS = 8 };
    struct xm_scratch scratch[BLOCKS];
    void             *ptr = NULL;

    for (int i = 0; i < BLOCKS; i++) {
        xm_scratch_begin(&scratch[i], &device, 0);
        CHECK(xm_scratch_take(&scratch[i], XM_POOL_DEVICE, 32 << 20, &ptr) == xcclSuccess, "one");
    }
    for (int i = 0; i < BLOCKS; i++) {
        xm_scratch_end(&scratch[i]);
    }
    test_reuse(80 << 20); /* fits none of those from before */
    CHECK(outstanding < (size_t)1 << 30, "%zu bytes are kept", outstanding);
}

/* What a stream copies from later is never memory that is not pinned. */
static void test_ordered(void)
{
    enum { BYTES = 5 << 20 }; /* more than XCCL_STAGING allows */
    struct xm_scratch scratch;
    void             *ptr = NULL;

    xm_scratch_begin(&scratch, &device, 0);
    CHECK(xm_scratch_take(&scratch, XM_POOL_HOST, BYTES, &ptr) == xcclSuccess, "not pinned");
    xm_scratch_end(&scratch);
    xm_scratch_begin_ordered(&scratch, &device, 0);
    CHECK(xm_scratch_take(&scratch, XM_POOL_HOST, BYTES, &ptr) != xcclSuccess, "nor is this");
    xm_scratch_end(&scratch);
}

/* Little data does not hold a large block, which a call that needs it would have to allocate. */
static void test_waste(void)
{
    enum { LARGE = 16 << 20 };
    struct xm_scratch little;
    void             *ptr = NULL;

    call(LARGE, 2);
    xm_scratch_begin(&little, &device, 2);
    CHECK(xm_scratch_take(&little, XM_POOL_HOST, LARGE / 16, &ptr) == xcclSuccess, "little");
    CHECK(*(size_t *)ptr < LARGE / 2, "%zu bytes for %d", *(size_t *)ptr, LARGE / 16);
    xm_scratch_end(&little);
}

/* Many small messages under way do not use up what may be pinned. */
static void test_small(void)
{
    enum { MANY = 1000 };
    static struct xm_scratch scratch[MANY];
    void                    *ptr = NULL;
    size_t                   before = outstanding;

    for (int i = 0; i < MANY; i++) {
        xm_scratch_begin(&scratch[i], &device, 3);
        CHECK(xm_scratch_take(&scratch[i], XM_POOL_HOST, 8, &ptr) == xcclSuccess, "block %d", i);
    }
    CHECK(outstanding - before <= (size_t)8 << 20, "%zu bytes", outstanding - before);
    for (int i = 0; i < MANY; i++) {
        xm_scratch_end(&scratch[i]);
    }
}

/* Idle events are used again, on their device; of many not all are kept. */
/* What is there is taken without a call of the driver's; what is not, is not. */
static void test_reuse_alone(void)
{
    enum { DEVICE = 3, BYTES = 5000 };
    struct xm_scratch scratch;
    xcclStream_t      stream = NULL, used = NULL;
    void             *first = NULL, *ptr = NULL;

    xm_scratch_begin(&scratch, &device, DEVICE);
    CHECK(!xm_scratch_reuse(&scratch, XM_POOL_HOST, BYTES, &ptr, &used), "there is no stream");
    CHECK(xm_copy_stream(&device, DEVICE, &stream) == xcclSuccess, "a stream");
    CHECK(!xm_scratch_reuse(&scratch, XM_POOL_HOST, BYTES, &ptr, &used), "there is no memory");
    CHECK(xm_scratch_take(&scratch, XM_POOL_HOST, BYTES, &first) == xcclSuccess, "memory");
    CHECK(!xm_scratch_reuse(&scratch, XM_POOL_HOST, BYTES, &ptr, &used), "it is in use");
    xm_scratch_end(&scratch);
    int before = host_allocs;
    CHECK(xm_scratch_reuse(&scratch, XM_POOL_HOST, BYTES, &ptr, &used), "both are there");
    CHECK((ptr == first) && (used == stream) && (host_allocs == before) && (streams == 1),
          "the same ones");
    xm_scratch_end(&scratch);
    xm_scratch_begin(&scratch, &device, DEVICE + 1);
    CHECK(!xm_scratch_reuse(&scratch, XM_POOL_HOST, BYTES, &ptr, &used), "another device's");
}

static void test_events(void)
{
    enum { MANY = 1000 };
    void *held[MANY], *other = NULL;

    for (int i = 0; i < MANY; i++) {
        CHECK(xm_event_take(&device, 0, &held[i]) == xcclSuccess, "event %d", i);
    }
    CHECK(events == MANY, "%d events", events);
    for (int i = 0; i < MANY; i++) {
        xm_event_give(&device, 0, held[i]);
    }
    int kept = events;
    CHECK((kept > 0) && (kept < MANY / 2), "%d are kept", kept);
    CHECK((xm_event_take(&device, 0, &held[0]) == xcclSuccess) && (events == kept), "one of them");
    CHECK((xm_event_take(&device, 1, &other) == xcclSuccess) && (events == kept + 1),
          "not for another device");
    xm_event_give(&device, 0, held[0]);
    xm_event_give(&device, 1, other);
}

/* A device that the program resets: no event of before is used again, nor destroyed. */
static void test_events_of_before(void)
{
    enum { NUMBER = 7, MADE = 6 }; /* a device of its own */
    void *made[MADE], *again;
    int   at_first = events;

    CHECK(xm_event_take(&device, NUMBER, &made[0]) == xcclSuccess, "in use during the reset");
    CHECK(xm_event_take(&device, NUMBER, &made[1]) == xcclSuccess, "idle then");
    xm_event_give(&device, NUMBER, made[1]);
    times_reset++;
    xm_event_give(&device, NUMBER, made[0]);
    for (int i = 2; i < 5; i++) {
        CHECK(xm_event_take(&device, NUMBER, &made[i]) == xcclSuccess, "event %d", i);
        CHECK((made[i] != made[0]) && (made[i] != made[1]), "event %d is of before", i);
    }
    CHECK(events == at_first + 5, "%d events", events - at_first);
    xm_event_give(&device, NUMBER, made[2]);
    CHECK((xm_event_take(&device, NUMBER, &again) == xcclSuccess) && (again == made[2]), "kept");
    for (int i = 2; i < 5; i++) {
        xm_event_give(&device, NUMBER, made[i]);
    }
    times_reset++; /* and once more, with all of them idle */
    CHECK(xm_event_take(&device, NUMBER, &made[5]) == xcclSuccess, "after another reset");
    CHECK(events == at_first + MADE, "a new one");
    times_reset++;
    xm_event_give(&device, NUMBER, made[5]);
    CHECK(events == at_first + MADE, "none is destroyed");
    for (int i = 0; i < MADE; i++) {
        free(made[i]);
    }
    events = at_first;
    times_reset = 0;
}

/* A device that is full of idle blocks: they make room, and what is in use stays. */
static void test_full(void)
{
    struct xm_scratch used, wanted;
    void             *ptr = NULL;

    call(32 << 20, 0);
    call(4 << 20, 0);
    xm_scratch_begin(&used, &device, 0);
    CHECK(xm_scratch_take(&used, XM_POOL_DEVICE, 32 << 20, &ptr) == xcclSuccess, "in use");
    CHECK(*(size_t *)ptr == 32 << 20, "%zu", *(size_t *)ptr);
    xm_scratch_begin(&wanted, &device, 0);
    room = outstanding;
    void *other = NULL;
    CHECK(xm_scratch_take(&wanted, XM_POOL_DEVICE, (size_t)1 << 40, &other) != xcclSuccess,
          "too much in any case");
    CHECK(xm_scratch_take(&wanted, XM_POOL_DEVICE, 1000, &other) == xcclSuccess,
          "in the place of an idle one");
    CHECK(*(size_t *)ptr == 32 << 20, "what is in use stays");
    xm_scratch_end(&wanted);
    xm_scratch_end(&used);
    room = 0;
}

/* One call that takes so many blocks of host memory; the last one's address. */
static void *host_call(size_t bytes, int blocks)
{
    struct xm_scratch scratch;
    void             *ptr = NULL;

    xm_scratch_begin(&scratch, &pinning, 0);
    for (int i = 0; i < blocks; i++) {
        CHECK(xm_scratch_take(&scratch, XM_POOL_HOST, bytes, &ptr) == xcclSuccess, "block %d", i);
    }
    xm_scratch_end(&scratch);
    return ptr;
}

/* Large blocks are memory of the process's own, if that can be pinned, and not a child's. */
static void test_pinned(void)
{
    int before = host_allocs;

    host_call(1 << 20, 1);
    CHECK((host_allocs == before + 1) && (pins == 0), "a small one is the driver's");
    char *ptr = host_call((3 << 20) + 1, 1);
    CHECK((host_allocs == before + 1) && (pins == 1), "a large one is pinned");
    ptr[(4 << 20) - 1] = 1;
    pid_t child = fork();
    if (child == 0) {
        int pipes[2]; /* write() tells of a bad address, and kills nobody */
        _exit((pipe(pipes) == 0) && (write(pipes[1], ptr, 1) == 1));
    }
    int status = -1;
    CHECK((child > 0) && (waitpid(child, &status, 0) == child) && (status == 0), "%d", status);
    refuses_to_pin = true;
    host_call((size_t)100 << 20, 1);
    CHECK((host_allocs == before + 2) && (pins == 1), "or the driver's, if that fails");
    refuses_to_pin = false;
}

/* Beyond XCCL_STAGING it is ordinary memory, of which little is kept. */
static void test_little(void)
{
    int   before = pins + host_allocs;
    char *ptr = host_call((size_t)8 << 20, 1);

    CHECK((uintptr_t)ptr % (2 << 20) == 0, "in huge pages: %p", (void *)ptr);
    ptr[(8 << 20) - 1] = 1;
    CHECK(host_call((size_t)8 << 20, 1) == ptr, "that is kept");
    host_call((size_t)300 << 20, 1);
    CHECK(pins + host_allocs == before, "none of it is pinned");
}

/* What a program uses again and again stays, however much within XCCL_STAGING; for seconds. */
static void test_age(void)
{
    int before = pins;

    for (int i = 0; i < 100; i++) {
        host_call(((size_t)300 << 20) + 5, 3);
        later_s += 2;
    }
    CHECK(pins == before + 3, "%d times pinned", pins - before);
    int unpinned = unpins;
    later_s += 6;
    xm_pools_age();
    CHECK(unpins == unpinned, "%d times unpinned", unpins - unpinned);
    later_s += 4;
    xm_pools_age();
    CHECK(unpins >= unpinned + 3, "%d times unpinned", unpins - unpinned);
    CHECK(!xm_pools_hold_much, "there is nothing to look for");
    xm_memory_finalize();
    CHECK(pins == unpins, "%d pinned, %d unpinned", pins, unpins);
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {1, 4, 1000, 16384, 65536, 65537, 1 << 20, (64 << 20) + 1};
    struct xm_scratch   scratch;
    void               *ptr = NULL;

    if ((argc > 2) && (strcmp(argv[2], "little") == 0)) {
        setenv("XCCL_STAGING", "4", 1);
        test_ordered();
        test_little();
        return xt_done("scratch memory, of which little is pinned");
    }
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        test_reuse(sizes[i]);
    }
    test_left_behind();
    test_waste();
    test_small();
    test_reuse_alone();
    test_events_of_before();
    test_events();
    int before = host_allocs;
    call(4, 1);
    CHECK(host_allocs == before + 1, "memory of one device is not given to another");
    /* What is too large to be kept is given back at once, or when it was not used again. */
    call((size_t)3 << 30, 0);
    later_s += 11;
    xm_pools_age();
    CHECK(outstanding < (size_t)1 << 30, "%zu bytes are kept", outstanding);

    xm_scratch_begin(&scratch, &device, 0);
    for (int i = 0; i < XM_SCRATCH_MAX; i++) {
        CHECK(xm_scratch_take(&scratch, XM_POOL_HOST, 8, &ptr) == xcclSuccess, "block %d", i);
    }
    CHECK(xm_scratch_take(&scratch, XM_POOL_HOST, 8, &ptr) == xcclInternalError, "one too many");
    xm_scratch_trim(&scratch, 2);
    for (int i = 2; i < XM_SCRATCH_MAX; i++) {
        CHECK(xm_scratch_take(&scratch, XM_POOL_HOST, 8, &ptr) == xcclSuccess, "block %d again", i);
    }
    xm_scratch_end(&scratch);
    xm_memory_finalize();
    CHECK((outstanding == 0) && (frees == host_allocs + device_allocs), "%zu bytes left",
          outstanding);
    CHECK(events == 0, "%d events left", events);
    test_full();
    test_pinned();
    test_age();
    return xt_done("scratch memory");
}
