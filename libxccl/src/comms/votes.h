/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From which non-blocking operation on does what the ranks have agreed on count? All are to change
 * over at the same one, and none may wait for the others there, which may need it elsewhere first.
 *
 * So they vote, by non-blocking collectives in operations of fixed numbers (at distances that grow
 * alike on all ranks): is the result known here? If all say yes, it counts from a fixed number of
 * operations after that vote; else never because of that one. Hence all ranks choose the same path
 * for each operation: votes stand at the same places everywhere, and what came of one is the same
 * for all.
 *
 * A rank that says no knows at once what comes of it: however far it is ahead of the others, it
 * goes on as before. One that says yes has to know what the others said when the result would
 * count; if it does not, its operations begin later (calls/later.h). It says yes only if it has
 * been close to the others in the last votes, too. Let a program begin operations in rounds of R
 * that its ranks complete before the next. Where R is at most the distance of two votes or a few
 * more, the others are in the next round when it would count, so they have voted. Where R is
 * greater, a rank that is ahead of the others sees at least one vote of each round without them,
 * and says no.
 */
#ifndef XM_COMMS_VOTES_H
#define XM_COMMS_VOTES_H

#include "comms/comm.h"

/* An agreement was posted in this operation: the votes on it follow. */
void xm_votes_begin(struct xm_comm *xm);
/*
 * In each operation after it, until its result counts. known: by this rank. xcclInProgress: this
 * rank does not know whether it counts. *due_p: it does, from this operation on.
 */
xcclResult_t xm_votes_in_operation(struct xm_comm *xm, bool known, bool *due_p);
/* The result counts, since a blocking operation waited for it: the votes are of no use. */
void xm_votes_end(struct xm_comm *xm);

/* Are all over, so that MPI uses the communicator for none? */
bool xm_votes_over(struct xm_comm *xm);
void xm_votes_wait(struct xm_comm *xm);
/* Leave them to themselves: the communicator is gone. */
void xm_votes_forget(struct xm_comm *xm);

#endif
