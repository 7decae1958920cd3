/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The arena of the direct path: workspaces never overlap, what is freed is used again, numbers of
 * operations go up in memory that is used again, and begin anew where it was cleared. On host
 * memory that stands for a device's.
 */
#include "check.h"
#include "host_arena.h"

enum { MIB = 1 << 20, UNIT = 64 << 10 };

static uint64_t random_state = 20261122;

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
        if (xm_arena_take(a, bytes, &held[i].offset, &held[i].first) != XM_ARENA_ROOM) {
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

    CHECK(xm_arena_take(a, UNIT, &offset, &first) == XM_ARENA_ROOM, "room for one");
    xm_arena_give(a, offset, UNIT, 400);
    CHECK(xm_arena_take(a, 2 * UNIT, &whole, &first) == XM_ARENA_ROOM, "room for two");
    CHECK((whole == offset) && (first == 401), "first %u after 400", first);
    CHECK(cleared == before, "nothing is cleared before numbers have come far");
    xm_arena_base(a)[whole] = 1;
    xm_arena_give(a, whole, 2 * UNIT, LAST / 2 + 1);
    CHECK((cleared == before + 1) && (xm_arena_base(a)[whole] == 0), "then it is");
    CHECK((xm_arena_take(a, UNIT, &offset, &first) == XM_ARENA_ROOM) && (first == 1),
          "and begins with %u", first);
    xm_arena_give(a, offset, UNIT, 1);
}

/* A full arena says whether room is on its way. */
static void test_room_soon(struct xm_arena *a)
{
    size_t   all = xm_arena_bytes(a) - xm_arena_used(a);
    uint64_t offset;
    uint32_t first;

    CHECK(xm_arena_take(a, all, &offset, &first) == XM_ARENA_ROOM, "all of it");
    CHECK(xm_arena_take(a, UNIT, &offset, &first) == XM_ARENA_NO_ROOM, "nobody gives any back");
    hold_jobs = true;
    xm_arena_give(a, UNIT, all, LAST);
    CHECK(xm_arena_take(a, UNIT, &offset, &first) == XM_ARENA_ROOM_SOON, "it is not cleared yet");
    hold_jobs = false;
    held_job->run(held_job);
    held_job = NULL;
    CHECK(xm_arena_take(a, UNIT, &offset, &first) == XM_ARENA_ROOM, "now it is");
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

/* What others can never use is not kept. */
static void test_not_shared(void)
{
    int                    blocks_before = blocks, queues_before = queues;
    const struct xm_arena *a = xm_arena_of(&host_device, NOT_SHARED);

    CHECK(xm_arena_state(a) == XM_ARENA_NEVER, "nobody could map it");
    CHECK_HAS(xm_arena_reason(a), "it cannot be shared");
    CHECK(blocks == blocks_before, "%d blocks of memory, %d before", blocks, blocks_before);
    CHECK(queues == queues_before, "%d queues, %d before", queues, queues_before);
}

/*
 * Arenas of others are mapped once, up to a number, then in the place of what nobody uses; and one
 * that cannot be turns some communicators away.
 */
static void test_opened(struct xm_arena *a)
{
    struct xm_arena_peer peers[XM_ARENA_OPENED + 1];
    uint64_t             keys[XM_ARENA_OPENED];

    for (uint64_t i = 0; i <= XM_ARENA_OPENED; i++) {
        peers[i] = (struct xm_arena_peer){100 + i, {.base = 1000 + i}};
    }
    CHECK(xm_arena_opened(a, xm_arena_key(a)) == xm_arena_base(a), "its own is there");
    CHECK(!xm_arena_open(a, peers, XM_ARENA_OPENED + 1), "more than there can be");
    CHECK(xm_arena_open(a, peers, 2) && xm_arena_open(a, peers, 3), "one after the other");
    CHECK((xm_arena_list_opened(a, keys) == 3) && (mapped == 3), "three: %d are mapped", mapped);
    CHECK(xm_arena_opened(a, 101) == (char *)1001, "the second");
    CHECK(xm_arena_opened(a, 103) == NULL, "the fourth is not");
    CHECK(xm_arena_open(a, peers, XM_ARENA_OPENED) && !xm_arena_turns_away(a), "as many as can be");
    CHECK(xm_arena_open(a, &peers[XM_ARENA_OPENED], 1) && !xm_arena_turns_away(a), "one more");
    CHECK((xm_arena_opened(a, 100 + XM_ARENA_OPENED) != NULL) && (xm_arena_opened(a, 103) == NULL),
          "for the first of those that were not listed");
    CHECK(mapped == XM_ARENA_OPENED, "%d are mapped", mapped);
    CHECK(xm_arena_list_opened(a, keys) == XM_ARENA_OPENED, "and known");
    CHECK(xm_arena_open(a, &peers[3], 1) && (xm_arena_opened(a, 103) == NULL), "all are in use");
    xm_arena_let_go(a, 101);
    CHECK(xm_arena_open(a, &peers[3], 1) && (xm_arena_opened(a, 103) == NULL), "listed twice");
    xm_arena_let_go(a, 101);
    CHECK(xm_arena_open(a, &peers[3], 1) && (xm_arena_opened(a, 103) != NULL), "nobody uses one");
    CHECK((xm_arena_opened(a, 101) == NULL) && (mapped == XM_ARENA_OPENED), "%d", mapped);
    CHECK(!xm_arena_turns_away(a), "room is no reason to give up");
    xm_arena_let_go(a, 104);
    for (int failure = 0; failure < 3; failure++) {
        int away = 0;
        CHECK(xm_arena_open(a, &(struct xm_arena_peer){.key = 1}, 1), "another try");
        while (xm_arena_turns_away(a)) {
            away++;
        }
        CHECK(away == 1 << failure, "out of reach: %d go without", away);
    }
}

/* What lies in the place of another's arena is unmapped first. */
static void test_in_the_way(struct xm_arena *a)
{
    struct xm_arena_peer peer = {90, {.base = 900}};

    in_the_way = 900;
    goes_after = 2;
    CHECK(xm_arena_open(a, &peer, 1) && (xm_arena_opened(a, 90) == NULL), "it is still there");
    CHECK(!xm_arena_turns_away(a), "but goes");
    CHECK(xm_arena_open(a, &peer, 1) && xm_arena_open(a, &peer, 1), "later on");
    CHECK((xm_arena_opened(a, 90) == (char *)900) && !xm_arena_turns_away(a), "it has gone");
    in_the_way = 0;
    mapped--;
}

int main(void)
{
    setenv("XCCL_DIRECT_MEMORY", "8", 1);
    struct xm_arena *a = xm_arena_of(&host_device, 0), *none = xm_arena_of(&host_device, NO_DEVICE);

    CHECK(xm_arena_of(&host_device, 0) == a, "one for a device");
    CHECK((xm_arena_state(none) == XM_ARENA_NEVER), "none where the device cannot be entered");
    CHECK(xm_arena_state(a) == XM_ARENA_READY, "%s", xm_arena_reason(a));
    CHECK(xm_arena_bytes(a) == 8 * MIB, "%zu bytes", xm_arena_bytes(a));
    test_numbers(a);
    test_room_soon(a);
    test_workspaces(a);
    test_words(a);
    test_queues(a);
    test_not_shared();
    test_in_the_way(xm_arena_of(&host_device, 1));
    test_opened(a);
    return xt_done("memory of the direct path");
}
