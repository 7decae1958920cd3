/* SPDX-License-Identifier: BSD-3-Clause */
/* An operation by MPI, between copies on the program's stream. */
#ifndef XM_STREAMS_STAGED_H
#define XM_STREAMS_STAGED_H

#include "streams/enqueue.h"

/* Is it possible at all? A failure says why not. */
xcclResult_t xm_staged_possible(const struct xm_stream_comm *sc);
/* Pinned memory, a type of its own for each that is derived, and the copy of what is sent. */
xcclResult_t xm_staged_prepare(struct xm_enqueued *e);
xcclResult_t xm_staged_start(struct xm_enqueued *e);  /* in stream order: MPI's part begins */
xcclResult_t xm_staged_finish(struct xm_enqueued *e); /* wait for its end, copy what was received */
xcclResult_t xm_staged_collective(struct xm_enqueued *e);

#endif
