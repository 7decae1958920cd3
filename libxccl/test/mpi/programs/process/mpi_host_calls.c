/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives on host memory between those on device memory, as a program has them that gathers its
 * times, and one that each rank may call with memory of either kind. A healthy job: what ranks
 * write on SIGUSR1 has to fit together. Usage: mpi_host_calls cuda
 */
#include <signal.h>
#include <stdlib.h>

#include "support.h"

enum { COUNT = 16, ROUNDS = 6 };

static void on_device(int round)
{
    int *buffer = mt_ints_make(MT_DEVICE, COUNT, COUNT, round);

    mt_expect(MPI_Allreduce(MPI_IN_PLACE, buffer, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD) ==
                  MPI_SUCCESS,
              "the allreduce of round %d failed", round);
    mt_free(MT_DEVICE, buffer);
}

/* Only the root has somewhere to put them. */
static void gather_times(void)
{
    double  mine[2] = {1.0, 2.0};
    double *all = (mt_rank() == 0) ? calloc((size_t)mt_size(), sizeof(mine)) : NULL;

    mt_expect(MPI_Gather(mine, 2, MPI_DOUBLE, all, 2, MPI_DOUBLE, 0, MPI_COMM_WORLD) == MPI_SUCCESS,
              "the gather failed");
    free(all);
}

/* MPI carries it for each rank as it is. */
static void exchange_all(void)
{
    enum mt_where where = (mt_rank() == 1) ? MT_DEVICE : MT_HOST;
    int           size = mt_size();
    int *send = mt_ints_make(where, size, size, 1), *recv = mt_ints_make(where, size, 0, 1);
    int *ones = malloc((size_t)size * sizeof(int));
    int *at = malloc((size_t)size * sizeof(int));
    MPI_Datatype *types = malloc((size_t)size * sizeof(*types));

    for (int i = 0; i < size; i++) {
        ones[i] = 1;
        at[i] = i * (int)sizeof(int);
        types[i] = MPI_INT;
    }
    mt_expect(MPI_Alltoallw(send, ones, at, types, recv, ones, at, types, MPI_COMM_WORLD) ==
                  MPI_SUCCESS,
              "the alltoallw failed");
    free(types);
    free(at);
    free(ones);
    mt_free(where, recv);
    mt_free(where, send);
}

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv, true);
    for (int round = 0; round < ROUNDS; round++) {
        on_device(round);
        exchange_all();
        gather_times();
    }
    on_device(ROUNDS);
    raise(SIGUSR1);
    mt_summary();
    MPI_Finalize();
    return mt_status();
}
