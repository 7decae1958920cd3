/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread that calls MPI. */
#ifndef XM_STREAMS_RUNNER_H
#define XM_STREAMS_RUNNER_H

#include "streams/enqueue.h"

xcclResult_t xm_runner_start(void);
void         xm_runner_stop(void);
/* Begin MPI's part, after those handed over before; from any thread, never waits. */
void xm_runner_hand_over(struct xm_enqueued *e);
/* Begin it when the second of its words is not 0. Calls of a stream are expected in its order. */
void xm_runner_expect(struct xm_enqueued *e);
/* Where the status of a message goes, now or when it is over. */
void xm_runner_status(struct xm_enqueued *e, MPI_Status *status);

#endif
