/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPICH 4.2 and later take a persistent request for inactive once MPI_Request_get_status has found
 * it complete: the calls that wait for it find nothing. That is how it is looked at here. So with
 * MPICH each start begins a request that is not persistent, until there is one that keeps it.
 */
#ifndef XM_TRANSFERS_ONCE_H
#define XM_TRANSFERS_ONCE_H

#include <stdbool.h>

struct xm_transfer;

/* False: MPI is to start the persistent one. *code_p: MPI's. */
bool xm_once_start(struct xm_transfer *t, int *code_p);

#endif
