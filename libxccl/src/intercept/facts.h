/* SPDX-License-Identifier: BSD-3-Clause */
/* What is known of a call, equal on all its ranks by MPI's rules or by asking them. */
#ifndef XM_INTERCEPT_FACTS_H
#define XM_INTERCEPT_FACTS_H

#include "intercept/sides.h"

struct xm_view {
    struct xm_facts             facts;
    bool                        on_device; /* does the call concern device memory at all? */
    const struct xc_device_ops *dev;       /* runtime of this rank; NULL if none is active */
    int                         device;    /* for a communicator made now; -1: none */
    struct xm_reduction         reduction; /* valid for reductions without an obstacle */
};

/*
 * Is the kind of memory of this collective, or its size, something that only the ranks together
 * know? Then xm_facts_of() asks them, and every rank must call it.
 */
bool xm_coll_needs_agreement(enum xm_coll coll);

/* Look at a call; collective over xm where agreement is needed and devices are possible. */
xcclResult_t xm_facts_of(const struct xm_sides *sides, struct xm_comm *xm, struct xm_view *view_p);

/*
 * Before the first device collective of a communicator: are XCCL_ROUTE, XCCL_TUNE and XCCL_CCL the
 * same on all ranks? A launcher that passes them to some nodes only would make ranks choose
 * differently and wait for each other. Collective once.
 */
xcclResult_t xm_check_environment(struct xm_comm *xm);

/* XCCL_CHECK=1: compare what MPI or this library takes to be equal; collective at every call. */
xcclResult_t xm_check_call(const struct xm_sides *sides, bool valid, struct xm_comm *xm);

#endif
