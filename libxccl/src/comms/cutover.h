/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From which non-blocking operation on does what the ranks have agreed on count? All are to change
 * over at the same one, and none may wait for the others there, which may need it elsewhere first.
 *
 * On one node they do it by a word in the first rank's slot, which each changes in one atomic step.
 * A rank that knows what was agreed on says so there, and from then on which operation it begins.
 * The last one to know decides: it counts from the operation on that follows the farthest one that
 * any rank has begun. Every rank looks at the word before it begins another, so all of them see the
 * decision in time, however far one is ahead of the others.
 *
 * Across nodes there is no such word. Ranks that only send messages cannot settle on an operation
 * without waiting for each other, so there a blocking collective makes it count.
 */
#ifndef XM_COMMS_CUTOVER_H
#define XM_COMMS_CUTOVER_H

#include "comms/comm.h"

/* An agreement was posted in this operation. */
void xm_cutover_begin(struct xm_comm *xm);
/*
 * In a non-blocking operation after it, on a rank that knows its result: does that count from this
 * one on?
 */
bool xm_cutover_due(struct xm_comm *xm);

#endif
