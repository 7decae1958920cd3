/* SPDX-License-Identifier: BSD-3-Clause */
/* Buffers as a path that works on the device needs them. All with the device entered. */
#ifndef XM_PATHS_BUFFERS_H
#define XM_PATHS_BUFFERS_H

#include "paths/path.h"

/*
 * Make both buffers of an operation that runs on op->home and op->stream usable there: one that
 * lies elsewhere or has holes gets a packed copy. begin: scratch, and what needs MPI, on the
 * caller's thread. pack: the rest, enqueued.
 */
xcclResult_t xm_usable_begin(struct xm_op *op);
xcclResult_t xm_usable_pack(struct xm_op *op);
/*
 * Let the result, of so many bytes, go to scratch where it would be written over an input: it is
 * copied to its place in the end, or never. xcclUnsupported: too long.
 */
xcclResult_t xm_usable_set_apart(struct xm_op *op, size_t bytes);
/*
 * The way back of a copy that was written, once the collective is over. xcclInProgress: the
 * operation is at stage XM_STAGE_COPY until its event is over.
 */
xcclResult_t xm_usable_copy_back(struct xm_op *op);
void         xm_usable_free(struct xm_op *op);

/* Copies from and to ordinary host memory on a stream wait for what the stream has. */
bool xm_copies_host_memory(const struct xm_op *op);

#endif
