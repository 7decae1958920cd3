/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI lets a program sit in any call of MPI while a message that it expects is on its way, and the
 * sender must not wait for that. So a thread looks at what is open now and then. It calls MPI for
 * messages in pieces alone, and those there are only with MPI_THREAD_MULTIPLE.
 */
#include "transfers/watcher.h"

#include <limits.h>
#include <pthread.h>
#include <time.h>

#include "comms/wait.h"
#include "transfers/push.h"
#include "transfers/transfer.h"

/* Naps are short while something happens, and longer the longer nothing does. */
enum { SHORT_NAP_NS = 50 * 1000, LONG_NAP_NS = 800 * 1000, NAPS_BEFORE_LONGER = 200 };
/* Of very many transfers a round takes long: it naps for so many times as long, at most so long. */
enum { NAPS_PER_ROUND = 8, MOST_NAP_NS = 20 * 1000 * 1000 };
/*
 * While the program's own threads look at transfers, so many naps without a look: two at it cost
 * each other more than they gain. But a program that tests one may owe an answer to another.
 */
enum { MOST_SKIPPED = 64 };
/* With nothing to look after, so many long naps before it sleeps until it is woken. */
enum { IDLE_NAPS = 2000 };
/*
 * MPI is asked for so few of many receives in a round, and for each in every so many rounds: in
 * Open MPI each question moves all messages that there are.
 */
enum { FEW_RECEIVES = 4, MOST_PAUSE = 16 };
/* Who waits for some transfers looks at others for so long, so long after the last time. */
enum { HELP_NS = 1500, HELP_PAUSE_NS = 1500, POST_PAUSE_NS = 8000 };
/*
 * Of so few all are best looked at together, when the program waits for them. So are short ones,
 * however many there are: copied together they take less than it costs to look in between.
 */
enum { FEW_POSTED = 16, POSTED_BYTES = 512 << 10 };
/* So many are looked at together. */
enum { MOST_HELD = 32 };

static pthread_mutex_t     lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t      wanted = PTHREAD_COND_INITIALIZER;
static struct xm_transfer *watched;
static struct xm_transfer *next_looked;               /* NULL: the first */
static uint64_t            helped_ns;                 /* atomic */
static int                 num_watched, num_receives; /* atomic: of all, and of receives */
static bool                running, asleep, ending;
static unsigned            changes; /* of what is watched */
static unsigned            looks;   /* atomic: by the program's threads */
static unsigned            moves;   /* atomic: of pieces */
static struct xm_job       job;
static __thread bool       posting;

static const struct xm_watch_too *too;            /* atomic, or NULL */
static bool                       resting = true; /* atomic: nobody looks until there is a reason */

void xm_watch_moved(void)
{
    __atomic_add_fetch(&moves, 1, __ATOMIC_RELAXED);
}

void xm_watch_looked(void)
{
    __atomic_add_fetch(&looks, 1, __ATOMIC_RELAXED);
}

/*
 * Hold up to MOST_HELD transfers, so that nobody else is at them and they are not freed: those from
 * where the last round ended, or of all the offered ones. The lock is not needed from then on.
 * *end_p: there are no more behind them.
 */
static int hold_some(struct xm_transfer *held[MOST_HELD], bool offered, bool *end_p)
{
    int n = 0;

    pthread_mutex_lock(&lock);
    struct xm_transfer *t = (offered || (next_looked == NULL)) ? watched : next_looked;
    for (; (t != NULL) && (n < MOST_HELD); t = t->rendezvous.after) {
        bool wanted_one = !offered || __atomic_load_n(&t->rendezvous.offered, __ATOMIC_RELAXED);
        if (wanted_one && xm_rendezvous_hold(t)) {
            held[n++] = t;
        }
    }
    next_looked = offered ? next_looked : t;
    *end_p = (t == NULL);
    pthread_mutex_unlock(&lock);
    return n;
}

/* True at the end of the list. */
static bool look_at_some(void)
{
    struct xm_transfer *held[MOST_HELD];
    bool                end;
    int                 n = hold_some(held, false, &end);

    xm_rendezvous_look(held, n);
    return end;
}

static int count_too(void)
{
    const struct xm_watch_too *more = __atomic_load_n(&too, __ATOMIC_ACQUIRE);

    return (more != NULL) ? more->count() : 0;
}

/* They come first: those that become transfers are looked at next. */
static void look_too(bool all)
{
    const struct xm_watch_too *more = __atomic_load_n(&too, __ATOMIC_ACQUIRE);
    bool                       goes_on = (more != NULL) && (more->count() > 0);

    while (goes_on) {
        goes_on = !more->look() && all;
    }
}

/* Receivers wait for this process to write its messages to them. */
static void write_asked(void)
{
    struct xm_transfer *held[MOST_HELD];
    bool                end;
    int                 n = hold_some(held, true, &end);

    xm_rendezvous_look(held, n);
}

/*
 * MPI_Irecv, MPI_Send, MPI_Wait: both ranks wait in MPI_Send until the other has fetched what it
 * was sent, and the thread below would come to that in its time only.
 */
static void help_after(uint64_t pause_ns)
{
    static bool helping; /* atomic */
    uint64_t    now = xm_now_ns();

    if ((now - __atomic_load_n(&helped_ns, __ATOMIC_RELAXED) < pause_ns) || xm_is_worker() ||
        __atomic_exchange_n(&helping, true, __ATOMIC_ACQUIRE)) {
        return;
    }
    if (xm_push_attend()) {
        write_asked();
    }
    look_too(false);
    while (!look_at_some() && (xm_now_ns() - now < HELP_NS)) {}
    __atomic_store_n(&helped_ns, xm_now_ns(), __ATOMIC_RELAXED);
    __atomic_store_n(&helping, false, __ATOMIC_RELEASE);
}

static void help(void)
{
    help_after(HELP_PAUSE_NS);
}

void xm_watch_posted(uint64_t bytes)
{
    uint64_t helped = __atomic_load_n(&helped_ns, __ATOMIC_RELAXED);

    if ((bytes < POSTED_BYTES) || (xm_now_ns() - helped < POST_PAUSE_NS) ||
        (__atomic_load_n(&num_watched, __ATOMIC_RELAXED) <= FEW_POSTED)) {
        return;
    }
    xm_progress(); /* what has come is not in memory before */
    posting = true;
    help_after(POST_PAUSE_NS);
    posting = false;
}

bool xm_watch_is_posting(void)
{
    return posting;
}

void xm_watch_others(int looked)
{
    if (__atomic_load_n(&num_watched, __ATOMIC_RELAXED) + count_too() > looked) {
        help();
    }
}

/*
 * quiet: naps since anything changed. least: ns, for what a round takes. Naps cost the program no
 * signal to wake the thread.
 */
static void pause_thread(int quiet, uint64_t least)
{
    int             doublings = quiet / NAPS_BEFORE_LONGER;
    long            longer = (long)SHORT_NAP_NS << ((doublings < 4) ? doublings : 4);
    long            most = (longer < LONG_NAP_NS) ? longer : LONG_NAP_NS;
    struct timespec nap = {0, ((uint64_t)most > least) ? most : (long)least};

    while (!ending && (quiet >= IDLE_NAPS) && (watched == NULL)) {
        asleep = true;
        /* Either this thread sees that there is one more, or who says so sees this. */
        __atomic_store_n(&resting, true, __ATOMIC_SEQ_CST);
        if (count_too() > 0) {
            break;
        }
        pthread_cond_wait(&wanted, &lock);
    }
    asleep = false;
    __atomic_store_n(&resting, false, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&lock);
    nanosleep(&nap, NULL);
    pthread_mutex_lock(&lock);
}

/* Of the processor: others may have had the core in between. */
static uint64_t used_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void watch(struct xm_job *unused)
{
    unsigned seen = 0, looked = 0, moved = 0;
    int      quiet = 0, skipped = 0, counted = 0;
    uint64_t least = 0;

    (void)unused;
    pthread_mutex_lock(&lock);
    while (!ending) {
        unsigned moving = __atomic_load_n(&moves, __ATOMIC_RELAXED);
        int      count = count_too();
        bool     quieter =
            (changes == seen) && (moving == moved) && (count == counted) && (quiet < INT_MAX);
        quiet = quieter ? quiet + 1 : 0;
        seen = changes;
        moved = moving;
        counted = count;
        unsigned now = __atomic_load_n(&looks, __ATOMIC_RELAXED);
        skipped = (now != looked) ? skipped + 1 : MOST_SKIPPED;
        looked = now;
        if (skipped >= MOST_SKIPPED) {
            pthread_mutex_unlock(&lock);
            uint64_t begun = used_ns();
            look_too(true);
            while (!look_at_some()) {}
            least = NAPS_PER_ROUND * (used_ns() - begun);
            least = (least < MOST_NAP_NS) ? least : MOST_NAP_NS;
            pthread_mutex_lock(&lock);
            skipped = 0;
        }
        pause_thread(quiet, least);
    }
    running = false;
    pthread_cond_broadcast(&wanted);
    pthread_mutex_unlock(&lock);
}

/*
 * With the lock held. Without a thread the program's own calls do all of it, and a message that is
 * to be fetched waits for one of them.
 */
static void wake(void)
{
    static bool told;

    if (asleep) {
        pthread_cond_signal(&wanted);
    } else if (!running && !ending) {
        job = (struct xm_job){.run = watch, .waited_for = false};
        running = (xm_worker_start(&job) == xcclSuccess);
        if (!running && !told) {
            told = true;
            xc_warn("no thread can be started, which messages of device memory need: their senders "
                    "may wait for ever; raise the limit of processes (ulimit -u), or set "
                    "XCCL_P2P=staged");
        }
    }
}

void xm_watch_too(const struct xm_watch_too *more)
{
    bool known = (__atomic_load_n(&too, __ATOMIC_RELAXED) != NULL);

    if (known && !__atomic_load_n(&resting, __ATOMIC_SEQ_CST)) {
        return;
    }
    pthread_mutex_lock(&lock);
    __atomic_store_n(&too, more, __ATOMIC_RELEASE);
    __atomic_store_n(&xm_progress_beside, help, __ATOMIC_RELAXED);
    wake();
    pthread_mutex_unlock(&lock);
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
    if (t->rendezvous.awaits) {
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
    next_looked = (next_looked == t) ? r->after : next_looked;
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
    if (r->awaits) {
        __atomic_sub_fetch(&num_receives, 1, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&lock);
    xm_rendezvous_let_go(t);
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
