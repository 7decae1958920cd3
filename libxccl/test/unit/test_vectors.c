/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads that stand for ranks make calls whose counts only they know, and want them to be carried
 * otherwise now and then: all change over in the same call, however far one is ahead.
 */
#include "comms/vectors.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "check.h"

enum { MOST_RANKS = 4, CALLS = 60000, MOST_AHEAD = 300 };

static struct xm_slot  slot;
static struct xm_slot *of[MOST_RANKS] = {&slot, &slot, &slot, &slot};
static struct xm_slots slots = {.count = MOST_RANKS, .of = of};

struct rank {
    struct xm_comm xm;
    uint64_t       random;
    int            calls; /* atomic */
    int            ranks;
    bool           shown[CALLS];
};

static struct rank ranks[MOST_RANKS];

static unsigned draw(struct rank *r, unsigned below)
{
    r->random = r->random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(r->random >> 33) % below;
}

/* By more than any rank can be ahead, whatever else runs on the cores. */
static bool is_far_ahead(const struct rank *r)
{
    for (int i = 0; i < r->ranks; i++) {
        if (r->calls > __atomic_load_n(&ranks[i].calls, __ATOMIC_ACQUIRE) + MOST_AHEAD) {
            return true;
        }
    }
    return false;
}

static void *work(void *arg)
{
    struct rank *r = arg;

    for (int i = 0; i < CALLS; i++) {
        r->shown[i] = xm_vectors_call(&r->xm, draw(r, 20) == 0);
        if (r->shown[i]) {
            xm_vectors_seen(&r->xm, draw(r, 10) == 0);
        }
        __atomic_store_n(&r->calls, i + 1, __ATOMIC_RELEASE);
        if (draw(r, 40) == 0) {
            sched_yield(); /* the others are ahead meanwhile, or behind */
        }
        while (is_far_ahead(r)) {
            sched_yield();
        }
    }
    return NULL;
}

static void test_ranks(int size)
{
    pthread_t threads[MOST_RANKS];
    int       differ = 0, changes = 0;

    memset(&slot, 0, sizeof(slot));
    for (int i = 0; i < size; i++) {
        ranks[i].xm = (struct xm_comm){.slots = &slots, .size = size};
        ranks[i].random = (uint64_t)(i + 1) * 977;
        ranks[i].ranks = size;
        ranks[i].calls = 0;
    }
    for (int i = 0; i < size; i++) {
        CHECK(pthread_create(&threads[i], NULL, work, &ranks[i]) == 0, "a thread");
    }
    for (int i = 0; i < size; i++) {
        pthread_join(threads[i], NULL);
    }
    for (int call = 0; call < CALLS; call++) {
        for (int i = 1; i < size; i++) {
            differ += (ranks[i].shown[call] != ranks[0].shown[call]);
        }
        changes += (call > 0) && (ranks[0].shown[call] != ranks[0].shown[call - 1]);
    }
    CHECK(differ == 0, "%d ranks: %d times a call is carried otherwise", size, differ);
    CHECK(changes > 10, "%d ranks: %d changes", size, changes);
}

/* One rank wants it; all change over after the farthest call that was begun. */
static void test_farthest(void)
{
    struct xm_comm ahead = {.slots = &slots, .size = 2}, behind = ahead;
    int            call;

    memset(&slot, 0, sizeof(slot));
    for (call = 1; call < 100; call++) {
        CHECK(!xm_vectors_call(&ahead, call == 5), "call %d", call);
    }
    CHECK(!xm_vectors_call(&behind, false), "it decides"); /* 99 is the last that was begun */
    CHECK(xm_vectors_call(&ahead, false), "and the one that is ahead sees it");
    for (call = 2; call < 100; call++) {
        CHECK(!xm_vectors_call(&behind, false), "call %d", call);
    }
    CHECK(xm_vectors_call(&behind, false), "from the same call on");
}

/* Calls on host memory of all ranks are given back, several in a row. */
static void test_given_back(void)
{
    struct xm_comm alone = {.slots = &slots, .size = 1};
    int            shown = 0;

    memset(&slot, 0, sizeof(slot));
    CHECK(!xm_vectors_call(&alone, false) && !xm_vectors_call(&alone, false), "nobody wants it");
    CHECK(!xm_vectors_call(&alone, true) && xm_vectors_call(&alone, false), "one wants it");
    for (int i = 0; i < 50; i++) {
        xm_vectors_seen(&alone, i % 4 == 0);
        CHECK(xm_vectors_call(&alone, false), "some are on a device's memory");
    }
    while (xm_vectors_call(&alone, false)) {
        xm_vectors_seen(&alone, false);
        shown++;
    }
    CHECK((shown >= 6) && (shown < 10), "given back after %d calls", shown);
}

int main(void)
{
    test_farthest();
    test_given_back();
    test_ranks(2);
    test_ranks(MOST_RANKS);
    return xt_done("who carries calls with counts of each rank's own");
}
