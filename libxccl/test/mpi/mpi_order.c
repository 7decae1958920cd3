/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a program copied and filled before a collective is there when the collective reads it, even
 * where the runtime's synchronous calls return before their bytes have arrived, as they do on a
 * GPU for copies from pageable memory and for fills (here: XCCL_SIM_EARLY=1). In memory seen for
 * the first time and in memory seen before.
 * Usage: mpi_order cuda|rocm
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"

enum { COUNT = 5000, ROUNDS = 6 };

/* Elements of recv that are not the sum of what all ranks put into send in this round. */
static int wrong_elements(const int *found, int nranks, int round)
{
    int wrong = 0;

    for (int i = 0; i < COUNT; i++) {
        wrong += found[i] != nranks * (nranks - 1) / 2 + nranks * i * (round + 1);
    }
    return wrong;
}

int main(int argc, char **argv)
{
    int  rank, nranks, failures = 0, all[2], sums[2];
    int *late = malloc(COUNT * sizeof(int)), *found = malloc(COUNT * sizeof(int));
    int *send = NULL, *recv = NULL;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    mt_memory_open((argc > 1) ? argv[1] : "cuda", rank);
    for (int round = 0; round < ROUNDS; round++) {
        if (round % 3 == 0) {
            send = mt_alloc(MT_DEVICE, COUNT * sizeof(int));
            recv = mt_alloc(MT_DEVICE, COUNT * sizeof(int));
        }
        memset(late, 0xff, COUNT * sizeof(int));
        mt_put(send, MT_DEVICE, late, COUNT * sizeof(int));
        for (int i = 0; i < COUNT; i++) {
            late[i] = rank + i * (round + 1);
        }
        mt_put(send, MT_DEVICE, late, COUNT * sizeof(int));
        MPI_Allreduce(send, recv, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        mt_get(found, recv, MT_DEVICE, COUNT * sizeof(int));
        int wrong = wrong_elements(found, nranks, round);
        if (wrong > 0) {
            failures++;
            printf("FAIL rank %d, round %d: %d of %d elements are wrong\n", rank, round, wrong,
                   COUNT);
        }
    }
    sums[0] = ROUNDS;
    sums[1] = failures;
    MPI_Reduce(sums, all, 2, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%d checks, %d failures\n", all[0], all[1]);
    }
    MPI_Finalize();
    return (failures == 0) ? 0 : 1;
}
