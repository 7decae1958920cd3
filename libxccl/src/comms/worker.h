/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads for what may block in the vendor's library or the driver. They do not call MPI, except
 * for messages in pieces, where MPI lets all threads call it (transfers/pieces.h). A job never
 * waits behind another one: each running job has a thread of its own.
 */
#ifndef XM_COMMS_WORKER_H
#define XM_COMMS_WORKER_H

#include <stdbool.h>

#include <xccl/xccl.h>

/* Begins a structure of the caller's, which lives until the job is done. */
struct xm_job {
    void (*run)(struct xm_job *job); /* may free the job if nobody waits for it */
    struct xm_job *next;
    bool           waited_for; /* set by the caller: done is set after run() */
    bool           settles;    /* set by the caller: it is one of those that calls end after */
    int            done;       /* atomic */
};

/* Run the job on a thread. Fails if no thread can be had; then the job was not begun. */
xcclResult_t xm_worker_start(struct xm_job *job);

static inline bool xm_job_done(const struct xm_job *job)
{
    return __atomic_load_n(&job->done, __ATOMIC_ACQUIRE) != 0;
}

/* How many of those that calls end after are under way (atomic): see xm_settle(). */
extern int xm_jobs_settling;

/* Is the calling thread one of these? Then most of MPI is not for it. */
bool xm_is_worker(void);

/* Let idle threads end. Those that are blocked stay to the end of the process. */
void xm_workers_finalize(void);

#endif
