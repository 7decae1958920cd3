/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preloaded into ranks of MPICH by the tests: MPI_Request_get_status() as in MPICH 4.2 to 5.0,
 * which completes a persistent request. It is linked with MPICH and has its PMPI_Initialized(), so
 * that the interposer takes it for the MPI library.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "next.h"

enum { MOST = 64 };
static MPI_Request persistent[MOST];
static int         num_persistent;

static int keep(int code, const MPI_Request *request)
{
    for (int i = 0; i < num_persistent; i++) {
        if (persistent[i] == *request) {
            return code;
        }
    }
    if (num_persistent == MOST) {
        abort();
    }
    persistent[num_persistent++] = *request;
    return code;
}

int MPI_Send_init(const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
                  MPI_Request *request)
{
    NEXT(MPI_Send_init);
    return keep(next(buf, count, type, dest, tag, comm, request), request);
}

int MPI_Recv_init(void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
                  MPI_Request *request)
{
    NEXT(MPI_Recv_init);
    return keep(next(buf, count, type, source, tag, comm, request), request);
}

/* Of MPICH: its PMPI_Wait() would be the interposer's. */
static void end(MPI_Request request)
{
    NEXT(MPI_Wait);
    next(&request, MPI_STATUS_IGNORE);
}

int PMPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
    NEXT(PMPI_Request_get_status);
    int code = next(request, flag, status);

    for (int i = 0; *flag && (i < num_persistent); i++) {
        if (persistent[i] == request) {
            end(request);
        }
    }
    return code;
}

int PMPIX_Stream_comm_create(MPI_Comm comm, int stream, MPI_Comm *newcomm);

int PMPIX_Stream_comm_create(MPI_Comm comm, int stream, MPI_Comm *newcomm)
{
    NEXT(MPI_Comm_dup);
    (void)stream;
    return next(comm, newcomm);
}
