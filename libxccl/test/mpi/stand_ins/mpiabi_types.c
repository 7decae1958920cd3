/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preloaded into ranks of the standard ABI by the tests: an MPI without some optional types. Their
 * handles are there all the same, and to ask for one's size is an error of MPI_COMM_SELF, or of the
 * communicator of the question. It is linked with MPI and has its PMPI_Initialized(), so that the
 * interposer takes it for the MPI library.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <string.h>

#include "next.h"

static int is_lacking(MPI_Datatype type)
{
    return (type == MPI_CXX_BOOL) || (type == MPI_REAL16);
}

int PMPI_Pack_size(int count, MPI_Datatype type, MPI_Comm comm, int *size)
{
    NEXT(PMPI_Pack_size);

    if (is_lacking(type)) {
        PMPI_Comm_call_errhandler(comm, MPI_ERR_TYPE);
        return MPI_ERR_TYPE;
    }
    return next(count, type, comm, size);
}

int PMPI_Type_size_x(MPI_Datatype type, MPI_Count *size)
{
    NEXT(PMPI_Type_size_x);

    if (is_lacking(type)) {
        PMPI_Comm_call_errhandler(MPI_COMM_SELF, MPI_ERR_TYPE);
        return MPI_ERR_TYPE;
    }
    return next(type, size);
}
