/* SPDX-License-Identifier: BSD-3-Clause */
#include "comms/worker.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

#include "base/log.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t  wanted = PTHREAD_COND_INITIALIZER;
static struct xm_job  *queue;
static int             queued, idle;
static unsigned        ending; /* threads made before this count may end */
static unsigned        generation;

int xm_jobs_settling;

static __thread bool is_worker;

bool xm_is_worker(void)
{
    return is_worker;
}

static struct xm_job *take(unsigned born)
{
    pthread_mutex_lock(&lock);
    idle++;
    while ((queue == NULL) && (born >= ending)) {
        pthread_cond_wait(&wanted, &lock);
    }
    idle--;
    struct xm_job *job = queue;
    if (job != NULL) {
        queue = job->next;
        queued--;
    }
    pthread_mutex_unlock(&lock);
    return job;
}

static void run(struct xm_job *job)
{
    bool waited_for = job->waited_for, settles = job->settles;

    job->run(job);
    if (settles) {
        __atomic_sub_fetch(&xm_jobs_settling, 1, __ATOMIC_RELEASE);
    }
    if (waited_for) {
        __atomic_store_n(&job->done, 1, __ATOMIC_RELEASE);
    }
}

static void *work(void *arg)
{
    unsigned       born = (unsigned)(size_t)arg;
    struct xm_job *job;

    is_worker = true;
    while ((job = take(born)) != NULL) {
        run(job);
    }
    return NULL;
}

/* The program's signal handlers must not run in a thread that it does not know. */
static bool start_thread(void)
{
    pthread_t thread;
    sigset_t  none, before;

    sigfillset(&none);
    pthread_sigmask(SIG_SETMASK, &none, &before);
    int res = pthread_create(&thread, NULL, work, (void *)(size_t)generation);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (res == 0) {
        pthread_detach(thread);
    }
    return res == 0;
}

xcclResult_t xm_worker_start(struct xm_job *job)
{
    bool started = true;

    job->next = NULL;
    __atomic_store_n(&job->done, 0, __ATOMIC_RELAXED);
    pthread_mutex_lock(&lock);
    if (queued >= idle) {
        started = start_thread();
    }
    if (started) {
        __atomic_add_fetch(&xm_jobs_settling, job->settles ? 1 : 0, __ATOMIC_RELAXED);
        job->next = queue; /* any order: each gets a thread at once */
        queue = job;
        queued++;
        pthread_cond_signal(&wanted);
    }
    pthread_mutex_unlock(&lock);
    return started ? xcclSuccess
                   : xc_fail(xcclSystemError,
                             "no thread can be started for a call that may block; raise the limit "
                             "of processes (ulimit -u)");
}

void xm_workers_finalize(void)
{
    pthread_mutex_lock(&lock);
    ending = ++generation;
    pthread_cond_broadcast(&wanted);
    pthread_mutex_unlock(&lock);
}
