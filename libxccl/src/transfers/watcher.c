/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI lets a program sit in any call of MPI while a message that it expects is on its way, and the
 * sender must not wait for that. So a thread looks at what is open now and then. It never calls
 * MPI.
 */
#include <pthread.h>
#include <time.h>

#include "comms/worker.h"
#include "transfers/transfer.h"

enum { NAP_NS = 50 * 1000, LONG_NAP_NS = 1000 * 1000, IDLE_NAPS = 2000 };

static pthread_mutex_t     lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t      wanted = PTHREAD_COND_INITIALIZER;
static struct xm_transfer *watched;
static bool                running, asleep, ending;
static struct xm_job       job;

static void look_at_all(void)
{
    for (struct xm_transfer *t = watched; t != NULL; t = t->rendezvous.after) {
        xm_rendezvous_glance(t);
        xm_rendezvous_advance(t);
    }
}

/* Asleep without a limit once there was nothing for long; else naps, which cost no signal. */
static void pause_thread(int idle)
{
    struct timespec nap = {0, (idle > 0) ? LONG_NAP_NS : NAP_NS};

    while (!ending && (idle >= IDLE_NAPS) && (watched == NULL)) {
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
    int idle = 0;

    (void)unused;
    pthread_mutex_lock(&lock);
    while (!ending) {
        idle = (watched != NULL) ? 0 : idle + 1;
        look_at_all();
        pause_thread(idle);
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
    t->rendezvous.before = NULL;
    t->rendezvous.after = watched;
    if (watched != NULL) {
        watched->rendezvous.before = t;
    }
    watched = t;
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
    if (r->before != NULL) {
        r->before->rendezvous.after = r->after;
    } else {
        watched = r->after;
    }
    if (r->after != NULL) {
        r->after->rendezvous.before = r->before;
    }
    r->watched = false;
    pthread_mutex_unlock(&lock);
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
