/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts, displacements and datatypes that a call has as arrays. */
#ifndef XM_DATA_ARRAYS_H
#define XM_DATA_ARRAYS_H

#include "data/buffer.h"

/*
 * Make those of a non-blocking call, on so many ranks, the operation's own. MPI wants them left
 * alone until the call is complete. But MPI libraries read them in the call, so there are programs
 * that give them up behind it, and bindings of Fortran that convert them for it. False: out of
 * memory, and nothing has changed.
 */
bool xm_arrays_keep(struct xm_call *call, struct xm_buffers *buffers, int ranks);

#endif
