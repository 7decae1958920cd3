/* SPDX-License-Identifier: BSD-3-Clause */
/* What a rank reads of another's calls is whole, however far the other one is ahead. */
#include "check.h"
#include "comms/slots.h"
#include "comms/wait.h"
#include <pthread.h>
#include <string.h>

enum { CALLS = 30000000 };

static struct xm_slot   slot;
static struct xm_slot  *all[] = {&slot};
static struct xm_slots  slots = {.count = 1, .mine = &slot, .of = all};
static uint64_t         made; /* atomic: calls, of all threads */
static struct xm_slots *shared = &slots;

/* There is no board here. */
struct xm_board *xm_board_open(const struct xm_board_address *address)
{
    (void)address;
    return NULL;
}

bool xm_board_threads(const struct xm_board *board)
{
    (void)board;
    return false;
}

struct xm_slot *xm_board_slot(struct xm_board *board, int number)
{
    (void)board;
    (void)number;
    return NULL;
}

/* Nobody waits here. */
struct xm_wait xm_wait_begin(const char *what)
{
    return (struct xm_wait){.what = what};
}

enum xm_wait_verdict xm_wait_step(struct xm_wait *wait)
{
    (void)wait;
    return XM_WAIT_EXPIRED;
}

/* What takes the place of a call is another one. */
static enum xm_coll coll_of(uint64_t number)
{
    return ((number / XM_SLOT_CALLS) % 2 == 0) ? XM_ALLREDUCE : XM_BCAST;
}

static enum xm_coll not_coll_of(uint64_t number)
{
    return (coll_of(number) == XM_BCAST) ? XM_ALLREDUCE : XM_BCAST;
}

static void *make_calls(void *unused)
{
    (void)unused;
    for (uint64_t number = 1; number <= CALLS; number++) {
        xm_slots_call(shared, XM_ON_DEVICE, coll_of(number));
        __atomic_store_n(&made, number, __ATOMIC_RELEASE);
    }
    return NULL;
}

static void test_far_ahead(void)
{
    pthread_t    other;
    enum xm_coll found;
    long         looks = 0, seen = 0, wrong = 0;

    pthread_create(&other, NULL, make_calls, NULL);
    for (uint64_t last = 0; last < CALLS; looks++) {
        last = __atomic_load_n(&made, __ATOMIC_ACQUIRE);
        /* The oldest there is, which is replaced next. */
        uint64_t number = (last >= XM_SLOT_CALLS) ? last - XM_SLOT_CALLS + 1 : last;
        wrong += (number > 0) && (xm_slots_mismatch(shared, number, coll_of(number), &found) >= 0);
        seen +=
            (number > 0) && (xm_slots_mismatch(shared, number, not_coll_of(number), &found) == 0);
    }
    pthread_join(other, NULL);
    CHECK(seen > 0, "no call was read in %ld looks", looks);
    CHECK(wrong == 0, "%ld of %ld calls were read as others", wrong, looks);
}

static void test_one_call(void)
{
    enum xm_coll found = XM_BCAST;
    uint64_t     number = slots.calls + 1;

    CHECK(xm_slots_absent(&slots, number, 0) == 0, "it has not come to that");
    CHECK(xm_slots_mismatch(&slots, number, XM_BCAST, &found) == -1, "so nothing is known");
    xm_slots_call(&slots, XM_ON_HOST, XM_ALLREDUCE);
    CHECK(xm_slots_absent(&slots, number, 0) == -1, "it has");
    CHECK(xm_slots_mismatch(&slots, number, XM_ALLREDUCE, &found) == 0, "with host memory");
    CHECK(found == XM_ALLREDUCE, "in the same collective");
    xm_slots_call(&slots, XM_ON_ANY, XM_ALLREDUCE);
    CHECK(xm_slots_mismatch(&slots, number + 1, XM_ALLREDUCE, &found) == -1, "any will do");
    CHECK(xm_slots_mismatch(&slots, number + 1, XM_BCAST, &found) == 0, "another collective");
    slot.calls[number % XM_SLOT_CALLS].number = XM_SLOT_REPLACED;
    CHECK(xm_slots_mismatch(&slots, number, XM_BCAST, &found) == -1, "it is being replaced");
    CHECK(xm_slots_absent(&slots, number, 0) == -1, "so it has come there");
}

/* The other rank has come before this one does. */
static void test_agreement(void)
{
    static struct xm_slot both[2];
    struct xm_slot       *of[] = {&both[0], &both[1]};
    struct xm_slots       x = {.count = 2, .mine = &both[0], .of = of};
    int64_t               mine[XM_SLOT_TERMS], agreed[XM_SLOT_TERMS];

    for (int t = 0; t < XM_SLOT_TERMS; t++) {
        mine[t] = t + 1;
        both[1].agreements[1].terms[t] = both[1].agreements[0].terms[t] = 10 * (t + 1);
    }
    both[1].agreements[1].number = 1;
    CHECK(xm_slots_agree(&x, mine, agreed) == -1, "both have come");
    CHECK((agreed[0] == 11) && (agreed[XM_SLOT_TERMS - 2] == 11 * (XM_SLOT_TERMS - 1)), "sums");
    CHECK(agreed[XM_SLOT_TERMS - 1] == 10 * XM_SLOT_TERMS, "the largest: the other rank's");
    mine[XM_SLOT_TERMS - 1] = 1000;
    both[1].agreements[0].number = 2;
    CHECK(xm_slots_agree(&x, mine, agreed) == -1, "again");
    CHECK(agreed[XM_SLOT_TERMS - 1] == 1000, "the largest: this one's");
}

/* What was shown stays until all ranks have looked at it, in whatever order they do. */
static void test_shows(void)
{
    static struct xm_slot both[2];
    struct xm_slot       *of[] = {&both[0], &both[1]};
    struct xm_slots       x = {.count = 2, .mine = &both[0], .of = of};
    static struct xm_show show;

    for (uint64_t n = 1; n <= XM_SLOT_SHOWS; n++) {
        CHECK(xm_slots_may_show(&x), "there is room for number %d", (int)n);
        show.buffers[0].offset = n;
        show.at[1] = 10 * n;
        CHECK(xm_slots_show(&x, &show) == n, "they are counted");
        CHECK(xm_slots_shown(&x, n, 1) == NULL, "the other rank has not come to it");
    }
    CHECK(!xm_slots_may_show(&x), "nobody has looked");
    both[1].read = 1;
    xm_slots_read(&x, 2);
    CHECK(!xm_slots_may_show(&x), "this rank has not looked at the first");
    xm_slots_read(&x, 1);
    CHECK((both[0].read == 2) && xm_slots_may_show(&x), "both have");
    xm_slots_read(&x, 1);
    xm_slots_read(&x, 2);
    CHECK(xm_slots_show(&x, &show) == XM_SLOT_SHOWS + 1, "one more");
    CHECK(!xm_slots_may_show(&x), "the other has not looked at the second");
    CHECK((xm_slots_shown(&x, 2, 0)->buffers[0].offset == 2) &&
              (xm_slots_shown(&x, 2, 0)->at[1] == 20),
          "which is still there");
    CHECK(xm_slots_shown(&x, 1, 0) == NULL, "and the first is not");
    for (uint64_t n = XM_SLOT_SHOWS; n > 2; n--) {
        xm_slots_read(&x, n);
    }
    CHECK(both[0].read == XM_SLOT_SHOWS, "what is said again counts once: %d", (int)both[0].read);
}

/* Who gave up first stays, and the reason is that rank's, cut where it is long. */
static void test_broken(void)
{
    static struct xm_slot both[2];
    struct xm_slot       *of[] = {&both[0], &both[1]};
    struct xm_slots       first = {.count = 2, .rank = 1, .mine = &both[1], .of = of};
    struct xm_slots       second = {.count = 2, .rank = 0, .mine = &both[0], .of = of};
    char                  text[2 * XM_SLOT_WHY];
    const char           *why;

    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    CHECK((xm_slots_broken(&second, &why) == -1) && (why == NULL), "nobody has");
    xm_slots_break(&first, text);
    CHECK((xm_slots_broken(&second, &why) == 1) && (strlen(why) == XM_SLOT_WHY - 1), "rank 1 has");
    xm_slots_break(&second, "because of rank 1");
    xm_slots_break(&first, "again");
    CHECK((xm_slots_broken(&first, &why) == 1) && (why[0] == 'x'), "it still has: %s", why);
}

/* Until the ranks have agreed, one that has left may have given its slot to another communicator.
 */
static void test_left(void)
{
    static struct xm_slot ranks[3];
    struct xm_slot       *of[] = {&ranks[0], &ranks[1], &ranks[2]};
    struct xm_slots       three = {.count = 3, .mine = &ranks[1], .of = of};

    xm_slots_leave(&three, false);
    CHECK((ranks[0].left == 1) && (ranks[1].left == 0) && (ranks[2].left == 0), "the first alone");
    xm_slots_leave(&three, true);
    CHECK((ranks[0].left == 2) && (ranks[1].left == 1) && (ranks[2].left == 1), "all");
}

int main(void)
{
    test_left();
    test_agreement();
    test_shows();
    test_broken();
    test_one_call();
    slots.calls = 0;
    test_far_ahead();
    return xt_done("calls of other ranks");
}
