/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preloaded into ranks of MPICH by the tests: the test of a request in which MPI finds an error,
 * and calls the program's error handler. It is the one of a non-blocking broadcast, of which the
 * program has none itself. It is linked with MPICH and has its PMPI_Initialized(), so that the
 * interposer takes it for the MPI library.
 */
#define _GNU_SOURCE
#include <mpi.h>

#include "next.h"

void (*mt_while_testing)(void); /* the handler, for one call; set by the program */

static MPI_Request broadcast = MPI_REQUEST_NULL;

int PMPI_Ibcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm,
                MPI_Request *request)
{
    NEXT(PMPI_Ibcast);
    int code = next(buffer, count, type, root, comm, request);

    broadcast = *request;
    return code;
}

int PMPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    NEXT(PMPI_Test);
    void (*handler)(void) = mt_while_testing;

    if ((handler != NULL) && (*request != MPI_REQUEST_NULL) && (*request == broadcast)) {
        mt_while_testing = NULL;
        handler();
    }
    return next(request, flag, status);
}

/* Both names, as MPI libraries have them: else MPICH's own would be a tool behind the interposer.
 */
int MPI_Ibcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm,
               MPI_Request *request)
{
    return PMPI_Ibcast(buffer, count, type, root, comm, request);
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    return PMPI_Test(request, flag, status);
}
