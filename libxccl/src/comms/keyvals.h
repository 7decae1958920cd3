/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The program's keys of attributes. MPI calls its delete callbacks where a communicator is freed,
 * and these may communicate: so it matters when that is.
 */
#ifndef XM_COMMS_KEYVALS_H
#define XM_COMMS_KEYVALS_H

#include "mpi/mpi.h"

void xm_keyval_created(int key);
/* Attributes under it may still be there. */
void xm_keyval_freed(int key);

/* May there be an attribute of the program's on this communicator? */
bool xm_keyvals_on(MPI_Comm comm);
/* MPI has ended, and all keys with it. */
void xm_keyvals_forget(void);

#endif
