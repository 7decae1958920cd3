/* SPDX-License-Identifier: BSD-3-Clause */
/* The last operations of the process, for messages and for the file that xccl-doctor --hang reads.
 */
#ifndef XM_OPS_RECORD_H
#define XM_OPS_RECORD_H

#include <time.h>

#include "paths/path.h"

extern const char xm_waiting[]; /* a state; the others end an operation */

/*
 * Is an operation counted among those of its communicator on device memory, or will it be? One that
 * MPI carries for each rank as it is never is: the other ranks may pass host memory to it, and keep
 * no record.
 */
enum xm_counted { XM_COUNTED, XM_COUNTED_SOON, XM_COUNTED_NEVER };
/* The record's number, from 1. The operation may have no path yet: its ranks agree on one. */
uint64_t xm_record_begin(const struct xm_op *op, enum xm_counted counted);
/* Its place among those that are counted, as messages and files name it; 0: it is not. */
uint64_t xm_record_sequence(const struct xm_op *op);
/* "number 7 of its communicator of 4 ranks" */
void xm_record_place(const struct xm_op *op, char *buf, size_t len);
/* When it began; false: the record is no longer kept. */
bool xm_record_started(const struct xm_op *op, struct timespec *started_p);
/* Now it has, and its communicator a name. */
void xm_record_agreed(const struct xm_op *op);
/* Of a record that is no longer kept, and of none, which is 0, nothing is written. */
void xm_record_state(uint64_t record, const char *state);
/* "allreduce of 4096 bytes, number 7 of its communicator": what is waited for. */
void xm_record_describe(void *op, char *buf, size_t len);
/* The last operations of a communicator, newest first. */
void xm_record_history(const struct xm_comm *xm, char *buf, size_t len);
/* Write them all to a file, once for each reason. */
void xm_records_dump(const char *reason);
/* An operation has: write them where the user wants them then. */
void xm_records_failed(xcclResult_t why, const char *message);
/* Around the call by which MPI begins: it may set a handler of its own for the signal. */
void xm_records_before_mpi(void);
void xm_records_mpi_began(void);
/* Dump on SIGUSR1, unless the program or the user has a use for it. */
void xm_records_init(void);

#endif
