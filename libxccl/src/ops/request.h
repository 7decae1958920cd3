/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that the program holds: of operations, of transfers, and persistent ones. */
#ifndef XM_OPS_REQUEST_H
#define XM_OPS_REQUEST_H

#include "ops/op.h"
#include "transfers/transfer.h"

/* Number of requests of ours that the program holds; 0: every call on requests is MPI's alone. */
int xm_requests_live(void);

/* A request for an operation, as op->request; the operation is freed with it. */
xcclResult_t xm_request_make(struct xm_op *op);
void         xm_request_complete(struct xm_op *op);
/* Free one that the program never got, and its operation. */
void xm_request_drop(struct xm_op *op);

/*
 * Operations that failed end well for MPI, which would tell MPI_COMM_WORLD's handler of them. The
 * call that completes their requests asks before MPI which ones this thread completes, and
 * afterwards takes them one by one, until NULL; xm_request_told() gives one back.
 */
void          xm_requests_listen(void);
struct xm_op *xm_requests_failed(void);
void          xm_request_told(struct xm_op *op);

/* Keep a transfer until the program completes or frees its request. Returns an MPI code. */
int xm_request_keep(struct xm_transfer *t);
/* The same of an MPI_Irecv with XM_WAY_LOOKED and few bytes, which MPI has begun. */
int xm_request_keep_simple(const long *args);

/* The program frees a communicator, which persistent requests of it may outlive. */
void xm_requests_comm_freeing(MPI_Comm comm);

/*
 * MPI_Comm_disconnect waits until the messages of a communicator are over. MPI's requests of those
 * that the program has freed are ours until then, and MPICH waits for each request.
 */
void xm_requests_comm_disconnecting(MPI_Comm comm);

/* Move transfers whose requests the program has freed; and wait for them, in MPI_Finalize. */
void xm_requests_progress(void);
void xm_requests_finalize(void);

/* The program's call of a function on requests: MPI_Wait ... MPI_Startall. */
int xm_request_call(enum xm_function function, int profiling, const long *args);

#endif
