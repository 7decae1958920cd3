/* SPDX-License-Identifier: BSD-3-Clause */
/* The receiver's side of a message that is fetched, by the thread that is at the transfer. */
#ifndef XM_TRANSFERS_FETCH_H
#define XM_TRANSFERS_FETCH_H

#include "transfers/rendezvous.h"

/* A descriptor that nobody took yet, of a process of this node? */
bool xm_descriptor_is_open(const struct xm_descriptor *d, struct xm_offer **offer_p);
/* One of a process that is there, but cannot be reached? *why_p: an errno. */
bool xm_descriptor_is_hidden(const struct xm_descriptor *d, int *why_p);
/* With the descriptor in r->got, and taken. served: the bytes are in the sender's file already. */
void xm_fetch_start(struct xm_transfer *t, bool served);
/* Is nothing under way? */
bool xm_fetch_advance(struct xm_transfer *t);

/* Of a message that comes in pieces. Host memory that its bytes may come to; NULL: a device's. */
xcclResult_t xm_fetch_host_target(struct xm_transfer *t, char **to_p);
/* Before a copy to the program's memory on this stream, with the device entered. */
xcclResult_t xm_fetch_after_program(const struct xm_rendezvous *r, const struct xc_device_ops *dev,
                                    xcclStream_t stream);
/* Copy all of it, from host memory. */
xcclResult_t xm_fetch_copy(struct xm_transfer *t, const char *from);
void         xm_fetch_end(struct xm_rendezvous *r);

#endif
