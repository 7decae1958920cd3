/* SPDX-License-Identifier: BSD-3-Clause */
/* Files whose data has another representation than memory. */
#ifndef XM_TRANSFERS_DATAREP_H
#define XM_TRANSFERS_DATAREP_H

#include "mpi/mpi.h"

/* MPI_File_set_view. */
long xm_datarep_set_view(int profiling, const long *args);

/*
 * Does MPI convert what it reads from this file, so that its status may say another number of bytes
 * than memory has?
 */
bool xm_datarep_converts(MPI_File file);

#endif
