/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls with large counts on their way to MPI. Programs ask whether a function like MPI_Allreduce_c
 * exists by looking for its name (mpi4py's wheels do), and find ours; so it must work with an MPI
 * library that has none: by the function with int counts, as long as the counts fit.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "intercept/call.h"

static int to_functions(const struct xm_call *c)
{
    switch (c->coll) {
    case XM_ALLREDUCE:
        return xm_pmpi.Allreduce_c(c->sendbuf, c->recvbuf, c->sendcount, c->sendtype, c->op,
                                   c->comm);
    case XM_BCAST:
        return xm_pmpi.Bcast_c(c->recvbuf, c->recvcount, c->recvtype, c->root, c->comm);
    case XM_REDUCE:
        return xm_pmpi.Reduce_c(c->sendbuf, c->recvbuf, c->sendcount, c->sendtype, c->op, c->root,
                                c->comm);
    case XM_REDUCE_SCATTER:
        return xm_pmpi.Reduce_scatter_c(c->sendbuf, c->recvbuf, c->recvcounts, c->sendtype, c->op,
                                        c->comm);
    case XM_REDUCE_SCATTER_BLOCK:
        return xm_pmpi.Reduce_scatter_block_c(c->sendbuf, c->recvbuf, c->recvcount, c->sendtype,
                                              c->op, c->comm);
    case XM_ALLGATHER:
        return xm_pmpi.Allgather_c(c->sendbuf, c->sendcount, c->sendtype, c->recvbuf, c->recvcount,
                                   c->recvtype, c->comm);
    case XM_ALLGATHERV:
        return xm_pmpi.Allgatherv_c(c->sendbuf, c->sendcount, c->sendtype, c->recvbuf,
                                    c->recvcounts, c->rdispls, c->recvtype, c->comm);
    case XM_ALLTOALL:
        return xm_pmpi.Alltoall_c(c->sendbuf, c->sendcount, c->sendtype, c->recvbuf, c->recvcount,
                                  c->recvtype, c->comm);
    case XM_ALLTOALLV:
        return xm_pmpi.Alltoallv_c(c->sendbuf, c->sendcounts, c->sdispls, c->sendtype, c->recvbuf,
                                   c->recvcounts, c->rdispls, c->recvtype, c->comm);
    case XM_GATHER:
        return xm_pmpi.Gather_c(c->sendbuf, c->sendcount, c->sendtype, c->recvbuf, c->recvcount,
                                c->recvtype, c->root, c->comm);
    case XM_GATHERV:
        return xm_pmpi.Gatherv_c(c->sendbuf, c->sendcount, c->sendtype, c->recvbuf, c->recvcounts,
                                 c->rdispls, c->recvtype, c->root, c->comm);
    case XM_SCATTER:
        return xm_pmpi.Scatter_c(c->sendbuf, c->sendcount, c->sendtype, c->recvbuf, c->recvcount,
                                 c->recvtype, c->root, c->comm);
    case XM_SCATTERV:
        return xm_pmpi.Scatterv_c(c->sendbuf, c->sendcounts, c->sdispls, c->sendtype, c->recvbuf,
                                  c->recvcount, c->recvtype, c->root, c->comm);
    default:
        return MPI_ERR_OTHER;
    }
}

static bool has_functions(void)
{
    return xm_pmpi.Allreduce_c != NULL; /* all or none: MPI-4 brought them together */
}

/* MPI's own error for it, through the communicator's error handler. */
static int too_large(const struct xm_call *call)
{
    xc_error("%s_c: a count or displacement is above %d, and this MPI has no function for it",
             xm_coll_name(call->coll), INT_MAX);
    xm_pmpi.Comm_call_errhandler(call->comm, MPI_ERR_COUNT);
    return MPI_ERR_COUNT;
}

static bool fits(MPI_Count value)
{
    return (value >= INT_MIN) && (value <= INT_MAX);
}

/* Which arrays mean something on this rank, and how long they are. */
static int length_of_arrays(const struct xm_call *call)
{
    int  n = 0, rank = 0, inter = 0;
    bool rooted = (call->coll == XM_GATHERV) || (call->coll == XM_SCATTERV);

    if ((xm_pmpi.Comm_size(call->comm, &n) != MPI_SUCCESS) ||
        (xm_pmpi.Comm_rank(call->comm, &rank) != MPI_SUCCESS) ||
        (xm_pmpi.Comm_test_inter(call->comm, &inter) != MPI_SUCCESS)) {
        return 0;
    }
    if (rooted && (call->root != (inter ? MPI_ROOT : rank))) {
        return 0;
    }
    if (inter && (call->coll != XM_REDUCE_SCATTER)) {
        xm_pmpi.Comm_remote_size(call->comm, &n);
    }
    return n;
}

/* An int copy of counts (MPI_Count) or displacements (MPI_Aint); false if a value does not fit. */
static bool narrow(const struct xm_call *call, const void **array, bool counts, int n, int *out)
{
    if (*array == NULL) {
        return true;
    }
    for (int i = 0; i < n; i++) {
        MPI_Count value =
            counts ? xm_count_at(call, *array, i) : (MPI_Count)xm_displ_at(call, *array, i);
        if (!fits(value)) {
            return false;
        }
        out[i] = (int)value;
    }
    *array = out;
    return true;
}

static int to_int_functions(const struct xm_call *call)
{
    struct xm_call small = *call;
    bool           arrays = (call->sendcounts != NULL) || (call->recvcounts != NULL);
    int            n = arrays ? length_of_arrays(call) : 0;
    int           *room = NULL;

    if (!fits(call->sendcount) || !fits(call->recvcount)) {
        return too_large(call);
    }
    if (n > 0) {
        room = malloc(4 * (size_t)n * sizeof(*room));
        if (room == NULL) {
            return xm_raise(call->comm, xcclSystemError, "out of memory for counts");
        }
        if (!narrow(call, &small.sendcounts, true, n, room) ||
            !narrow(call, &small.sdispls, false, n, room + n) ||
            !narrow(call, &small.recvcounts, true, n, room + 2 * (size_t)n) ||
            !narrow(call, &small.rdispls, false, n, room + 3 * (size_t)n)) {
            free(room);
            return too_large(call);
        }
    }
    small.large = false;
    int res = xm_to_mpi(&small);
    free(room);
    return res;
}

int xm_to_mpi_large(const struct xm_call *call)
{
    return has_functions() ? to_functions(call) : to_int_functions(call);
}
