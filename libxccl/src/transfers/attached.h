/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Buffer_attach of a device's memory. MPI keeps messages in the buffer until they are received,
 * and the program may not look at it meanwhile: so MPI is given host memory of that size instead.
 */
#ifndef XM_TRANSFERS_ATTACHED_H
#define XM_TRANSFERS_ATTACHED_H

#include "transfers/transfer.h"

/* MPI_Buffer_attach(buffer, size), of a device's buffer. */
int xm_attached_attach(struct xm_transfer *t, int profiling, const long *args);
/* MPI_Buffer_detach(&buffer, &size): the program gets the buffer that it has attached. */
int xm_attached_detach(enum xm_function function, int profiling, const long *args);

#endif
