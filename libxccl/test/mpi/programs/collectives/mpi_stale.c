/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a communicator leaves in the memory of the direct path means nothing to the next one there,
 * though the program's data was such that it may look like the number of an operation.
 *
 * Usage: mpi_stale cuda|rocm trouble|meeting VALUE, on three ranks
 *        mpi_stale cuda|rocm arena|fresh|freed|foreign, on two
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support.h"

enum { FEW = 64, MANY = 1 << 18, CALLS = 4, LATE_US = 200000 };

static int value;

/* Of the first `size` ranks, in this order, by these alone. */
static MPI_Comm among(int size, const int *order, int tag)
{
    MPI_Group world, group;
    MPI_Comm  comm;

    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, size, order, &group);
    MPI_Comm_create_group(MPI_COMM_WORLD, group, tag, &comm);
    MPI_Group_free(&group);
    MPI_Group_free(&world);
    return comm;
}

/* Two ranks write it to where the words of a communicator of three will be. */
static void leave_values(const int *order)
{
    int  values[FEW];
    int *in = mt_alloc(MT_DEVICE, sizeof(values)), *out = mt_alloc(MT_DEVICE, 2 * sizeof(values));

    for (int i = 0; i < FEW; i++) {
        values[i] = value;
    }
    mt_put(in, MT_DEVICE, values, sizeof(values));
    if (mt_rank() < 2) {
        MPI_Comm comm = among(2, order, 1);
        for (int i = 0; i < CALLS; i++) {
            MPI_Allgather(in, FEW, MPI_INT, out, FEW, MPI_INT, comm);
        }
        mt_expect(strcmp(mt_last_path(), "direct") == 0, "by way of %s", mt_last_path());
        MPI_Comm_free(&comm);
    }
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
}

/* Far inside their range: no sum may be made over by MPI, which all ranks would have to join. */
static void trouble(void)
{
    enum { BEYOND = 10 };
    signed char values[FEW];
    void       *in = mt_alloc(MT_DEVICE, FEW), *out = mt_alloc(MT_DEVICE, FEW);

    leave_values((const int[]){0, 1});
    MPI_Comm comm = among(3, (const int[]){0, 1, 2}, 2);
    for (int call = 0; call < value + BEYOND; call++) {
        int wrong = 0;
        memset(values, call % 20 + mt_rank(), sizeof(values));
        mt_put(in, MT_DEVICE, values, sizeof(values));
        MPI_Allreduce(in, out, FEW, MPI_SIGNED_CHAR, MPI_SUM, comm);
        mt_get(values, out, MT_DEVICE, sizeof(values));
        for (int i = 0; i < FEW; i++) {
            wrong += (values[i] != 3 * (call % 20) + 3);
        }
        mt_expect(wrong == 0, "call %d: %d sums are wrong", call, wrong);
    }
    MPI_Comm_free(&comm);
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
}

/* Kernels on the ranks' own memory, which meet: the last rank is late. */
static void meeting(void)
{
    int *few = mt_ints_make(MT_DEVICE, FEW, FEW, 1), *least = mt_ints_make(MT_DEVICE, FEW, 0, 0);

    leave_values((const int[]){0, 1});
    leave_values((const int[]){1, 0});
    MPI_Comm comm = among(3, (const int[]){0, 1, 2}, 2);
    MPI_Allreduce(few, least, FEW, MPI_INT, MPI_MIN, comm);
    for (int call = 0; call < 2; call++) {
        MPI_Request request;
        int        *in = mt_ints_make(MT_DEVICE, MANY, MANY, call);
        int        *out = mt_ints_make(MT_DEVICE, MANY, 0, 0);
        MPI_Iallreduce(few, least, FEW, MPI_INT, MPI_MIN, comm, &request);
        MPI_Allreduce(in, out, MANY, MPI_INT, MPI_MIN, comm);
        mt_ints_expect(out, MT_DEVICE, MANY, MANY, 0, call, "the least");
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        mt_free(MT_DEVICE, in);
        mt_free(MT_DEVICE, out);
    }
    mt_ints_expect(least, MT_DEVICE, FEW, FEW, 0, 1, "the least of few");
    MPI_Comm_free(&comm);
    mt_free(MT_DEVICE, few);
    mt_free(MT_DEVICE, least);
}

/* The path's memory lies where messages were fetched from, out of buffers that are freed by now. */
static void arena(void)
{
    enum { ROOM = 64 << 20, BYTES = 1 << 20, MESSAGES = 20, MOST = 500 };
    char *buffer = mt_alloc(MT_DEVICE, ROOM);
    int   me = mt_rank();

    for (int i = 0; i < MESSAGES; i++) {
        for (int from = 0; from < 2; from++) {
            if (me == from) {
                MPI_Send(buffer, BYTES, MPI_CHAR, 1 - me, 0, MPI_COMM_WORLD);
            } else {
                MPI_Recv(buffer, BYTES, MPI_CHAR, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            }
        }
    }
    mt_expect_message_path("fetched", "a message of 1 MiB");
    mt_free(MT_DEVICE, buffer);
    struct mt_pair pair = mt_pair_make(MT_DEVICE, FEW);
    int            calls = 0;
    do {
        mt_pair_allreduce(&pair, FEW, MPI_COMM_WORLD, calls);
    } while ((++calls < MOST) && (strcmp(mt_last_path(), "direct") != 0));
    mt_expect_path("direct", "a call behind many");
    mt_pair_free(&pair);
}

/* ---- large calls on memory that cannot be mapped, or not yet ---- */

static struct mt_pair small;
static MPI_Comm       beside;

static void *call_beside(void *unused)
{
    (void)unused;
    mt_memory_enter();
    mt_pair_allreduce(&small, FEW, beside, 7);
    return NULL;
}

/* So that the others have a kernel on their device that waits for this rank. */
static void call_first(pthread_t *thread)
{
    const struct timespec nap = {0, 200000000};

    pthread_create(thread, NULL, call_beside, NULL);
    nanosleep(&nap, NULL);
}

static void large(bool blocking, struct mt_pair *pair, int salt)
{
    MPI_Request request;

    if (blocking) {
        mt_pair_allreduce(pair, pair->count, MPI_COMM_WORLD, salt);
        return;
    }
    mt_pair_fill(pair, pair->count, MPI_COMM_WORLD, salt);
    MPI_Iallreduce(pair->in, pair->out, pair->count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    mt_pair_expect_sum(pair, pair->count, mt_size(), salt, "a large call that is not blocking");
}

/*
 * Rank 1 has freed its buffers, and others have their addresses. What rank 0 has mapped there goes
 * when its device is idle, and a kernel on that waits for a call that rank 1 makes later.
 */
static void beside_another(bool frees)
{
    enum { ROUNDS = 4 };
    struct mt_pair pair = mt_pair_make(MT_DEVICE, MANY);
    pthread_t      thread;

    small = mt_pair_make(MT_DEVICE, FEW);
    MPI_Comm_dup(MPI_COMM_WORLD, &beside);
    for (int round = 0; round < ROUNDS; round++) {
        bool blocking = (round % 2 == 0);
        for (int i = 0; i < 3; i++) {
            large(true, &pair, i);
            mt_expect_path("direct", "a large call");
            large(false, &pair, i);
            mt_pair_allreduce(&small, FEW, beside, i);
        }
        if (frees && (mt_rank() == 1)) {
            mt_pair_free(&pair);
            pair = mt_pair_make(MT_DEVICE, MANY);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (mt_rank() == 0) {
            call_first(&thread);
        }
        large(blocking, &pair, 10);
        if (mt_rank() == 0) {
            pthread_join(thread, NULL);
        } else {
            call_beside(NULL);
        }
    }
    MPI_Comm_free(&beside);
    mt_pair_free(&small);
    mt_pair_free(&pair);
}

/* The same order of calls, and what is mapped stays. */
static void fresh(void)
{
    beside_another(false);
}

static void freed(void)
{
    beside_another(true);
}

/* As CUDA's own type. */
struct handle {
    char bytes[64];
};

/* Rank 0 itself has mapped what was at the address of rank 1's buffer before. */
static void foreign(void)
{
    int (*get)(struct handle *, void *) = mt_driver("cuIpcGetMemHandle", "hipIpcGetMemHandle");
    int (*open)(void **, struct handle, unsigned) =
        mt_driver("cuIpcOpenMemHandle_v2", "hipIpcOpenMemHandle");
    struct mt_pair pair = mt_pair_make(MT_DEVICE, MANY);
    struct handle  handle;

    if (mt_rank() == 1) {
        mt_expect(get(&handle, pair.in) == 0, "a handle");
        MPI_Send(&handle, sizeof(handle), MPI_BYTE, 0, 1, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        mt_pair_free(&pair);
        pair = mt_pair_make(MT_DEVICE, MANY);
    } else {
        void *at = NULL;
        MPI_Recv(&handle, sizeof(handle), MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        mt_expect(open(&at, handle, 1) == 0, "mapped by the program");
        MPI_Barrier(MPI_COMM_WORLD);
    }
    for (int i = 0; i < 4; i++) {
        large(i % 2 == 0, &pair, i);
    }
    mt_pair_free(&pair);
}

/* Its kernels are: before anything of the device is there. */
static void make_last_rank_late(void)
{
    const char *hydra = getenv("PMI_RANK"), *orte = getenv("OMPI_COMM_WORLD_RANK");
    const char *rank = (hydra != NULL) ? hydra : orte;

    if ((rank != NULL) && (atoi(rank) == 2)) {
        char text[16];
        snprintf(text, sizeof(text), "%d", LATE_US);
        setenv("XCCL_SIM_LAUNCH_US", text, 1);
    }
}

int main(int argc, char **argv)
{
    static const struct mt_named_case cases[] = {
        {"trouble", trouble}, {"meeting", meeting}, {"arena", arena}, {"fresh", fresh},
        {"freed", freed},     {"foreign", foreign}, {NULL, NULL}};

    value = (argc > 3) ? atoi(argv[3]) : 1;
    if ((argc > 2) && (strcmp(argv[2], "meeting") == 0)) {
        make_last_rank_late();
    }
    mt_begin(&argc, &argv, true);
    return mt_run_to_end(cases, argc, argv);
}
