/* SPDX-License-Identifier: BSD-3-Clause */
/* A program with MPI 5's standard ABI, without its mpi.h: handles that no int can hold. */
#include <stdint.h>

int MPI_Init(int *argc, char ***argv);
int MPI_Barrier(void *comm);
int MPI_Bcast(void *buf, int count, void *type, int root, void *comm);

int main(int argc, char **argv)
{
    void *comm = (void *)(uintptr_t)0x123456789abc, *type = (void *)(uintptr_t)0x248;
    int   number = 1;

    return MPI_Init(&argc, &argv) || MPI_Barrier(comm) || MPI_Bcast(&number, 1, type, 0, comm);
}
