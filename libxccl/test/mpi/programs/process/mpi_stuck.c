/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks that wait for ever, for what their files say of it: after a time each sends itself SIGUSR1,
 * and ends when the files of all are there (mpirun kills the others when the first one ends).
 *
 *   mpi_stuck RUNTIME CASE FOLDER
 * recv: rank 0 waits for a message from rank 1, which is in a barrier; ring: each for one from the
 * next; mixed: rank 0 for one from rank 1, which is in an allreduce with it; waits: rank 0 for
 * several, and rank 1 probes; send: rank 0 sends on a communicator with the ranks the other way
 * round; late: a request that ended before the wait is no part of it; edges: rank 0 is in a
 * neighbourhood collective, which is messages; asks: it is in the first one of a communicator,
 * where it asks the other ranks. Files go to the folder where nothing else is asked for. Exit
 * status: 7.
 */
#include <glob.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mpi.h>

#include "memory.h"

enum { BYTES = 1 << 20, ROOM = 4 * BYTES, STATUS = 7, LONG_US = 1300000 };
enum { LOOK_US = 20000, LOOKS = 1500 }; /* for files: 30 s */

static int   rank, size;
static char *memory, *host;

static int count_files(void)
{
    glob_t found;
    int    n = (glob("xccl-ops.*.json", 0, NULL, &found) == 0) ? (int)found.gl_pathc : 0;

    globfree(&found);
    return n;
}

static void *dump_and_end(void *arg)
{
    (void)arg;
    usleep(LONG_US);
    kill(getpid(), SIGUSR1);
    for (int i = 0; (i < LOOKS) && (count_files() < size); i++) {
        usleep(LOOK_US);
    }
    _exit(STATUS);
    return NULL;
}

static void recv_beside_barrier(void)
{
    if (rank == 0) {
        MPI_Recv(memory, BYTES, MPI_BYTE, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void recv_in_a_ring(void)
{
    MPI_Recv(memory, BYTES, MPI_BYTE, (rank + 1) % size, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void recv_beside_allreduce(void)
{
    if (rank == 0) {
        MPI_Recv(memory, BYTES, MPI_BYTE, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Allreduce(memory, memory + BYTES, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

static void wait_for_several(void)
{
    MPI_Request requests[4];

    if (rank > 0) {
        MPI_Probe(0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return;
    }
    MPI_Irecv(memory, BYTES, MPI_BYTE, 1, 7, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(host, BYTES, MPI_BYTE, MPI_ANY_SOURCE, 8, MPI_COMM_WORLD, &requests[1]);
    requests[2] = MPI_REQUEST_NULL;
    MPI_Irecv(memory + BYTES, 1, MPI_BYTE, 1, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
}

static void send_the_other_way_round(void)
{
    MPI_Comm reversed;

    MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &reversed);
    if (rank == 0) { /* to rank 1, which is rank 0 there, with a tag that it does not expect */
        MPI_Ssend(memory, BYTES, MPI_BYTE, 0, 5, reversed);
    } else {
        MPI_Recv(memory, BYTES, MPI_BYTE, 1, 6, reversed, MPI_STATUS_IGNORE);
    }
}

static void wait_for_the_late_one(void)
{
    MPI_Request requests[2];

    if (rank > 0) {
        MPI_Send(memory, BYTES, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        return;
    }
    MPI_Irecv(memory, BYTES, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(memory + BYTES, BYTES, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void exchange_beside_barrier(void)
{
    int      periodic = 1;
    MPI_Comm ring;

    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring);
    MPI_Neighbor_alltoall(memory, 9, MPI_BYTE, memory + BYTES, 9, MPI_BYTE, ring);
    if (rank == 0) {
        MPI_Neighbor_alltoall(memory, BYTES, MPI_BYTE, memory + 2 * BYTES, BYTES, MPI_BYTE, ring);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void ask_beside_barrier(void)
{
    int      periodic = 1;
    MPI_Comm ring, copy;

    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring);
    MPI_Comm_dup(ring, &copy);
    if (rank == 0) {
        MPI_Neighbor_alltoall(memory, 9, MPI_BYTE, memory + BYTES, 9, MPI_BYTE, copy);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {{"recv", recv_beside_barrier},      {"ring", recv_in_a_ring},
             {"mixed", recv_beside_allreduce},   {"waits", wait_for_several},
             {"send", send_the_other_way_round}, {"late", wait_for_the_late_one},
             {"edges", exchange_beside_barrier}, {"asks", ask_beside_barrier}};

int main(int argc, char **argv)
{
    pthread_t thread;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if ((argc != 4) || (chdir(argv[3]) != 0)) {
        fprintf(stderr, "usage: mpi_stuck RUNTIME CASE FOLDER\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    mt_memory_open(argv[1], rank);
    memory = mt_alloc(MT_DEVICE, ROOM);
    host = malloc(ROOM);
    MPI_Barrier(MPI_COMM_WORLD); /* so that none ends before another has written */
    pthread_create(&thread, NULL, dump_and_end, NULL);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (strcmp(argv[2], cases[i].name) == 0) {
            cases[i].run();
            pause();
        }
    }
    fprintf(stderr, "mpi_stuck: unknown case %s\n", argv[2]);
    MPI_Abort(MPI_COMM_WORLD, 2);
    return 1;
}
