/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XM_CALLS_REDUCE_LOCAL_H
#define XM_CALLS_REDUCE_LOCAL_H

#include "transfers/transfer.h"

/*
 * MPI_Reduce_local on memory of one device, by a kernel; false: nothing was done. A failure in
 * *res_p may have left the result half done, and must not be tried again.
 */
bool xm_reduce_on_device(const struct xm_transfer *t, xcclResult_t *res_p);

#endif
