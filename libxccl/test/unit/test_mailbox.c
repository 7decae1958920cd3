/* SPDX-License-Identifier: BSD-3-Clause */
/* Who may be offered a message: the ranks that fetch it, as far as is known. Boards are the test's.
 */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "comms/mailbox.h"
#include "comms/wait.h"
#include "mpi/mpi.h"

enum { RANKS = 4, OWN = 1, LOOKS_FROM = 4096, DEVICES = 20 };

struct xm_board {
    struct xm_mailbox mailbox;
    bool              there;
    int               relative; /* after so many generations, or 0 */
};

static struct xm_board boards[RANKS];
static uint64_t        now_ns = 1;
static int             searches;
struct xm_pmpi         xm_pmpi;
struct xm_handles      xm_handles;

uint64_t xm_now_ns(void)
{
    return now_ns;
}

struct xm_board *xm_board_own(void)
{
    return &boards[OWN];
}

struct xm_mailbox *xm_board_mailbox(struct xm_board *board)
{
    return &board->mailbox;
}

void xm_board_address_of(const struct xm_board *board, struct xm_board_address *address_p)
{
    *address_p = (struct xm_board_address){.nonce = (uint64_t)(board - boards)};
}

struct xm_board *xm_board_open(const struct xm_board_address *address)
{
    return &boards[address->nonce];
}

void xm_board_each_relative(int generations, xm_board_seen *seen, void *arg)
{
    for (int i = 0; i < RANKS; i++) {
        struct xm_board_address address = {.nonce = (uint64_t)i};
        if (boards[i].relative == generations) {
            seen(arg, i, &address);
        }
    }
}

void xm_board_each(xm_board_seen *seen, void *arg)
{
    searches++;
    for (int i = -1; i <= RANKS; i++) { /* also what is no rank */
        struct xm_board_address address = {.nonce = (uint64_t)i};
        if ((i < 0) || (i == RANKS) || ((i != OWN) && boards[i].there)) {
            seen(arg, i, &address);
        }
    }
}

static int comm_size(MPI_Comm comm, int *size)
{
    (void)comm;
    *size = RANKS;
    return MPI_SUCCESS;
}

static int comm_rank(MPI_Comm comm, int *rank)
{
    (void)comm;
    *rank = OWN;
    return MPI_SUCCESS;
}

static xcclResult_t count(int *count_p)
{
    *count_p = DEVICES;
    return xcclSuccess;
}

/* The first one has none. */
static xcclResult_t uuid_of(int device, unsigned char uuid[XC_DEVICE_UUID_BYTES])
{
    if (device == 0) {
        return xcclInternalError;
    }
    memset(uuid, 0, XC_DEVICE_UUID_BYTES);
    uuid[XC_DEVICE_UUID_BYTES - 1] = (unsigned char)device;
    return xcclSuccess;
}

static const struct xc_device_ops dev = {.name = "none", .count = count, .uuid_of = uuid_of};

static bool fetches(int rank, uint64_t bytes, int device)
{
    unsigned char uuid[XC_DEVICE_UUID_BYTES] = {0};

    uuid[XC_DEVICE_UUID_BYTES - 1] = (unsigned char)device;
    struct xm_board *found = xm_mailbox_find(rank, bytes, uuid);
    CHECK((found == NULL) || (found == &boards[rank]), "rank %d's own", rank);
    return found != NULL;
}

static void test_announced(void)
{
    const struct xm_mailbox *m = &boards[OWN].mailbox;

    CHECK(!fetches(OWN, LOOKS_FROM, 1), "it has not said so yet");
    xm_mailbox_announce(&dev, LOOKS_FROM);
    CHECK(m->num_devices == XM_OFFER_DEVICES, "%u devices", m->num_devices);
    CHECK(m->looks_from == LOOKS_FROM, "from %d bytes", (int)m->looks_from);
    CHECK(fetches(OWN, LOOKS_FROM, 1) && fetches(OWN, LOOKS_FROM, XM_OFFER_DEVICES), "it fetches");
    CHECK(!fetches(OWN, LOOKS_FROM - 1, 1), "but nothing smaller");
    CHECK(!fetches(OWN, LOOKS_FROM, XM_OFFER_DEVICES + 1), "nor from there");
    xm_mailbox_announce(&dev, 1);
    CHECK(m->looks_from == LOOKS_FROM, "it says so once");
}

/* Of this process to itself: own and other mailbox are one. */
static void test_lost(void)
{
    CHECK(!xm_mailbox_has_lost(OWN, 1), "nothing is lost");
    for (uint64_t number = 1; number <= XM_OFFERS; number++) {
        xm_mailbox_lose(OWN, number);
    }
    xm_mailbox_lose(OWN + 1, XM_OFFERS + 1);
    CHECK(xm_mailbox_has_lost(OWN, 2) && xm_mailbox_has_lost(OWN, XM_OFFERS), "all of these are");
    CHECK(!xm_mailbox_has_lost(OWN, XM_OFFERS + 1), "that is another process's");
}

static void announce(int rank)
{
    struct xm_mailbox *m = &boards[rank].mailbox;

    boards[rank].there = true;
    m->num_devices = 1;
    uuid_of(1, m->devices[0]);
    m->looks_from = LOOKS_FROM;
}

/* Who was started beside this process is found without a look at all of the machine. */
static void test_relatives(void)
{
    int begun = searches;

    announce(3);
    boards[3].there = false;
    boards[3].relative = 2;
    now_ns += 1000000000;
    CHECK(fetches(3, LOOKS_FROM, 1), "found");
    CHECK(searches == begun, "%d searches", searches - begun);
}

/* Ever more rarely: a rank of another node never comes. */
static void test_searches(void)
{
    int begun = searches;

    for (now_ns = 1; now_ns < 1000000000; now_ns += 100000) {
        CHECK(!fetches(0, LOOKS_FROM, 1), "rank 0 has no board");
    }
    CHECK((searches > begun + 5) && (searches < begun + 12), "%d searches in a second",
          searches - begun);
    announce(0);
    announce(2);
    begun = searches;
    now_ns += 3000000000u;
    CHECK(fetches(0, LOOKS_FROM, 1) && fetches(2, LOOKS_FROM, 1), "found");
    CHECK(searches == begun + 1, "all at once");
    CHECK(!fetches(-1, LOOKS_FROM, 1) && !fetches(RANKS, LOOKS_FROM, 1), "no ranks");
}

static void test_refused(void)
{
    xm_mailbox_refused(2);
    CHECK(!fetches(2, LOOKS_FROM, 1), "it cannot");
    CHECK(fetches(0, LOOKS_FROM, 1), "another one can");
    CHECK(!xm_mailbox_is_closed(2), "it still receives");
    boards[2].mailbox.looks_from = 0;
    CHECK(xm_mailbox_is_closed(2) && !xm_mailbox_is_closed(0), "now it does not");
}

/* Who maps memory is waited for, unless that takes far too long. */
static void test_mapping(void)
{
    CHECK(!xm_mailbox_is_mapping(OWN) && !xm_mailbox_is_mapping(0), "none does");
    xm_mailbox_maps(true);
    now_ns += 49000000;
    CHECK(xm_mailbox_is_mapping(OWN) && !xm_mailbox_is_mapping(0), "one does, for 49 ms");
    now_ns += 2000000;
    CHECK(!xm_mailbox_is_mapping(OWN), "after 50 ms something holds it up");
    xm_mailbox_maps(false);
    xm_mailbox_maps(true);
    CHECK(xm_mailbox_is_mapping(OWN), "the next is waited for");
    xm_mailbox_maps(false);
    CHECK(!xm_mailbox_is_mapping(OWN), "and is over");
}

static void test_offers(void)
{
    const struct xm_sent source = {.bytes = 5};
    uint64_t             number, last = 0;
    int                  at, twice = 0;
    static bool          taken[XM_OFFERS];

    for (int i = 0; i < XM_OFFERS; i++) {
        at = xm_offer_take(&source, &number);
        CHECK((at >= 0) && (at < XM_OFFERS) && (number > last), "offer %d", i);
        twice += taken[at];
        taken[at] = true;
        last = number;
    }
    CHECK(twice == 0, "%d were given twice", twice);
    CHECK(xm_offer_take(&source, &number) == -1, "there are no more");
    xm_offer_give(7);
    CHECK(!xm_offer_move(xm_offer_own(7), last, XM_OFFER_OPEN, XM_OFFER_TAKEN), "a free one");
    at = xm_offer_take(&source, &number);
    CHECK((at == 7) && (number == last + 1) && (xm_offer_own(at)->fd == -1), "is used again");
    CHECK(!xm_offer_move(xm_offer_own(at), last, XM_OFFER_OPEN, XM_OFFER_TAKEN), "anew");
    CHECK(xm_offer_move(xm_offer_own(at), number, XM_OFFER_OPEN, XM_OFFER_TAKEN), "it is open");
    CHECK(xm_offer_state(xm_offer_own(at)) == XM_OFFER_TAKEN, "and now taken");
    CHECK((xm_offer_of(&boards[0], XM_OFFERS) == NULL) && (xm_offer_of(&boards[0], -1) == NULL),
          "another's word for a slot may be wrong");
}

static void test_closed(void)
{
    xm_mailbox_take_no_more();
    CHECK(!fetches(OWN, LOOKS_FROM, 1), "nothing more comes");
    xm_mailbox_close();
    CHECK(xm_mailbox_is_closed(OWN), "nor is anything looked at");
}

int main(void)
{
    xm_pmpi.Comm_size = comm_size;
    xm_pmpi.Comm_rank = comm_rank;
    test_announced();
    test_lost();
    test_relatives();
    test_searches();
    test_refused();
    test_mapping();
    test_offers();
    test_closed();
    return xt_done("mailbox");
}
