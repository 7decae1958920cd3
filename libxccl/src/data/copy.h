/* SPDX-License-Identifier: BSD-3-Clause */
/* Moving a buffer's data: to and from packed device memory, and to and from host memory for MPI. */
#ifndef XM_DATA_COPY_H
#define XM_DATA_COPY_H

#include "data/enqueue.h"
#include "data/kernels.h"

/*
 * The buffer's data, block after block without gaps, into packed (memory of the scratch's device).
 * Enqueued, unless a derived type is packed by MPI, which waits for a copy: where the type cannot
 * be taken apart, and where that would take more calls of the device's runtime than it saves.
 */
xcclResult_t xm_pack(const struct xm_copier *copier, const struct xm_buffer *buffer, void *packed);
/* The other way. Only bytes of data are written: holes of a type and gaps belong to others. */
xcclResult_t xm_unpack(const struct xm_copier *copier, const struct xm_buffer *buffer,
                       const void *packed);

/*
 * Let a stream's work on two buffers of the device come after what the program gave the default
 * stream for them: see stream_after_default.
 */
xcclResult_t xm_after_program(const struct xc_device_ops *dev, const struct xm_buffer *a,
                              const struct xm_buffer *b, xcclStream_t stream);

/* Is the device good at one of these, so that host memory does best to be packed? */
bool xm_packs_well(const struct xm_copier *copier, const struct xm_buffer *buffer, bool out);

/*
 * Enqueue the copy of a device buffer to host memory of the same shape; span is that of
 * buffer->low. And back: only bytes of data are written.
 */
xcclResult_t xm_stage_in(const struct xm_copier *copier, const struct xm_buffer *buffer,
                         char *span);
xcclResult_t xm_stage_out(const struct xm_copier *copier, const struct xm_buffer *buffer,
                          char *span);
/*
 * The same, but by the processor or the kernel that lingers on the device, and waited for. False:
 * nothing was done; it is for short stretches without holes. The program's own work on the memory
 * is over. bytes: see below.
 */
bool xm_stage_in_quickly(const struct xm_copier *copier, const struct xm_buffer *buffer,
                         char *span);
bool xm_stage_out_quickly(const struct xm_copier *copier, const struct xm_buffer *buffer,
                          char *span, MPI_Count bytes);
/*
 * The same, but it is one of several copies that begin together: *copy is over later. Only where a
 * kernel lingers that has them carried out at once, most likely.
 */
bool xm_stage_out_start(const struct xm_copier *copier, const struct xm_buffer *buffer, char *span,
                        MPI_Count bytes, struct xm_kernel_copy *copy);
/*
 * Stage out the first `bytes` bytes of data, in the order of the datatype; negative: for all.
 * May wait for copies if a derived type's element is there in part. The buffer is a single block.
 */
xcclResult_t xm_stage_out_bytes(const struct xm_copier *copier, const struct xm_buffer *buffer,
                                char *span, MPI_Count bytes);

#endif
