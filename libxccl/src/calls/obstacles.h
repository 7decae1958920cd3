/* SPDX-License-Identifier: BSD-3-Clause */
/* Why paths did not carry this thread's last collective on device memory. */
#ifndef XM_CALLS_OBSTACLES_H
#define XM_CALLS_OBSTACLES_H

#include "comms/comm.h"
#include "decide/decide.h"

/* why: a static text, or one of the communicator's; NULL: nothing was in the way. */
void xm_obstacle_note(const struct xm_comm *xm, enum xm_path_id path, const char *why);
void xm_obstacles_forget(void);

/*
 * Why it did not take path "ccl" or "direct"; NULL: that could have carried it. Valid until the
 * thread's next collective.
 */
const char *xm_last_obstacle(const char *path);

#endif
