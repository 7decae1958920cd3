/* SPDX-License-Identifier: BSD-3-Clause */
#include "comms/node.h"

static bool in_use; /* atomic */

bool xm_node_slots_in_use(void)
{
    return __atomic_load_n(&in_use, __ATOMIC_ACQUIRE);
}

void xm_node_apply(struct xm_comm *xm, bool all_see)
{
    if (!xm->one_node) {
        return; /* asked before */
    }
    xm->one_node = false;
    xm->slots_agreed = all_see;
    if (all_see) {
        __atomic_store_n(&in_use, true, __ATOMIC_RELEASE);
    }
}
