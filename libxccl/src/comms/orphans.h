/* SPDX-License-Identifier: BSD-3-Clause */
/* Agreements of communicators that are gone. */
#ifndef XM_COMMS_ORPHANS_H
#define XM_COMMS_ORPHANS_H

#include "mpi/mpi.h"

/*
 * Leave a request, and the memory that it uses, to itself: the other ranks have posted their part,
 * or will. NULL: no memory. Of xm_guarded_alloc().
 */
void xm_orphans_add(MPI_Request request, void *first, void *second);
/* Free those that are over. */
void xm_orphans_sweep(void);
/* In MPI_Finalize: wait a bounded time for the rest. */
void xm_orphans_finalize(void);

#endif
