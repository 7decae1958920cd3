/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that ends where the process has none. What the ranks agree by goes through the program's
 * own communicator: a rank that is in another collective there may send more than fits. Open MPI
 * finds that out only after it has copied all of it from the other process (by CMA), over whatever
 * lies behind; here the copy fails instead, and the rank lives to name the one that differs.
 */
#ifndef XM_COMMS_GUARDED_H
#define XM_COMMS_GUARDED_H

#include <stddef.h>

/* Zeroed, and aligned as malloc() does; NULL: out of memory. */
void *xm_guarded_alloc(size_t bytes);
void  xm_guarded_free(void *memory); /* or NULL */

#endif
