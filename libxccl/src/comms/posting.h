/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a rank asks the others of its communicator: non-blocking collectives on it, one at a time,
 * in operations of the same number on every rank (agree.c).
 */
#ifndef XM_COMMS_POSTING_H
#define XM_COMMS_POSTING_H

#include "comms/comm.h"

/* {outcome, rank and result, negative cost, slots seen}: the least of each is what counts. */
enum { XM_STATUS_OUTCOME, XM_STATUS_COST, XM_STATUS_SLOTS, XM_STATUS_TERMS };
enum {
    XM_STATUS_OUTCOME_SHIFT = 40,
    XM_STATUS_RANK_SHIFT = 8,
    XM_STATUS_RANK_MASK = 0x7fffffff,
    XM_STATUS_RESULT_MASK = 0xff
};

/* kind: XM_CHECKIN_PEER_INFO or, without a device, XM_CHECKIN_VARIABLES. */
xcclResult_t xm_post_peer_info(struct xm_comm *xm, int kind, const struct xc_device_ops *dev,
                               int device);
/* Is the vendor communicator that is being made there on all ranks? */
xcclResult_t xm_post_status(struct xm_comm *xm);
/* What the ranks have for the direct path. */
xcclResult_t xm_post_join(struct xm_comm *xm, const struct xc_device_ops *dev, int device);
/* It is over, or was not posted. */
void xm_checkin_end(struct xm_comm *xm);

#endif
