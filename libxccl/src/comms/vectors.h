/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who carries a non-blocking alltoallv, gatherv or scatterv? No rank knows the counts of the
 * others, nor whether these pass a device's memory, and none may wait for them in the call. So
 * either MPI has all such calls of a communicator, or kernels of our own have all of them: those
 * are launched when all ranks have come, who show each other then what they pass (order.h).
 *
 * A rank that wants it to be otherwise from some call on says so in a word of the first rank's
 * slot. From then on each rank says there, in each such call, which one it begins. When all have,
 * it changes with the call after the farthest one, as in cutover.h. So none waits, and all change
 * over in the same call.
 */
#ifndef XM_COMMS_VECTORS_H
#define XM_COMMS_VECTORS_H

#include "comms/comm.h"

enum { XM_VECTORS_RANKS = 1024 }; /* most of such a communicator */

/*
 * In every such call of a communicator whose ranks have slots, in the order of the calls: do
 * kernels have it? device: this rank passes memory of a device.
 */
bool xm_vectors_call(struct xm_comm *xm, bool device);

/* Of a call with data that kernels have, once all have come: has any rank passed memory of a
 * device? */
void xm_vectors_seen(struct xm_comm *xm, bool device);

#endif
