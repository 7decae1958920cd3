/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fourth seed, today: all-reduce within the first and the second half of the ranks at once.
 *
 * Replaces: ncclGetUniqueId, the MPI_Allgather of the ids, and ncclCommInitRank with a rule of
 * one's own for which id belongs to whom. MPI_Comm_split says it all; xccl makes a vendor
 * communicator for each half when it is first used, and frees it with it. One GPU a rank: the one
 * that xccl-run gave this rank, chosen before MPI_Init.
 *
 *     mpicc split-communicators.c -o split -lcudart && srun -n4 xccl-run ./split
 */
#include <cuda_runtime.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 1000 };

int main(int argc, char **argv)
{
    const char *device = getenv("XCCL_LOCAL_DEVICE");
    int64_t     host[COUNT];
    int64_t    *data;
    int         rank, size;
    MPI_Comm    half;

    cudaSetDevice(device ? atoi(device) : 0);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split(MPI_COMM_WORLD, rank < size / 2, rank, &half);

    for (int i = 0; i < COUNT; i++) {
        host[i] = rank;
    }
    cudaMalloc((void **)&data, sizeof(host));
    cudaMemcpy(data, host, sizeof(host), cudaMemcpyHostToDevice);
    MPI_Allreduce(MPI_IN_PLACE, data, COUNT, MPI_INT64_T, MPI_SUM, half);
    cudaMemcpy(host, data, sizeof(host), cudaMemcpyDeviceToHost);
    printf("[rank%d] result: %lld\n", rank, (long long)host[0]); /* of 4 ranks: 1 1 5 5 */

    cudaFree(data);
    MPI_Comm_free(&half);
    MPI_Finalize();
    return 0;
}
