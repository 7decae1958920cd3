/* SPDX-License-Identifier: BSD-3-Clause */
/* What a call that waits for requests says of them: statuses, and codes. */
#ifndef XM_OPS_RESULTS_H
#define XM_OPS_RESULTS_H

#include "ops/array.h"

/* Which request each status of a call is of: -1 for all of them in turn. */
struct xm_results {
    const int  *indices;
    int         count;
    MPI_Status *statuses;
};

/* failed: of several some, and MPI says of each how it ended, MPICH's MPI_Testall without a flag.
 */
struct xm_results xm_results_of(enum xm_function function, const struct xm_array *a,
                                const long *args, bool failed);

/* Is it MPI_ERR_IN_STATUS? */
bool xm_is_in_status(int code);

/*
 * Complete what MPI says, also where some of several requests failed. Returns MPI's code, or that
 * of a message that did not fit; a->raises: the handler is still to hear of it.
 */
int xm_results_fix(enum xm_function function, struct xm_array *a, const long *args, int code);
/* The same of operations that failed. */
int xm_results_tell(enum xm_function function, struct xm_array *a, const long *args, int code);

#endif
