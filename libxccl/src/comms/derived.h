/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Communicators that are made of another one by a call that is collective over that. All its ranks
 * make such calls in one order, so the number of the call tells the new communicator apart, from
 * the start and without a message: ranks can say in which communicator they are.
 */
#ifndef XM_COMMS_DERIVED_H
#define XM_COMMS_DERIVED_H

#include "comms/comm.h"

/* MPI_Comm_dup, MPI_Comm_split and the like, whose last argument is the new communicator. */
int xm_derived_make(enum xm_function function, int profiling, const long *args);

/*
 * Equal on all ranks of a communicator that was made so, and of no other one with the same ranks;
 * 0: not known.
 */
uint64_t xm_derived_origin(MPI_Comm comm);

/* MPI has ended, and all attributes with it. */
void xm_derived_forget(void);

#endif
