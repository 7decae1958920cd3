/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI lets a program sit in any call of MPI while a message that it expects is on its way, and the
 * sender must not wait for that. So a thread looks at what is open now and then. It never calls
 * MPI.
 */
#include <limits.h>
#include <pthread.h>
#include <time.h>

#include "comms/wait.h"
#include "transfers/transfer.h"

/* Naps are short while something happens, and longer the longer nothing does. */
enum { SHORT_NAP_NS = 50 * 1000, LONG_NAP_NS = 800 * 1000, NAPS_BEFORE_LONGER = 200 };
/*
 * While the program's own threads look at transfers, so many naps without a look: two at it cost
 * each other more than they gain. But a program that waits for one may owe an answer to another.
 */
enum { MOST_SKIPPED = 16 };
/* With nothing to look after, so many long naps before it sleeps until it is woken. */
enum { IDLE_NAPS = 2000 };
/*
 * MPI is asked for so few of many receives in a round, and for each in every so many rounds: in
 * Open MPI each question moves all messages that there are.
 */
enum { FEW_RECEIVES = 4, MOST_PAUSE = 16 };
/* Who waits for some transfers looks at others for so long, so long after the last time. */
enum { HELP_NS = 1500, HELP_PAUSE_NS = 1500 };

static pthread_mutex_t     lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t      wanted = PTHREAD_COND_INITIALIZER;
static struct xm_transfer *watched;
static struct xm_transfer *helped;    /* the next to be looked at by who waits; NULL: the first */
static uint64_t            helped_ns; /* atomic */
static int                 num_watched, num_receives; /* atomic: of all, and of receives */
static bool                running, asleep, ending;
static unsigned            changes; /* of what is watched */
static unsigned            looks;   /* atomic: by the program's threads */
static struct xm_job       job;

void xm_watch_looked(void)
{
    __atomic_add_fetch(&looks, 1, __ATOMIC_RELAXED);
}

static void look_at(struct xm_transfer *t)
{
    xm_rendezvous_glance(t);
    xm_rendezvous_advance(t);
}

static void look_at_all(void)
{
    for (struct xm_transfer *t = watched; t != NULL; t = t->rendezvous.after) {
        look_at(t);
    }
}

/* Receivers wait for this process to write its messages to them. */
static void write_asked(void)
{
    for (struct xm_transfer *t = watched; t != NULL; t = t->rendezvous.after) {
        if (t->rendezvous.offered) {
            xm_rendezvous_advance(t);
        }
    }
}

/*
 * MPI_Irecv, MPI_Send, MPI_Wait: both ranks wait in MPI_Send until the other has fetched what it
 * was sent, and the thread below would come to that in its time only.
 */
static void help(void)
{
    uint64_t now = xm_now_ns();
    int      left = __atomic_load_n(&num_watched, __ATOMIC_RELAXED);

    if ((now - __atomic_load_n(&helped_ns, __ATOMIC_RELAXED) < HELP_PAUSE_NS) || xm_is_worker() ||
        (pthread_mutex_trylock(&lock) != 0)) {
        return;
    }
    if (xm_push_attend()) {
        write_asked();
    }
    while ((left-- > 0) && (watched != NULL) && (xm_now_ns() - now < HELP_NS)) {
        struct xm_transfer *t = (helped != NULL) ? helped : watched;
        helped = t->rendezvous.after;
        look_at(t);
    }
    __atomic_store_n(&helped_ns, xm_now_ns(), __ATOMIC_RELAXED);
    pthread_mutex_unlock(&lock);
}

void xm_watch_others(int looked)
{
    if (__atomic_load_n(&num_watched, __ATOMIC_RELAXED) > looked) {
        help();
    }
}

/* quiet: naps since anything changed. Naps cost the program no signal to wake the thread. */
static void pause_thread(int quiet)
{
    int             doublings = quiet / NAPS_BEFORE_LONGER;
    long            longer = (long)SHORT_NAP_NS << ((doublings < 4) ? doublings : 4);
    struct timespec nap = {0, (longer < LONG_NAP_NS) ? longer : LONG_NAP_NS};

    while (!ending && (quiet >= IDLE_NAPS) && (watched == NULL)) {
        asleep = true;
        pthread_cond_wait(&wanted, &lock);
    }
    asleep = false;
    pthread_mutex_unlock(&lock);
    nanosleep(&nap, NULL);
    pthread_mutex_lock(&lock);
}

static void watch(struct xm_job *unused)
{
    unsigned seen = 0, looked = 0;
    int      quiet = 0, skipped = 0;

    (void)unused;
    pthread_mutex_lock(&lock);
    while (!ending) {
        quiet = ((changes != seen) || (quiet == INT_MAX)) ? 0 : quiet + 1;
        seen = changes;
        unsigned now = __atomic_load_n(&looks, __ATOMIC_RELAXED);
        skipped = (now != looked) ? skipped + 1 : MOST_SKIPPED;
        looked = now;
        if (skipped >= MOST_SKIPPED) {
            look_at_all();
            skipped = 0;
        }
        pause_thread(quiet);
    }
    running = false;
    pthread_cond_broadcast(&wanted);
    pthread_mutex_unlock(&lock);
}

/* With the lock held. Without a thread the program's own calls do all of it. */
static void wake(void)
{
    if (asleep) {
        pthread_cond_signal(&wanted);
    } else if (!running && !ending) {
        job = (struct xm_job){.run = watch, .waited_for = false};
        running = (xm_worker_start(&job) == xcclSuccess);
    }
}

void xm_watch(struct xm_transfer *t)
{
    if (t->rendezvous.watched) {
        return;
    }
    pthread_mutex_lock(&lock);
    t->rendezvous.watched = true;
    t->polls = changes; /* not all in the same round */
    __atomic_add_fetch(&num_watched, 1, __ATOMIC_RELAXED);
    t->rendezvous.before = NULL;
    t->rendezvous.after = watched;
    if (watched != NULL) {
        watched->rendezvous.before = t;
    }
    watched = t;
    if (t->rendezvous.looks) {
        __atomic_add_fetch(&num_receives, 1, __ATOMIC_RELAXED);
    }
    changes++;
    __atomic_store_n(&xm_progress_beside, help, __ATOMIC_RELAXED);
    wake();
    pthread_mutex_unlock(&lock);
}

void xm_unwatch(struct xm_transfer *t)
{
    struct xm_rendezvous *r = &t->rendezvous;

    if (!r->watched) {
        return;
    }
    pthread_mutex_lock(&lock);
    helped = (helped == t) ? r->after : helped;
    if (r->before != NULL) {
        r->before->rendezvous.after = r->after;
    } else {
        watched = r->after;
    }
    if (r->after != NULL) {
        r->after->rendezvous.before = r->before;
    }
    r->watched = false;
    __atomic_sub_fetch(&num_watched, 1, __ATOMIC_RELAXED);
    if (r->looks) {
        __atomic_sub_fetch(&num_receives, 1, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&lock);
}

int xm_watched_receives(void)
{
    return __atomic_load_n(&num_receives, __ATOMIC_RELAXED);
}

unsigned xm_watch_pause(void)
{
    int n = __atomic_load_n(&num_receives, __ATOMIC_RELAXED) / FEW_RECEIVES;

    return (n < 1) ? 1 : (n < MOST_PAUSE) ? (unsigned)n : MOST_PAUSE;
}

void xm_watcher_end(void)
{
    pthread_mutex_lock(&lock);
    ending = true;
    pthread_cond_broadcast(&wanted);
    while (running) {
        pthread_cond_wait(&wanted, &lock);
    }
    pthread_mutex_unlock(&lock);
}
