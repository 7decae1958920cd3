/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a program gave to the default stream before a collective is done before it, and what it
 * gives after comes after: the data is still on its way (behind a delay) when MPI_Allreduce is
 * called, as the tail of a cudaMemcpy from pageable memory may be. On the vendor's path and staged.
 * Usage: mpi_order cuda|rocm
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memory.h"

enum { COUNT = 5000, DELAY_US = 60 * 1000 };

static struct {
    int (*launch)(void *stream, void (*function)(void *), void *argument);
    int (*pinned)(void **ptr, size_t bytes, unsigned flags);
    int (*copy)(void *dst, const void *src, size_t bytes, void *stream);
} api;

static void open_api(int hip)
{
    void *library = dlopen(hip ? "libamdhip64.so.6" : "libcuda.so.1", RTLD_NOW);

    if (library == NULL) {
        library = dlopen("libamdhip64.so", RTLD_NOW);
    }
    *(void **)&api.launch = dlsym(library, hip ? "hipLaunchHostFunc" : "cuLaunchHostFunc");
    *(void **)&api.pinned = dlsym(library, hip ? "hipHostMalloc" : "cuMemHostAlloc");
    *(void **)&api.copy = dlsym(library, hip ? "hipMemcpyHtoDAsync" : "cuMemcpyHtoDAsync_v2");
    if ((api.launch == NULL) || (api.pinned == NULL) || (api.copy == NULL)) {
        fprintf(stderr, "a function of the runtime is missing\n");
        exit(70);
    }
}

static void wait_a_while(void *argument)
{
    (void)argument;
    usleep(DELAY_US);
}

int main(int argc, char **argv)
{
    int  hip = (argc > 1) && (strcmp(argv[1], "rocm") == 0);
    int  rank, nranks, failures = 0, all[2], sums[2];
    int *late, *found = malloc(COUNT * sizeof(int));
    enum { ROUNDS = 3 };

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    mt_memory_open(hip ? "rocm" : "cuda", rank);
    open_api(hip);
    int *send = mt_alloc(MT_DEVICE, COUNT * sizeof(int));
    int *recv = mt_alloc(MT_DEVICE, COUNT * sizeof(int));
    if (api.pinned((void **)&late, COUNT * sizeof(int), 0) != 0) {
        return 70;
    }
    for (int round = 0; round < ROUNDS; round++) {
        memset(late, 0xff, COUNT * sizeof(int));
        mt_put(send, MT_DEVICE, late, COUNT * sizeof(int));
        for (int i = 0; i < COUNT; i++) {
            late[i] = rank + i * (round + 1);
        }
        if ((api.launch(NULL, wait_a_while, NULL) != 0) ||
            (api.copy(send, late, COUNT * sizeof(int), NULL) != 0)) {
            return 70;
        }
        MPI_Allreduce(send, recv, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        mt_get(found, recv, MT_DEVICE, COUNT * sizeof(int));
        int wrong = 0;
        for (int i = 0; i < COUNT; i++) {
            wrong += found[i] != nranks * (nranks - 1) / 2 + nranks * i * (round + 1);
        }
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
