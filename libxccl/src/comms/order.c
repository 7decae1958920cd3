/* SPDX-License-Identifier: BSD-3-Clause */
#include "comms/order.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "base/environment.h"
#include "base/params.h"
#include "comms/board.h"
#include "comms/slots.h"
#include "comms/vendor_comm.h"
#include "comms/worker.h"
#include "mpi/mpi.h"

/* How long the thread looks often, and how long it sleeps between looks afterwards. */
enum { LOOKS_BEFORE_NAP = 2000, NAP_NS = 50 * 1000, NAPS_BEFORE_LONGER = 200, MOST_DOUBLINGS = 4 };
/* How often it looks for another operation when all have gone: to wake it takes microseconds. */
enum { LOOKS_BEFORE_END = 200 };
/* Ranks that are sorted without asking for memory. */
enum { FEW_RANKS = 16 };
/* It leaves looking to a call that waits, until that has not looked for so many of its own looks:
 * a thread with the device at hand launches microseconds sooner. */
enum { LOOKS_LEFT_TO_CALLS = 16 };
/* Tries before a thread sleeps for the lock: to wake it takes longer than most hold it. */
enum { TRIES_BEFORE_SLEEP = 200 };

static pthread_mutex_t  lock = PTHREAD_MUTEX_INITIALIZER;
static struct xm_turn  *waiting; /* atomic; in the order of the calls */
static struct xm_turn **waiting_end = &waiting;
static bool             served; /* atomic: a thread looks after them */
static unsigned         looked; /* atomic: looks of calls that wait */
static unsigned         moves;  /* atomic: turns that came to wait or went */
static unsigned         to_go;  /* atomic: turns that are not on their streams yet */
static struct xm_job    service;
static bool             enqueuing;   /* atomic: one whose turn came is not on its stream yet, */
static const void      *enqueued_on; /* with the lock: one of the communicator with these slots */
static bool (*running)(void);        /* is the one that is enqueued alone over? */
static bool one_queue;
static bool shared; /* atomic */

void xm_queue_init(struct xm_queue *queue)
{
    pthread_mutexattr_t attr;

    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&queue->lock, &attr);
    pthread_mutexattr_destroy(&attr);
}

/*
 * Without the lock this is the one word to ask: where one whose turn came is put back, it is in
 * turn among those that wait and the one being enqueued, and may be missed in both.
 */
static bool any_to_go(void)
{
    return __atomic_load_n(&to_go, __ATOMIC_ACQUIRE) != 0;
}

static void take_lock(void)
{
    for (int i = 0; i < TRIES_BEFORE_SLEEP; i++) {
        if (pthread_mutex_trylock(&lock) == 0) {
            return;
        }
    }
    pthread_mutex_lock(&lock);
}

/*
 * Who held it may have died: entries are appended as a whole, so the queue is whole. False: another
 * holds it, most likely for the same operation.
 */
static bool try_queue(struct xm_queue *queue)
{
    int res = pthread_mutex_trylock(&queue->lock);

    if (res == EOWNERDEAD) {
        pthread_mutex_consistent(&queue->lock);
    }
    return (res == 0) || (res == EOWNERDEAD);
}

bool xm_order_all_came(const struct xm_slots *slots, uint64_t number)
{
    for (int i = 0; i < slots->count; i++) {
        if (__atomic_load_n(&slots->of[i]->arrived, __ATOMIC_ACQUIRE) < number) {
            return false;
        }
    }
    return true;
}

static int by_process(const void *a, const void *b)
{
    const struct xm_board *const *x = a;
    const struct xm_board *const *y = b;

    return (xm_board_pid(*x) > xm_board_pid(*y)) - (xm_board_pid(*x) < xm_board_pid(*y));
}

/* What a process enqueued at once needs no place. */
static void append(struct xm_queue *queue, const struct xm_slot *slot, uint64_t communicator,
                   uint64_t number)
{
    if (number <= __atomic_load_n(&slot->direct, __ATOMIC_RELAXED)) {
        return;
    }
    uint64_t at = queue->end % XM_QUEUE_ENTRIES;
    queue->entries[at].communicator = communicator;
    queue->entries[at].number = number;
    __atomic_store_n(&queue->end, queue->end + 1, __ATOMIC_RELEASE);
}

/* Nothing up to there has to wait on any rank. */
static void skip_direct(struct xm_slots *slots)
{
    uint64_t least = UINT64_MAX;

    for (int i = 0; i < slots->count; i++) {
        uint64_t direct = __atomic_load_n(&slots->of[i]->direct, __ATOMIC_RELAXED);
        least = (direct < least) ? direct : least;
    }
    if (slots->of[0]->ordered < least) {
        __atomic_store_n(&slots->of[0]->ordered, least, __ATOMIC_RELEASE);
    }
}

static bool has_room(const struct xm_queue *queue)
{
    return queue->end - __atomic_load_n(&queue->begin, __ATOMIC_ACQUIRE) < XM_QUEUE_ENTRIES;
}

/*
 * Give the operation its place in every queue, unless another rank has done so; and those before
 * it, which this rank may have enqueued at once while others wait for their turn. What finds a
 * queue full or held is left to the next look. As all take the locks in one order, one of those
 * that find one held gets all.
 */
static void put_in_order(const struct xm_turn *turn)
{
    struct xm_slots  *slots = turn->slots;
    struct xm_slot   *first = slots->of[0];
    size_t            n = (size_t)slots->count;
    struct xm_board  *few[FEW_RANKS];
    struct xm_board **sorted = (n <= FEW_RANKS) ? few : malloc(n * sizeof(*sorted));
    size_t            locked = 0;

    if (sorted == NULL) {
        return; /* another rank will, or the next look */
    }
    for (size_t i = 0; i < n; i++) {
        sorted[i] = slots->boards[i];
    }
    qsort(sorted, n, sizeof(*sorted), by_process);
    while ((locked < n) && try_queue(xm_board_queue(sorted[locked]))) {
        locked++;
    }
    bool room = (locked == n);
    if (room) {
        skip_direct(slots);
    }
    while (room && (first->ordered < turn->number)) {
        for (size_t i = 0; room && (i < n); i++) {
            room = has_room(xm_board_queue(slots->boards[i]));
        }
        for (size_t i = 0; room && (i < n); i++) {
            append(xm_board_queue(slots->boards[i]), slots->of[i], turn->communicator,
                   first->ordered + 1);
        }
        if (room) {
            __atomic_store_n(&first->ordered, first->ordered + 1, __ATOMIC_RELEASE);
        }
    }
    while (locked > 0) {
        pthread_mutex_unlock(&xm_board_queue(sorted[--locked])->lock);
    }
    if (sorted != few) {
        free(sorted);
    }
}

static void unlink_turn(struct xm_turn **at)
{
    __atomic_store_n(at, (*at)->next, __ATOMIC_RELEASE);
    if (*at == NULL) {
        waiting_end = at;
    }
    __atomic_add_fetch(&moves, 1, __ATOMIC_RELAXED);
}

/* Take the turn that an entry of the queue means out of those that wait; NULL: enqueued before. */
static struct xm_turn *take(uint64_t communicator, uint64_t number)
{
    for (struct xm_turn **at = &waiting; *at != NULL; at = &(*at)->next) {
        struct xm_turn *turn = *at;
        if ((turn->communicator == communicator) && (turn->number == number)) {
            unlink_turn(at);
            return turn;
        }
    }
    return NULL;
}

static void put_back(struct xm_turn *turn)
{
    turn->next = waiting;
    if (waiting == NULL) {
        waiting_end = &turn->next;
    }
    __atomic_store_n(&waiting, turn, __ATOMIC_RELEASE);
    __atomic_sub_fetch(&moves, 1, __ATOMIC_RELAXED); /* nothing has moved */
}

/*
 * With the lock held. In the order of the calls: an arrival says that all before it have come, too.
 */
static void come(struct xm_turn *turn)
{
    struct xm_slots *slots = turn->slots;

    if ((slots->mine->arrived >= turn->number) ||
        ((slots->coming != 0) && (slots->coming != turn->number))) {
        return;
    }
    if ((turn->come != NULL) && !turn->come(turn)) {
        slots->coming = turn->number;
        return;
    }
    slots->coming = (turn->through < slots->last_coming) ? turn->through + 1 : 0;
    __atomic_store_n(&slots->mine->arrived, turn->through, __ATOMIC_RELEASE);
}

/* With the lock held. */
static void look_at_running(void)
{
    if ((running != NULL) && running()) {
        running = NULL;
    }
}

/*
 * With the lock held. One at a time: a thread may enqueue it, where it may have to connect first,
 * and what comes after must not overtake it on the device.
 */
static void go_in_order(struct xm_queue *queue)
{
    look_at_running();
    while (!__atomic_load_n(&enqueuing, __ATOMIC_ACQUIRE) && (running == NULL) &&
           (queue->begin < __atomic_load_n(&queue->end, __ATOMIC_ACQUIRE))) {
        uint64_t at = queue->begin % XM_QUEUE_ENTRIES;
        __atomic_store_n(&enqueuing, true, __ATOMIC_RELEASE);
        struct xm_turn *turn = take(queue->entries[at].communicator, queue->entries[at].number);
        enqueued_on = (turn != NULL) ? turn->slots : NULL;
        if ((turn != NULL) && !turn->go(turn)) {
            put_back(turn);
            __atomic_store_n(&enqueuing, false, __ATOMIC_RELEASE);
            return;
        }
        __atomic_store_n(&queue->begin, queue->begin + 1, __ATOMIC_RELEASE);
        if (turn == NULL) {
            __atomic_store_n(&enqueuing, false, __ATOMIC_RELEASE);
        }
    }
}

bool xm_order_behind(const struct xm_slots *slots, bool own)
{
    if (!any_to_go()) {
        return false;
    }
    take_lock();
    bool goes = __atomic_load_n(&enqueuing, __ATOMIC_ACQUIRE);
    bool only = (waiting != NULL) || goes, any = goes && (enqueued_on == slots);
    for (const struct xm_turn *turn = waiting; turn != NULL; turn = turn->next) {
        only = only && (turn->slots == slots);
        any = any || (turn->slots == slots);
    }
    bool behind = (own ? any : only) || (slots->coming != 0);
    pthread_mutex_unlock(&lock);
    return behind;
}

/* With the lock held. What comes after it is not held up. */
static void come_withdrawn(struct xm_turn *turn)
{
    struct xm_slots *slots = turn->slots;

    if ((slots->coming == 0) || (slots->coming == turn->number)) {
        turn->come = NULL;
        come(turn);
        return;
    }
    /* The one before it, which has not come either, says it for both. */
    for (struct xm_turn *before = waiting; before != NULL; before = before->next) {
        if ((before->slots == slots) && (before->through + 1 == turn->number)) {
            before->through = turn->through;
        }
    }
}

bool xm_order_withdraw(struct xm_turn *turn)
{
    struct xm_turn **at = &waiting;

    take_lock();
    while ((*at != NULL) && (*at != turn)) {
        at = &(*at)->next;
    }
    bool found = (*at != NULL);
    if (found) {
        unlink_turn(at);
        __atomic_sub_fetch(&to_go, 1, __ATOMIC_RELEASE);
        come_withdrawn(turn);
    }
    pthread_mutex_unlock(&lock);
    return found;
}

void xm_order_enqueued(void)
{
    /* Those that it says are none may be enqueued at once. */
    __atomic_sub_fetch(&to_go, 1, __ATOMIC_RELEASE);
    __atomic_store_n(&enqueuing, false, __ATOMIC_RELEASE);
}

void xm_order_enqueued_until(bool (*over)(void))
{
    running = over;
    xm_order_enqueued();
}

bool xm_order_idle(void)
{
    take_lock();
    look_at_running();
    bool idle = (running == NULL) && (waiting == NULL);
    pthread_mutex_unlock(&lock);
    return idle;
}

static void look_at_device(void)
{
    one_queue = xc_one_hardware_queue();
}

void xm_order_share(void)
{
    __atomic_store_n(&shared, true, __ATOMIC_RELAXED);
}

bool xm_order_wanted_direct(const struct xm_slots *slots, bool blocking)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, look_at_device);
    bool in_turn = one_queue || __atomic_load_n(&shared, __ATOMIC_RELAXED) ||
                   (xc_params()->launch == XC_LAUNCH_MET);
    return (in_turn && (!blocking || slots->threads)) || any_to_go();
}

bool xm_order_wanted(const struct xm_slots *slots, bool blocking)
{
    return (xm_vendors_in_use() > 1) || xm_order_wanted_direct(slots, blocking);
}

bool xm_order_always(const struct xm_slots *slots)
{
    return slots->threads && (xc_params()->launch == XC_LAUNCH_MET);
}

/* False: another thread is at it. */
static bool poll_turns(bool scans)
{
    if ((__atomic_load_n(&waiting, __ATOMIC_ACQUIRE) == NULL) ||
        (pthread_mutex_trylock(&lock) != 0)) {
        return false;
    }
    struct xm_board *own = xm_board_own(); /* it has one: others wait by slots on it */
    for (struct xm_turn *turn = waiting; scans && (turn != NULL); turn = turn->next) {
        come(turn);
        bool ordered =
            __atomic_load_n(&turn->slots->of[0]->ordered, __ATOMIC_ACQUIRE) >= turn->number;
        if (!ordered && xm_order_all_came(turn->slots, turn->number)) {
            put_in_order(turn);
        }
    }
    go_in_order(xm_board_queue(own));
    pthread_mutex_unlock(&lock);
    return true;
}

void xm_order_poll(void)
{
    (void)poll_turns(true);
}

void xm_order_poll_for(const struct xm_turn *turn, bool blocking)
{
    bool scans = blocking || (__atomic_load_n(&waiting, __ATOMIC_ACQUIRE) == turn);

    if (poll_turns(scans) && scans) {
        __atomic_add_fetch(&looked, 1, __ATOMIC_RELAXED);
    }
}

/* Has none waited for a while, and does none now? */
static bool has_ended(unsigned *idle)
{
    if (__atomic_load_n(&waiting, __ATOMIC_ACQUIRE) != NULL) {
        *idle = 0;
        return false;
    }
    if (++*idle <= LOOKS_BEFORE_END) {
        return false;
    }
    take_lock();
    bool ends = (waiting == NULL);
    if (ends) {
        __atomic_store_n(&served, false, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
    return ends;
}

/* Calls that wait have looked since it was asked last: for how many looks they are left to it. */
static unsigned left_to_calls(unsigned *seen, bool naps, unsigned left)
{
    unsigned now = __atomic_load_n(&looked, __ATOMIC_RELAXED);
    unsigned most = naps ? 1 : LOOKS_LEFT_TO_CALLS;

    left = (now != *seen) ? most : left;
    *seen = now;
    return (left < most) ? left : most;
}

/* For non-blocking calls, whose program may not come back for long. */
static void serve(struct xm_job *job)
{
    unsigned looks = 0, idle = 0, left = 0, seen_looks = 0, seen_moves = 0;

    (void)job;
    while (!has_ended(&idle)) {
        bool naps = (idle == 0) && (++looks >= LOOKS_BEFORE_NAP);
        left = left_to_calls(&seen_looks, naps, left);
        if (left > 0) {
            left--;
        } else {
            xm_order_poll();
        }
        unsigned now = __atomic_load_n(&moves, __ATOMIC_RELAXED);
        if (seen_moves != now) {
            looks = (looks < LOOKS_BEFORE_NAP) ? looks : LOOKS_BEFORE_NAP;
            seen_moves = now;
        }
        if (naps) {
            unsigned longer = (looks - LOOKS_BEFORE_NAP) / NAPS_BEFORE_LONGER;
            longer = (longer < MOST_DOUBLINGS) ? longer : MOST_DOUBLINGS;
            const struct timespec nap = {0, (long)NAP_NS << longer};
            nanosleep(&nap, NULL);
        } else {
            sched_yield();
        }
    }
}

/* A thread that ends does so with the lock held, and has seen then what waits. */
static void have_served(void)
{
    if (!any_to_go() || __atomic_exchange_n(&served, true, __ATOMIC_ACQ_REL)) {
        return;
    }
    service.run = serve;
    if (xm_worker_start(&service) != xcclSuccess) {
        __atomic_store_n(&served, false, __ATOMIC_RELEASE); /* whoever waits looks after them */
    }
}

void xm_order_arrive(struct xm_slots *slots, uint64_t number, struct xm_turn *turn)
{
    if (turn == NULL) {
        /* Seen by whoever sees the arrival. */
        __atomic_store_n(&slots->mine->direct, number, __ATOMIC_RELAXED);
        __atomic_store_n(&slots->mine->arrived, number, __ATOMIC_RELEASE);
        return;
    }
    turn->through = number;
    turn->next = NULL;
    take_lock();
    __atomic_add_fetch(&to_go, 1, __ATOMIC_RELAXED);
    __atomic_store_n(waiting_end, turn, __ATOMIC_RELEASE);
    waiting_end = &turn->next;
    __atomic_add_fetch(&moves, 1, __ATOMIC_RELAXED);
    slots->last_coming = number;
    come(turn);
    pthread_mutex_unlock(&lock);
    /* Where all others have come before, it needs no thread. */
    xm_order_poll_for(turn, false);
    if (!turn->attended) {
        have_served();
    }
}
