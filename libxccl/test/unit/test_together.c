/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies that begin together (data/kernel_copies.c): each is carried out once, by a command to the
 * kernel that lingers or by a launch, whatever the thread does while it waits for that kernel.
 */
#include <string.h>

#include "check.h"
#include "data/kernel_state.h"
#include "data/mappings.h"

enum { SIZE = 100, MOST = 64 };

static struct xm_kernel_shared shared;
static uint32_t                finished[XM_KERNEL_SLOTS];
static int                     held;       /* mappings */
static bool                    lingers;    /* a kernel does */
static int                     commands;   /* to it, */
static int                     launches;   /* and launches */
static int                     made[MOST]; /* by where a copy goes */
static bool                    waits_long; /* until it has made progress once */

void xm_mappings_hold(void)
{
    held++;
}

void xm_mappings_let_go(void)
{
    held--;
}

static void make(uint64_t to, uint64_t from, uint64_t bytes)
{
    CHECK(held > 0, "what is copied from may be unmapped");
    CHECK((to < MOST) && (from == 1000 + to) && (bytes >= SIZE), "copy %llu",
          (unsigned long long)to);
    made[to]++;
}

static xcclResult_t launch(void *function, const unsigned grid[2], unsigned threads,
                           const void *what, xcclStream_t stream)
{
    const struct xk_batch *b = what;

    (void)function, (void)threads, (void)stream;
    launches++;
    for (unsigned i = 0; i < grid[1]; i++) {
        make(b->copy[i].to, b->copy[i].from, b->copy[i].bytes);
        *b->copy[i].done = b->copy[i].value;
    }
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

static xcclResult_t stream_query(xcclStream_t stream)
{
    (void)stream;
    return xcclInProgress;
}

static const struct xc_device_ops dev = {.name = "counting",
                                         .enter = enter,
                                         .leave = leave,
                                         .launch = launch,
                                         .stream_query = stream_query};

static struct xm_kernels kernels = {.dev = &dev, .shared = &shared, .finished = finished};

static struct xm_kernel_copy copies[MOST];

static void start(int number, size_t bytes)
{
    CHECK(xm_kernel_copy_start(&kernels, (void *)(uintptr_t)number,
                               (const void *)(uintptr_t)(1000 + number), bytes, &copies[number]),
          "copy %d", number);
}

/* Progress: another look at messages finds two more. */
static void look_around(void)
{
    enum xm_collect around = xm_kernel_copies_collected();

    waits_long = false;
    xm_kernel_copies_collect(XM_COLLECT_FEW);
    start(40, SIZE);
    start(41, SIZE);
    xm_kernel_copies_collect(around);
}

bool xm_linger_copies(struct xm_lingering *l, const struct xk_copy *c, unsigned count)
{
    (void)l;
    if (!lingers) {
        return false;
    }
    if (waits_long) {
        look_around();
    }
    commands++;
    for (unsigned i = 0; i < count; i++) {
        make(c[i].to, c[i].from, c[i].bytes);
    }
    return true;
}

bool xm_linger_copy(struct xm_lingering *l, enum xm_quick way, void *to, const void *from,
                    uint32_t bytes)
{
    const struct xk_copy c = {
        .to = (uint64_t)(uintptr_t)to, .from = (uint64_t)(uintptr_t)from, .bytes = bytes};

    (void)way;
    return xm_linger_copies(l, &c, 1);
}

static void expect(int first, int count, const char *what)
{
    for (int i = first; i < first + count; i++) {
        CHECK(made[i] == 1, "%s: copy %d is made %d times", what, i, made[i]);
        CHECK(xm_kernel_copy_query(&copies[i]) == xcclSuccess, "%s: copy %d is not over", what, i);
    }
    memset(made, 0, sizeof(made));
}

static void expect_calls(int told, int launched, const char *what)
{
    CHECK((commands == told) && (launches == launched), "%s: %d commands and %d launches", what,
          commands, launches);
    CHECK(held == 0, "%s: mappings are held", what);
    CHECK(xm_kernel_copies_collected() == XM_COLLECT_NONE, "%s: it collects still", what);
    commands = launches = 0;
}

static void test_few(void)
{
    lingers = true;
    xm_kernel_copies_collect(XM_COLLECT_FEW);
    for (int i = 0; i < 5; i++) {
        start(i, SIZE);
    }
    CHECK((commands == 0) && (xm_kernel_copy_query(&copies[0]) == xcclInProgress), "not yet");
    CHECK(xm_kernel_copies_collect(XM_COLLECT_NONE), "they are over");
    expect(0, 5, "few");
    expect_calls(1, 0, "few");
    CHECK(!xm_kernel_copies_collect(XM_COLLECT_NONE), "there was nothing");
}

static void test_nobody_lingers(void)
{
    lingers = false;
    xm_kernel_copies_collect(XM_COLLECT_FEW);
    for (int i = 0; i < 5; i++) {
        start(i, SIZE);
    }
    CHECK(!xm_kernel_copies_collect(XM_COLLECT_NONE), "they are under way");
    expect(0, 5, "without it");
    expect_calls(0, 1, "without it");
    xm_mappings_hold(); /* as callers do */
    start(6, SIZE);
    xm_mappings_let_go();
    expect(6, 1, "one alone");
    expect_calls(0, 1, "one alone");
}

/* More than a command has room for, and too long to be waited for. */
static void test_limits(void)
{
    lingers = true;
    xm_kernel_copies_collect(XM_COLLECT_FEW);
    for (int i = 0; i < XK_MAX_RANKS + 1; i++) {
        start(i, SIZE);
    }
    xm_kernel_copies_collect(XM_COLLECT_NONE);
    expect(0, XK_MAX_RANKS + 1, "nine");
    expect_calls(0, 1, "nine");
    xm_kernel_copies_collect(XM_COLLECT_FEW);
    start(0, 1 << 20);
    CHECK(launches == 1, "a long one is launched");
    start(1, SIZE);
    xm_kernel_copies_collect(XM_COLLECT_NONE);
    expect(0, 2, "a long one and another");
    expect_calls(1, 1, "a long one and another");
}

/* Of many none is waited for, but those that the host waits for in any case. */
static void test_many(void)
{
    lingers = true;
    xm_kernel_copies_collect(XM_COLLECT_MANY);
    for (int i = 0; i < XK_BATCH + 2; i++) {
        start(i, 1 << 20);
    }
    CHECK(launches == 1, "a launch for sixteen, whatever their size");
    xm_kernel_copies_collect(XM_COLLECT_SHORT);
    CHECK(launches == 2, "those of before do not wait for what is looked at next");
    start(30, 64 << 10);
    CHECK(launches == 3, "nor does a long one");
    for (int i = 31; i < 31 + XK_MAX_RANKS; i++) {
        xm_kernel_copies_wait();
        start(i, SIZE);
    }
    CHECK(commands == 1, "a whole command is carried out");
    xm_kernel_copies_collect(XM_COLLECT_NONE);
    expect_calls(1, 3, "many");
    for (int i = 0; i < XK_BATCH + 2; i++) {
        CHECK(made[i] == 1, "one of many is made %d times", made[i]);
        CHECK(xm_kernel_copy_query(&copies[i]) == xcclSuccess, "one of many");
    }
    expect(30, 1 + XK_MAX_RANKS, "many");
}

/* While it waits for the kernel, the thread collects others and has them carried out. */
static void test_progress(void)
{
    lingers = waits_long = true;
    xm_kernel_copies_collect(XM_COLLECT_FEW);
    for (int i = 0; i < 3; i++) {
        start(i, SIZE);
    }
    CHECK(xm_kernel_copies_collect(XM_COLLECT_NONE), "they are over");
    CHECK((made[40] == 1) && (made[41] == 1), "the others, too: %d, %d", made[40], made[41]);
    CHECK((xm_kernel_copy_query(&copies[40]) == xcclSuccess) &&
              (xm_kernel_copy_query(&copies[41]) == xcclSuccess),
          "and it is known");
    expect(0, 3, "those of before");
    expect_calls(2, 0, "progress");
}

int main(void)
{
    test_few();
    test_nobody_lingers();
    test_limits();
    test_many();
    test_progress();
    CHECK(kernels.taken == 0, "slots are left: %llx", (unsigned long long)kernels.taken);
    return xt_done("copies that begin together");
}
