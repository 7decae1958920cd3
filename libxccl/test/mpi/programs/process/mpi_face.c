/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * xcclCommInitMPI: a program that calls libxccl itself, on communicators made from MPI's. Linked
 * with both libraries. Usage: mpi_face cuda|rocm [same|none|differ]: why there can be no
 * communicator; [threads]: two threads make them at once, where one has been freed
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xccl/xccl_mpi.h>

#include "memory.h"

/* MANY: more than a process has slots for communicators. */
enum { COUNT = 1021, MANY = 300 };

static int rank, nranks, checks, failures;

static void check(int good, const char *what)
{
    checks++;
    if (!good) {
        failures++;
        printf("FAIL rank %d: %s (%s)\n", rank, what, xcclGetLastError(NULL));
    }
}

/* Sum over comm, twice; the last copy back waits for the default stream. */
static void allreduce(MPI_Comm mpi_comm, xcclComm_t comm)
{
    float mine[COUNT], found[COUNT];
    int   me, size, mine_in_comm, count, good = 1;
    void *buf = mt_alloc(MT_DEVICE, sizeof(mine));

    MPI_Comm_rank(mpi_comm, &me);
    MPI_Comm_size(mpi_comm, &size);
    check((xcclCommUserRank(comm, &mine_in_comm) == xcclSuccess) && (mine_in_comm == me), "rank");
    check((xcclCommCount(comm, &count) == xcclSuccess) && (count == size), "count");
    for (int i = 0; i < COUNT; i++) {
        mine[i] = (float)(me + i);
    }
    mt_put(buf, MT_DEVICE, mine, sizeof(mine));
    check(xcclAllReduce(buf, buf, COUNT, xcclFloat32, xcclSum, comm, NULL) == xcclSuccess, "first");
    check(xcclAllReduce(buf, buf, COUNT, xcclFloat32, xcclMax, comm, NULL) == xcclSuccess, "then");
    mt_get(found, buf, MT_DEVICE, sizeof(found));
    for (int i = 0; i < COUNT; i++) {
        good = good && (found[i] == (float)(size * (size - 1) / 2 + size * i));
    }
    check(good, "the sum");
    mt_free(MT_DEVICE, buf);
}

/* The program's own collectives are served as well. */
static void allreduce_by_mpi(void)
{
    float mine = (float)rank, sum;
    void *buf = mt_alloc(MT_DEVICE, 2 * sizeof(float));

    mt_put(buf, MT_DEVICE, &mine, sizeof(mine));
    MPI_Allreduce(buf, (float *)buf + 1, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    mt_get(&sum, (float *)buf + 1, MT_DEVICE, sizeof(sum));
    check(sum == (float)(nranks * (nranks - 1) / 2), "the sum of MPI_Allreduce");
    mt_free(MT_DEVICE, buf);
}

/* All ranks get the code that xccl.h names, and the words of the rank that has the cause. */
static void refused(const char *why)
{
    static const struct {
        const char  *why, *words;
        xcclResult_t result;
    } rows[] = {
        {"same", "ranks 0 and 1 use the same device", xcclInvalidUsage},
        {"none", "rank 0 got no unique id from the vendor's library: XCCL_CCL=none",
         xcclLibraryNotFound},
        {"differ", "rank 0 loaded", xcclVersionMismatch},
    };
    xcclComm_t comm = NULL;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(rows[i].why, why) == 0) {
            check(xcclCommInitMPI(&comm, MPI_COMM_WORLD) == rows[i].result, rows[i].why);
            check(strstr(xcclGetLastError(NULL), rows[i].words) != NULL, rows[i].words);
        }
    }
    check(comm == NULL, "none is given");
}

struct maker {
    pthread_t    thread;
    MPI_Comm     from;
    xcclResult_t result;
};

static void *make(void *arg)
{
    struct maker *m = arg;
    xcclComm_t    comm = NULL;

    mt_memory_enter();
    m->result = xcclCommInitMPI(&comm, m->from);
    if (comm != NULL) {
        xcclCommDestroy(comm);
    }
    return NULL;
}

/* The one that was freed is spare, and both threads find it so: the other makes one of its own. */
static void threads(void)
{
    enum { ROUNDS = 20, AT_ONCE = 2 };
    struct maker makers[AT_ONCE];
    char        *buf = mt_alloc(MT_DEVICE, 2 * sizeof(float));
    MPI_Comm     spare;

    for (int round = 0; round < ROUNDS; round++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &spare);
        MPI_Allreduce(buf, buf + sizeof(float), 1, MPI_FLOAT, MPI_SUM, spare);
        MPI_Comm_free(&spare);
        for (int i = 0; i < AT_ONCE; i++) {
            MPI_Comm_dup(MPI_COMM_WORLD, &makers[i].from);
        }
        for (int i = 0; i < AT_ONCE; i++) {
            pthread_create(&makers[i].thread, NULL, make, &makers[i]);
        }
        for (int i = 0; i < AT_ONCE; i++) {
            pthread_join(makers[i].thread, NULL);
            check(makers[i].result == xcclSuccess, "made by one of two threads");
            MPI_Comm_free(&makers[i].from);
        }
    }
    mt_free(MT_DEVICE, buf);
}

static int report(void)
{
    int sums[2] = {checks, failures}, all[2];

    MPI_Reduce(sums, all, 2, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%d checks, %d failures\n", all[0], all[1]);
    }
    MPI_Finalize();
    return (failures == 0) ? 0 : 1;
}

int main(int argc, char **argv)
{
    xcclComm_t  comm = NULL, kept = NULL;
    MPI_Comm    half, copy;
    MPI_Request copying;
    int         provided;

    check(xcclCommInitMPI(&comm, MPI_COMM_WORLD) == xcclInvalidUsage, "before MPI_Init");
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    if ((argc > 2) && (strcmp(argv[2], "threads") == 0)) {
        mt_memory_open(argv[1], rank);
        threads();
        return report();
    }
    if (argc > 2) {
        mt_memory_open(argv[1], (strcmp(argv[2], "same") == 0) ? 0 : rank);
        refused(argv[2]);
        return report();
    }
    /* No device yet: all ranks fail alike, and are told why. */
    check(xcclCommInitMPI(&comm, MPI_COMM_WORLD) == xcclInvalidUsage, "without a device");
    check(strstr(xcclGetLastError(NULL), "rank 0: no device is in use") != NULL, "the reason");
    check(comm == NULL, "the output is left alone");
    for (int i = 0; i < MANY; i++) {
        xcclCommInitMPI(&comm, MPI_COMM_WORLD); /* nothing of it stays */
    }
    mt_memory_open((argc > 1) ? argv[1] : "cuda", rank);
    check(xcclCommInitMPI(NULL, MPI_COMM_WORLD) == xcclInvalidArgument, "nowhere to put it");
    check(xcclCommInitMPI(&comm, MPI_COMM_NULL) == xcclInvalidArgument, "the null communicator");
    check(strstr(xcclGetLastError(NULL), "MPI_COMM_NULL") != NULL, "which is named");

    check(xcclCommInitMPI(&comm, MPI_COMM_WORLD) == xcclSuccess, "the world");
    allreduce(MPI_COMM_WORLD, comm);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    check(xcclCommInitMPI(&kept, half) == xcclSuccess, "half of it, backwards");
    allreduce(half, kept);
    MPI_Comm_free(&half);
    allreduce_by_mpi();
    MPI_Comm_idup(MPI_COMM_WORLD, &copy, &copying);
    xcclComm_t   beside = NULL;
    xcclResult_t said = xcclCommInitMPI(&beside, MPI_COMM_WORLD);
    check((said == xcclSuccess) || (strstr(xcclGetLastError(NULL), "MPI_Comm_idup") != NULL),
          "beside an MPI_Comm_idup, or why not");
    MPI_Wait(&copying, MPI_STATUS_IGNORE);
    MPI_Comm_free(&copy);
    if (beside != NULL) {
        xcclCommDestroy(beside);
    }
    check(xcclCommDestroy(comm) == xcclSuccess, "destroy");
    check(xcclCommDestroy(kept) == xcclSuccess, "destroy what outlived its MPI communicator");

    return report();
}
