/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads that stand for ranks begin operations, agree again and again, and run ahead of each
 * other: an agreement counts from the same operation on for all, and for none before all know it.
 */
#include "comms/cutover.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "check.h"

enum { MOST_RANKS = 4, OPERATIONS = 60000, AGREEMENTS = 4000, BLOCKING_EVERY = 1500 };

static struct xm_slot    slot;
static struct xm_slot   *of[MOST_RANKS] = {&slot, &slot, &slot, &slot};
static struct xm_slots   slots = {.count = MOST_RANKS, .of = of};
static pthread_barrier_t barrier;
static int               posted[AGREEMENTS]; /* atomic: by so many ranks */
static bool              by_word[AGREEMENTS];

struct rank {
    int            number, size;
    uint64_t       first; /* number of the agreement before the first */
    struct xm_comm xm;
    uint64_t       random;
    bool           known;
    int            agreements;              /* posted */
    uint64_t       counts_from[AGREEMENTS]; /* 0: it never did */
};

static struct rank ranks[MOST_RANKS];

static unsigned draw(struct rank *r, unsigned below)
{
    r->random = r->random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(r->random >> 33) % below;
}

/* MPI may bring the result at any time after all have posted the agreement. */
static bool knows(struct rank *r)
{
    r->known =
        r->known || ((__atomic_load_n(&posted[r->agreements - 1], __ATOMIC_ACQUIRE) == r->size) &&
                     (draw(r, 3) > 0));
    return r->known;
}

static void post(struct rank *r)
{
    xm_cutover_begin(&r->xm);
    r->known = false;
    __atomic_add_fetch(&posted[r->agreements++], 1, __ATOMIC_ACQ_REL);
}

static void *work(void *arg)
{
    struct rank *r = arg;
    uint64_t     next = 1;
    bool         pending = false;

    while (r->xm.device_calls < OPERATIONS) {
        uint64_t op = ++r->xm.device_calls;
        bool     blocking = (op % BLOCKING_EVERY == 0), due = blocking;
        if (blocking) {
            pthread_barrier_wait(&barrier);
        } else if (pending && knows(r)) {
            due = xm_cutover_due(&r->xm);
            by_word[r->agreements - 1] |= due;
        }
        if (pending && due) {
            r->counts_from[r->agreements - 1] = op;
            pending = false;
            next = op + (uint64_t)(r->agreements % 5) * 7;
        }
        if (!pending && (op >= next) && (r->agreements < AGREEMENTS)) {
            post(r);
            pending = true;
        }
        if (draw(r, 40) == 0) {
            sched_yield(); /* the others are ahead meanwhile, or behind */
        }
    }
    return NULL;
}

static void test_ranks(int size, uint64_t first)
{
    pthread_t threads[MOST_RANKS];
    int       differ = 0, words = 0;

    memset(&slot, 0, sizeof(slot));
    memset(posted, 0, sizeof(posted));
    memset(by_word, 0, sizeof(by_word));
    pthread_barrier_init(&barrier, NULL, (unsigned)size);
    for (int i = 0; i < size; i++) {
        ranks[i] = (struct rank){.number = i, .size = size, .random = (uint64_t)(i + 1) * 977};
        ranks[i].xm = (struct xm_comm){.slots = &slots, .size = size, .agreement = first};
        CHECK(pthread_create(&threads[i], NULL, work, &ranks[i]) == 0, "a thread");
    }
    for (int i = 0; i < size; i++) {
        pthread_join(threads[i], NULL);
    }
    for (int a = 0; a < ranks[0].agreements; a++) {
        for (int i = 1; i < size; i++) {
            differ += (ranks[i].counts_from[a] != ranks[0].counts_from[a]);
        }
        words += by_word[a];
    }
    CHECK(differ == 0, "%d ranks: %d times an agreement counts elsewhere", size, differ);
    CHECK(words > 10, "%d ranks: %d of %d agreements counted without waiting", size, words,
          ranks[0].agreements);
    pthread_barrier_destroy(&barrier);
}

/* Before all know it nobody changes over, and then after the farthest operation begun. */
static void test_farthest(void)
{
    struct xm_comm ahead = {.slots = &slots, .size = 2}, behind = ahead;

    memset(&slot, 0, sizeof(slot));
    ahead.device_calls = behind.device_calls = 10;
    xm_cutover_begin(&ahead);
    xm_cutover_begin(&behind);
    for (ahead.device_calls = 11; ahead.device_calls < 500; ahead.device_calls++) {
        CHECK(!xm_cutover_due(&ahead), "operation %d", (int)ahead.device_calls);
    }
    behind.device_calls = 11; /* 499 is the last that was begun */
    CHECK(!xm_cutover_due(&behind), "it decides");
    CHECK(xm_cutover_due(&ahead), "and the one that is ahead sees it");
    for (behind.device_calls = 12; behind.device_calls < 500; behind.device_calls++) {
        CHECK(!xm_cutover_due(&behind), "operation %d", (int)behind.device_calls);
    }
    CHECK(xm_cutover_due(&behind), "from the same operation on");
}

/* What cannot be told in a word counts from no such operation on. */
static void test_too_far(void)
{
    struct xm_comm ahead = {.slots = &slots, .size = 2}, behind = ahead, blind = {.size = 2};

    memset(&slot, 0, sizeof(slot));
    xm_cutover_begin(&ahead);
    xm_cutover_begin(&behind);
    ahead.device_calls = 7;
    CHECK(!xm_cutover_due(&ahead), "the first to know");
    ahead.device_calls = UINT64_C(1) << 32;
    CHECK(!xm_cutover_due(&ahead), "it cannot tell that");
    behind.device_calls = 8;
    CHECK(!xm_cutover_due(&behind), "so nothing is decided");
    behind.device_calls = UINT64_C(1) << 33;
    CHECK(!xm_cutover_due(&ahead) && !xm_cutover_due(&behind), "ever");
    xm_cutover_begin(&blind);
    CHECK(!xm_cutover_due(&blind), "without slots neither");
}

int main(void)
{
    test_farthest();
    test_too_far();
    test_ranks(2, 0);
    test_ranks(MOST_RANKS, (1 << 20) - 30); /* their numbers begin anew */
    return xt_done("when an agreement counts");
}
