/* SPDX-License-Identifier: BSD-3-Clause */
/* What each rank says of itself at the first operation on device memory, and what all make of it.
 */
#ifndef XM_COMMS_PEER_INFO_H
#define XM_COMMS_PEER_INFO_H

#include "comms/comm.h"

struct xm_peer_info;
size_t xm_peer_info_bytes(void);
void   xm_peer_info_fill(struct xm_comm *xm, const struct xc_device_ops *dev, int device,
                         struct xm_peer_info *mine);
/*
 * The variables alone, of a rank that asks the others before anything else: another rank may be at
 * its first operation on device memory, and say all.
 */
void         xm_peer_info_fill_variables(struct xm_peer_info *mine);
xcclResult_t xm_peer_info_compare(struct xm_comm *xm, const struct xm_peer_info *all);
/* Where the ranks are, and their slots: as soon as all is known, before it counts. Done once. */
void xm_peer_info_place(struct xm_comm *xm, const struct xm_peer_info *all);
/* Judge what all ranks say of themselves, alike on every rank and in the same operation. */
xcclResult_t xm_peer_info_apply(struct xm_comm *xm, const struct xm_peer_info *all, bool blocking);

/*
 * For many ranks, the same by words that MPI_BOR combines (digest.h). mine: room for both, and the
 * words come first.
 */
size_t xm_peer_digest_bytes(void);
void   xm_peer_digest_fill(struct xm_comm *xm, const struct xc_device_ops *dev, int device,
                           void *mine);
void   xm_peer_digest_fill_variables(void *mine);
/* all: the words of all ranks. What they do not say enough of, each has to: xm->asks_all. */
void xm_peer_digest_compare(struct xm_comm *xm, const void *all);
void xm_peer_digest_apply(struct xm_comm *xm, const void *mine, const void *all);

/* A number for what this rank's MPI does with integers; data/ sets it before the first call. */
extern uint64_t (*xm_comm_arithmetic)(void);

#endif
