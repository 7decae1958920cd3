/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where MPI receives what may be a descriptor. What happens there around MPI's receive itself is in
 * rendezvous.h: expect, pack_replaced, unpack.
 */
#ifndef XM_TRANSFERS_LANDING_H
#define XM_TRANSFERS_LANDING_H

#include "transfers/transfer.h"

/* Of the receive's buffer; NULL: MPI receives into host memory of the program's. */
struct xm_part *xm_landing_part(struct xm_transfer *t);
/* The first bytes of what MPI receives, in order. */
void xm_landing_read_head(const struct xm_rendezvous *r, void *to, size_t bytes);
/* Does the message go to where its descriptor came? */
bool xm_landing_is_in_place(struct xm_transfer *t);
/*
 * MPI has received the descriptor of a message that was fetched before: what the message begins
 * with is put there once more.
 */
void xm_landing_put_head(struct xm_rendezvous *r);

/* So many bytes as one element, where an int does not count them; 0: it cannot be made. */
MPI_Datatype xm_bytes_as_one(size_t bytes);
/* Bytes that came packed go where a type wants them, if that is in host memory of MPI's. */
void xm_landing_scatter(struct xm_rendezvous *r);

#endif
