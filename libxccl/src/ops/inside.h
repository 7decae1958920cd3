/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The call of MPI that each thread of the process is in, for the file that xccl-doctor --hang
 * reads: who waits for a message of whom. By default those calls that may wait for a message to or
 * from a device, or hold a request of one; with XCCL_DUMP_DIR all that may wait and that we take
 * over.
 */
#ifndef XM_OPS_INSIDE_H
#define XM_OPS_INSIDE_H

#include "ops/entry.h"

/*
 * Around a call, in one function. One within another is part of that. Where a program's error
 * handler leaves a call by longjmp(), the next one of the thread takes its place.
 */
void xm_inside_enter_at(const void *frame, enum xm_function function, const long *args);
void xm_inside_leave_at(const void *frame);
#define xm_inside_enter(function, args)                                                            \
    xm_inside_enter_at(__builtin_frame_address(0), function, args)
#define xm_inside_leave() xm_inside_leave_at(__builtin_frame_address(0))

/* Every call is to be followed: the family serves calls by the next function then. */
bool xm_inside_is_asked_for(void);
long xm_inside_follow(enum xm_function function, int profiling, const long *args,
                      long (*serve)(enum xm_function function, int profiling, const long *args));

/*
 * This call waits long for some of these requests: from here on it is known for which messages.
 * entries: what is known of them, or NULL.
 */
void xm_inside_waits(int count, const MPI_Request *requests, struct xm_entry *const *entries);
/*
 * "MPI_Waitall of 3 requests: a message from rank 1 of MPI_COMM_WORLD, tag 7; and 1 more".
 * collectives: a text for so many of the requests, which is put first.
 */
void xm_inside_describe(const char *collectives, int count, char *buf, size_t len);

/*
 * Call number i as an object of JSON, from 0 on: its length, cut off at len; 0: that thread is in
 * none; -1: there are no more. Also from a signal handler.
 */
int xm_inside_write(int i, char *buf, size_t len);

#endif
