/* SPDX-License-Identifier: BSD-3-Clause */
#include "comms/join.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "comms/wait.h"

enum {
    NOTE_TAG = 1,
    /* How long a rank whose peer failed waits for its own call to notice by itself. */
    GRACE_MS = 3000,
};

enum job_state { RUNNING, ENDED, ABANDONED };

/* Belongs to the thread once ABANDONED, else to the caller. */
struct job {
    pthread_mutex_t             lock;
    enum job_state              state;
    const struct xc_device_ops *dev;
    int                         device;
    int                         nranks, rank;
    xcclUniqueId                id;
    xcclComm_t                  xcomm;
    xcclResult_t                result;
    char                        detail[512];
};

static void free_job(struct job *job)
{
    pthread_mutex_destroy(&job->lock);
    free(job);
}

static void *run_job(void *arg)
{
    struct job  *job = arg;
    void        *saved;
    xcclComm_t   xcomm = NULL;
    xcclResult_t res = job->dev->enter(job->device, &saved);

    if (res == xcclSuccess) {
        res = xcclCommInitRank(&xcomm, job->nranks, job->id, job->rank);
    }
    pthread_mutex_lock(&job->lock);
    bool abandoned = (job->state == ABANDONED);
    job->state = ENDED;
    job->result = res;
    job->xcomm = xcomm;
    snprintf(job->detail, sizeof(job->detail), "%s", xc_last_detail());
    pthread_mutex_unlock(&job->lock);
    if (abandoned) {
        if (res == xcclSuccess) {
            xcclCommAbort(xcomm);
        }
        free_job(job);
    }
    return NULL;
}

/* The program's signal handlers must not run in a thread that it does not know. */
static int start_thread(pthread_t *thread, struct job *job)
{
    sigset_t none, before;

    sigfillset(&none);
    pthread_sigmask(SIG_SETMASK, &none, &before);
    int res = pthread_create(thread, NULL, run_job, job);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return res;
}

static bool job_ended(struct job *job)
{
    pthread_mutex_lock(&job->lock);
    bool ended = (job->state == ENDED);
    pthread_mutex_unlock(&job->lock);
    return ended;
}

/* True if the thread got the job; false if it ended in this moment. */
static bool abandon(struct job *job)
{
    pthread_mutex_lock(&job->lock);
    bool abandoned = (job->state == RUNNING);
    if (abandoned) {
        job->state = ABANDONED;
    }
    pthread_mutex_unlock(&job->lock);
    return abandoned;
}

static bool take_note(MPI_Comm ctl, int *from_p)
{
    MPI_Status status;
    char       note;
    int        flag = 0;

    xm_pmpi.Iprobe(MPI_ANY_SOURCE, NOTE_TAG, ctl, &flag, &status);
    if (!flag) {
        return false;
    }
    *from_p = status.MPI_SOURCE;
    xm_pmpi.Recv(&note, 1, XM_HANDLE(MPI_BYTE), status.MPI_SOURCE, NOTE_TAG, ctl,
                 MPI_STATUS_IGNORE);
    return true;
}

struct vigil {
    int      notes; /* received */
    int      first; /* who sent the first */
    uint64_t first_ms;
    bool     expired;
};

/* Until the job has ended, or is to be given up. */
static void keep_vigil(MPI_Comm ctl, struct job *job, struct vigil *vigil)
{
    struct xm_wait wait = xm_wait_begin();
    int            from;

    while (!job_ended(job)) {
        if (xm_wait_step(&wait) == XM_WAIT_EXPIRED) {
            vigil->expired = true;
            return;
        }
        if (take_note(ctl, &from) && (vigil->notes++ == 0)) {
            vigil->first = from;
            vigil->first_ms = xm_wait_elapsed_ms(&wait);
        }
        if ((vigil->notes > 0) && (xm_wait_elapsed_ms(&wait) > vigil->first_ms + GRACE_MS)) {
            return;
        }
    }
}

static void send_notes(MPI_Comm ctl, int rank, int size)
{
    char note = 0;

    /* A message this small is buffered by every MPI: the send returns without its receive. */
    for (int i = 0; i < size; i++) {
        if (i != rank) {
            xm_pmpi.Send(&note, 1, XM_HANDLE(MPI_BYTE), i, NOTE_TAG, ctl);
        }
    }
}

/* Every rank that sent notes sent one to each other rank: receive what is still on its way. */
static void collect_notes(MPI_Comm ctl, bool sent, int received)
{
    int mine = sent ? 1 : 0, senders = 0, from;

    xm_pmpi.Allreduce(&mine, &senders, 1, XM_HANDLE(MPI_INT), XM_HANDLE(MPI_SUM), ctl);
    while (received < senders - mine) {
        received += take_note(ctl, &from) ? 1 : 0;
    }
}

/* Outcome of a job that was waited for; on success the communicator is the caller's. */
static xcclResult_t outcome(struct job *job, const struct vigil *vigil, xcclComm_t *xcomm_p)
{
    if (!job_ended(job) && abandon(job)) {
        /* The thread stays inside the vendor's library; it frees what it gets, if it ever does. */
        if (vigil->expired) {
            return xc_fail(
                xcclTimeout,
                "the vendor's library did not make the communicator within XCCL_TIMEOUT");
        }
        return xc_fail(xcclRemoteError, "gave up joining because rank %d failed", vigil->first);
    }
    xcclResult_t res = job->result;
    if (res == xcclSuccess) {
        *xcomm_p = job->xcomm;
    } else {
        xc_fail(res, "%s", job->detail);
    }
    free_job(job);
    return res;
}

static struct job *new_job(MPI_Comm ctl, const struct xc_device_ops *dev, int device,
                           const xcclUniqueId *id)
{
    struct job *job = calloc(1, sizeof(*job));

    if (job == NULL) {
        xc_fail(xcclSystemError, "out of memory for a communicator");
        return NULL;
    }
    pthread_mutex_init(&job->lock, NULL);
    job->dev = dev;
    job->device = device;
    job->id = *id;
    xm_pmpi.Comm_rank(ctl, &job->rank);
    xm_pmpi.Comm_size(ctl, &job->nranks);
    return job;
}

xcclResult_t xm_join(MPI_Comm ctl, const struct xc_device_ops *dev, int device,
                     const xcclUniqueId *id, xcclComm_t *xcomm_p, bool *because_of_others_p)
{
    struct vigil vigil = {0, -1, 0, false};
    pthread_t    thread;
    int          rank, size;
    xcclResult_t res;

    xm_pmpi.Comm_rank(ctl, &rank);
    xm_pmpi.Comm_size(ctl, &size);
    struct job *job = new_job(ctl, dev, device, id);
    if (job == NULL) {
        res = xcclSystemError;
    } else if (start_thread(&thread, job) != 0) {
        free_job(job);
        res = xc_fail(xcclSystemError, "cannot start a thread to make the communicator in");
    } else {
        pthread_detach(thread);
        keep_vigil(ctl, job, &vigil);
        res = outcome(job, &vigil, xcomm_p);
    }
    *because_of_others_p = (res != xcclSuccess) && (vigil.notes > 0);
    bool sent = (res != xcclSuccess) && (vigil.notes == 0);
    if (sent) {
        send_notes(ctl, rank, size);
    }
    collect_notes(ctl, sent, vigil.notes);
    return res;
}
