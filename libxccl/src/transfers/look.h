/* SPDX-License-Identifier: BSD-3-Clause */
/* Looking at a persistent request of MPI's own, which stays as it is. */
#ifndef XM_TRANSFERS_LOOK_H
#define XM_TRANSFERS_LOOK_H

#include "mpi/mpi.h"

/*
 * MPI_Request_get_status() of a persistent request. *stand_in_p: null, or where MPI has completed
 * the request a complete one, whose status and code are the same: the program waits for that one.
 */
int xm_look_at_persistent(MPI_Request request, int *flag, MPI_Status *status,
                          MPI_Request *stand_in_p);

#endif
