/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XM_CALLS_REDUCE_LOCAL_H
#define XM_CALLS_REDUCE_LOCAL_H

#include "transfers/transfer.h"

/* MPI_Reduce_local on memory of one device, by a kernel; false: nothing was done. */
bool xm_reduce_on_device(const struct xm_transfer *t);

#endif
