/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XM_CALLS_PACKING_H
#define XM_CALLS_PACKING_H

#include "transfers/transfer.h"

/*
 * MPI_Pack and MPI_Unpack where both buffers lie on one device: what MPI would write, in its own
 * representation, without the host. room: bytes of the packed buffer from the position on. False:
 * nothing was done. *bytes_p: how many were packed, or read.
 */
bool xm_pack_on_device(const struct xm_transfer *t, MPI_Count room, MPI_Count *bytes_p);

#endif
