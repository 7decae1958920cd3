/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The operation engine: every call that is not MPI's alone becomes an operation, which is started,
 * progressed and finished. A blocking call starts one and waits for it; a non-blocking one hands
 * out a request.
 */
#ifndef XM_OPS_OP_H
#define XM_OPS_OP_H

#include "paths/path.h"
#include "transfers/transfer.h"

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

/* Start, and give the program a request for the end. */
int xm_op_launch(struct xm_op *op, MPI_Request *request);

/* Move operations under way, those that are over to their end. Never waits for other ranks. */
void xm_ops_progress(void);

/* Wait for those of a communicator that all ranks are about to free: see xm_comm_end_agreements. */
void xm_ops_wait(const struct xm_comm *xm);

/* Finish those whose requests the program has freed or forgotten; in MPI_Finalize. */
void xm_ops_finalize(void);

/* ---- request.c: requests of operations, and persistent ones ---- */

/* Number of requests of ours that the program holds; 0: every call on requests is MPI's alone. */
int xm_requests_live(void);

/* A request for an operation; the operation is freed with it. */
int  xm_request_make(struct xm_op *op, MPI_Request *request);
void xm_request_complete(struct xm_op *op);

/* Keep a transfer until the program completes or frees its request. Returns an MPI code. */
int xm_request_keep(struct xm_transfer *t);

/* The program frees a communicator, which persistent requests of it may outlive. */
void xm_requests_comm_freeing(MPI_Comm comm);

/* Move transfers whose requests the program has freed; and wait for them, in MPI_Finalize. */
void xm_requests_progress(void);
void xm_requests_finalize(void);

/* The program's call of a function on requests: MPI_Wait ... MPI_Startall. */
int xm_request_call(enum xm_function function, int profiling, const long *args);

/* ---- record.c: the last operations of the process ---- */

extern const char xm_waiting[]; /* a state; the others end an operation */

/* The record's number, from 1. */
uint64_t xm_record_begin(const struct xm_op *op);
/* Of a record that is no longer kept, and of none, which is 0, nothing is written. */
void xm_record_state(uint64_t record, const char *state);
/* "allreduce of 4096 bytes, number 7 of its communicator": what is waited for. */
void xm_record_describe(void *op, char *buf, size_t len);
/* The last operations of a communicator, newest first. */
void xm_record_history(const struct xm_comm *xm, char *buf, size_t len);
/* Write them all to a file, once for each reason. */
void xm_records_dump(const char *reason);
/* Dump on SIGUSR1, unless the program or the user has a use for it. */
void xm_records_init(void);

#endif
