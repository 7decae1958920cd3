/* SPDX-License-Identifier: BSD-3-Clause */
/* One MPI call on its way through the interposer. */
#ifndef XM_INTERCEPT_CALL_H
#define XM_INTERCEPT_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "comms/comms.h"
#include "comms/mpi.h"
#include "decide/decide.h"
#include "device/device.h"

/* The arguments as the program gave them; what a collective does not have is zero. */
struct xm_call {
    enum xm_coll coll;
    bool         large; /* an MPI-4 _c function: arrays hold MPI_Count and MPI_Aint */
    const void  *sendbuf;
    void        *recvbuf; /* and the buffer of MPI_Bcast */
    MPI_Count    sendcount;
    MPI_Count    recvcount;
    const void  *sendcounts;
    const void  *sdispls;
    const void  *recvcounts;
    const void  *rdispls;
    MPI_Datatype sendtype;
    MPI_Datatype recvtype;
    MPI_Op       op;
    int          root;
    MPI_Comm     comm;
};

static inline MPI_Count xm_count_at(const struct xm_call *call, const void *counts, int i)
{
    return call->large ? ((const MPI_Count *)counts)[i] : ((const int *)counts)[i];
}

static inline MPI_Aint xm_displ_at(const struct xm_call *call, const void *displs, int i)
{
    return call->large ? ((const MPI_Aint *)displs)[i] : ((const int *)displs)[i];
}

/*
 * May the call go to MPI at once, because both buffers are host memory and nothing has to be
 * agreed? What the entry points ask first: a few nanoseconds for the stack and the heap, and for
 * any memory where no device runtime is loaded.
 */
bool xm_call_is_plain(const void *sendbuf, const void *recvbuf);

/* Serve a call that is not plain, from the facts to its completion. Returns an MPI error code. */
int xm_serve(const struct xm_call *call);

/* Hand the call to MPI as it is. */
int xm_to_mpi(const struct xm_call *call);
int xm_to_mpi_large(const struct xm_call *call); /* one with large counts (large.c) */

/* The same for a call whose device buffers MPI cannot take: through host memory. */
struct xm_sides;
int xm_to_mpi_staged(const struct xm_call *call, struct xm_sides *sides,
                     const struct xc_device_ops *dev);

/* Report a failure to the program through the communicator's error handler; returns the code. */
int xm_raise(MPI_Comm comm, xcclResult_t res, const char *text);

/* Path of this thread's last collective: "host", "mpi", "mpi-staged", "ccl". */
const char *xm_last_path(void);

/* State of the interposer, valid after xm_started(). */
struct xm_config {
    struct xm_table *tune;   /* of XCCL_TUNE, or NULL */
    struct xm_table *table;  /* in force where tune says nothing */
    bool             check;  /* XCCL_CHECK */
    bool             faulty; /* the environment is wrong: everything goes to MPI */
};
extern struct xm_config xm_config;

#endif
