/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_THREAD_MULTIPLE: every thread has a communicator of its own and never waits for another.
 *
 *   mpi_threads RUNTIME
 * The threads of one rank share a device, and the ranks' threads run in no common order:
 * communicators that could block each other on the device end in a time-out here. Memory is freed
 * when no thread is in a collective: it waits for the device (docs/use/rules.md).
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <mpi.h>

#include "memory.h"

enum { THREADS = 3, ROUNDS = 60, COUNT = 3001 };

static MPI_Comm comms[THREADS];
static void    *send_buffers[THREADS], *recv_buffers[THREADS];
static int      wrong[THREADS];
static int      rank;
static int      size;

static void allreduce_round(int id, int round, void *send, void *recv, int *host)
{
    int count = 1 + (round * 97 + id * 13) % COUNT;

    for (int i = 0; i < count; i++) {
        host[i] = rank + id * 100 + round + i;
    }
    mt_put(send, MT_DEVICE, host, sizeof(int) * (size_t)count);
    MPI_Allreduce(send, recv, count, MPI_INT, MPI_SUM, comms[id]);
    mt_get(host, recv, MT_DEVICE, sizeof(int) * (size_t)count);
    for (int i = 0; i < count; i++) {
        int expected = size * (size - 1) / 2 + size * (id * 100 + round + i);
        wrong[id] += host[i] != expected;
    }
}

static void bcast_round(int id, int round, void *buf, int *host)
{
    int root = (round + id) % size;

    for (int i = 0; i < COUNT; i++) {
        host[i] = rank * 7 + round + i;
    }
    mt_put(buf, MT_DEVICE, host, sizeof(int) * COUNT);
    MPI_Bcast(buf, COUNT, MPI_INT, root, comms[id]);
    mt_get(host, buf, MT_DEVICE, sizeof(int) * COUNT);
    for (int i = 0; i < COUNT; i++) {
        wrong[id] += host[i] != root * 7 + round + i;
    }
}

static void *work(void *argument)
{
    int  id = (int)(long)argument;
    int *host = malloc(sizeof(int) * COUNT);

    mt_memory_enter();
    void *send = mt_alloc(MT_DEVICE, sizeof(int) * COUNT);
    void *recv = mt_alloc(MT_DEVICE, sizeof(int) * COUNT);
    for (int round = 0; round < ROUNDS; round++) {
        allreduce_round(id, round, send, recv, host);
        bcast_round(id, round, recv, host);
    }
    send_buffers[id] = send;
    recv_buffers[id] = recv;
    free(host);
    return NULL;
}

int main(int argc, char **argv)
{
    int       provided;
    int       total = 0;
    pthread_t threads[THREADS];

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (provided < MPI_THREAD_MULTIPLE) {
        printf("SKIP: this MPI gives no MPI_THREAD_MULTIPLE\n");
        MPI_Finalize();
        return 0;
    }
    mt_memory_open((argc > 1) ? argv[1] : "cuda", rank);
    for (int id = 0; id < THREADS; id++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[id]);
    }
    for (long id = 0; id < THREADS; id++) {
        pthread_create(&threads[id], NULL, work, (void *)id);
    }
    for (int id = 0; id < THREADS; id++) {
        pthread_join(threads[id], NULL);
        total += wrong[id];
        MPI_Comm_free(&comms[id]);
    }
    for (int id = 0; id < THREADS; id++) {
        mt_free(MT_DEVICE, send_buffers[id]);
        mt_free(MT_DEVICE, recv_buffers[id]);
    }
    PMPI_Allreduce(MPI_IN_PLACE, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%d checks, %d failures\n", size * THREADS * ROUNDS * 2, total);
    }
    MPI_Finalize();
    return total != 0;
}
