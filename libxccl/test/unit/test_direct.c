/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How ranks join the direct path, leave it and join anew: what they take they give back, and they
 * number operations alike. Two ranks of one process, each with a device of its own.
 */
#include "check.h"
#include "comms/agree.h"
#include "comms/node.h"
#include "comms/order.h"
#include "direct/direct.h"
#include "host_arena.h"

enum { RANKS = 2, MIB = 1 << 20 };

const struct xm_join *xm_comm_join;

static struct xm_arena *arenas[RANKS];

static int shares; /* how often the order of operations heard that a device is shared */

void xm_order_share(void)
{
    shares++;
}

bool xm_comm_is_broken(const struct xm_comm *xm)
{
    return xm->broken;
}

void xm_node_apply(struct xm_comm *xm, bool all_see)
{
    xm->slots_agreed = all_see;
}

/* A communicator as each rank has it. */
struct pair {
    struct xm_comm  xm[RANKS];
    struct xm_slots slots;
    int             devices[RANKS];
    const char     *jobs[RANKS]; /* how many processes were started with it; NULL: as it is */
};

static void be_in_job(const struct pair *p, int rank)
{
    if (p->jobs[rank] != NULL) {
        setenv("OMPI_COMM_WORLD_SIZE", p->jobs[rank], 1);
    }
}

static void begin(struct pair *p)
{
    memset(p, 0, sizeof(*p));
    for (int i = 0; i < RANKS; i++) {
        p->xm[i] = (struct xm_comm){
            .rank = i, .size = RANKS, .group = 1, .one_node = true, .slots = &p->slots};
        p->devices[i] = i;
    }
}

/* All say what they have, and judge that alike. */
static enum xm_joining ask(struct pair *p)
{
    char           *words = calloc(RANKS, xm_comm_join->bytes);
    enum xm_joining verdicts[RANKS];

    for (int i = 0; i < RANKS; i++) {
        be_in_job(p, i);
        CHECK(xm_comm_join->wanted(&p->xm[i]), "rank %d wants it", i);
        xm_comm_join->fill(&p->xm[i], (p->devices[i] >= 0) ? &host_device : NULL, p->devices[i],
                           words + (size_t)i * xm_comm_join->bytes);
    }
    for (int i = 0; i < RANKS; i++) {
        be_in_job(p, i);
        verdicts[i] = xm_comm_join->judge(&p->xm[i], words);
    }
    CHECK(verdicts[0] == verdicts[1], "%d, %d", (int)verdicts[0], (int)verdicts[1]);
    for (int i = 0; i < RANKS; i++) {
        CHECK((p->xm[i].direct != NULL) == (verdicts[i] == XM_JOINED), "what it has then");
    }
    free(words);
    return verdicts[0];
}

static void part(struct pair *p)
{
    for (int i = 0; i < RANKS; i++) {
        xm_comm_join->leave(&p->xm[i]);
    }
}

/* The first time the ranks only map each other's memory. */
static void test_first(void)
{
    struct pair p;

    begin(&p);
    CHECK(ask(&p) == XM_JOIN_LATER, "nothing is mapped yet");
    CHECK(xm_arena_used(arenas[0]) == xm_arena_used(arenas[1]), "used alike");
    CHECK(ask(&p) == XM_JOINED, "now it is");
    CHECK(p.xm[0].slots_agreed, "and all see all slots");
    for (int i = 0; i < RANKS; i++) {
        const struct xm_direct *d = p.xm[i].direct;
        CHECK(d->words->ranks.rank == (uint32_t)i, "rank %u", d->words->ranks.rank);
        for (int k = 0; k < RANKS; k++) {
            uint64_t at = (uint64_t)(uintptr_t)xm_arena_base(arenas[k]) + p.xm[k].direct->offset;
            CHECK(d->words->ranks.workspace[k] == at, "rank %d's, as rank %d sees it", k, i);
        }
    }
    part(&p);
}

/* Numbers go on where the last ones in the memory of any rank ended, for all ranks. */
static void test_numbers(void)
{
    struct pair p;
    uint64_t    offset;
    uint32_t    first;

    begin(&p);
    CHECK(xm_arena_take(arenas[1], MIB, &offset, &first) == XM_ARENA_ROOM, "room");
    xm_arena_give(arenas[1], offset, MIB, 300);
    CHECK(ask(&p) == XM_JOINED, "joined");
    for (int i = 0; i < RANKS; i++) {
        struct xm_direct *d = p.xm[i].direct;
        CHECK(xm_direct_done(d, 300) && !xm_direct_done(d, 301), "what came before is over");
        CHECK(xm_direct_next(d, 1) == 301, "rank %d: the first is %u", i, d->number);
        CHECK(!xm_direct_alone(d, 302), "it is under way");
        xm_direct_set_done(d, 301);
        CHECK(xm_direct_alone(d, 302), "it is over");
        CHECK((d->last == LAST) && !xm_comm_join->spent(&p.xm[i]), "the last is %u", d->last);
        d->number = LAST - 1;
        CHECK(!xm_comm_join->spent(&p.xm[i]), "one is left");
        CHECK(xm_direct_next(d, 1) == LAST, "that one");
        CHECK(xm_comm_join->spent(&p.xm[i]), "then there are no more");
    }
    part(&p);
    CHECK(ask(&p) == XM_JOINED, "anew");
    CHECK(xm_direct_next(p.xm[0].direct, 1) == 1, "from the first on, in memory that was cleared");
    part(&p);
}

static int free_words(void)
{
    int at[XM_ARENA_WORDS], n = 0;

    while ((n < XM_ARENA_WORDS) && ((at[n] = xm_arena_take_words(arenas[0])) >= 0)) {
        n++;
    }
    for (int i = 0; i < n; i++) {
        xm_arena_give_words(arenas[0], at[i]);
    }
    return n;
}

/* However often they do, and where one of them has no room: all is given back. */
static void test_given_back(void)
{
    enum { LIVES = 3 * XM_ARENA_WORDS };
    struct pair p, others[8];
    size_t      begun = xm_arena_used(arenas[0]);
    int         joined = 0, queues_before, full = 0, words = free_words();

    begin(&p);
    for (int i = 0; i < LIVES; i++) {
        joined += (ask(&p) == XM_JOINED);
        part(&p);
    }
    CHECK(joined == LIVES, "%d of %d", joined, LIVES);
    for (joined = 0; joined < 8; joined++) {
        begin(&others[joined]);
        if (ask(&others[joined]) != XM_JOINED) {
            break;
        }
    }
    CHECK((joined > 1) && (joined < 8), "room for %d", joined);
    queues_before = queues;
    for (int i = 0; i < LIVES; i++) {
        full += (ask(&p) == XM_JOIN_FULL);
    }
    CHECK(full == LIVES, "then there is none");
    part(&others[0]);
    for (int i = 1; i < joined; i++) {
        CHECK(ask(&p) == XM_JOINED, "%d: what was left is used again", i);
        part(&p);
        part(&others[i]);
    }
    CHECK(xm_arena_used(arenas[0]) == begun, "%zu bytes, %zu", begun, xm_arena_used(arenas[0]));
    CHECK(free_words() == words, "words for %d, for %d", words, free_words());
    CHECK(queues <= queues_before, "%d queues, %d", queues_before, queues);
}

/* The device may still use what was broken. */
static void test_broken(void)
{
    struct pair p;
    size_t      begun = xm_arena_used(arenas[0]);

    begin(&p);
    CHECK(ask(&p) == XM_JOINED, "joined");
    size_t                  used = xm_arena_used(arenas[0]);
    struct xm_direct       *held = xm_direct_hold(&p.xm[0]);
    struct xm_arena_words  *words = held->words;
    const struct xm_direct *other = p.xm[1].direct;
    CHECK((held->number == other->number) && (words->abort == 0), "alike");
    part(&p);
    CHECK((p.xm[0].direct == NULL) && (xm_arena_used(arenas[0]) == used), "an operation has it");
    xm_direct_break(held);
    CHECK(words->abort != 0, "kernels give up");
    xm_direct_release(held);
    CHECK((xm_arena_used(arenas[0]) == used) && (used > begun), "it stays");
    CHECK(xm_arena_used(arenas[1]) == begun, "not that of another rank");
}

static void never(struct pair *p, const char *why)
{
    CHECK(ask(p) == XM_JOIN_NEVER, "%s", why);
    for (int i = 0; i < RANKS; i++) {
        CHECK_HAS(p->xm[i].direct_reason, why);
    }
    CHECK(xm_arena_used(arenas[0]) == xm_arena_used(arenas[1]), "nothing is kept");
}

static void test_never(void)
{
    struct pair p;

    begin(&p);
    p.xm[1].slots = NULL;
    never(&p, "rank 1: it does not see the memory of all processes");
    CHECK(!p.xm[0].slots_agreed, "nor may the others use theirs");
    begin(&p);
    p.xm[0].slots = p.xm[1].slots = NULL;
    p.xm[1].slot = -1;
    never(&p, "rank 1: 256 of its communicators use device memory already");
    begin(&p);
    p.devices[0] = -1;
    never(&p, "rank 0: no device is in use");
    begin(&p);
    p.devices[1] = NO_DEVICE;
    never(&p, "rank 1: ");
}

static void leave(struct pair *p)
{
    for (int i = 0; i < RANKS; i++) {
        xm_comm_join->leave(&p->xm[i]);
    }
}

/* A job of as many ranks as the communicator, or of more. */
static void share(struct pair *p, const char *job, unsigned most)
{
    int before = shares;

    setenv("OMPI_COMM_WORLD_SIZE", job, 1);
    setenv("OMPI_COMM_WORLD_RANK", "0", 1);
    begin(p);
    p->devices[1] = 0;
    CHECK(ask(p) == XM_JOINED, "under MPS");
    CHECK(shares == before + RANKS, "the order of operations hears of it");
    for (int i = 0; i < RANKS; i++) {
        CHECK(p->xm[i].direct->shared, "rank %d", i);
        CHECK(p->xm[i].direct->most_blocks == most, "%u blocks, not %u",
              p->xm[i].direct->most_blocks, most);
        xm_comm_join->leave(&p->xm[i]);
    }
}

/* All kernels that may wait at once find room, also those of ranks that nobody knows of yet. */
static void test_shared(void)
{
    struct pair p;

    at_once = true;
    room = 128;
    share(&p, "6", 128 / 4 / 6);
    share(&p, "100", 128 / 4 / 16);
    room = 20;
    share(&p, "100", 1);
    room = 128;
    share(&p, "2", 128 / 4 / 2);
    share(&p, "100", 128 / 4 / 2); /* all are known now */
    begin(&p);
    setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
    CHECK(ask(&p) == XM_JOINED, "each on a device of its own");
    CHECK(!p.xm[0].direct->shared && (p.xm[0].direct->most_blocks == 128 / 4),
          "room is left for another job");
    leave(&p);
    at_once = false;
    room = 0;
    begin(&p);
    CHECK(ask(&p) == XM_JOINED, "where processes take turns");
    CHECK(p.xm[0].direct->most_blocks == UINT_MAX, "none has to be left");
    leave(&p);
    unsetenv("OMPI_COMM_WORLD_SIZE");
    unsetenv("OMPI_COMM_WORLD_RANK");
}

/* One of two ranks that were started together, and one that was spawned: neither knows who else is
 * on their devices. */
static void test_spawned(void)
{
    struct pair p;

    at_once = true;
    room = 128;
    setenv("OMPI_COMM_WORLD_RANK", "0", 1);
    begin(&p);
    p.jobs[0] = "2";
    p.jobs[1] = "1";
    CHECK(ask(&p) == XM_JOINED, "each on a device of its own");
    for (int i = 0; i < RANKS; i++) {
        CHECK(p.xm[i].direct->shared && (p.xm[i].direct->most_blocks == 128 / 4 / 2),
              "rank %d: up to %u blocks", i, p.xm[i].direct->most_blocks);
    }
    leave(&p);
    at_once = false;
    room = 0;
    unsetenv("OMPI_COMM_WORLD_SIZE");
    unsetenv("OMPI_COMM_WORLD_RANK");
}

/* Ranks that share a device without MPS: their kernels may not wait for each other. */
static void test_in_turns(void)
{
    struct pair p;

    begin(&p);
    CHECK((ask(&p) == XM_JOINED) && !p.xm[0].direct->in_turns, "each on a device of its own");
    leave(&p);
    begin(&p);
    p.devices[1] = 0;
    CHECK(ask(&p) == XM_JOINED, "for what needs no kernels that wait");
    for (int i = 0; i < RANKS; i++) {
        CHECK(p.xm[i].direct->in_turns, "rank %d", i);
        CHECK(!p.xm[i].doubled, "others are not carried");
    }
    leave(&p);
}

int main(void)
{
    setenv("XCCL_DIRECT_MEMORY", "16", 1);
    for (int i = 0; i < RANKS; i++) {
        arenas[i] = xm_arena_of(&host_device, i);
        CHECK(xm_arena_state(arenas[i]) == XM_ARENA_READY, "%s", xm_arena_reason(arenas[i]));
    }
    xm_direct_init();
    test_first();
    test_numbers();
    test_given_back();
    test_never();
    test_spawned();
    test_shared();
    test_in_turns();
    test_broken();
    return xt_done("joining the direct path");
}
