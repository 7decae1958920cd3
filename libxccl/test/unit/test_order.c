/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations of several communicators get one order in the queues of all their ranks. Of the other
 * process the test plays what it writes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "comms/board.h"
#include "comms/order.h"
#include "comms/slots.h"
#include "comms/vendor_comm.h"
#include "comms/worker.h"
#include "mpi/mpi.h"

enum { OWN, OTHER, RANKS, COMMS = 2, TURNS = 8 };

struct xm_board {
    int             pid;
    struct xm_queue queue;
};

static struct xm_board *boards; /* shared with a child */
static struct xm_board *asked[64];
static int              num_asked;
struct xm_pmpi          xm_pmpi;

static struct communicator {
    struct xm_slot   slot[RANKS];
    struct xm_slot  *of[RANKS];
    struct xm_board *boards[RANKS];
    struct xm_slots  slots;
} comms[COMMS];

static struct xm_turn turns[TURNS];
static int            gone[TURNS], num_gone;

int xm_board_pid(const struct xm_board *board)
{
    return board->pid;
}

struct xm_queue *xm_board_queue(struct xm_board *board)
{
    asked[num_asked++ % 64] = board;
    return &board->queue;
}

struct xm_board *xm_board_own(void)
{
    return &boards[OWN];
}

int xm_vendors_in_use(void)
{
    return COMMS;
}

/* The test looks after those that wait. */
xcclResult_t xm_worker_start(struct xm_job *job)
{
    (void)job;
    return xcclSuccess;
}

static bool at_last, over, may_come, may_go = true;

static bool is_over(void)
{
    return over;
}

static bool come(struct xm_turn *turn)
{
    CHECK(turn->slots->mine->arrived < turn->number, "nobody has seen it");
    return may_come;
}

static bool go(struct xm_turn *turn)
{
    /* One that is called now may not overtake it. */
    CHECK(xm_order_wanted_direct(&comms[0].slots, true), "it is not on its stream yet");
    if (!may_go) {
        return false;
    }
    if (at_last) {
        xm_order_enqueued_until(is_over);
    }
    gone[num_gone++] = (int)(turn - turns);
    return true;
}

/* The second communicator has its ranks in the other order. */
static void begin_anew(int own_pid, int other_pid)
{
    memset(boards, 0, RANKS * sizeof(*boards));
    memset(comms, 0, sizeof(comms));
    memset(gone, 0, sizeof(gone));
    num_gone = 0;
    boards[OWN].pid = own_pid;
    boards[OTHER].pid = other_pid;
    for (int i = 0; i < RANKS; i++) {
        xm_queue_init(&boards[i].queue);
    }
    for (int c = 0; c < COMMS; c++) {
        struct communicator *x = &comms[c];
        for (int i = 0; i < RANKS; i++) {
            int process = (c == 0) ? i : RANKS - 1 - i;
            x->of[i] = &x->slot[process];
            x->boards[i] = &boards[process];
        }
        x->slots = (struct xm_slots){
            .count = RANKS, .mine = &x->slot[OWN], .of = x->of, .boards = x->boards};
    }
}

static void arrive_prepared(int turn, int comm, uint64_t number, bool (*prepare)(struct xm_turn *))
{
    turns[turn] = (struct xm_turn){.slots = &comms[comm].slots,
                                   .communicator = (uint64_t)comm + 1,
                                   .number = number,
                                   .come = prepare,
                                   .go = go};
    xm_order_arrive(&comms[comm].slots, number, &turns[turn]);
}

static void arrive(int turn, int comm, uint64_t number)
{
    arrive_prepared(turn, comm, number, NULL);
}

static void other_arrives(int comm, uint64_t number)
{
    comms[comm].slot[OTHER].arrived = number;
}

static uint64_t entries(int rank)
{
    return boards[rank].queue.end - boards[rank].queue.begin;
}

/* Those that came to both ranks, in the order in which that was seen; one at a time. */
static void test_turns(void)
{
    begin_anew(1, 2);
    arrive(0, 0, 1);
    arrive(1, 1, 1);
    xm_order_poll();
    CHECK((num_gone == 0) && (entries(OTHER) == 0), "the other rank came to neither");
    other_arrives(1, 1);
    xm_order_poll();
    CHECK((num_gone == 1) && (gone[0] == 1), "the second call came first there");
    other_arrives(0, 1);
    xm_order_poll();
    CHECK((num_gone == 1) && (entries(OTHER) == 2), "it has its place, behind one in the making");
    xm_order_enqueued();
    xm_order_poll();
    CHECK((num_gone == 2) && (gone[1] == 0), "which is on its stream now");
    xm_order_enqueued();
    CHECK(!xm_order_withdraw(&turns[0]), "too late");
}

/* What has to be done before others see it holds up what comes after it, on its communicator. */
static void test_prepared(void)
{
    const uint64_t *arrived = &comms[0].slot[OWN].arrived;

    begin_anew(1, 2);
    CHECK(!xm_order_behind(&comms[0].slots, false), "none waits");
    may_come = false;
    other_arrives(0, 3);
    arrive_prepared(0, 0, 1, come);
    arrive(1, 0, 2);
    arrive(2, 1, 1);
    xm_order_poll();
    CHECK((*arrived == 0) && (comms[1].slot[OWN].arrived == 1),
          "the other communicator's has come");
    CHECK(xm_order_behind(&comms[0].slots, false), "nor has what would come now");
    CHECK(!xm_order_behind(&comms[1].slots, false), "that does not wait for calls elsewhere");
    may_come = true;
    xm_order_poll();
    CHECK((*arrived == 2) && (num_gone == 1) && (gone[0] == 0), "both, and the first goes");
    CHECK(!xm_order_behind(&comms[0].slots, false),
          "the other communicator's may need what comes now");
    CHECK(xm_order_behind(&comms[0].slots, true), "but one of its own waits, too");
    CHECK(xm_order_behind(&comms[1].slots, true), "and of the other");
    xm_order_enqueued();
    other_arrives(1, 1);
    xm_order_poll();
    xm_order_enqueued();
    xm_order_poll();
    CHECK((num_gone == 3) && (gone[1] == 1) && (gone[2] == 2), "the others");
    CHECK(xm_order_behind(&comms[0].slots, false), "the last is not on its stream yet");
    xm_order_enqueued();
    CHECK(!xm_order_behind(&comms[0].slots, false), "nothing comes before");
    may_come = false;
    arrive_prepared(3, 0, 3, come);
    CHECK(xm_order_withdraw(&turns[3]) && (*arrived == 3), "one that failed holds up none");
    for (int i = 4; i < 7; i++) {
        arrive_prepared(i, 0, (uint64_t)i, come);
    }
    CHECK(xm_order_withdraw(&turns[5]) && (*arrived == 3), "nor one behind another");
    CHECK(xm_order_withdraw(&turns[6]) && (*arrived == 3), "nor the last");
    may_come = true;
    xm_order_poll();
    CHECK((*arrived == 6) && !xm_order_withdraw(&turns[5]), "all have come: %d", (int)*arrived);
    CHECK(xm_order_withdraw(&turns[4]) && !xm_order_behind(&comms[0].slots, false), "none is left");
}

/* A queue that another process holds is left to the next look, and so are the others until then. */
static void test_held(void)
{
    begin_anew(1, 2);
    other_arrives(0, 1);
    pthread_mutex_lock(&boards[OTHER].queue.lock);
    arrive(0, 0, 1);
    xm_order_poll();
    CHECK((num_gone == 0) && (entries(OWN) == 0), "it has no place");
    CHECK(pthread_mutex_trylock(&boards[OWN].queue.lock) == 0, "this process's is free");
    pthread_mutex_unlock(&boards[OWN].queue.lock);
    pthread_mutex_unlock(&boards[OTHER].queue.lock);
    xm_order_poll();
    CHECK(num_gone == 1, "now it has");
    xm_order_enqueued();
}

/* Where it cannot be enqueued yet, nothing overtakes it. */
static void test_again(void)
{
    begin_anew(1, 2);
    other_arrives(0, 1);
    other_arrives(1, 1);
    may_go = false;
    arrive(0, 0, 1);
    CHECK(xm_order_behind(&comms[0].slots, false), "it waits");
    arrive(1, 1, 1);
    xm_order_poll();
    CHECK((num_gone == 0) && xm_order_wanted_direct(&comms[0].slots, true), "neither went");
    may_go = true;
    xm_order_poll();
    xm_order_enqueued();
    xm_order_poll();
    CHECK((num_gone == 2) && (gone[0] == 0) && (gone[1] == 1), "in their order");
    xm_order_enqueued();
    CHECK(!xm_order_wanted_direct(&comms[0].slots, true), "none is left");
}

static void *ask_again(void *unused)
{
    enum { LOOKS = 200000 };

    for (int i = 0; i < LOOKS; i++) {
        xm_order_poll();
    }
    __atomic_store_n(&over, true, __ATOMIC_RELEASE);
    return unused;
}

/* Nor does anything meanwhile, where another thread asks again and again. */
static void test_meanwhile(void)
{
    pthread_t thread;
    long      missed = 0, behind = 0;

    begin_anew(1, 2);
    other_arrives(0, 1);
    may_go = over = false;
    arrive(0, 0, 1);
    CHECK(pthread_create(&thread, NULL, ask_again, NULL) == 0, "a thread");
    while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
        missed += !xm_order_wanted_direct(&comms[0].slots, true);
        behind += !xm_order_behind(&comms[0].slots, false);
    }
    pthread_join(thread, NULL);
    CHECK((missed == 0) && (behind == 0), "it waits all the time: %ld, %ld", missed, behind);
    may_go = true;
    xm_order_poll();
    xm_order_enqueued();
    CHECK((num_gone == 1) && !xm_order_wanted_direct(&comms[0].slots, true), "it went");
}

/* The last of all ranks needs nobody to look after it. */
static void test_last(void)
{
    begin_anew(1, 2);
    other_arrives(0, 1);
    arrive(0, 0, 1);
    CHECK(num_gone == 1, "it has gone");
    xm_order_enqueued();
}

/* A place that another rank gave counts as well, and what failed meanwhile is skipped. */
static void test_withdrawn(void)
{
    begin_anew(1, 2);
    for (int i = 0; i < 2; i++) {
        arrive(i, i, 1);
        boards[OWN].queue.entries[i].communicator = (uint64_t)i + 1;
        boards[OWN].queue.entries[i].number = 1;
        comms[i].of[0]->ordered = 1;
    }
    boards[OWN].queue.end = 2;
    CHECK(xm_order_withdraw(&turns[0]) && xm_order_wanted_direct(&comms[0].slots, true),
          "one is taken back");
    xm_order_poll();
    CHECK((num_gone == 1) && (gone[0] == 1) && (boards[OWN].queue.end == 2), "the next goes");
    xm_order_enqueued();
    CHECK(!xm_order_wanted_direct(&comms[0].slots, true), "nobody waits");
    arrive(2, 0, 2);
    CHECK(xm_order_withdraw(&turns[2]), "the last one of all");
    arrive(3, 0, 3);
    comms[0].slot[OWN].ordered = 3;
    CHECK(xm_order_wanted_direct(&comms[0].slots, true) && xm_order_withdraw(&turns[3]),
          "and there may be more");
}

/* A full queue of any rank: nothing gets a place in any. */
static void test_full(int comm)
{
    const uint64_t *ordered = &comms[comm].slot[(comm == 0) ? OWN : OTHER].ordered;

    begin_anew(1, 2);
    boards[OTHER].queue.end = XM_QUEUE_ENTRIES;
    arrive(0, comm, 1);
    other_arrives(comm, 1);
    xm_order_poll();
    CHECK((num_gone == 0) && (entries(OWN) == 0) && (*ordered == 0), "there is no place");
    boards[OTHER].queue.begin = 1;
    xm_order_poll();
    CHECK((num_gone == 1) && (entries(OTHER) == XM_QUEUE_ENTRIES), "now there is one");
    xm_order_enqueued();
    boards[OTHER].queue.begin = 5;
    arrive(1, comm, 6);
    other_arrives(comm, 6);
    xm_order_poll();
    CHECK((num_gone == 1) && (*ordered == 5), "room for four of five");
    CHECK(entries(OTHER) == XM_QUEUE_ENTRIES, "%d entries", (int)entries(OTHER));
    boards[OTHER].queue.begin = 6;
    xm_order_poll();
    CHECK(num_gone == 2, "the fifth");
    xm_order_enqueued();
}

/* What a rank enqueued at once has no place in its queue, and what all did has none anywhere. */
static void test_at_once(void)
{
    begin_anew(1, 2);
    for (uint64_t number = 1; number <= 7; number++) {
        xm_order_arrive(&comms[0].slots, number, NULL);
    }
    comms[0].slot[OTHER].direct = 5;
    boards[OTHER].queue.end = XM_QUEUE_ENTRIES;
    arrive(0, 0, 8);
    other_arrives(0, 8);
    xm_order_poll();
    CHECK((num_gone == 0) && (comms[0].slot[OWN].ordered == 5), "five need no place");
    boards[OTHER].queue.begin = 3;
    xm_order_poll();
    CHECK((num_gone == 1) && (boards[OWN].queue.end == 1), "this rank's eighth needs one");
    CHECK((entries(OTHER) == XM_QUEUE_ENTRIES) && (boards[OTHER].queue.entries[0].number == 6) &&
              (boards[OTHER].queue.entries[2].number == 8),
          "the other's sixth to eighth do");
    xm_order_enqueued();
}

/* Where ranks share a device, the next goes when the one before is over, whoever sees that. */
static void test_one_by_one(void)
{
    begin_anew(1, 2);
    CHECK(!xm_order_wanted_direct(&comms[0].slots, false), "no device is shared");
    xm_order_share();
    CHECK(xm_order_wanted_direct(&comms[0].slots, false) &&
              !xm_order_wanted_direct(&comms[0].slots, true),
          "other calls may follow");
    comms[0].slots.threads = true;
    CHECK(xm_order_wanted_direct(&comms[0].slots, true), "and here those of other threads");
    CHECK(!xm_order_wanted_direct(&comms[1].slots, true), "none of whose ranks has any");
    comms[0].slots.threads = false;
    at_last = true;
    over = false;
    for (int i = 0; i < COMMS; i++) {
        arrive(i, i, 1);
        other_arrives(i, 1);
    }
    xm_order_poll();
    xm_order_poll();
    CHECK((num_gone == 1) && !xm_order_idle(), "the second waits for the end of the first");
    over = true;
    xm_order_poll();
    CHECK((num_gone == 2) && xm_order_idle(), "which was seen");
    at_last = false;
}

/* All ranks take locks in one order, whatever the order of their ranks. */
static void test_locks(void)
{
    begin_anew(2, 1);
    other_arrives(0, 1);
    num_asked = 0;
    arrive(0, 0, 1);
    CHECK((asked[0] == &boards[OTHER]) && (asked[1] == &boards[OWN]), "by process");
    CHECK(num_gone == 1, "and it goes");
    xm_order_enqueued();
}

/* Who died with a lock leaves the queue to others. Emulators may not tell that it died. */
static void test_death(void)
{
    begin_anew(1, 2);
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < RANKS; i++) {
            pthread_mutex_lock(&boards[i].queue.lock);
        }
        _exit(0);
    }
    waitpid(child, NULL, 0);
    if (pthread_mutex_trylock(&boards[OWN].queue.lock) != EOWNERDEAD) {
        printf("a lock whose owner died cannot be had here\n");
        return;
    }
    pthread_mutex_consistent(&boards[OWN].queue.lock);
    pthread_mutex_unlock(&boards[OWN].queue.lock);
    arrive(0, 0, 1);
    other_arrives(0, 1);
    xm_order_poll();
    CHECK(num_gone == 1, "it goes");
    xm_order_enqueued();
    CHECK(pthread_mutex_lock(&boards[OTHER].queue.lock) == 0, "the lock is good again");
    pthread_mutex_unlock(&boards[OTHER].queue.lock);
}

int main(void)
{
    unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
    unsetenv("GPU_MAX_HW_QUEUES");
    setenv("XCCL_LAUNCH", "now", 1);
    boards = mmap(NULL, RANKS * sizeof(*boards), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                  -1, 0);
    if (boards == MAP_FAILED) {
        return 1;
    }
    test_turns();
    test_prepared();
    test_held();
    test_again();
    test_meanwhile();
    test_last();
    test_withdrawn();
    for (int comm = 0; comm < COMMS; comm++) {
        test_full(comm);
    }
    test_at_once();
    test_one_by_one();
    test_locks();
    test_death();
    return xt_done("order of operations");
}
