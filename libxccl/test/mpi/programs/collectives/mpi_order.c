/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a program copied and filled before a call is there when the call reads it, and does not come
 * after what the call writes, even where the runtime's synchronous calls return before their bytes
 * have arrived, as they do on a GPU for copies from pageable memory and for fills (here:
 * XCCL_SIM_EARLY=1). In memory seen for the first time and in memory seen before.
 * Usage: mpi_order cuda|rocm [per-thread]
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

static int rank, nranks, checks, failures;

static void count_wrong(const char *what, int round, int wrong)
{
    checks++;
    if (wrong > 0) {
        failures++;
        printf("FAIL rank %d, %s, round %d: %d elements are wrong\n", rank, what, round, wrong);
    }
}

/* On its way when the call comes: for some milliseconds what nobody must see, then this. */
static void put_late(int *to, int first, int step, int times)
{
    int *late = malloc(COUNT * sizeof(int));

    memset(late, 0xff, COUNT * sizeof(int));
    for (int i = 0; i < times; i++) {
        mt_put(to, MT_DEVICE, late, COUNT * sizeof(int));
    }
    for (int i = 0; i < COUNT; i++) {
        late[i] = first + i * step;
    }
    mt_put(to, MT_DEVICE, late, COUNT * sizeof(int));
    free(late);
}

static void collectives(void)
{
    int *found = malloc(COUNT * sizeof(int)), *send = NULL, *recv = NULL;

    for (int round = 0; round < ROUNDS; round++) {
        if (round % 3 == 0) {
            send = mt_alloc(MT_DEVICE, COUNT * sizeof(int));
            recv = mt_alloc(MT_DEVICE, COUNT * sizeof(int));
        }
        put_late(send, rank, round + 1, 1);
        MPI_Allreduce(send, recv, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        mt_get(found, recv, MT_DEVICE, COUNT * sizeof(int));
        count_wrong("allreduce", round, wrong_elements(found, nranks, round));
    }
    free(found);
}

static void make_persistent(int *buffer, MPI_Request *request)
{
    if (rank == 0) {
        MPI_Send_init(buffer, COUNT, MPI_INT, 1, 2, MPI_COMM_WORLD, request);
    } else {
        MPI_Recv_init(buffer, COUNT, MPI_INT, 0, 2, MPI_COMM_WORLD, request);
    }
}

/* Other memory, at the address that a persistent request has, if the runtime takes that again. */
static int *renew(int *memory, MPI_Request *request)
{
    mt_free(MT_DEVICE, memory);
    int *again = mt_alloc(MT_DEVICE, COUNT * sizeof(int));

    if (again != memory) {
        MPI_Request_free(request);
        make_persistent(again, request);
    }
    return again;
}

/* Each start meets memory that nobody has seen, and the request was made of memory seen before. */
static void persistent(void)
{
    int        *found = malloc(COUNT * sizeof(int));
    int        *buffer = mt_alloc(MT_DEVICE, COUNT * sizeof(int));
    int         first = (rank == 0) ? 0 : -1, late = (rank == 0) ? 5 : 20;
    MPI_Request request;

    if (rank == 0) {
        MPI_Send(buffer, COUNT, MPI_INT, 1, 1, MPI_COMM_WORLD);
    } else {
        MPI_Recv(buffer, COUNT, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    make_persistent(buffer, &request);
    for (int round = 0; round < ROUNDS; round++) {
        int wrong = 0;
        put_late(buffer, first, (rank == 0) ? round + 1 : 0, late);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        mt_get(found, buffer, MT_DEVICE, COUNT * sizeof(int));
        for (int i = 0; i < COUNT; i++) {
            wrong += found[i] != i * (round + 1);
        }
        count_wrong("persistent message", round, wrong);
        buffer = renew(buffer, &request);
    }
    MPI_Request_free(&request);
    mt_free(MT_DEVICE, buffer);
    free(found);
}

/* To rank 1, whose memory is written late as well: fetched or staged, from device or host memory.
 */
static void messages(enum mt_where from, int count)
{
    const char *what = (from == MT_DEVICE) ? "message from a device" : "message from the host";
    size_t      bytes = COUNT * sizeof(int);
    int        *found = malloc(bytes);

    for (int round = 0; (round < 3) && (rank < 2); round++) {
        int *buffer = mt_alloc((rank == 1) ? MT_DEVICE : from, bytes), wrong = 0;
        if ((rank == 0) && (from == MT_DEVICE)) {
            put_late(buffer, 0, round + 1, 5);
        } else if (rank == 1) {
            put_late(buffer, -1, 0, 20); /* longer than the sender waits for its own */
        }
        for (int i = 0; (rank == 0) && (from == MT_HOST) && (i < COUNT); i++) {
            buffer[i] = i * (round + 1);
        }
        if (rank == 0) {
            MPI_Send(buffer, count, MPI_INT, 1, round, MPI_COMM_WORLD);
        } else {
            MPI_Recv(buffer, count, MPI_INT, 0, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            mt_get(found, buffer, MT_DEVICE, bytes);
        }
        for (int i = 0; (rank == 1) && (i < COUNT); i++) {
            wrong += found[i] != ((i < count) ? i * (round + 1) : -1);
        }
        count_wrong(what, round, wrong);
        mt_free((rank == 1) ? MT_DEVICE : from, buffer);
    }
    free(found);
}

int main(int argc, char **argv)
{
    int all[2], sums[2];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    mt_memory_open((argc > 1) ? argv[1] : "cuda", rank);
    if (argc > 2) {
        mt_copy_per_thread();
    }
    collectives();
    for (int count = COUNT; count > 0; count /= 30) { /* 20000 bytes, 664, 20 */
        messages(MT_DEVICE, count);
        messages(MT_HOST, count);
    }
    if (rank < 2) {
        persistent();
    }
    sums[0] = checks;
    sums[1] = failures;
    MPI_Reduce(sums, all, 2, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%d checks, %d failures\n", all[0], all[1]);
    }
    MPI_Finalize();
    return (failures == 0) ? 0 : 1;
}
