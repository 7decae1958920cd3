/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends that end before their receivers come: the program cancels them, or counts on MPI to take
 * bytes that are few at once. Their receivers find the bytes in files.
 */
#ifndef XM_TRANSFERS_LEFT_H
#define XM_TRANSFERS_LEFT_H

#include "mpi/functions.h"
#include "transfers/rendezvous.h"

/* The program cancels the send: it is over without the receiver, who finds the bytes in a file. */
void xm_offer_leave(struct xm_rendezvous *r);
/*
 * MPI takes a few KiB at once, and then a send ends without its receive: programs count on that
 * although they should not, such as two ranks that both send before they receive. So a send of so
 * few bytes does not wait long, and for a while those after it are staged.
 */
bool xm_offers_come_late(uint64_t bytes);
/* For one of them that nobody has come to, by whoever looks at it: is it to be left? */
bool xm_offer_is_late(struct xm_rendezvous *r);
void xm_offer_leave_late(struct xm_rendezvous *r);
/* Its receiver has it, in time. */
void xm_offer_came_in_time(const struct xm_rendezvous *r);
/* May it be, with so many bytes? Then there has to be room for it. */
bool xm_offers_have_room(void);
bool xm_offer_may_leave(enum xm_function function, uint64_t bytes);
/* Close the files of messages that were received; last: wait for all that may still be. */
void xm_offers_left(bool last);

#endif
