/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waiting is progress: whoever polls for something outside MPI lets MPI move messages between the
 * polls, because a rank that waits here may owe another one the rest of a message it began before.
 */
#ifndef XM_COMMS_WAIT_H
#define XM_COMMS_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attended.h"
#include "base/calm.h"
#include "comms/worker.h"
#include "device/device.h"

/* Once, with MPI initialised; and before PMPI_Finalize. */
void xm_progress_init(void);
void xm_progress_finalize(void);

/* Let MPI move messages. Never blocks. */
void xm_progress(void);
/*
 * Not by this thread, until told otherwise or for a second: what MPI does then would come before
 * the call that is being prepared.
 */
void xm_progress_pause(void);
void xm_progress_resume(void);
/*
 * What a rank owes to others beside MPI, or NULL (atomic): whoever waits does that as well, because
 * what it waits for may be theirs to do when they have got it. Never blocks, and is quick.
 */
extern void (*xm_progress_beside)(void);
/* Both. */
void xm_progress_all(void);

struct xm_wait {
    const char *what; /* "for memory", for the warning of a long wait */
    void (*describe)(void *arg, char *buf, size_t len); /* or this writes it */
    void *arg;
    /* So many polls are made in a row first: what takes no longer than MPI's own calls do. */
    unsigned           quiet;
    uint64_t           polls;
    struct xc_calm     calm;
    unsigned           lost;      /* offers of the core that others took, in a row */
    struct xc_attended attended;  /* from when the clock was needed */
    uint64_t           limit;     /* ns attended; 0: none */
    bool               for_ever;  /* whatever XCCL_TIMEOUT says */
    uint64_t           warn_next; /* ns attended */
};

/* Begin a wait of at most XCCL_TIMEOUT. */
struct xm_wait xm_wait_begin(const char *what);
/* One that nothing ends but what it waits for: it warns, and leaves the core to others, all the
 * same. */
struct xm_wait xm_wait_begin_for_ever(const char *what);

enum xm_wait_verdict {
    XM_WAIT_ON,     /* poll again */
    XM_WAIT_LOOK,   /* the same, and now and then a costly check is in order */
    XM_WAIT_EXPIRED /* XCCL_TIMEOUT has passed */
};

/* Between two polls: progress MPI, yield or nap when it takes long, watch the clock. */
enum xm_wait_verdict xm_wait_step(struct xm_wait *wait);

/* Nanoseconds of a clock that does not jump. */
uint64_t xm_now_ns(void);

/* Run a job on a thread of its own while this one lets MPI progress. */
xcclResult_t xm_offload(struct xm_job *job, const char *what);

/*
 * Before a call on device memory returns: wait for what its thread began to make on the device, and
 * others will use. So nothing of ours uses the device when the program has no call under way, and
 * it may reset the device then. Where the device does not let that come to an end, because a kernel
 * waits there for what the program does after the call, this gives up, for good.
 */
void xm_settle_jobs(void);

static inline void xm_settle(void)
{
    if (__builtin_expect(__atomic_load_n(&xm_jobs_settling, __ATOMIC_ACQUIRE) > 0, 0)) {
        xm_settle_jobs();
    }
}

/* Wait for all that stream has. */
xcclResult_t xm_stream_wait(const struct xc_device_ops *dev, xcclStream_t stream);
/* The same where MPI is better left alone: it gets no progress in the first second. */
xcclResult_t xm_stream_wait_apart(const struct xc_device_ops *dev, xcclStream_t stream);

#endif
