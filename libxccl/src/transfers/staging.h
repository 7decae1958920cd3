/* SPDX-License-Identifier: BSD-3-Clause */
/* Host memory in place of a transfer's buffers, and the copies before and after the call. */
#ifndef XM_TRANSFERS_STAGING_H
#define XM_TRANSFERS_STAGING_H

#include "transfers/transfer.h"

/* Messages and what is packed may go as the bytes that they consist of. */
bool xm_part_may_go_packed(const struct xm_transfer *t, const struct xm_part *part);

/* Host memory for each part; the arguments point to it from here on. */
xcclResult_t xm_transfer_open(struct xm_transfer *t);
/* What is read, into host memory; returns when it is there. */
xcclResult_t xm_transfer_copy_in(struct xm_transfer *t);
/*
 * Let copies of a part wait for what the program has begun: a copy from pageable memory may return
 * before its data arrived, see stream_after_default.
 */
xcclResult_t xm_part_after_program(const struct xm_part *part);
/* The first bytes of one part, to where they belong; any device may be entered. */
xcclResult_t xm_transfer_part_out(struct xm_part *part, MPI_Count bytes);
/* What MPI has written, bytes of it or XM_WHOLE, to where it belongs; returns when it is there. */
xcclResult_t xm_transfer_copy_out(struct xm_transfer *t, MPI_Count bytes);
/* The same of a single short buffer, together with other copies that are collected, if it may. */
bool xm_transfer_land(struct xm_transfer *t, MPI_Count bytes, struct xm_kernel_copy *copy);
void xm_transfer_close(struct xm_transfer *t);

#endif
