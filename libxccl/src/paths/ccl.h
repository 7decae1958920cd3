/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of the vendor's path. All of them run with the device entered. */
#ifndef XM_PATHS_CCL_H
#define XM_PATHS_CCL_H

#include "paths/path.h"

/*
 * What one operation may take of device memory as scratch for a block of each rank, cut into one
 * part per rank. XCCL_SCRATCH, which is equal on all ranks.
 */
size_t xm_ccl_scratch_per_rank(const struct xm_op *op);

/* Device memory for copies, to be taken before the library's first call of the operation. */
xcclResult_t xm_ccl_take_scratch(struct xm_op *op, size_t bytes, char **ptr_p);

/* Is a large rooted collective carried in pieces, because a root may have to copy it? */
bool xm_ccl_in_pieces(const struct xm_op *op);

/* May the library wait for other ranks in this call, since it has to connect? Remembered. */
bool xm_ccl_may_block(struct xm_op *op);

/* Are all parts of an MPI_Reduce_scatter equal? */
bool xm_ccl_parts_are_equal(const struct xm_op *op);
/* Is an MPI_Allgatherv allgathers of pieces of so many bytes? Else each part is broadcast. */
bool xm_ccl_gathers_parts(const struct xm_op *op, size_t *piece_p);

/*
 * An operation of the direct path, which holds the vendor communicator since its start, and whose
 * turn has come. From now on it is to progress and to end by this path's functions.
 */
void xm_ccl_take_over(struct xm_op *op);

/* Enqueue the collective itself (ccl_calls.c, ccl_allgatherv.c, ccl_rooted.c). */
xcclResult_t xm_ccl_enqueue(struct xm_op *op);
xcclResult_t xm_ccl_allgatherv(struct xm_op *op);
xcclResult_t xm_ccl_gather(struct xm_op *op);
xcclResult_t xm_ccl_scatter(struct xm_op *op);

#endif
