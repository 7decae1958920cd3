/* SPDX-License-Identifier: BSD-3-Clause */
/* The communicator cache: what xccl keeps on each MPI communicator, made lazily and freed with it.
 */
#ifndef XM_COMMS_COMMS_H
#define XM_COMMS_COMMS_H

#include <stdbool.h>
#include <stdint.h>

#include "comms/mpi.h"
#include "device/device.h"

enum xm_comm_state {
    XM_COMM_UNTRIED,
    XM_COMM_READY,
    XM_COMM_FAILED, /* agreed by all ranks: MPI serves everything */
    XM_COMM_BROKEN, /* an operation failed: the rest of its life it returns errors */
};

enum { XM_HISTORY = 8 };

/* One of the last operations of a rank, for error messages. */
struct xm_operation {
    const char *coll;
    uint64_t    bytes;
    uint64_t    number; /* from 1, per communicator */
    bool        done;
};

struct xm_comm {
    MPI_Comm comm;
    int      rank;
    int      size;
    bool     inter;
    int      may_use_device;      /* on any rank; -1: not asked yet */
    bool     environment_checked; /* equal on all ranks */

    enum xm_comm_state          state;
    char                        reason[256]; /* of FAILED and BROKEN */
    xcclComm_t                  xcomm;
    const struct xc_device_ops *dev;
    int                         device;
    xcclStream_t                stream;

    uint64_t            operations;
    struct xm_operation history[XM_HISTORY]; /* operation n at n % XM_HISTORY */

    struct xm_comm *next; /* all of the process, for xm_comms_finalize() */
    struct xm_comm *previous;
};

/* What is kept for comm; made at the first call (local). Not for MPI_COMM_NULL. */
xcclResult_t xm_comm_get(MPI_Comm comm, struct xm_comm **xm_p);

/*
 * Make the vendor communicator on dev's device, unless that was tried before. Collective; all ranks
 * leave it in the same state, READY or FAILED. Rank 0 of the first failure warns.
 */
void xm_comm_prepare(struct xm_comm *xm, const struct xc_device_ops *dev, int device);

/* Join a communicator of all ranks of comm on a device; all get it, or all fail (create.c). */
xcclResult_t xm_comm_create(MPI_Comm comm, const struct xc_device_ops *dev, int device,
                            xcclComm_t *xcomm_p);

/* Does any rank of the communicator have a device or a device runtime? Collective once. */
bool xm_comm_may_use_device(struct xm_comm *xm);

/* Keep the operation for error messages. */
void xm_comm_begin(struct xm_comm *xm, const char *coll, uint64_t bytes);
void xm_comm_end(struct xm_comm *xm);
/* "#7 allreduce of 4096 bytes (not completed), #6 ..." newest first. */
void xm_comm_history(const struct xm_comm *xm, char *buf, size_t len);

/* Give up an operation that will not complete; the communicator is BROKEN from here on. */
void xm_comm_break(struct xm_comm *xm, const char *reason);

/* Free everything of every communicator; before PMPI_Finalize, never in a destructor. */
void xm_comms_finalize(void);

#endif
