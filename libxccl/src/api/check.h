/* SPDX-License-Identifier: BSD-3-Clause */
/* The checks of a collective's arguments, by a table of what each call has. */
#ifndef XC_API_CHECK_H
#define XC_API_CHECK_H

#include "api/comm.h"
#include "backends/backend.h"

/* comm is live. What passes is fit to be enqueued. */
xcclResult_t xc_check_args(xcclComm_t comm, const struct xc_coll_args *args);

/* "xcclAllReduce" */
const char *xc_call_name(enum xc_coll coll);

#endif
