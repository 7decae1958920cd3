/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The library of an MPI with MPI 5's standard ABI, as far as the test needs it: MPICH 5.0's and
 * Intel MPI's have symbols of MPICH's family too. Handles are small numbers and addresses in
 * pointers.
 */
#include <stdio.h>
#include <stdlib.h>

typedef void *handle_t;

int  PMPI_Init(int *argc, char ***argv);
int  MPI_Init(int *argc, char ***argv);
int  PMPI_Initialized(int *flag);
int  PMPI_Abi_get_version(int *major, int *minor);
int  MPI_Barrier(handle_t comm);
int  PMPI_Barrier(handle_t comm);
int  MPI_Bcast(void *buf, int count, handle_t type, int root, handle_t comm);
int  PMPI_Bcast(void *buf, int count, handle_t type, int root, handle_t comm);
void MPIR_Err_create_code(void);

int PMPI_Init(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return 0;
}

int MPI_Init(int *argc, char ***argv)
{
    return PMPI_Init(argc, argv);
}

int PMPI_Initialized(int *flag)
{
    *flag = 1;
    return 0;
}

int PMPI_Abi_get_version(int *major, int *minor)
{
    const char *version = getenv("STANDARD_ABI_VERSION");

    *major = (version != NULL) ? atoi(version) : 1;
    *minor = 0;
    return 0;
}

int PMPI_Barrier(handle_t comm)
{
    printf("MPI_Barrier of %p\n", comm);
    return 0;
}

int MPI_Barrier(handle_t comm)
{
    return PMPI_Barrier(comm);
}

int PMPI_Bcast(void *buf, int count, handle_t type, int root, handle_t comm)
{
    printf("MPI_Bcast of %d of %p from %d in %p\n", count, type, root, comm);
    return (buf == NULL);
}

int MPI_Bcast(void *buf, int count, handle_t type, int root, handle_t comm)
{
    return PMPI_Bcast(buf, count, type, root, comm);
}

void MPIR_Err_create_code(void)
{
}
