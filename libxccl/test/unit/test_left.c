/* SPDX-License-Identifier: BSD-3-Clause */
/* Which sends do not wait for their receivers, by a clock and receivers that the test sets. */
#include "transfers/left.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "comms/mailbox.h"
#include "comms/wait.h"
#include "comms/worker.h"
#include "transfers/offer.h"

enum { PEER = 3, SHORT = 1000, LONG = 8000, FIRST_STAGED = 16, POLLS = 64 };
enum { US = 1000, MS = 1000 * 1000 };

static struct xm_offer offer;
static uint64_t        now = MS;
static bool            maps;             /* does the receiver map memory? */
static int             given[XM_OFFERS]; /* how often each offer was given back */

uint64_t xm_now_ns(void)
{
    return now;
}

bool xm_is_worker(void)
{
    return false;
}

bool xm_mailbox_is_mapping(int world_rank)
{
    CHECK(world_rank == PEER, "rank %d is asked for", world_rank);
    return maps;
}

bool xm_mailbox_is_closed(int world_rank)
{
    (void)world_rank;
    return true;
}

struct xm_offer *xm_offer_own(int slot)
{
    (void)slot;
    return &offer;
}

void xm_offer_give(int slot)
{
    given[slot]++;
}

bool xm_offer_move(struct xm_offer *o, uint64_t number, enum xm_offer_state from,
                   enum xm_offer_state to)
{
    bool moves = (o->state == xm_offer_word(number, from));

    o->state = moves ? xm_offer_word(number, to) : o->state;
    return moves;
}

xcclResult_t xm_offer_to_file(const struct xm_rendezvous *r, int *file_p)
{
    (void)r;
    *file_p = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return xcclSuccess;
}

xcclResult_t xm_offer_copy_to(const struct xm_rendezvous *r, void *at)
{
    memset(at, r->slot, offer.source.bytes);
    return xcclSuccess;
}

struct xm_wait xm_wait_begin(const char *what)
{
    return (struct xm_wait){.what = what};
}

enum xm_wait_verdict xm_wait_step(struct xm_wait *wait)
{
    (void)wait;
    return XM_WAIT_EXPIRED;
}

static struct xm_rendezvous begin(uint64_t bytes)
{
    static uint64_t number;

    offer = (struct xm_offer){.state = xm_offer_word(++number, XM_OFFER_OPEN)};
    offer.source.bytes = bytes;
    return (struct xm_rendezvous){
        .offered = true, .number = number, .peer = PEER, .may_leave = true};
}

/* For so long, with looks in between. */
static bool is_late_within(struct xm_rendezvous *r, uint64_t ns)
{
    bool late = false;

    for (uint64_t end = now + ns; (now <= end) && !late; now += US) {
        r->polls = 0;
        late = xm_offer_is_late(r);
    }
    return late;
}

static void check_patience(void)
{
    struct xm_rendezvous r = begin(SHORT);

    CHECK(!is_late_within(&r, 25 * US), "a short one has 30 us");
    CHECK(is_late_within(&r, 10 * US), "and no more");
    r = begin(LONG);
    CHECK(!is_late_within(&r, 4900 * US), "a longer one has 5 ms");
    CHECK(is_late_within(&r, 200 * US), "and no more");
    r = begin(LONG);
    r.may_leave = false;
    CHECK(!is_late_within(&r, 20 * MS), "what may not be left is never late");
    r = begin(SHORT);
    for (r.polls = 1; r.polls < POLLS; r.polls++) {
        now += MS;
        CHECK(!xm_offer_is_late(&r), "the clock is asked now and then only");
    }
}

/* Who maps memory for another message takes milliseconds, and comes to this one then. */
static void check_mapping(void)
{
    struct xm_rendezvous r = begin(SHORT);

    maps = true;
    CHECK(!is_late_within(&r, 4 * MS), "the receiver maps memory");
    maps = false;
    CHECK(!is_late_within(&r, 25 * US), "from then on the sender waits as ever");
    CHECK(is_late_within(&r, 10 * US), "and no longer");
}

static int count_staged(void)
{
    int staged = 0;

    while (xm_offers_come_late(SHORT)) {
        staged++;
    }
    return staged;
}

/* A send that nobody comes to is left, and some after it are staged. */
static void leave_one(int staged)
{
    struct xm_rendezvous r = begin(SHORT);

    CHECK(is_late_within(&r, 100 * US), "nobody comes");
    CHECK(!xm_offers_come_late(SHORT), "none is staged yet");
    xm_offer_leave_late(&r);
    CHECK(!r.offered && (xm_offer_state(&offer) == XM_OFFER_LEFT), "it is over");
    CHECK(!xm_offers_come_late(1 << 20), "long ones wait for their receivers");
    int count = count_staged();
    CHECK(count == staged, "%d are staged, not %d", count, staged);
    given[r.slot] = 0;
    xm_offers_left(false);
    CHECK(given[r.slot] == 0, "its receiver still needs the offer");
    offer.state = xm_offer_word(r.number, XM_OFFER_DONE);
    xm_offers_left(false);
    xm_offers_left(false);
    CHECK(given[r.slot] == 1, "the offer was given back %d times", given[r.slot]);
}

static void check_staged(void)
{
    struct xm_rendezvous r;

    for (int times = 0; times < 13; times++) {
        leave_one(FIRST_STAGED << ((times < 10) ? times : 10));
    }
    r = begin(SHORT);
    xm_offer_came_in_time(&r);
    leave_one(FIRST_STAGED);
}

/* As many as can be offered are left at once, each in its own place of one file. */
static void check_room(void)
{
    enum { BYTES = 16 << 10 };
    struct xm_rendezvous r = begin(BYTES);
    int                  file = -1;

    memset(given, 0, sizeof(given));
    for (int slot = XM_OFFERS - 1; slot >= 0; slot--) {
        unsigned char ends[2];
        r = begin(BYTES);
        r.slot = slot;
        xm_offer_leave_late(&r);
        CHECK(!r.offered, "number %d is not left", slot);
        CHECK((file < 0) || (offer.fd == file), "there is more than one file");
        file = offer.fd;
        off_t at = (off_t)offer.at_in_file;
        CHECK((pread(file, ends, 1, at) == 1) && (pread(file, ends + 1, 1, at + BYTES - 1) == 1),
              "number %d lies outside of the file", slot);
        CHECK((ends[0] == slot % 256) && (ends[1] == slot % 256), "number %d is overwritten", slot);
    }
    offer.state = xm_offer_word(r.number, XM_OFFER_DONE);
    xm_offers_left(false);
    for (int slot = 0; slot < XM_OFFERS; slot++) {
        CHECK(given[slot] == 1, "offer %d was given back %d times", slot, given[slot]);
    }
}

int main(void)
{
    check_patience();
    check_mapping();
    check_staged();
    check_room();
    return xt_done("sends that are left");
}
