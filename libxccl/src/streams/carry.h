/* SPDX-License-Identifier: BSD-3-Clause */
/* A collective by a kernel of our own, or by the vendor's library, on the program's stream. */
#ifndef XM_STREAMS_CARRY_H
#define XM_STREAMS_CARRY_H

#include "streams/enqueue.h"

xcclResult_t xm_carry_direct(struct xm_enqueued *e);
xcclResult_t xm_carry_ccl(const struct xm_enqueue *q, struct xm_enqueued *e);
/* From the only rank to itself. */
xcclResult_t xm_carry_copy(const struct xm_enqueued *e);
/* Do these reach both buffers' data? */
bool xm_carry_can_pack(struct xm_enqueued *e);
/* Make buffers usable on the stream; and back. Where that fails, op.missed says why. */
void         xm_carry_pack(struct xm_enqueued *e);
xcclResult_t xm_carry_unpack(struct xm_enqueued *e);

#endif
