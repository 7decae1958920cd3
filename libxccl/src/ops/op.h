/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The operation engine: every call that is not MPI's alone becomes an operation, which is started,
 * progressed and finished. A blocking call starts one and waits for it; a non-blocking one hands
 * out a request.
 */
#ifndef XM_OPS_OP_H
#define XM_OPS_OP_H

#include "paths/path.h"

/* An empty operation, from a pool. */
struct xm_op *xm_op_new(void);
/* Of one that was not started, or is over. */
void xm_op_free(struct xm_op *op);

/*
 * Start and wait for the end; the operation is freed. Returns MPI's code; a failure of ours was
 * raised through the communicator's error handler.
 * @param[out] path_p  Name of the path that carried it in the end.
 */
int xm_op_run(struct xm_op *op, const char **path_p);

/* Whose error handler is called for it: its communicator's, unless the program has freed that. */
MPI_Comm xm_op_comm_to_raise_on(const struct xm_op *op);

/* Start, and give the program a request for the end. */
int xm_op_launch(struct xm_op *op, MPI_Request *request);

/* Move operations under way, those that are over to their end. Never waits for other ranks. */
void xm_ops_progress(void);

/* Wait for those of a communicator that all ranks are about to disconnect. */
void xm_ops_wait(const struct xm_comm *xm);

/* Finish those whose requests the program has freed or forgotten; in MPI_Finalize. */
void xm_ops_finalize(void);

#endif
