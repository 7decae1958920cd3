/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A communicator of this process alone, for MPI_Pack and MPI_Unpack: MPI_COMM_SELF, or, while the
 * program has MPI-4 sessions, one of a session of our own. With sessions alone there is no
 * MPI_COMM_SELF, and it ends with MPI_Finalize, which the calls of a session may outlive.
 */
#ifndef XM_COMMS_PACKING_H
#define XM_COMMS_PACKING_H

#include "mpi/mpi.h"

MPI_Comm xm_packing_comm(void);

/* The program has opened its first session; it is about to end its last one. */
void xm_packing_sessions_began(void);
void xm_packing_sessions_end(void);

#endif
