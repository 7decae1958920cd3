/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives that a library lacks, put together from its sends, receives and broadcasts. */
#ifndef XC_BACKENDS_COMPOSED_H
#define XC_BACKENDS_COMPOSED_H

#include "backends/backend.h"

/* Can coll be composed? The five built-ins, send and recv cannot. */
bool xc_composed_can(enum xc_coll coll);

/* Is it to be composed even where the library has a call of its own (XCCL_CCL_NATIVE=off)? */
bool xc_composed_forced(enum xc_coll coll);

/* Issue args->coll as one group of calls to ops->collective. */
xcclResult_t xc_composed_run(const struct xc_backend_ops *ops, const struct xc_coll_args *args,
                             void *comm, int nranks, int rank);

#endif
