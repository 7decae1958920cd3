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

static pthread_mutex_t  lock = PTHREAD_MUTEX_INITIALIZER;
static struct xm_turn  *waiting; /* atomic; in the order of the calls */
static struct xm_turn **waiting_end = &waiting;
static bool             served; /* a thread looks after them */
static struct xm_job    service;
static bool             enqueuing; /* atomic: one whose turn came is not on its stream yet */
static bool (*running)(void);      /* is the one that is enqueued alone over? */
static bool one_queue, several_threads;
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

/* Who held it may have died: entries are appended as a whole, so the queue is whole. */
static void lock_queue(struct xm_queue *queue)
{
    if (pthread_mutex_lock(&queue->lock) == EOWNERDEAD) {
        pthread_mutex_consistent(&queue->lock);
    }
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
 * queue full is left to the next look.
 */
static void put_in_order(const struct xm_turn *turn)
{
    struct xm_slots  *slots = turn->slots;
    struct xm_slot   *first = slots->of[0];
    size_t            n = (size_t)slots->count;
    struct xm_board  *few[FEW_RANKS];
    struct xm_board **sorted = (n <= FEW_RANKS) ? few : malloc(n * sizeof(*sorted));
    bool              room = true;

    if (sorted == NULL) {
        return; /* another rank will, or the next look */
    }
    for (size_t i = 0; i < n; i++) {
        sorted[i] = slots->boards[i];
    }
    qsort(sorted, n, sizeof(*sorted), by_process);
    for (size_t i = 0; i < n; i++) {
        lock_queue(xm_board_queue(sorted[i]));
    }
    skip_direct(slots);
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
    for (size_t i = n; i > 0; i--) {
        pthread_mutex_unlock(&xm_board_queue(sorted[i - 1])->lock);
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
    slots->coming = (turn->number < slots->last_coming) ? turn->number + 1 : 0;
    __atomic_store_n(&slots->mine->arrived, turn->number, __ATOMIC_RELEASE);
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
        /* Before it is taken out: a call that finds none waiting may be enqueued at once. */
        __atomic_store_n(&enqueuing, true, __ATOMIC_RELEASE);
        struct xm_turn *turn = take(queue->entries[at].communicator, queue->entries[at].number);
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

bool xm_order_behind(const struct xm_slots *slots)
{
    if (__atomic_load_n(&waiting, __ATOMIC_ACQUIRE) == NULL) {
        return false;
    }
    pthread_mutex_lock(&lock);
    bool only = (waiting != NULL);
    for (const struct xm_turn *turn = waiting; only && (turn != NULL); turn = turn->next) {
        only = (turn->slots == slots);
    }
    bool behind = only || (slots->coming != 0);
    pthread_mutex_unlock(&lock);
    return behind;
}

bool xm_order_withdraw(struct xm_turn *turn)
{
    struct xm_turn **at = &waiting;

    pthread_mutex_lock(&lock);
    while ((*at != NULL) && (*at != turn)) {
        at = &(*at)->next;
    }
    bool found = (*at != NULL);
    if (found) {
        unlink_turn(at);
        turn->come = NULL; /* what comes after it is not held up */
        come(turn);
    }
    pthread_mutex_unlock(&lock);
    return found;
}

void xm_order_enqueued(void)
{
    __atomic_store_n(&enqueuing, false, __ATOMIC_RELEASE);
}

void xm_order_enqueued_until(bool (*over)(void))
{
    running = over;
    xm_order_enqueued();
}

bool xm_order_idle(void)
{
    pthread_mutex_lock(&lock);
    look_at_running();
    bool idle = (running == NULL) && (waiting == NULL);
    pthread_mutex_unlock(&lock);
    return idle;
}

static void look_at_device(void)
{
    int level = MPI_THREAD_SINGLE;

    one_queue = xc_one_hardware_queue();
    several_threads =
        (xm_pmpi.Query_thread(&level) == MPI_SUCCESS) && (level == MPI_THREAD_MULTIPLE);
}

void xm_order_share(void)
{
    __atomic_store_n(&shared, true, __ATOMIC_RELAXED);
}

bool xm_order_wanted_direct(bool blocking)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, look_at_device);
    bool in_turn = one_queue || __atomic_load_n(&shared, __ATOMIC_RELAXED) ||
                   (xc_params()->launch == XC_LAUNCH_ALWAYS_MET);
    return (in_turn && (!blocking || several_threads)) ||
           (!blocking && (xc_params()->launch == XC_LAUNCH_MET)) ||
           (__atomic_load_n(&waiting, __ATOMIC_ACQUIRE) != NULL) ||
           __atomic_load_n(&enqueuing, __ATOMIC_ACQUIRE);
}

bool xm_order_wanted(bool blocking)
{
    return (xm_vendors_in_use() > 1) || xm_order_wanted_direct(blocking);
}

static void poll_turns(bool scans)
{
    if ((__atomic_load_n(&waiting, __ATOMIC_ACQUIRE) == NULL) ||
        (pthread_mutex_trylock(&lock) != 0)) {
        return;
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
}

void xm_order_poll(void)
{
    poll_turns(true);
}

void xm_order_poll_for(const struct xm_turn *turn, bool blocking)
{
    poll_turns(blocking || (__atomic_load_n(&waiting, __ATOMIC_ACQUIRE) == turn));
}

/* For non-blocking calls, whose program may not come back for long. */
static void serve(struct xm_job *job)
{
    unsigned              looks = 0, idle = 0;
    struct xm_turn      **seen = NULL;
    const struct xm_turn *front = NULL;

    (void)job;
    for (;;) {
        xm_order_poll();
        pthread_mutex_lock(&lock);
        idle = (waiting == NULL) ? idle + 1 : 0;
        if (idle > LOOKS_BEFORE_END) {
            served = false;
            pthread_mutex_unlock(&lock);
            return;
        }
        if ((seen != waiting_end) || (front != waiting)) { /* something has moved */
            looks = (looks < LOOKS_BEFORE_NAP) ? looks : LOOKS_BEFORE_NAP;
            seen = waiting_end;
            front = waiting;
        }
        pthread_mutex_unlock(&lock);
        if ((idle > 0) || (++looks < LOOKS_BEFORE_NAP)) {
            sched_yield();
        } else {
            unsigned longer = (looks - LOOKS_BEFORE_NAP) / NAPS_BEFORE_LONGER;
            longer = (longer < MOST_DOUBLINGS) ? longer : MOST_DOUBLINGS;
            const struct timespec nap = {0, (long)NAP_NS << longer};
            nanosleep(&nap, NULL);
        }
    }
}

static void have_served(void)
{
    pthread_mutex_lock(&lock);
    bool start = (waiting != NULL) && !served;
    served = served || start;
    pthread_mutex_unlock(&lock);
    if (!start) {
        return;
    }
    service.run = serve;
    if (xm_worker_start(&service) != xcclSuccess) {
        pthread_mutex_lock(&lock);
        served = false; /* whoever waits looks after them */
        pthread_mutex_unlock(&lock);
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
    turn->next = NULL;
    pthread_mutex_lock(&lock);
    __atomic_store_n(waiting_end, turn, __ATOMIC_RELEASE);
    waiting_end = &turn->next;
    slots->last_coming = number;
    come(turn);
    pthread_mutex_unlock(&lock);
    /* Where all others have come before, it needs no thread. */
    xm_order_poll_for(turn, false);
    have_served();
}
