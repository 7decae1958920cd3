/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends that the program cancels: the receivers find the bytes in files. */
#ifndef XM_TRANSFERS_LEFT_H
#define XM_TRANSFERS_LEFT_H

#include "transfers/rendezvous.h"

/* The program cancels the send: it is over without the receiver, who finds the bytes in a file. */
void xm_offer_leave(struct xm_rendezvous *r);
/* Close the files of messages that were received; last: wait for all that may still be. */
void xm_offers_left(bool last);

#endif
