/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stream-ordered calls (include/xccl/mpix.h): streams of the program's attached to communicators,
 * and operations enqueued on them.
 *
 * An operation of a communicator goes to its stream by one of three ways: a kernel of our own, the
 * vendor's call, or copies around a wait for MPI, which a thread calls meanwhile. None of them
 * waits on the host, so all can be captured into a graph; what a captured operation needs is kept
 * until its communicator is freed.
 */
#ifndef XM_STREAMS_STREAMS_H
#define XM_STREAMS_STREAMS_H

#include "mpi/functions.h"

void xm_streams_init(void);
/* In MPI_Finalize: enqueued work is over, and no more can come. */
void xm_streams_finalize(void);
long xm_stream_call(enum xm_function function, int profiling, const long *args);

#endif
