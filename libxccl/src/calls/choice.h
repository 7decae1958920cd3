/* SPDX-License-Identifier: BSD-3-Clause */
/* The choice of the path that carries a collective, the same on all of its ranks. */
#ifndef XM_CALLS_CHOICE_H
#define XM_CALLS_CHOICE_H

#include "ops/op.h"

/*
 * Of a call on device memory of all ranks: they agree first on what they have, and all come to the
 * same answer. op->code: MPI refuses the call, and there is no path.
 */
xcclResult_t xm_collective_choose(struct xm_op *op, const struct xm_path **path_p);

/*
 * Threads may start any requests of a communicator of one rank at the same time (persistent.c): is
 * the path of this one chosen with a lock held? Then the check of its types is the caller's,
 * without that lock, if anything but MPI is to carry it. MPI_SUCCESS, or the code of an error that
 * has been raised.
 */
bool xm_collective_takes_turns(const struct xm_op *op);
int  xm_collective_check_types(const struct xm_op *op);

/* MPI's path: on copies in host memory if it could not read the buffers, or as a row wants. */
const struct xm_path *xm_collective_path_to_mpi(const struct xm_op *op, bool on_copies);

#endif
