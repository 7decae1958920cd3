/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A tool behind xccl, preloaded by the tests: it counts the communicators that are freed by the
 * name which tools take over. Of any MPI: a handle's address is all that it needs.
 */
#include <stdio.h>

int MPI_Comm_free(void *comm);
int PMPI_Comm_free(void *comm);

static int freed;

int MPI_Comm_free(void *comm)
{
    freed++;
    return PMPI_Comm_free(comm);
}

__attribute__((destructor)) static void tell(void)
{
    if (freed > 0) {
        fprintf(stderr, "tool: %d communicators were freed\n", freed);
    }
}
