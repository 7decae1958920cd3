/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The thread that calls MPI for operations whose turn on their stream has come. It begins them in
 * that order and never waits for one alone: two streams would wait for each other.
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "base/log.h"
#include "streams/runner.h"

/* So many looks in a row, then naps in between: longer ones where nothing moves. */
enum { EAGER_LOOKS = 2000, NAP_NS = 20000, NAPS_BEFORE_LONGER = 500, MOST_DOUBLINGS = 4 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t  handed = PTHREAD_COND_INITIALIZER;
/*
 * Those whose turn on their stream has come, in its order. When one is handed over, or the thread
 * looks, those expected that have come are put before it: the stream has gone past them.
 */
static struct xm_enqueued *queue, **queue_end = &queue;
static struct xm_enqueued *expected, **expected_end = &expected;
static struct xm_enqueued *active; /* of the thread */
static bool                running, leaving;
static pthread_t           thread;

static bool are_of_one_stream(const struct xm_enqueued *a, const struct xm_enqueued *b)
{
    return (a->op.stream == b->op.stream) && (a->op.home == b->op.home);
}

/* The first whose stream has come there; of: of the stream of that one; NULL: of any. */
static struct xm_enqueued **find_come(const struct xm_enqueued *of)
{
    struct xm_enqueued **at = &expected;

    while ((*at != NULL) && (((of != NULL) && !are_of_one_stream(*at, of)) ||
                             (__atomic_load_n(&(*at)->word[1], __ATOMIC_ACQUIRE) == 0))) {
        at = &(*at)->queued;
    }
    return at;
}

static void append(struct xm_enqueued *e)
{
    e->queued = NULL;
    *queue_end = e;
    queue_end = &e->queued;
}

/*
 * With the lock held. While the list is looked through, a stream may come to one that was passed
 * already, and then to a later one: so once one has come, the first one of its stream is looked
 * for. Several calls may have one word, one after the other.
 */
static void queue_come(void)
{
    struct xm_enqueued **at, *e;

    while ((e = *find_come(NULL)) != NULL) {
        at = find_come(e);
        e = *at;
        *at = e->queued;
        expected_end = (e->queued == NULL) ? at : expected_end;
        e->word[1] = 0;
        append(e);
    }
}

void xm_runner_hand_over(struct xm_enqueued *e)
{
    pthread_mutex_lock(&lock);
    queue_come();
    append(e);
    pthread_cond_signal(&handed);
    pthread_mutex_unlock(&lock);
}

void xm_runner_expect(struct xm_enqueued *e)
{
    pthread_mutex_lock(&lock);
    e->queued = NULL;
    *expected_end = e;
    expected_end = &e->queued;
    pthread_cond_signal(&handed);
    pthread_mutex_unlock(&lock);
}

void xm_runner_status(struct xm_enqueued *e, MPI_Status *status)
{
    pthread_mutex_lock(&lock);
    e->status = (status == MPI_STATUS_IGNORE) ? NULL : status;
    if (e->over && (e->status != NULL)) {
        *e->status = e->saved;
    }
    pthread_mutex_unlock(&lock);
}

/* why: of a failure of ours. */
static void fail(struct xm_enqueued *e, int code, xcclResult_t ours, const char *why)
{
    const char *what = !e->message   ? xm_coll_name(e->op.call.coll)
                       : e->receives ? "a receive (its status has MPI's code)"
                                     : "a send";

    xm_stream_comm_failed(e->sc, code, ours, what, why);
}

/*
 * Number a collective, and say if MPI is called without this rank's data. The ranks of a node tell
 * each other by number: all begin the same collectives of a communicator in the same order.
 */
static void number(struct xm_enqueued *e)
{
    struct xm_slots *slots = e->sc->xm->slots;

    e->number = ++e->sc->begun;
    if ((e->op.missed != xcclSuccess) && (slots != NULL)) {
        xm_slots_say_missed(slots, e->number);
    }
}

/* The call has had the error of this rank's own miss, but a launch of its graph has not. */
static void look_for_missed(struct xm_enqueued *e)
{
    const struct xm_slots *slots = e->sc->xm->slots;
    int                    rank = (slots != NULL) ? xm_slots_missed(slots, e->number) : -1;
    char                   why[160];

    if (e->op.missed != xcclSuccess) {
        if (e->captured) {
            fail(e, MPI_ERR_OTHER, e->op.missed, e->op.detail);
        }
    } else if (rank >= 0) {
        snprintf(why, sizeof(why),
                 "rank %d could not copy its data to host memory, as an error of its own says, so "
                 "the result may be wrong",
                 rank);
        fail(e, MPI_ERR_OTHER, xcclRemoteError, why);
    }
}

/* From the store on the stream goes on, and the operation may be freed. */
static void end(struct xm_enqueued *e, int code, const MPI_Status *status)
{
    if (code != MPI_SUCCESS) {
        fail(e, code, xcclSuccess, "");
    } else if (!e->message) {
        look_for_missed(e);
    }
    pthread_mutex_lock(&lock);
    e->saved = *status;
    e->saved.MPI_ERROR = code;
    if (e->receives && (e->peer == MPI_PROC_NULL)) { /* not every MPI says so for a request */
        e->saved.MPI_SOURCE = MPI_PROC_NULL;
        e->saved.MPI_TAG = MPI_ANY_TAG;
    }
    e->over = true;
    if (e->status != NULL) {
        *e->status = e->saved;
    }
    pthread_mutex_unlock(&lock);
    __atomic_store_n(e->word, 1, __ATOMIC_RELEASE);
}

static void begin(struct xm_enqueued *e)
{
    MPI_Status none = {.MPI_SOURCE = MPI_ANY_SOURCE, .MPI_TAG = MPI_ANY_TAG};

    if (!e->message) {
        number(e);
    }
    int code = e->post(e);
    if (code != MPI_SUCCESS) {
        end(e, code, &none);
        return;
    }
    e->queued = active;
    active = e;
}

static bool look(void)
{
    bool moved = false;

    for (struct xm_enqueued **at = &active; *at != NULL;) {
        struct xm_enqueued *e = *at;
        MPI_Status          status;
        int                 over = 0;
        int                 code = xm_pmpi.Test(&e->request, &over, &status);
        if ((code == MPI_SUCCESS) && !over) {
            at = &e->queued;
            continue;
        }
        *at = e->queued;
        moved = true;
        end(e, code, &status);
    }
    return moved;
}

static void nap(unsigned naps)
{
    unsigned              longer = naps / NAPS_BEFORE_LONGER;
    const struct timespec time = {0, (long)NAP_NS
                                         << ((longer < MOST_DOUBLINGS) ? longer : MOST_DOUBLINGS)};

    nanosleep(&time, NULL);
}

static struct xm_enqueued *take(unsigned *looks_p, bool *leave_p)
{
    pthread_mutex_lock(&lock);
    while ((queue == NULL) && (expected == NULL) && (active == NULL) && !leaving) {
        pthread_cond_wait(&handed, &lock);
        *looks_p = 0;
    }
    queue_come();
    struct xm_enqueued *taken = queue;
    queue = NULL;
    queue_end = &queue;
    *leave_p = leaving && (taken == NULL);
    pthread_mutex_unlock(&lock);
    if ((taken == NULL) && !*leave_p && (++*looks_p > EAGER_LOOKS)) {
        nap(*looks_p - EAGER_LOOKS);
    }
    return taken;
}

static void *work(void *arg)
{
    unsigned looks = 0;
    bool     leave = false;

    while (!leave) {
        struct xm_enqueued *taken = take(&looks, &leave);
        while (taken != NULL) {
            struct xm_enqueued *e = taken;
            taken = e->queued;
            begin(e);
            looks = 0;
        }
        if (look()) {
            looks = 0;
        } else {
            sched_yield();
        }
    }
    return arg;
}

xcclResult_t xm_runner_start(void)
{
    sigset_t every, before;
    bool     good = true;

    pthread_mutex_lock(&lock);
    if (!running) {
        sigfillset(
            &every); /* the program's handlers do not run in a thread that it does not know */
        pthread_sigmask(SIG_SETMASK, &every, &before);
        good = running = (pthread_create(&thread, NULL, work, NULL) == 0);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    pthread_mutex_unlock(&lock);
    return good ? xcclSuccess
                : xc_fail(xcclSystemError,
                          "no thread can be started for enqueued calls; raise the limit of "
                          "processes (ulimit -u)");
}

void xm_runner_stop(void)
{
    pthread_mutex_lock(&lock);
    bool was = running;
    leaving = true;
    pthread_cond_signal(&handed);
    pthread_mutex_unlock(&lock);
    if (was) {
        pthread_join(thread, NULL);
    }
    pthread_mutex_lock(&lock);
    running = leaving = false; /* MPI may begin anew with another session */
    pthread_mutex_unlock(&lock);
}
