/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * "Splitting NCCL communicators", today: all-reduce within groups of ranks at once. The argument
 * says which: halves (0 1 | 2 3), parity (0 2 | 1 3), ends (0 3 | 1 2) or world (all in one).
 *
 * Replaces: ncclGetUniqueId, the MPI_Allgather of the ids, and ncclCommInitRank with a rule of
 * one's own for which id belongs to whom. MPI_Comm_split says it all; xccl makes a vendor
 * communicator for each group when it is first used, and frees it with it. One GPU a rank: the one
 * that xccl-run gave this rank, chosen before MPI_Init.
 *
 *     mpicc split-communicators.c -o split -lcudart && srun -N1 -n4 xccl-run ./split parity
 */
#include <cuda_runtime.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 1000 };

/* Which of two groups a rank belongs to; -1 for an unknown way to split. */
static int color_of(const char *split, int rank, int size)
{
    if (strcmp(split, "world") == 0) {
        return 0;
    } else if (strcmp(split, "halves") == 0) {
        return rank < size / 2;
    } else if (strcmp(split, "parity") == 0) {
        return rank % 2;
    } else if (strcmp(split, "ends") == 0) {
        return (rank > 0) && (rank < size - 1);
    }
    return -1;
}

int main(int argc, char **argv)
{
    const char *device = getenv("XCCL_LOCAL_DEVICE");
    int64_t     host[COUNT];
    int64_t    *data;
    int         rank, size, color;
    MPI_Comm    group;

    cudaSetDevice(device ? atoi(device) : 0);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    color = color_of(argc > 1 ? argv[1] : "halves", rank, size);
    if (color < 0) {
        fprintf(stderr, "unknown split '%s'; known: world, halves, parity, ends\n", argv[1]);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Comm_split(MPI_COMM_WORLD, color, rank, &group);

    for (int i = 0; i < COUNT; i++) {
        host[i] = rank;
    }
    cudaMalloc((void **)&data, sizeof(host));
    cudaMemcpy(data, host, sizeof(host), cudaMemcpyHostToDevice);
    MPI_Allreduce(MPI_IN_PLACE, data, COUNT, MPI_INT64_T, MPI_SUM, group);
    cudaMemcpy(host, data, sizeof(host), cudaMemcpyDeviceToHost);
    printf("[rank%d] result: %lld\n", rank, (long long)host[0]); /* halves of 4: 1 1 5 5 */

    cudaFree(data);
    MPI_Comm_free(&group);
    MPI_Finalize();
    return 0;
}
