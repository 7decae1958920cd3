/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process that starts one more by MPI_Comm_spawn, which is alone in its MPI_COMM_WORLD by right.
 * Usage: mpi_spawn [cuda|rocm [several|dump|many]]
 * With a runtime both give device memory to MPI; several: MPI_Comm_spawn_multiple starts the child;
 * dump: each writes its last operations, among them one on its own world. many: one child after the
 * other; what they shared with their parent does not stay in its memory.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support.h"

enum { COUNT = 20000, TAG = 5, CHILDREN = 4 };

/* Messages to the other process, and a sum over both. */
static void communicate(MPI_Comm between, int other, bool dumps)
{
    struct mt_pair pair = mt_pair_make(MT_DEVICE, COUNT);
    int            salt = 3, *in, *out = mt_ints_make(MT_DEVICE, COUNT, 0, 0);
    MPI_Comm       both;

    MPI_Intercomm_merge(between, other == 0, &both);
    in = mt_ints_make(MT_DEVICE, COUNT, COUNT, salt); /* of rank 0: each is in its world */
    for (int round = 0; round < 2; round++) {
        MPI_Sendrecv(in, COUNT, MPI_INT, 0, TAG, out, COUNT, MPI_INT, 0, TAG, between,
                     MPI_STATUS_IGNORE);
        mt_ints_expect(out, MT_DEVICE, COUNT, COUNT, 0, salt, "MPI_Sendrecv");
        mt_pair_allreduce(&pair, COUNT, both, round);
    }
    if (dumps) {
        mt_pair_allreduce(&pair, COUNT, MPI_COMM_WORLD, 0);
        raise(SIGUSR1);
    }
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
    mt_pair_free(&pair);
    MPI_Comm_free(&both);
}

static MPI_Comm start(char **argv, bool several)
{
    MPI_Comm child;
    MPI_Info info = MPI_INFO_NULL;
    int      one = 1;

    if (several) {
        MPI_Comm_spawn_multiple(1, &argv[0], (char **[]){&argv[1]}, &one, &info, 0, MPI_COMM_SELF,
                                &child, MPI_ERRCODES_IGNORE);
    } else {
        MPI_Comm_spawn(argv[0], &argv[1], 1, info, 0, MPI_COMM_SELF, &child, MPI_ERRCODES_IGNORE);
    }
    return child;
}

/* KiB in memory of all boards that this process has mapped. */
static long boards_in_memory(void)
{
    char          line[512];
    long          kib, all = 0;
    unsigned long from, to;
    bool          board = false;
    FILE         *file = fopen("/proc/self/smaps", "r");

    while ((file != NULL) && (fgets(line, sizeof(line), file) != NULL)) {
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2) {
            board = (strstr(line, "/memfd:xccl-board") != NULL);
        } else if (board && (sscanf(line, "Rss: %ld", &kib) == 1)) {
            all += kib;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return all;
}

static void wait_for_end(int process)
{
    enum { TRIES = 1000, NAP_US = 10000 };

    for (int i = 0; (i < TRIES) && (kill(process, 0) == 0); i++) {
        usleep(NAP_US);
    }
}

/* That of a child is given back when another one is met. */
static void start_many(char **argv)
{
    long first = 0, now = 0;
    int  one = 1, process = 0;

    for (int i = 0; i < CHILDREN; i++) {
        MPI_Comm child = start(argv, false);
        MPI_Bcast(&one, 1, MPI_INT, MPI_ROOT, child);
        communicate(child, 1, false);
        MPI_Recv(&process, 1, MPI_INT, 0, TAG, child, MPI_STATUS_IGNORE);
        MPI_Comm_disconnect(&child);
        wait_for_end(process);
        now = boards_in_memory();
        first = (i == 0) ? now : first;
    }
    mt_expect((first > 0) && (now < 2 * first),
              "boards take %ld KiB, and %ld after the first child", now, first);
}

int main(int argc, char **argv)
{
    bool     device = (argc > 1);
    bool     dumps = (argc > 2) && (strcmp(argv[2], "dump") == 0);
    bool     many = (argc > 2) && (strcmp(argv[2], "many") == 0);
    MPI_Comm parent, child;
    int      one = 1, sum = 0, process = (int)getpid();

    mt_begin(&argc, &argv, false);
    MPI_Comm_get_parent(&parent);
    if (device) {
        mt_memory_open(mt_runtime(), (parent == MPI_COMM_NULL) ? 0 : 1);
    }
    if ((parent == MPI_COMM_NULL) && many) {
        start_many(argv);
    } else if (parent == MPI_COMM_NULL) {
        child = start(argv, (argc > 2) && !dumps);
        MPI_Bcast(&one, 1, MPI_INT, MPI_ROOT, child);
        if (device) {
            communicate(child, 1, dumps);
        }
        MPI_Comm_disconnect(&child);
        printf("spawned one\n");
    } else {
        MPI_Bcast(&sum, 1, MPI_INT, 0, parent);
        if (device) {
            communicate(parent, 0, dumps);
        }
        if (many) {
            MPI_Send(&process, 1, MPI_INT, 0, TAG, parent);
        }
        MPI_Comm_disconnect(&parent);
        printf("child: world of %d, got %d\n", mt_size(), sum);
    }
    if (device) {
        mt_summary();
    }
    MPI_Finalize();
    return mt_status();
}
