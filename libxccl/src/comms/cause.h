/* SPDX-License-Identifier: BSD-3-Clause */
/* Why the ranks of a communicator leave the vendor's path, told to all of them. */
#ifndef XM_COMMS_CAUSE_H
#define XM_COMMS_CAUSE_H

#include "comms/comm.h"

/*
 * Why rank `who` failed, into text on every rank: own is its cause there. Where waiting is allowed
 * (blocking, on all ranks) everyone gets the cause; else the others only learn which rank it was.
 */
void xm_share_cause(struct xm_comm *xm, int who, bool blocking, const char *own, char *text,
                    size_t len);
/*
 * The vendor's path is not offered; the rank `speaker`, which knows the cause, warns. The result is
 * the same on all ranks.
 */
void         xm_comm_fail(struct xm_comm *xm, xcclResult_t result, int speaker, const char *text);
xcclResult_t xm_agreement_failed(const char *what);

/*
 * In a wait for all ranks: has one of them given up the communicator? It never comes, most likely;
 * but what it did before is let come to its end, so an error is returned some time after the first
 * look only. own: or has this rank, whose others may wait for nothing more? *since_p: 0 at first.
 */
xcclResult_t xm_look_for_broken(const struct xm_comm *xm, bool own, uint64_t *since_p);

#endif
