/* SPDX-License-Identifier: BSD-3-Clause */
/* Which ranks an operation waits for, and whether they will ever come. */
#ifndef XM_OPS_MISSING_H
#define XM_OPS_MISSING_H

#include "paths/path.h"

/*
 * Look whether another rank never comes to this operation: every half second, at a time of a clock
 * in ns. Returns xcclInProgress, or the error that names it.
 */
xcclResult_t xm_missing_look(struct xm_op *op, uint64_t now);

/* The error at the end of XCCL_TIMEOUT, with the ranks that have not come where that is known. */
xcclResult_t xm_missing_expired(struct xm_op *op);

/* What it is, since when, and which ranks have not come: for a wait that takes long. */
void xm_missing_describe(void *op, char *buf, size_t len);

#endif
