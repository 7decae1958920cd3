/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XM_OPS_PERSISTENT_H
#define XM_OPS_PERSISTENT_H

#include "mpi/call.h"

struct xm_entry;
struct xm_standing;

/* What a persistent collective needs until it is freed. */
struct xm_held {
    /* Types of each block, in place of those that the program may free. */
    MPI_Datatype *types[2]; /* of the send buffer, and of the receive buffer */
    bool         *own[2];   /* is it the request's? The others are predefined */
    int           length[2];
    void         *arrays; /* of counts and displacements, in place of the program's */
    /* What it is started on: a communicator of its own or MPI_COMM_NULL, a request of MPI's or
     * NULL. */
    MPI_Comm            comm;
    struct xm_standing *standing;
};
void xm_held_free(struct xm_held *held);

/* Begin an operation for one start of call. */
typedef int xm_persistent_start(const struct xm_call *call, const struct xm_held *held,
                                MPI_Request *request);
/* A persistent request for call, which holds `held` from here on. */
int xm_request_persistent(const struct xm_call *call, struct xm_held *held,
                          xm_persistent_start *start);

/* What the program's MPI_Request_free does besides MPI's. */
void xm_persistent_free(struct xm_entry *e);

/* Number of persistent collectives that the program holds; of them, with communicators of their
 * own.
 */
int xm_persistent_requests(void);
int xm_persistent_apart(void);

/*
 * A communicator that a request is given for itself: its errors are to be the program's
 * communicator's, the one that the program knows.
 */
int xm_persistent_hush(MPI_Comm comm);
/* Of such a one, the program's; of any other one itself. */
MPI_Comm xm_persistent_comm_of(MPI_Comm comm);
/*
 * Before a call in which MPI may raise an error of such a one, and after: has no handler of the
 * program's heard of the error?
 */
void xm_persistent_listen(void);
bool xm_persistent_is_unheard(void);

/* The program frees this. Does a persistent collective need it? Then it is freed with that one. */
bool xm_persistent_keeps_comm(MPI_Comm comm);
bool xm_persistent_keeps_op(MPI_Op op);
bool xm_persistent_keeps_type(MPI_Datatype type);

#endif
