/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Non-blocking collectives that begin later than they are called. All ranks choose the same path by
 * what they have agreed on. A rank that is far ahead of the others does not know yet what that is,
 * and MPI forbids to wait: so the call has its request, and begins when the others have come. So do
 * all calls on the communicator that follow, in their order.
 */
#ifndef XM_CALLS_LATER_H
#define XM_CALLS_LATER_H

#include "ops/op.h"

/* Are there any in the process? */
bool xm_later_in_use(void);
/* Are there any of this communicator? */
static inline bool xm_later_any(const struct xm_comm *xm)
{
    return __atomic_load_n(&xm->later, __ATOMIC_RELAXED) !=
           __atomic_load_n(&xm->began_later, __ATOMIC_ACQUIRE);
}

/* May the operation be one? */
bool xm_later_possible(const struct xm_op *op);
/* Make it one, whose handles are kept (handles.h). Returns MPI's code. */
int xm_later_begin(struct xm_op *op);
/* Wait for the others, and choose the path. */
xcclResult_t xm_later_choose(struct xm_op *op, const struct xm_path **path_p);
/* Wait until all have begun: before a blocking call, which may wait for the others. */
xcclResult_t xm_later_wait(struct xm_comm *xm);

#endif
