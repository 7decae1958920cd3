/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_THREAD_MULTIPLE: every thread has a communicator of its own and never waits for another.
 *
 *   mpi_threads RUNTIME [frees|later]
 * The threads of one rank share a device, and the ranks' threads run in no common order:
 * communicators that could block each other on the device end in a time-out here.
 *   frees   each thread frees its memory and allocates anew between calls, which waits for the
 *           whole device
 *   later   one thread of rank 0 is in a collective while another frees memory, before it sends
 *           what the other ranks wait for before they come to that collective
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <mpi.h>

#include "memory.h"

enum { THREADS = 3, ROUNDS = 60, COUNT = 200001 };
/* Of each thread: short, longer, and on the ranks' own buffers. */
static const int counts[THREADS] = {17, 3001, COUNT};

static MPI_Comm comms[THREADS];
static void    *send_buffers[THREADS], *recv_buffers[THREADS];
static int      wrong[THREADS], checked[THREADS];
static int      rank;
static int      size;
static bool     frees;

static void allreduce_round(int id, int round, void *send, void *recv, int *host)
{
    int count = 1 + (round * 97 + id * 13) % counts[id];

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
    checked[id]++;
}

static void bcast_round(int id, int round, void *buf, int *host)
{
    int root = (round + id) % size;
    int count = counts[id];

    for (int i = 0; i < count; i++) {
        host[i] = rank * 7 + round + i;
    }
    mt_put(buf, MT_DEVICE, host, sizeof(int) * (size_t)count);
    MPI_Bcast(buf, count, MPI_INT, root, comms[id]);
    mt_get(host, buf, MT_DEVICE, sizeof(int) * (size_t)count);
    for (int i = 0; i < count; i++) {
        wrong[id] += host[i] != root * 7 + round + i;
    }
    checked[id]++;
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
        if (frees) {
            mt_free(MT_DEVICE, send);
            send = mt_alloc(MT_DEVICE, sizeof(int) * COUNT);
        }
    }
    send_buffers[id] = send;
    recv_buffers[id] = recv;
    free(host);
    return NULL;
}

static void test_threads(void)
{
    pthread_t threads[THREADS];

    for (long id = 0; id < THREADS; id++) {
        pthread_create(&threads[id], NULL, work, (void *)id);
    }
    for (int id = 0; id < THREADS; id++) {
        pthread_join(threads[id], NULL);
        mt_free(MT_DEVICE, send_buffers[id]);
        mt_free(MT_DEVICE, recv_buffers[id]);
    }
}

static sem_t may_begin, has_ended;

static void *reduce_when_told(void *unused)
{
    int *host = malloc(sizeof(int) * COUNT);

    mt_memory_enter();
    for (int round = 0; round < ROUNDS; round++) {
        if (rank == 0) {
            sem_wait(&may_begin);
        } else {
            MPI_Recv(NULL, 0, MPI_INT, 0, 0, comms[1], MPI_STATUS_IGNORE);
        }
        allreduce_round(round % THREADS, round, send_buffers[0], recv_buffers[0], host);
        sem_post(&has_ended);
    }
    free(host);
    return unused;
}

static void free_beside(void)
{
    const struct timespec nap = {0, 2 * 1000 * 1000};

    for (int round = 0; round < ROUNDS; round++) {
        sem_post(&may_begin);
        nanosleep(&nap, NULL); /* it is in the collective now */
        mt_free(MT_DEVICE, mt_alloc(MT_DEVICE, 1));
        for (int to = 1; to < size; to++) {
            MPI_Send(NULL, 0, MPI_INT, to, 0, comms[1]);
        }
        sem_wait(&has_ended);
    }
}

static void test_later(void)
{
    pthread_t thread;

    sem_init(&may_begin, 0, 0);
    sem_init(&has_ended, 0, 0);
    send_buffers[0] = mt_alloc(MT_DEVICE, sizeof(int) * COUNT);
    recv_buffers[0] = mt_alloc(MT_DEVICE, sizeof(int) * COUNT);
    pthread_create(&thread, NULL, reduce_when_told, NULL);
    if (rank == 0) {
        free_beside();
    }
    pthread_join(thread, NULL);
    mt_free(MT_DEVICE, send_buffers[0]);
    mt_free(MT_DEVICE, recv_buffers[0]);
}

int main(int argc, char **argv)
{
    const char *what = (argc > 2) ? argv[2] : "";
    int         provided;
    int         total[2] = {0, 0};

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (provided < MPI_THREAD_MULTIPLE) {
        printf("SKIP: this MPI gives no MPI_THREAD_MULTIPLE\n");
        MPI_Finalize();
        return 0;
    }
    mt_memory_open((argc > 1) ? argv[1] : "cuda", rank);
    frees = (strcmp(what, "frees") == 0);
    for (int id = 0; id < THREADS; id++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[id]);
    }
    if (strcmp(what, "later") == 0) {
        test_later();
    } else {
        test_threads();
    }
    for (int id = 0; id < THREADS; id++) {
        total[0] += checked[id];
        total[1] += wrong[id];
        MPI_Comm_free(&comms[id]);
    }
    PMPI_Allreduce(MPI_IN_PLACE, total, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%d checks, %d failures\n", total[0], total[1]);
    }
    MPI_Finalize();
    return total[1] != 0;
}
