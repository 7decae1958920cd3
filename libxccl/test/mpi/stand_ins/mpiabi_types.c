/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preloaded into ranks of the standard ABI by the tests: an MPI without some optional types. Their
 * handles are there all the same, and to ask for one's size is an error of MPI_COMM_SELF. It is
 * linked with MPI and has its PMPI_Initialized(), so that the interposer takes it for the MPI
 * library.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static void *next_function(const char *name)
{
    void *address = dlsym(RTLD_NEXT, name);

    if (address == NULL) {
        abort();
    }
    return address;
}

int PMPI_Initialized(int *flag)
{
    __typeof__(&PMPI_Initialized) next;
    void                         *address = next_function("PMPI_Initialized");

    memcpy(&next, &address, sizeof(next));
    return next(flag);
}

int PMPI_Type_size_x(MPI_Datatype type, MPI_Count *size)
{
    __typeof__(&PMPI_Type_size_x) next;
    void                         *address = next_function("PMPI_Type_size_x");

    if ((type == MPI_CXX_BOOL) || (type == MPI_REAL16)) {
        PMPI_Comm_call_errhandler(MPI_COMM_SELF, MPI_ERR_TYPE);
        return MPI_ERR_TYPE;
    }
    memcpy(&next, &address, sizeof(next));
    return next(type, size);
}
