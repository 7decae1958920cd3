/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Communicators that the program frees while something of theirs is under way. MPI_Comm_free does
 * not wait for other ranks, which may need what this rank does next; but collectives of Open MPI
 * use the communicator to their end, whether it is still there or not. So MPI frees it afterwards.
 */
#ifndef XM_OPS_FREED_H
#define XM_OPS_FREED_H

#include "mpi/mpi.h"

/*
 * Free it, or keep it until nothing of it is under way. Returns MPI's code; *comm is
 * MPI_COMM_NULL. together: all ranks do so in this call, as in MPI_Comm_free; else other ranks may
 * need what this one does next, so no delete callback of the program's is a reason to wait.
 */
int xm_freed_free(MPI_Comm *comm, int profiling, bool together);
/* Free one at once; function: MPI_Comm_free or MPI_Comm_disconnect. */
int xm_freed_now(enum xm_function function, MPI_Comm *comm, int profiling);

/* Free those that are ready for it. Never waits for other ranks. */
void xm_freed_progress(void);
/* Free all, in MPI_Finalize. */
void xm_freed_finalize(void);

#endif
