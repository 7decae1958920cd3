/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preloaded into ranks of MPICH by the tests: MPICH 5.0.0, whose MPI_Reduce_local() ends the
 * process at truth values of Fortran. It is linked with MPICH and has its PMPI_Initialized(), so
 * that the interposer takes it for the MPI library.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "next.h"

int PMPI_Get_library_version(char *version, int *resultlen)
{
    *resultlen = snprintf(version, MPI_MAX_LIBRARY_VERSION_STRING, "MPICH Version:      5.0.0\n");
    return MPI_SUCCESS;
}

int PMPI_Reduce_local(const void *inbuf, void *inoutbuf, int count, MPI_Datatype type, MPI_Op op)
{
    NEXT(PMPI_Reduce_local);

    if (type == MPI_LOGICAL) {
        fprintf(stderr, "Assertion failed: MPI_LOGICAL\n");
        abort();
    }
    return next(inbuf, inoutbuf, count, type, op);
}
