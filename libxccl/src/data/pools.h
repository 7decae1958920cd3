/* SPDX-License-Identifier: BSD-3-Clause */
/* Scratch memory, pinned host memory and device memory, kept between calls because both are slow to
 * get. */
#ifndef XM_DATA_POOLS_H
#define XM_DATA_POOLS_H

#include <stddef.h>

#include "device/device.h"

/* Pinned host memory, device memory, and addresses of memory for what most likely never comes. */
enum xm_pool { XM_POOL_HOST, XM_POOL_DEVICE, XM_POOL_LAZY, XM_NUM_POOLS };

enum { XM_SCRATCH_MAX = 8 };

/* What one call holds; given back by xm_scratch_end(). */
struct xm_scratch {
    const struct xc_device_ops *dev;
    int                         device;
    int                         count;
    bool                        filled;  /* what was for nothing holds memory now: it is not kept */
    bool                        ordered; /* see xm_scratch_begin_ordered() */
    bool                        beyond;  /* pinned memory may exceed XCCL_STAGING: for little */
    void                       *blocks[XM_SCRATCH_MAX]; /* struct xm_block_of_memory */
};

void xm_scratch_begin(struct xm_scratch *scratch, const struct xc_device_ops *dev, int device);
/*
 * For work on a stream of the program's, which may be captured: host memory is pinned or there is
 * none, and the calling thread asks the driver itself.
 */
void xm_scratch_begin_ordered(struct xm_scratch *scratch, const struct xc_device_ops *dev,
                              int device);
/*
 * At least bytes (not zero), with the scratch's device entered. What is not in the pool comes from
 * the driver, on a thread: the driver may wait for the program's own work. Where there is no pinned
 * memory, ordinary memory takes its place.
 */
xcclResult_t xm_scratch_take(struct xm_scratch *scratch, enum xm_pool pool, size_t bytes,
                             void **ptr_p);
/*
 * Device memory. Where there is none, and the scratch is ordered, pinned memory, even beyond
 * XCCL_STAGING: kernels reach it too, and the streams of other ranks wait for what is done there.
 */
xcclResult_t xm_scratch_take_device(struct xm_scratch *scratch, size_t bytes, void **ptr_p);
/*
 * The same as xm_scratch_take(), and the device's first copy stream, without a call of the
 * driver's; the device needs not be entered. False: nothing was taken; ask for both.
 */
bool xm_scratch_reuse(struct xm_scratch *scratch, enum xm_pool pool, size_t bytes, void **ptr_p,
                      xcclStream_t *stream_p);
/* Give back all but the first so many blocks. */
void xm_scratch_trim(struct xm_scratch *scratch, int count);
void xm_scratch_end(struct xm_scratch *scratch);

/*
 * Host memory beyond what is always kept is freed some seconds after its last use. There is no
 * thread for that: calls on device memory that may take none themselves look for it.
 */
extern bool        xm_pools_hold_much; /* atomic */
void               xm_pools_age_now(void);
static inline void xm_pools_age(void)
{
    if (__builtin_expect(__atomic_load_n(&xm_pools_hold_much, __ATOMIC_RELAXED), 0)) {
        xm_pools_age_now();
    }
}

/* A stream of the device for copies of calls that have no communicator; with the device entered. */
xcclResult_t xm_copy_stream(const struct xc_device_ops *dev, int device, xcclStream_t *stream_p);
/* That one and another in turns: for long copies that have nothing to do with each other. */
xcclResult_t xm_next_copy_stream(const struct xc_device_ops *dev, int device,
                                 xcclStream_t *stream_p);

/* Free all that is kept; in MPI_Finalize. */
void xm_memory_finalize(void);

#endif
