/* SPDX-License-Identifier: BSD-3-Clause */
/* One call of a collective: its arguments by kind, and the way to make it. */
#ifndef XM_MPI_CALL_H
#define XM_MPI_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mpi/mpi.h"

enum { XM_MAX_ARGUMENTS = 13, XM_MAX_ROOMS = 4 };

/* The arguments as the program gave them; what a collective does not have is zero. */
struct xm_call {
    enum xm_function    function;
    enum xm_coll        coll;
    enum xm_form        form;
    bool                large;     /* an MPI-4 _c function: arrays hold MPI_Count and MPI_Aint */
    bool                profiling; /* called as PMPI_... */
    bool                start;     /* of a persistent request */
    long                args[XM_MAX_ARGUMENTS];
    const void         *sendbuf;
    void               *recvbuf; /* and the buffer of MPI_Bcast */
    MPI_Count           sendcount;
    MPI_Count           recvcount;
    const void         *sendcounts;
    const void         *sdispls;
    const void         *recvcounts;
    const void         *rdispls;
    MPI_Datatype        sendtype;
    MPI_Datatype        recvtype;
    const MPI_Datatype *sendtypes; /* of alltoallw */
    const MPI_Datatype *recvtypes;
    MPI_Op              op;
    int                 root; /* -1: the collective has none */
    MPI_Comm            comm;
    MPI_Request        *request; /* of the forms that have one */
    /* XM_MAX_ROOMS places for arrays that are made for MPI, which whoever set this frees after the
     * call is over; NULL: those of a call that is not blocking stay. */
    void **rooms;
};

/* What kinds of arguments a collective has, as positions in its argument list; -1: none. */
struct xm_signature {
    const char *kinds;
    int8_t      sendbuf, recvbuf, comm;
    bool        wide_displs; /* displacements are MPI_Aint in both functions */
};
extern struct xm_signature xm_signatures[XM_NUM_COLLS];

/* Once, before anything else here. */
void xm_call_init(void);

/* Arguments by kind from those of the function. */
void xm_call_read(enum xm_function function, int profiling, const long *args, struct xm_call *call);

/*
 * Make the call as it is, or with other buffers than the program's. Where this MPI lacks the
 * function with large counts, the one with int counts serves as long as the counts fit.
 */
int xm_call_mpi(const struct xm_call *call);
/* Does MPI get arrays that are made for it? */
bool xm_call_makes_arrays(const struct xm_call *call);
int  xm_call_mpi_with(const struct xm_call *call, const void *sendbuf, void *recvbuf);
/* The same as a non-blocking call, whatever the form; the request is the caller's. */
int xm_call_mpi_start(const struct xm_call *call, const void *sendbuf, void *recvbuf,
                      MPI_Request *request);

/* The same of a persistent call. */
int xm_call_mpi_init(const struct xm_call *call, const void *sendbuf, void *recvbuf,
                     MPI_Request *request);

/*
 * How many elements MPI may look at in an array of n datatypes of a non-blocking call: on
 * communicators with a topology Open MPI 4.1 takes MPI_Ialltoallw for a call to the neighbours. It
 * passes over NULL.
 */
int xm_types_looked_at(const struct xm_call *call, bool sends, int n);

static inline MPI_Count xm_count_at(const struct xm_call *call, const void *counts, int i)
{
    return call->large ? ((const MPI_Count *)counts)[i] : ((const int *)counts)[i];
}

static inline MPI_Aint xm_displ_at(const struct xm_call *call, const void *displs, int i)
{
    return (call->large || xm_signatures[call->coll].wide_displs) ? ((const MPI_Aint *)displs)[i]
                                                                  : ((const int *)displs)[i];
}

#endif
