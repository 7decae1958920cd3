/* SPDX-License-Identifier: BSD-3-Clause */
/* Joining a vendor communicator without ever waiting for a rank that has given up. */
#ifndef XM_COMMS_JOIN_H
#define XM_COMMS_JOIN_H

#include "comms/mpi.h"
#include "device/device.h"

/*
 * Join the communicator of id on device, from all ranks of ctl, a communicator nobody else uses.
 *
 * The vendor's call blocks until every rank has come, so it runs in a thread; meanwhile this one
 * lets MPI progress and listens for ranks that failed. Each of those sends a note to all others.
 * Collective: every rank leaves, with its own outcome and all notes received.
 * because_of_others_p: this rank failed or gave up only after another's note.
 */
xcclResult_t xm_join(MPI_Comm ctl, const struct xc_device_ops *dev, int device,
                     const xcclUniqueId *id, xcclComm_t *xcomm_p, bool *because_of_others_p);

#endif
