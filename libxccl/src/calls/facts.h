/* SPDX-License-Identifier: BSD-3-Clause */
/* What is known of a call, equal on all its ranks by MPI's rules or by asking them. */
#ifndef XM_CALLS_FACTS_H
#define XM_CALLS_FACTS_H

#include "ops/op.h"

/*
 * Is the kind of memory of this collective, or its size, something that only the ranks together
 * know? Counts differ by rank there, and buffers may be null.
 */
bool xm_coll_needs_agreement(enum xm_coll coll);

/*
 * Fill in the facts of op, whose buffers are known. *on_device_p: does the call concern device
 * memory on all ranks alike? Of one rank alone, any of its data. Where the ranks have to be asked,
 * this asks them, in a blocking call of a communicator that has seen device memory; elsewhere each
 * rank goes to MPI by itself.
 */
xcclResult_t xm_facts_of(struct xm_op *op, bool *on_device_p);

/*
 * Of a non-blocking call whose ranks have counts of their own: may they show these to each other
 * when all have come? Then every such call of the communicator is counted, on any memory.
 */
bool xm_facts_may_be_shown(const struct xm_comm *xm, enum xm_coll coll);

/*
 * For all starts of a persistent request whose ranks have counts of their own: they ask each other
 * once, on the request's own communicator. Collective and blocking.
 */
xcclResult_t xm_facts_of_starts(struct xm_op *op, struct xm_comm *own);

/*
 * Why only MPI can serve this call on device memory, as a static text, or NULL; and what keeps the
 * vendor's library from it. By facts equal on all ranks, and what they have agreed on.
 */
const char *xm_facts_obstacle(struct xm_op *op);
const char *xm_facts_vendor_obstacle(const struct xm_op *op);

/* The rules in force on a communicator: the same on all its ranks. */
xcclResult_t xm_rules_of(struct xm_comm *xm, const struct xm_rules **rules_p);

/* The facts of one rank alone and its device, without asking anybody: is it on device memory? */
bool xm_facts_local(struct xm_op *op);
/* Is any of this rank's data in memory of a device? */
bool xm_touches_device(const struct xm_op *op);

/* How many microseconds the vendor's path would save, roughly; by facts equal on all ranks. */
double xm_facts_saving_us(const struct xm_facts *facts);
/* What it is worth to this rank to wait for the direct path, so that MPI need not carry the call.
 */
double xm_facts_worth_us(const struct xm_comm *xm, const struct xm_op *op);
/* The same as the first of a call that the direct path carries meanwhile, maybe in rounds. */
double xm_facts_saving_over_direct_us(const struct xm_facts *facts, bool in_rounds);

/* XCCL_CHECK=1: compare what MPI or this library takes to be equal; collective at every call. */
xcclResult_t xm_check_call(struct xm_op *op, bool valid);

#endif
