/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The arena of the direct path: workspaces never overlap, what is freed is used again, numbers of
 * operations go up in memory that is used again, and begin anew where it was cleared. On host
 * memory that stands for a device's.
 */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "comms/wait.h"
#include "direct/arena.h"

enum { LAST = 1000, MIB = 1 << 20, UNIT = 64 << 10 };

static int      queues, cleared;
static uint64_t random_state = 20261122;

/* Jobs are done at once, and kernels are there. */
xcclResult_t xm_worker_start(struct xm_job *job)
{
    job->run(job);
    return xcclSuccess;
}

struct xm_kernels *xm_kernels_of(const struct xc_device_ops *dev, int device)
{
    static int kernels;

    (void)dev;
    (void)device;
    return (struct xm_kernels *)(void *)&kernels;
}

bool xm_kernels_failed(const struct xc_device_ops *dev, int device)
{
    (void)dev;
    (void)device;
    return false;
}

uint32_t xm_kernels_last_number(const struct xm_kernels *k)
{
    (void)k;
    return LAST;
}

uint64_t xm_now_ns(void)
{
    return 0;
}

static xcclResult_t enter(int device, void **saved_p)
{
    *saved_p = NULL;
    return (device == 0) ? xcclSuccess : xcclSystemError;
}

static void leave(void *saved)
{
    (void)saved;
}

xcclResult_t xm_kernel_queue_create(struct xm_kernels *k, struct xm_kernel_queue *q)
{
    (void)k;
    *q = (struct xm_kernel_queue){.stream = (xcclStream_t)malloc(1)};
    queues++;
    return xcclSuccess;
}

void xm_kernel_queue_destroy(struct xm_kernels *k, struct xm_kernel_queue *q)
{
    (void)k;
    free((void *)q->stream);
    queues--;
}

static xcclResult_t stream_sync(xcclStream_t stream)
{
    (void)stream;
    return xcclSuccess;
}

static xcclResult_t set_async(void *to, int byte, size_t bytes, xcclStream_t stream)
{
    (void)stream;
    memset(to, byte, bytes);
    cleared++;
    return xcclSuccess;
}

static xcclResult_t alloc(void **ptr_p, size_t bytes)
{
    *ptr_p = malloc(bytes);
    return xcclSuccess;
}

static xcclResult_t ipc_export(const void *ptr, struct xc_ipc *ipc)
{
    *ipc = (struct xc_ipc){.base = (uint64_t)(uintptr_t)ptr};
    return xcclSuccess;
}

static const struct xc_device_ops device = {
    .name = "host",
    .enter = enter,
    .leave = leave,
    .stream_sync = stream_sync,
    .set_async = set_async,
    .mem_alloc = alloc,
    .host_alloc = alloc,
    .ipc_export = ipc_export,
};

/* Sizes of every kind, taken and given in any order. Each has a byte of its own all over it. */
static void test_workspaces(struct xm_arena *a)
{
    enum { MANY = 64, ROUNDS = 4000 };
    struct {
        uint64_t offset;
        size_t   bytes;
        uint32_t first;
    } held[MANY] = {{0, 0, 0}};
    size_t begun = xm_arena_used(a);
    int    refused = 0, overlaps = 0, backwards = 0;

    for (int round = 0; round < ROUNDS; round++) {
        random_state = random_state * 6364136223846793005u + 1442695040888963407u;
        int   i = (int)((random_state >> 33) % MANY);
        char *base = xm_arena_base(a);
        if (held[i].bytes > 0) {
            for (size_t b = 0; b < held[i].bytes; b += 1024) {
                overlaps += (base[held[i].offset + b] != (char)i);
            }
            xm_arena_give(a, held[i].offset, held[i].bytes, held[i].first + 3);
            held[i].bytes = 0;
            continue;
        }
        size_t bytes = 1 + (random_state >> 40) % (10 * UNIT);
        if (!xm_arena_take(a, bytes, &held[i].offset, &held[i].first)) {
            refused++;
            continue;
        }
        backwards += (held[i].first == 0) || (held[i].first > LAST);
        held[i].bytes = bytes;
        memset(base + held[i].offset, i, bytes);
    }
    CHECK((refused > 0) && (refused < ROUNDS / 2), "%d were refused", refused);
    CHECK(overlaps == 0, "%d bytes of others", overlaps);
    CHECK(backwards == 0, "%d numbers that nobody can have", backwards);
    for (int i = 0; i < MANY; i++) {
        if (held[i].bytes > 0) {
            xm_arena_give(a, held[i].offset, held[i].bytes, 1);
        }
    }
    CHECK(xm_arena_used(a) == begun, "%zu bytes at first, %zu at the end", begun, xm_arena_used(a));
}

static void test_numbers(struct xm_arena *a)
{
    uint64_t offset, whole;
    uint32_t first;
    int      before = cleared;

    CHECK(xm_arena_take(a, UNIT, &offset, &first), "room for one");
    xm_arena_give(a, offset, UNIT, 400);
    CHECK(xm_arena_take(a, 2 * UNIT, &whole, &first), "room for two");
    CHECK((whole == offset) && (first == 401), "first %u after 400", first);
    CHECK(cleared == before, "nothing is cleared before numbers have come far");
    xm_arena_base(a)[whole] = 1;
    xm_arena_give(a, whole, 2 * UNIT, LAST / 2 + 1);
    CHECK((cleared == before + 1) && (xm_arena_base(a)[whole] == 0), "then it is");
    CHECK(xm_arena_take(a, UNIT, &offset, &first) && (first == 1), "and begins with %u", first);
    xm_arena_give(a, offset, UNIT, 1);
}

static void test_words(struct xm_arena *a)
{
    int at[XM_ARENA_WORDS];

    for (int i = 0; i < XM_ARENA_WORDS; i++) {
        at[i] = xm_arena_take_words(a);
        CHECK((at[i] >= 0) && (xm_arena_words(a, at[i])->abort == 0), "words %d", i);
        xm_arena_words(a, at[i])->abort = 1;
    }
    CHECK(xm_arena_take_words(a) == -1, "there are no more");
    xm_arena_give_words(a, at[7]);
    CHECK(xm_arena_take_words(a) == at[7], "but what was given back");
    CHECK(xm_arena_words(a, at[7])->abort == 0, "zeroed");
}

static void test_queues(struct xm_arena *a)
{
    enum { MANY = 40 };
    struct xm_kernel_queue held[MANY];
    int                    before = queues;

    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < MANY; i++) {
            CHECK(xm_arena_take_queue(a, &held[i]) == xcclSuccess, "queue %d", i);
        }
        for (int i = 0; i < MANY; i++) {
            xm_arena_give_queue(a, &held[i]);
        }
    }
    CHECK(queues <= before + 16, "%d queues at first, %d at the end", before, queues);
}

int main(void)
{
    setenv("XCCL_DIRECT_MEMORY", "8", 1);
    struct xm_arena *a = xm_arena_of(&device, 0), *none = xm_arena_of(&device, 1);

    CHECK(xm_arena_of(&device, 0) == a, "one for a device");
    CHECK((xm_arena_state(none) == XM_ARENA_NEVER), "none where the device cannot be entered");
    CHECK(xm_arena_state(a) == XM_ARENA_READY, "%s", xm_arena_reason(a));
    CHECK(xm_arena_bytes(a) == 8 * MIB, "%zu bytes", xm_arena_bytes(a));
    test_numbers(a);
    test_workspaces(a);
    test_words(a);
    test_queues(a);
    return xt_done("memory of the direct path");
}
