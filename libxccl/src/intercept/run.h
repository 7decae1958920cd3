/* SPDX-License-Identifier: BSD-3-Clause */
/* A call on the vendor's library, from its buffers to its completion. */
#ifndef XM_INTERCEPT_RUN_H
#define XM_INTERCEPT_RUN_H

#include "intercept/facts.h"

/*
 * Run the call on xm's communicator, which is READY, and wait for it. After a failure the
 * communicator is BROKEN: other ranks may have begun, so there is no way back to MPI.
 */
xcclResult_t xm_run_ccl(const struct xm_sides *sides, const struct xm_view *view,
                        struct xm_comm *xm);

#endif
