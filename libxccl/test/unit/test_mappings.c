/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Other processes' memory is mapped once for each device of this process, unmapped when it was
 * freed or when there are too many, and each mapping is closed once. On a driver that only counts.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "comms/mailbox.h"
#include "comms/worker.h"
#include "data/mappings.h"

enum { MOST = 256, JOBS = 2 * MOST, MANY = 4 * MOST };
enum { MIB = 1 << 20 };

static struct xm_job *jobs[JOBS];
static int            num_jobs;
static bool           no_threads;

static int      entered = -1; /* the device; -1: none */
static int      opens, closes, wrong;
static uint64_t stale; /* what lies there is still mapped; 0: nothing is */
static struct {
    uint64_t base;
    int      device;
    bool     open;
} opened[MANY];

/* Others are told while memory is mapped, and that it is over. */
static int mapping;

void xm_mailbox_maps(bool begins)
{
    mapping += begins ? 1 : -1;
    CHECK(mapping == (begins ? 1 : 0), "%d calls map memory", mapping);
}

/* Threads do their work when the test says so. */
xcclResult_t xm_worker_start(struct xm_job *job)
{
    if (no_threads) {
        return xcclSystemError;
    }
    jobs[num_jobs++] = job;
    return xcclSuccess;
}

static void run_jobs(void)
{
    for (int i = 0; i < num_jobs; i++) {
        jobs[i]->run(jobs[i]);
    }
    num_jobs = 0;
}

static xcclResult_t enter(int device, void **saved_p)
{
    *saved_p = NULL;
    entered = device;
    return xcclSuccess;
}

static void leave(void *saved)
{
    (void)saved;
    entered = -1;
}

static xcclResult_t ipc_open(const struct xc_ipc *ipc, void **ptr_p)
{
    if (ipc->base == stale) {
        return xcclInProgress;
    }
    opened[opens].base = ipc->base;
    CHECK(mapping == 1, "others are not told");
    opened[opens].device = entered;
    opened[opens].open = true;
    *ptr_p = &opened[opens];
    opens++;
    return xcclSuccess;
}

static xcclResult_t ipc_close(void *ptr)
{
    __typeof__(&opened[0]) o = ptr;

    wrong += !o->open || (o->device != entered);
    o->open = false;
    closes++;
    return xcclSuccess;
}

/* This process's own memory: what lies at any address, and how often it was exported. */
static struct xc_allocation own;
static bool                 is_told;
static int                  exports;

static bool mem_allocation(const void *ptr, struct xc_allocation *allocation_p)
{
    (void)ptr;
    *allocation_p = own;
    return is_told;
}

static xcclResult_t ipc_export(const void *ptr, struct xc_ipc *ipc_p)
{
    (void)ptr;
    exports++;
    *ipc_p = (struct xc_ipc){.base = own.base, .bytes = own.bytes, .id = own.id};
    ipc_p->handle[0] = (char)own.id;
    return (own.id != 0) ? xcclSuccess : xcclUnsupported;
}

static const struct xc_device_ops dev = {.name = "counting",
                                         .mem_allocation = mem_allocation,
                                         .ipc_export = ipc_export,
                                         .enter = enter,
                                         .leave = leave,
                                         .ipc_open = ipc_open,
                                         .ipc_close = ipc_close};

/* A runtime that does not tell. */
static const struct xc_device_ops untold = {.name = "counting", .ipc_export = ipc_export};

/* An allocation of another process; `id` tells it from what had the address before. */
static struct xc_ipc memory(uint64_t base, uint64_t id)
{
    return (struct xc_ipc){.base = base, .bytes = MIB, .id = id};
}

static xcclResult_t ask(uint64_t nonce, struct xc_ipc ipc, int device, char **base_p)
{
    void *saved;

    enter(device, &saved);
    xcclResult_t res = xm_mapping_of(nonce, &ipc, &dev, device, base_p);
    leave(saved);
    return res;
}

/* Nothing is mapped, and all that was is closed. */
static void begin_anew(void)
{
    run_jobs();
    xm_mappings_close();
    CHECK((opens == closes) && (wrong == 0), "%d opened, %d closed, %d wrongly", opens, closes,
          wrong);
    memset(opened, 0, sizeof(opened));
    opens = closes = wrong = 0;
    stale = 0;
}

static void test_kept(void)
{
    char *first = NULL, *again = NULL, *other = NULL;

    CHECK(ask(1, memory(16 * MIB, 1), 0, &first) == xcclSuccess, "mapped");
    CHECK((ask(1, memory(16 * MIB, 1), 0, &again) == xcclSuccess) && (again == first), "and kept");
    CHECK(ask(1, memory(16 * MIB, 1), 1, &other) == xcclSuccess, "for another device");
    CHECK((other != first) && (opens == 2), "it is mapped as well");
    CHECK((ask(1, memory(16 * MIB, 1), 0, &again) == xcclSuccess) && (again == first), "both stay");
    CHECK(ask(2, memory(16 * MIB, 1), 0, &other) == xcclSuccess, "another process's address");
    CHECK((other != first) && (opens == 3), "is other memory");
    CHECK(closes == 0, "nothing was freed");
    begin_anew();
}

/* Another allocation lies where one was. */
static void test_freed(void)
{
    char *first = NULL, *again = NULL, *other = NULL;

    CHECK(ask(1, memory(16 * MIB, 1), 0, &first) == xcclSuccess, "mapped");
    CHECK(ask(2, memory(32 * MIB, 1), 0, &other) == xcclSuccess, "that of another process");
    CHECK(ask(1, memory(16 * MIB, 2), 0, &again) == xcclInProgress, "the old one goes first");
    CHECK(ask(1, memory(64 * MIB, 1), 0, &again) == xcclInProgress,
          "nothing of the process is mapped meanwhile: it may be where the old one is");
    CHECK(ask(2, memory(64 * MIB, 1), 0, &other) == xcclSuccess, "but of another process");
    CHECK((opens == 3) && (closes == 0), "%d opened, %d closed", opens, closes);
    run_jobs();
    CHECK(closes == 1, "it went");
    CHECK((ask(1, memory(16 * MIB, 2), 0, &again) == xcclSuccess) && (again != first),
          "the new one");
    begin_anew();
}

/* The driver says that something is mapped at the place: what is near goes, else all. */
static void test_in_the_way(void)
{
    char *at = NULL;

    ask(1, memory(16 * MIB, 1), 0, &at);
    ask(1, memory(17 * MIB, 1), 0, &at);
    ask(1, memory(64 * MIB, 1), 0, &at);
    ask(2, memory(16 * MIB, 1), 0, &at);
    stale = 16 * MIB + MIB / 2;
    CHECK(ask(1, memory(stale, 2), 0, &at) == xcclInProgress, "what is near goes");
    run_jobs();
    CHECK((closes == 2) && opened[2].open && opened[3].open, "and nothing else");
    CHECK(ask(1, memory(stale, 2), 0, &at) == xcclInProgress, "it was not that, so all go");
    run_jobs();
    CHECK((closes == 3) && opened[3].open, "of this process");
    CHECK(ask(1, memory(stale, 2), 0, &at) == xcclUnhandledCudaError, "none was");
    begin_anew();
}

/* Something else is to lie there, of whatever process: what overlaps goes. */
static void test_way(void)
{
    struct xc_ipc large = {.base = 14 * MIB, .bytes = 8 * MIB, .id = 9};
    char         *at = NULL;

    ask(1, memory(16 * MIB, 1), 0, &at);
    ask(2, memory(20 * MIB, 1), 1, &at);
    ask(1, memory(64 * MIB, 1), 0, &at);
    CHECK(xm_mappings_make_way(&dev, &large), "two go");
    CHECK(xm_mappings_make_way(&dev, &large) && (num_jobs == 1), "they are on their way");
    run_jobs();
    CHECK((closes == 2) && opened[2].open, "%d have gone", closes);
    CHECK(!xm_mappings_make_way(&dev, &large), "none is there");
    begin_anew();
}

/* What somebody relies on stays, but for what was freed; and it is told whether any went before. */
static void test_pinned(void)
{
    char    *at = NULL, *first = NULL;
    uint32_t before = xm_mappings_pin();

    for (uint64_t i = 0; i <= MOST; i++) {
        ask(1, memory((i + 1) * 4 * MIB, 1), 0, (i == 0) ? &first : &at);
    }
    stale = 4 * MIB + MIB / 2;
    CHECK(ask(1, memory(stale, 2), 0, &at) == xcclInProgress, "something is in the way");
    struct xc_ipc large = {.base = 3 * MIB, .bytes = 8 * MIB, .id = 9};
    CHECK(xm_mappings_make_way(&dev, &large) && (num_jobs == 0), "and stays");
    CHECK((ask(1, memory(4 * MIB, 1), 0, &at) == xcclSuccess) && (at == first), "all are there");
    CHECK(xm_mappings_pin() == before, "none went");
    xm_mappings_unpin();
    CHECK(ask(1, memory(4 * MIB, 2), 0, &at) == xcclInProgress, "but what was freed");
    run_jobs();
    CHECK((closes == 1) && (xm_mappings_pin() == before + 1), "went");
    xm_mappings_unpin();
    xm_mappings_unpin();
    CHECK(ask(1, memory(stale, 2), 0, &at) == xcclInProgress, "what is in the way");
    run_jobs();
    CHECK(closes > 1, "goes now");
    begin_anew();
}

/* A call uses two buffers of one block, and what is in the way of one is not near: it goes. */
static void test_beside(void)
{
    char *at = NULL;

    ask(1, memory(64 * MIB, 1), 0, &at);
    for (int i = 0; i < 2; i++) {
        CHECK(ask(1, memory(16 * MIB, 3), 0, &at) == xcclSuccess, "the one, mapped each time");
        stale = 17 * MIB;
        CHECK(ask(1, memory(stale, 3), 0, &at) == xcclInProgress, "the other is not");
        run_jobs();
    }
    CHECK(!opened[0].open, "what was in the way went");
    begin_anew();
}

static void test_many(void)
{
    char *at = NULL, *first = NULL;

    for (uint64_t i = 0; i < MOST; i++) {
        ask(1, memory((i + 1) * 4 * MIB, 1), 0, (i == 0) ? &first : &at);
    }
    CHECK((ask(1, memory(4 * MIB, 1), 0, &at) == xcclSuccess) && (at == first), "used again");
    CHECK(num_jobs == 0, "there is room for all");
    CHECK(ask(1, memory((MOST + 1) * 4ull * MIB, 1), 0, &at) == xcclSuccess, "not for one more");
    run_jobs();
    CHECK((closes == 1) && !opened[1].open, "what was not used for longest goes");
    no_threads = true;
    CHECK(ask(1, memory((MOST + 2) * 4ull * MIB, 1), 0, &at) == xcclSuccess, "without threads too");
    no_threads = false;
    CHECK(ask(1, memory((MOST + 3) * 4ull * MIB, 1), 0, &at) == xcclSuccess, "then another goes");
    run_jobs();
    CHECK(closes == 2, "%d closed", closes);
    closes++; /* one stayed, since no thread could be had */
    begin_anew();
}

static void *run_them(void *unused)
{
    (void)unused;
    run_jobs();
    return NULL;
}

/* What somebody is about to use is not unmapped under it. */
static void test_held(void)
{
    char     *at = NULL;
    pthread_t thread;

    xm_mappings_hold();
    CHECK(ask(1, memory(16 * MIB, 1), 0, &at) == xcclSuccess, "looked up");
    CHECK(ask(1, memory(16 * MIB, 2), 0, &at) == xcclInProgress, "by others it is to go");
    pthread_create(&thread, NULL, run_them, NULL);
    usleep(20000);
    CHECK(__atomic_load_n(&closes, __ATOMIC_ACQUIRE) == 0, "not yet");
    xm_mappings_let_go();
    pthread_join(thread, NULL);
    CHECK(closes == 1, "now it has gone");
    begin_anew();
}

static bool exported(uint64_t base, uint64_t id)
{
    struct xc_ipc ipc;

    own = (struct xc_allocation){base, MIB, id};
    return (xm_export(&dev, &own, 0, &ipc) == xcclSuccess) && (ipc.base == base) &&
           (ipc.id == id) && (ipc.handle[0] == (char)id);
}

/* Once for as long as it lives; another allocation may have its address, or its place here. */
static void test_exported(void)
{
    is_told = true;
    CHECK(exported(MIB, 5) && exported(MIB, 5) && (exports == 1), "%d exports of one", exports);
    CHECK(exported(MIB, 6) && (exports == 2), "what has its address now");
    CHECK(exported(MIB, 5) && (exports == 2), "the first one is still known");
    CHECK(exported(2 * MIB, 5 + 16) && exported(MIB, 5) && (exports == 4), "another in its place");
    CHECK(!exported(MIB, 0), "what cannot be exported");
    is_told = false;
    exports = 0;
    for (int i = 0; i < 3; i++) {
        CHECK(!exported(MIB, 5) && (exports == 0), "the driver is asked for memory of a pool");
    }
    CHECK_HAS(xc_last_detail(), "cannot be shared");
    struct xc_ipc ipc;
    for (int i = 1; i < 3; i++) {
        CHECK((xm_export(&untold, &own, 0, &ipc) == xcclSuccess) && (exports == i),
              "what may be other memory soon");
    }
}

/* Whose number a call knows already: without a question, if it is kept and holds the address. */
static void test_exported_of_known(void)
{
    const void   *behind = (const void *)((uintptr_t)&own + MIB);
    struct xc_ipc ipc;
    int           before;

    is_told = true;
    CHECK(exported((uint64_t)(uintptr_t)&own, 7), "an allocation that holds what it is asked for");
    before = exports;
    is_told = false;
    CHECK((xm_export(&dev, &own, 7, &ipc) == xcclSuccess) && (ipc.id == 7) && (exports == before),
          "%d exports of what is known", exports - before);
    CHECK((xm_export(&untold, &own, 7 + 16, &ipc) == xcclSuccess) && (exports == before + 1),
          "another number of its place");
    CHECK((xm_export(&untold, behind, 7, &ipc) == xcclSuccess) && (exports == before + 2),
          "an address behind it");
    exports = 0;
}

int main(void)
{
    test_exported();
    test_exported_of_known();
    test_held();
    test_kept();
    test_freed();
    test_in_the_way();
    test_way();
    test_pinned();
    test_beside();
    test_many();
    return xt_done("mappings");
}
