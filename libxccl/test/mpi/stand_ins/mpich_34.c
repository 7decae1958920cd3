/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preloaded into ranks of MPICH by the tests: the questions about GPUs as in MPICH 3.4, whose
 * MPIX_Query_cuda_support() ends the process. It is linked with MPICH and has its
 * PMPI_Initialized(), so that the interposer takes it for the MPI library.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int PMPI_Initialized(int *flag);
int MPIX_GPU_query_support(int type, int *supported);
int MPIX_Query_cuda_support(void);

int PMPI_Initialized(int *flag)
{
    int (*next)(int *);
    void *address = dlsym(RTLD_NEXT, "PMPI_Initialized");

    memcpy(&next, &address, sizeof(next));
    return next(flag);
}

int MPIX_GPU_query_support(int type, int *supported)
{
    printf("MPIX_GPU_query_support of type %d\n", type);
    *supported = 0;
    return (type == 0) ? 0 : 1;
}

int MPIX_Query_cuda_support(void)
{
    printf("MPIX_Query_cuda_support ends the process\n");
    fflush(stdout);
    abort();
}
