/* SPDX-License-Identifier: BSD-3-Clause */
/* Scratch memory, pinned host memory and device memory, kept between calls because both are slow to
 * get. */
#ifndef XM_INTERCEPT_MEMORY_H
#define XM_INTERCEPT_MEMORY_H

#include <stddef.h>

#include "device/device.h"

enum xm_pool { XM_POOL_HOST, XM_POOL_DEVICE };

enum { XM_SCRATCH_MAX = 8 };

/* What one call holds; given back by xm_scratch_end(). */
struct xm_scratch {
    const struct xc_device_ops *dev;
    int                         device;
    int                         count;
    void                       *blocks[XM_SCRATCH_MAX]; /* struct block of memory.c */
};

void xm_scratch_begin(struct xm_scratch *scratch, const struct xc_device_ops *dev, int device);
/* At least bytes (not zero), with the scratch's device entered. */
xcclResult_t xm_scratch_take(struct xm_scratch *scratch, enum xm_pool pool, size_t bytes,
                             void **ptr_p);
void         xm_scratch_end(struct xm_scratch *scratch);

/* A stream of the device for copies of calls that have no communicator; with the device entered. */
xcclResult_t xm_copy_stream(const struct xc_device_ops *dev, int device, xcclStream_t *stream_p);

/* Free all that is kept; in MPI_Finalize. */
void xm_memory_finalize(void);

#endif
