/* SPDX-License-Identifier: BSD-3-Clause */
/* Moving a side's data: to and from packed device memory, and to and from host memory for MPI. */
#ifndef XM_INTERCEPT_COPY_H
#define XM_INTERCEPT_COPY_H

#include "intercept/memory.h"
#include "intercept/sides.h"

/* Where copies of one call run, and what they may use. The device is entered. */
struct xm_copier {
    const struct xm_call       *call;
    const struct xc_device_ops *dev;
    xcclStream_t                stream;
    struct xm_scratch          *scratch;
};

/* Enqueue: the side's data, block after block without gaps, into packed (device memory). */
xcclResult_t xm_pack(const struct xm_copier *copier, const struct xm_side *side, void *packed);
/* The other way. Bytes of the side's buffer between its data keep their values. */
xcclResult_t xm_unpack(const struct xm_copier *copier, const struct xm_side *side,
                       const void *packed);

/*
 * Enqueue the copy of a device side to host memory of the same shape; span is that of side->low.
 * What is between the data comes along where MPI needs it to be kept.
 */
xcclResult_t xm_stage_in(const struct xm_copier *copier, const struct xm_side *side, char *span);
xcclResult_t xm_stage_out(const struct xm_copier *copier, const struct xm_side *side, char *span);

#endif
