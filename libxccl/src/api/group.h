/* SPDX-License-Identifier: BSD-3-Clause */
/* What a thread's open group holds, and how it ends. */
#ifndef XC_API_GROUP_H
#define XC_API_GROUP_H

#include <xccl/xccl.h>

/*
 * A call ended with rc. If the thread has a group open: a failure is what the group ends with, and
 * what it holds is not launched then; a success is part of it, on comm and stream (comm is NULL for
 * calls that enqueue nothing on a live communicator). Returns rc.
 */
xcclResult_t xc_group_note(xcclResult_t rc, xcclComm_t comm, xcclStream_t stream);

/* comm goes away: what is in the group cannot be reached by it any more. */
void xc_group_forget(xcclComm_t comm);

#endif
