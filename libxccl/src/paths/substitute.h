/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What MPI reduces for a rank whose data has no part in it: elements of the same size without
 * holes, by an operation that leaves them alone. MPI allocates memory of a datatype's shape for a
 * reduction, and calls the program's operation on it: between the absolute addresses of a datatype
 * may lie more than there is.
 */
#ifndef XM_PATHS_SUBSTITUTE_H
#define XM_PATHS_SUBSTITUTE_H

#include "paths/path.h"

/* Does the operation reduce by an operator and a datatype of the program's? */
bool xm_substitute_for(const struct xm_op *op);
/* Let the call have one in place of both, and placeholders for all data of the operation. */
xcclResult_t xm_substitute_take(struct xm_op *op, struct xm_call *call);
/* When MPI is over; also where there is none. */
void xm_substitute_free(struct xm_substitute *substitute);

#endif
