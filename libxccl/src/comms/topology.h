/* SPDX-License-Identifier: BSD-3-Clause */
/* The neighbours of a communicator's ranks. */
#ifndef XM_COMMS_TOPOLOGY_H
#define XM_COMMS_TOPOLOGY_H

#include "comms/edges.h"

/*
 * A communicator of the same ranks in the same order, without topology and attributes; collective.
 * Not a duplicate: that would call the program's copy callbacks. Returns MPI's code.
 */
int xm_topology_plain(MPI_Comm from, MPI_Comm *plain_p);
/*
 * A communicator of the same ranks as plain, with the topology of from; collective. It has no
 * attributes, unlike a duplicate. Returns MPI's code.
 */
int xm_topology_copy(MPI_Comm from, MPI_Comm plain, MPI_Comm *comm_p);
/* The neighbours of this rank: sources, targets and how many of each. Returns MPI's code. */
int xm_topology_edges(MPI_Comm comm, struct xm_edges *edges);

#endif
