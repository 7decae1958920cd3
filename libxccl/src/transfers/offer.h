/* SPDX-License-Identifier: BSD-3-Clause */
/* The sender's side of a message that is offered, by the thread that is at the transfer. */
#ifndef XM_TRANSFERS_OFFER_H
#define XM_TRANSFERS_OFFER_H

#include "transfers/rendezvous.h"

/* The rank of MPI_COMM_WORLD that a rank of a communicator is, of its remote group if it has one;
 * -1: none, or nobody's who may be asked. */
int xm_world_rank(MPI_Comm comm, int rank);
/* Did the receiver of an open one say that it cannot fetch it? Looked for now and then. */
bool xm_offer_is_lost(struct xm_rendezvous *r);
/* Is the message gone? */
bool xm_offer_advance(struct xm_rendezvous *r);
/* A copy of the bytes, in host memory; returns when it is there. */
xcclResult_t xm_offer_copy_to(const struct xm_rendezvous *r, void *at);
/* A copy of the bytes in a file without a name; -1 if there is no memory for it. */
xcclResult_t xm_offer_to_file(const struct xm_rendezvous *r, int *file_p);

#endif
