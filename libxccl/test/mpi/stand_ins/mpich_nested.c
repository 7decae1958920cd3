/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preloaded into ranks of MPICH by the tests, behind the interposer: an MPI that begins by
 * functions of its own which it calls by their names, and so by the interposer. It is linked with
 * MPICH and has its PMPI_Initialized(), so that the interposer takes it for the MPI library.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdbool.h>
#include <string.h>

#include "next.h"

#if MPI_VERSION >= 4

static __thread bool inside;

int PMPI_Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session *session)
{
    NEXT(PMPI_Session_init);
    if (inside) {
        return next(info, errhandler, session);
    }
    inside = true;
    int code = MPI_Session_init(info, errhandler, session);
    inside = false;
    return code;
}

/* Both names, as MPI libraries have them: else MPICH's own would be a tool behind the interposer.
 */
int MPI_Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session *session)
{
    return PMPI_Session_init(info, errhandler, session);
}

#endif
