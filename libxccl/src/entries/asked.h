/* SPDX-License-Identifier: BSD-3-Clause */
/* What programs are told that ask whether MPI takes device memory: it does, because of us. */
#ifndef XM_ENTRIES_ASKED_H
#define XM_ENTRIES_ASKED_H

#include <stdbool.h>

#include "mpi/functions.h"

/* Does it take memory of such a device, "cuda" or "rocm"? At any time. */
int xm_asked_of(const char *runtime);

/*
 * MPI_Comm_get_info and the like of sessions, windows and files: the kinds of memory that MPI 4.1
 * names there, and ours with them. Of a window they are those of the buffers that are put, got and
 * accumulated, not of its own memory. Returns MPI's code.
 */
int xm_asked_info(enum xm_function function, int profiling, const long *args);

#endif
