/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datatypes and operations of the program's in enqueued collectives. The program may free them as
 * soon as its call has returned: then they are freed when all that need them have begun. From there
 * on MPI, or the path, holds them.
 */
#ifndef XM_OPS_HANDLES_H
#define XM_OPS_HANDLES_H

#include "ops/op.h"

/*
 * Keep those of an operation, and its arrays (data/arrays.h). False: out of memory.
 */
bool xm_handles_keep(struct xm_op *op);
/* It has begun, or never will. */
void xm_handles_let_go(struct xm_op *op);

/* Is there any such operation? */
bool xm_handles_any(void);
/* The program frees one. Is it kept, and freed later? */
bool xm_handles_keep_op(MPI_Op op);
bool xm_handles_keep_type(MPI_Datatype type);

#endif
