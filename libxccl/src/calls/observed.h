/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls as the user sees them: counted and timed for XCCL_PROFILE, and as ranges of a profiler.
 *
 * Where neither is asked for, none of this is called: the family's entry point is another function
 * then, and what is inside of a call asks xm_observing first.
 */
#ifndef XM_CALLS_OBSERVED_H
#define XM_CALLS_OBSERVED_H

#include "ops/op.h"
#include "transfers/transfer.h"

/* Set before the first call is served. */
extern bool xm_observing;

/* Is anything asked for? Opens what an attached profiler wants to be told by. */
bool xm_observe_open(void);
/* With MPI initialised: count from here on. */
void xm_observe_begin(void);
/* In MPI_Finalize, once nothing is under way. */
void xm_observe_finalize(void);

/* serve(), observed from outside. */
long xm_observe(enum xm_function function, int profiling, const long *args,
                long (*serve)(enum xm_function function, int profiling, const long *args));

/* ---- from inside of a call, if xm_observing ---- */

/* The tables have been asked; choice may differ from what they said, available has their paths. */
void xm_seen_choice(const struct xm_op *op, const struct xm_rules *rules,
                    const struct xm_choice *choice, unsigned available);
/* This operation carries the call, on a path. completes: we see when it is over. */
void xm_seen_op(struct xm_op *op, const char *path, bool completes);
/* This one was enqueued on a stream. */
void xm_seen_enqueued(const struct xm_op *op, const char *path);
/* This transfer, which has a request, carries it. */
void xm_seen_transfer(struct xm_transfer *t);

#endif
