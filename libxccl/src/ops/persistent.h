/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XM_OPS_PERSISTENT_H
#define XM_OPS_PERSISTENT_H

#include "mpi/call.h"

struct xm_entry;

/* Types of a persistent collective, of each block, in place of those that the program may free. */
struct xm_held {
    MPI_Datatype *types[2]; /* of the send buffer, and of the receive buffer */
    bool         *own[2];   /* is it the request's? The others are predefined */
    int           length[2];
    MPI_Comm      comm; /* on which it is started, or MPI_COMM_NULL: the program's */
};
void xm_held_free(struct xm_held *held);

/* A persistent request for call, which holds `held` from here on; start begins an operation for a
 * copy of it. */
int xm_request_persistent(const struct xm_call *call, struct xm_held *held,
                          int (*start)(const struct xm_call *call, MPI_Comm comm,
                                       MPI_Request *request));

/* What the program's MPI_Request_free does besides MPI's. */
void xm_persistent_free(struct xm_entry *e);

/* Number of persistent collectives that the program holds. */
int xm_persistent_requests(void);

/* The program frees this. Does a persistent collective need it? Then it is freed with that one. */
bool xm_persistent_keeps_comm(MPI_Comm comm);
bool xm_persistent_keeps_op(MPI_Op op);
bool xm_persistent_keeps_type(MPI_Datatype type);

#endif
