/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A communicator of the vendor's library: made on a thread, used by one MPI communicator at a time,
 * kept for the next one with the same ranks, destroyed on a thread.
 */
#ifndef XM_COMMS_VENDOR_COMM_H
#define XM_COMMS_VENDOR_COMM_H

#include <pthread.h>
#include <stdint.h>

#include "comms/worker.h"
#include "device/device.h"
#include "mpi/mpi.h"

/* Sizes of calls, in bytes, within a power of two: the least and the most. */
struct xm_vendor_sizes {
    bool     any;
    uint64_t least, most;
};

/* Of a kind of call, those that the communicator has connected for: paths/ccl_known.c. */
enum { XM_VENDOR_SIZES = 48 };
struct xm_vendor_kind {
    struct xm_vendor_kind *next;
    uint32_t               key;
    struct xm_vendor_sizes sizes[XM_VENDOR_SIZES];
};

struct xm_vendor {
    xcclComm_t                  xcomm;
    const struct xc_device_ops *dev;
    int                         device;
    unsigned                    resets; /* of the device before it was made */
    xcclStream_t                stream;
    uint64_t                    id; /* equal on all its ranks, never 0 */
    int                         nranks, rank;
    int                        *world_ranks; /* of all ranks in order; NULL: cannot be kept */
    bool                        broken;      /* an operation failed: never used again */
    int                         users;       /* atomic: the MPI communicator and operations */

    uint8_t *peers; /* atomic: a flag per rank: connected for send and receive */

    pthread_mutex_t        lock; /* of the following */
    struct xm_vendor_kind *kinds;
    struct xm_launch      *queue, **queue_end;
    struct xm_job          launcher;
    bool                   launching; /* a thread works on the queue, or is about to */
    struct xm_vendor      *next;      /* in the pool */
};

/* Something to enqueue on the communicator, in the order of the calls. */
struct xm_launch {
    void (*run)(struct xm_launch *launch); /* with the device entered; sets what it likes */
    struct xm_launch *next;
};

/* The making of one, which may take seconds. */
struct xm_vendor_job {
    struct xm_job               job;
    const struct xc_device_ops *dev;
    int                         device;
    int                         nranks, rank;
    xcclUniqueId                id;
    struct xm_vendor           *vendor; /* the result */
    xcclResult_t                result;
    char                        detail[512];
    int                         abandoned;    /* atomic: nobody waits for it any more */
    uint64_t                    begun, ended; /* ns */
};

/* Begin to join the communicator of id. */
xcclResult_t xm_vendor_begin(const struct xc_device_ops *dev, int device, int nranks, int rank,
                             const xcclUniqueId *id, struct xm_vendor_job **job_p);
bool         xm_vendor_ended(struct xm_vendor_job *job);
/* Result of an ended job; the job is freed. */
xcclResult_t xm_vendor_take(struct xm_vendor_job *job, struct xm_vendor **vendor_p);
/* Leave the job to itself: what it makes is thrown away. */
void xm_vendor_abandon(struct xm_vendor_job *job);

/*
 * Enqueue on the communicator: at once, or, where that may block or an earlier one is not done,
 * on a thread. In the order of the calls.
 */
void xm_vendor_launch(struct xm_vendor *vendor, struct xm_launch *launch, bool may_block);
/* It failed meanwhile. False: it is not in the queue. */
bool xm_vendor_withdraw(struct xm_vendor *vendor, const struct xm_launch *launch);

/* Vendor communicators that MPI communicators of this process use now. */
int xm_vendors_in_use(void);
/* More or fewer streams of the program's, whose kernels may wait for other ranks at any time. */
void xm_vendors_beside_streams(int more);

void xm_vendor_hold(struct xm_vendor *vendor);
/* The last one puts it into the pool, or destroys it if it is broken. */
void xm_vendor_release(struct xm_vendor *vendor);
/* Has the program reset the device since? Then not even abort is possible. */
bool xm_vendor_lost(const struct xm_vendor *vendor);
/* It is never used again, and aborted on a thread. */
void xm_vendor_break(struct xm_vendor *vendor);

/* The id of the newest idle one with these ranks, and with this one on this device, or 0. */
uint64_t xm_vendor_idle(const struct xc_device_ops *dev, int device, const int *world_ranks,
                        int nranks);
/* Take that one out of the pool; NULL: another thread has taken it. */
struct xm_vendor *xm_vendor_reuse(uint64_t id);

/* World ranks of comm's ranks, to be freed; NULL if some rank is not in the world. */
int *xm_world_ranks(MPI_Comm comm, int size);

/* Begin to destroy all idle ones, which ends when the other ranks do it as well. */
void xm_vendors_end(void);
/* Wait for that a bounded time, while MPI progresses. */
void xm_vendors_finalize(void);

#endif
