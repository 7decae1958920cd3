/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rank 0 waits so long for collectives that xccl warns, by a clock that goes faster than the
 * machine's; then rank 1 comes to them.
 *
 *   mpi_warned RUNTIME wait|all|any|some|first|blocking
 * The first ones: one of MPI_Wait, MPI_Waitall, MPI_Waitany and MPI_Waitsome. all: also for a
 * message. first: MPI_Wait, in the first collective of all. blocking: MPI_Allreduce.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <mpi.h>

#include "support.h"

enum { COUNT = 4096, MANY = 6, FASTER = 100, LATE_US = 1500000, TAG = 7 };

static int64_t begun; /* ns; from then on it goes faster; 0: not yet */

static int64_t ns_of(const struct timespec *t)
{
    return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

/* In place of the C library's, also for xccl. */
__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *t)
{
    int res = (int)syscall(SYS_clock_gettime, clock, t);

    if ((clock == CLOCK_MONOTONIC) && (begun != 0)) {
        int64_t now = begun + FASTER * (ns_of(t) - begun);
        *t = (struct timespec){now / 1000000000, now % 1000000000};
    }
    return res;
}

static void go_faster(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    begun = ns_of(&now);
}

static void wait_for(const char *how, int n, MPI_Request *requests)
{
    int indices[3], over = 0;

    for (int left = n; left > 0; left -= over) {
        over = 1;
        if (strcmp(how, "any") == 0) {
            MPI_Waitany(n, requests, indices, MPI_STATUS_IGNORE);
        } else if (strcmp(how, "some") == 0) {
            MPI_Waitsome(n, requests, &over, indices, MPI_STATUSES_IGNORE);
        } else if (strcmp(how, "all") == 0) {
            MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
            over = n;
        } else {
            MPI_Wait(&requests[left - 1], MPI_STATUS_IGNORE);
        }
    }
}

static void wait_long(const char *how)
{
    struct mt_pair a = mt_pair_make(MT_DEVICE, COUNT), b = mt_pair_make(MT_DEVICE, COUNT);
    void          *message = mt_alloc(MT_DEVICE, COUNT);
    bool           first = (strcmp(how, "first") == 0), all = (strcmp(how, "all") == 0);
    MPI_Request    requests[3];

    for (int i = 0; (i < MANY) && !first; i++) {
        mt_pair_allreduce(&a, COUNT, MPI_COMM_WORLD, i);
    }
    mt_pair_fill(&a, COUNT, MPI_COMM_WORLD, 1);
    mt_pair_fill(&b, COUNT, MPI_COMM_WORLD, 2);
    /* Rank 1's time begins when rank 0 is about to wait: on a busy machine that is much later. */
    if (mt_rank() == 1) {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        usleep(LATE_US);
    } else {
        MPI_Send(NULL, 0, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
        go_faster();
    }
    if (strcmp(how, "blocking") == 0) {
        mt_pair_allreduce(&a, COUNT, MPI_COMM_WORLD, 1);
        return;
    }
    MPI_Iallreduce(a.in, a.out, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
    MPI_Iallreduce(b.in, b.out, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &requests[1]);
    if (all && (mt_rank() == 0)) {
        MPI_Irecv(message, COUNT, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &requests[2]);
    } else if (all) {
        MPI_Isend(message, COUNT, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &requests[2]);
    }
    wait_for(how, all ? 3 : 2, requests);
    mt_pair_expect_sum(&a, COUNT, mt_size(), 1, "the first");
    mt_pair_expect_sum(&b, COUNT, mt_size(), 2, "the second");
    mt_free(MT_DEVICE, message);
    mt_pair_free(&a);
    mt_pair_free(&b);
}

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv, true);
    wait_long((argc > 2) ? argv[2] : "wait");
    mt_summary();
    MPI_Finalize();
    return mt_status();
}
