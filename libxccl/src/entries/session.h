/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI-4 sessions. MPI begins with the first of them, or with MPI_Init, and ends with the last, or
 * with MPI_Finalize. It may begin anew, and then knows nothing of what it made before.
 */
#ifndef XM_ENTRIES_SESSION_H
#define XM_ENTRIES_SESSION_H

#include <stdbool.h>

#include "mpi/mpi.h"

/* started: is there anything of ours? */
int xm_session_init(int profiling, const long *args, bool started);
int xm_session_finalize(int profiling, const long *args, bool started);
/* Is one open, perhaps in use by another thread? */
bool xm_session_any(void);
/* After MPI_Finalize. */
void xm_session_world_ended(void);

#endif
