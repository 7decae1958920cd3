/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the ranks of a communicator are on one node, and see each other's slots (slots.h). */
#ifndef XM_COMMS_NODE_H
#define XM_COMMS_NODE_H

#include "comms/comm.h"

/* Has every rank the slots of all? However it was found: the same on all ranks, in one operation.
 */
void xm_node_apply(struct xm_comm *xm, bool all_see);

/* Has any communicator slots? Then calls are counted in all cases. */
bool xm_node_slots_in_use(void);

#endif
