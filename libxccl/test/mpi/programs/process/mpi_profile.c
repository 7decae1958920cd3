/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls of known numbers and sizes, for what XCCL_PROFILE says of them.
 *
 *   mpi_profile cuda|none known   a few kinds, some of them on one rank alone
 *   mpi_profile cuda|none many    more kinds than the profile has rows
 *   mpi_profile cuda|none apart   as known, and the clock of rank 1 is an hour ahead
 */
#include <dlfcn.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "support.h"

enum { COUNT = 1000, LARGE = 4096, POWERS = 19, MOST = 1 << POWERS };

typedef int allreduce_init(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Info,
                           MPI_Request *);

static time_t ahead; /* seconds */

/* As on a node whose time of day is another. */
__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *t)
{
    int res = (int)syscall(SYS_clock_gettime, clock, t);

    t->tv_sec += (clock == CLOCK_REALTIME) ? ahead : 0;
    return res;
}

/* 2 starts of one request; Open MPI 4.1 has the function only by way of xccl. */
static void persistent(void *send, void *recv)
{
    MPI_Request     request;
    allreduce_init *init = (allreduce_init *)dlsym(RTLD_DEFAULT, "MPI_Allreduce_init");

    if (init == NULL) {
        mt_expect(false, "MPI_Allreduce_init was not found");
        return;
    }
    init(send, recv, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    for (int i = 0; i < 2; i++) {
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&request);
}

/* 4 messages of 16 KiB from rank 0 to rank 1, which receives the last one without blocking. */
static void messages(void *buffer)
{
    MPI_Request request;

    for (int i = 0; i < 4; i++) {
        if (mt_rank() == 0) {
            MPI_Isend(buffer, LARGE, MPI_INT, 1, i, MPI_COMM_WORLD, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else if ((mt_rank() == 1) && (i == 3)) {
            MPI_Irecv(buffer, LARGE, MPI_INT, 0, i, MPI_COMM_WORLD, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else if (mt_rank() == 1) {
            MPI_Recv(buffer, LARGE, MPI_INT, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
}

static void device(void)
{
    enum mt_where where = MT_DEVICE;
    size_t        bytes = LARGE * sizeof(int);
    char         *zero = calloc(1, bytes);
    void         *send = mt_alloc(where, bytes), *recv = mt_alloc(where, bytes);
    MPI_Request   request;

    mt_put(send, where, zero, bytes);
    for (int i = 0; i < 5; i++) {
        MPI_Allreduce(send, recv, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    }
    for (int i = 0; i < 3; i++) {
        MPI_Iallreduce(send, recv, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    persistent(send, recv);
    messages(send);
    mt_free(where, send);
    mt_free(where, recv);
    free(zero);
}

/* 100 bytes of each rank; the root has its own in place. */
static void in_place(void)
{
    bool  root = (mt_rank() == 0);
    char *all = calloc((size_t)mt_size(), 100), part[100] = "";

    MPI_Gather(root ? MPI_IN_PLACE : part, 100, MPI_CHAR, all, 100, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_Scatter(all, 100, MPI_CHAR, root ? MPI_IN_PLACE : part, 100, MPI_CHAR, 0, MPI_COMM_WORLD);
    free(all);
}

static void known(void)
{
    static float in[COUNT], out[COUNT];
    MPI_Comm     half;

    for (int i = 0; i < 10; i++) {
        MPI_Allreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_split(MPI_COMM_WORLD, mt_rank() % 2, 0, &half);
    MPI_Bcast(in, 25, MPI_FLOAT, 0, half);
    MPI_Bcast(in, 25, MPI_FLOAT, 0, half);
    MPI_Comm_free(&half);
    in_place();
    if (mt_rank() == 1) {
        for (int i = 0; i < 7; i++) {
            MPI_Sendrecv(in, 4, MPI_FLOAT, 0, 0, out, 4, MPI_FLOAT, 0, 0, MPI_COMM_SELF,
                         MPI_STATUS_IGNORE);
        }
    }
    if (strcmp(mt_runtime(), "none") != 0) {
        device();
    }
}

/* 11 collectives of one size; the counts are of one rank's part. */
static void each(char *in, char *out, int n, MPI_Comm comm)
{
    MPI_Request request;

    MPI_Bcast(in, n, MPI_CHAR, 0, comm);
    MPI_Allreduce(in, out, n, MPI_BYTE, MPI_BOR, comm);
    MPI_Reduce(in, out, n, MPI_BYTE, MPI_BOR, 0, comm);
    MPI_Allgather(in, n, MPI_CHAR, out, n, MPI_CHAR, comm);
    MPI_Gather(in, n, MPI_CHAR, out, n, MPI_CHAR, 0, comm);
    MPI_Scatter(in, n, MPI_CHAR, out, n, MPI_CHAR, 0, comm);
    MPI_Alltoall(in, n, MPI_CHAR, out, n, MPI_CHAR, comm);
    MPI_Reduce_scatter_block(in, out, n, MPI_BYTE, MPI_BOR, comm);
    MPI_Scan(in, out, n, MPI_BYTE, MPI_BOR, comm);
    MPI_Exscan(in, out, n, MPI_BYTE, MPI_BOR, comm);
    MPI_Ibcast(in, n, MPI_CHAR, 0, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* 5 calls of one size on device memory, two of them counted where they start. */
static void each_on_device(void *send, void *recv, int n)
{
    MPI_Request request;

    MPI_Iallreduce(send, recv, n, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Isend(send, n, MPI_BYTE, 0, 0, MPI_COMM_SELF, &request);
    MPI_Recv(recv, n, MPI_BYTE, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* When no row is left. */
static void many_on_device(void)
{
    void *send = mt_alloc(MT_DEVICE, MOST), *recv = mt_alloc(MT_DEVICE, MOST);

    for (int power = 0; power < POWERS; power++) {
        each_on_device(send, recv, 1 << power);
    }
    mt_free(MT_DEVICE, send);
    mt_free(MT_DEVICE, recv);
}

/* In other orders on other ranks, so that each has kinds that another has no room for. */
static void many(void)
{
    char *in = calloc(2, MOST), *out = calloc(2, MOST);

    for (int power = 0; power < POWERS; power++) {
        each(in, out, 1 << ((mt_rank() == 0) ? power : POWERS - 1 - power), MPI_COMM_SELF);
    }
    for (int power = 0; power < POWERS; power++) {
        each(in, out, 1 << power, MPI_COMM_WORLD);
    }
    free(in);
    free(out);
    if (strcmp(mt_runtime(), "none") != 0) {
        many_on_device();
    }
}

int main(int argc, char **argv)
{
    setlocale(LC_ALL, ""); /* as many programs do */
    mt_begin(&argc, &argv, true);
    if ((argc > 2) && (strcmp(argv[2], "apart") == 0)) {
        ahead = (mt_rank() == 1) ? 3600 : 0;
    }
    if ((argc > 2) && (strcmp(argv[2], "many") == 0)) {
        many();
    } else {
        known();
    }
    printf("rank %d: over\n", mt_rank());
    fflush(stdout);
    MPI_Finalize();
    return mt_status();
}
