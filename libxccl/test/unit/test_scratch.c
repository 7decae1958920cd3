/* SPDX-License-Identifier: BSD-3-Clause */
/* Scratch memory is kept and used again, whatever its size, within bounds. On a counting device. */
#include <stdlib.h>

#include "check.h"
#include "comms/wait.h"
#include "data/pools.h"

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

static int    host_allocs, device_allocs, frees;
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

static const struct xc_device_ops device = {
    .name = "counting",
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

int main(int argc, char **argv)
{
    static const size_t sizes[] = {1, 4, 1000, 16384, 65536, 65537, 1 << 20, (64 << 20) + 1};
    struct xm_scratch   scratch;
    void               *ptr = NULL;

    if ((argc > 2) && (strcmp(argv[2], "little") == 0)) {
        setenv("XCCL_STAGING", "4", 1);
        test_ordered();
        return xt_done("scratch memory, of which little is pinned");
    }
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        test_reuse(sizes[i]);
    }
    test_left_behind();
    test_waste();
    test_small();
    test_reuse_alone();
    test_events();
    int before = host_allocs;
    call(4, 1);
    CHECK(host_allocs == before + 1, "memory of one device is not given to another");
    /* What is too large to be kept is given back at once. */
    call((size_t)3 << 30, 0);
    CHECK(outstanding < (size_t)1 << 30, "%zu bytes are kept", outstanding);

    xm_scratch_begin(&scratch, &device, 0);
    for (int i = 0; i < XM_SCRATCH_MAX; i++) {
        CHECK(xm_scratch_take(&scratch, XM_POOL_HOST, 8, &ptr) == xcclSuccess, "block %d", i);
    }
    CHECK(xm_scratch_take(&scratch, XM_POOL_HOST, 8, &ptr) == xcclInternalError, "one too many");
    xm_scratch_end(&scratch);
    xm_memory_finalize();
    CHECK((outstanding == 0) && (frees == host_allocs + device_allocs), "%zu bytes left",
          outstanding);
    CHECK(events == 0, "%d events left", events);
    test_full();
    return xt_done("scratch memory");
}
