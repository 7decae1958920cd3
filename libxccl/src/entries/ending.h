/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Finalize. MPI first calls the delete callbacks of the program's attributes on MPI_COMM_SELF,
 * and those may still send and receive.
 */
#ifndef XM_ENTRIES_ENDING_H
#define XM_ENTRIES_ENDING_H

#include <stdbool.h>

/* With MPI_COMM_WORLD there, before the program can set an attribute. */
void xm_ending_prepare(void);
/* The program's call of MPI_Finalize. started: is there anything of ours? */
int xm_ending_finalize(int profiling, const long *args, bool started);

#endif
