/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XM_ENTRIES_SPAWN_H
#define XM_ENTRIES_SPAWN_H

#include "mpi/mpi.h"

/* MPI_Comm_spawn and MPI_Comm_spawn_multiple. */
int xm_spawn(enum xm_function function, int profiling, const long *args);

#endif
