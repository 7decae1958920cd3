/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XM_CALLS_REPLACE_H
#define XM_CALLS_REPLACE_H

#include "transfers/transfer.h"

/* Is what this call replaces best sent from a copy on the device? */
bool xm_replaces_apart(const struct xm_transfer *t);
/* Do so, and let go of the transfer; false: nothing was done. *code_p: MPI's. */
bool xm_replace_apart(struct xm_transfer *t, int profiling, int *code_p);

#endif
