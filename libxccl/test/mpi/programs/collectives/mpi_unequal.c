/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arguments that MPI takes to be equal on all ranks, and which are not: XCCL_CHECK=1 names them.
 *
 *   mpi_unequal RUNTIME type|operation|root|length|counts|pairs|collective
 * Rank 1 differs. The error comes back on every rank; no result is looked at.
 *
 *   mpi_unequal RUNTIME roots DIGITS
 * Each rank passes its own digit as the root.
 *
 *   mpi_unequal RUNTIME first
 * Rank 1 is in another call when the others come to their first collective.
 *
 *   mpi_unequal RUNTIME memory
 * Rank 1 passes host memory, in a communicator that knows of device memory, and rank 2 is late.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <mpi.h>

#include "support.h"

enum { COUNT = 8, ROOM = 4096, MOST_RANKS = 8 };

static const char *roots;

static int unequal_call(const char *what, bool differs, void *send, void *recv)
{
    int counts[MOST_RANKS], displs[MOST_RANKS];

    for (int i = 0; i < MOST_RANKS; i++) {
        counts[i] = COUNT;
        displs[i] = i * COUNT;
    }
    if (strcmp(what, "type") == 0) {
        return MPI_Allreduce(send, recv, COUNT, differs ? MPI_INT : MPI_FLOAT, MPI_SUM,
                             MPI_COMM_WORLD);
    }
    if (strcmp(what, "operation") == 0) {
        return MPI_Allreduce(send, recv, COUNT, MPI_FLOAT, differs ? MPI_MAX : MPI_SUM,
                             MPI_COMM_WORLD);
    }
    if (strcmp(what, "root") == 0) {
        return MPI_Bcast(send, COUNT, MPI_FLOAT, differs ? 1 : 0, MPI_COMM_WORLD);
    }
    if (strcmp(what, "length") == 0) {
        return MPI_Allreduce(send, recv, differs ? COUNT + 1 : COUNT, MPI_FLOAT, MPI_SUM,
                             MPI_COMM_WORLD);
    }
    if (strcmp(what, "roots") == 0) {
        return MPI_Bcast(send, COUNT, MPI_FLOAT, roots[mt_rank()] - '0', MPI_COMM_WORLD);
    }
    if (strcmp(what, "counts") == 0) {
        counts[0] += differs ? 1 : 0; /* the sum stays: that is compared, too */
        counts[2] -= differs ? 1 : 0;
        return MPI_Allgatherv(send, COUNT, MPI_FLOAT, recv, counts, displs, MPI_FLOAT,
                              MPI_COMM_WORLD);
    }
    if (strcmp(what, "pairs") == 0) {
        counts[0] -= differs ? 1 : 0;
        return MPI_Alltoallv(send, counts, displs, MPI_FLOAT, recv, counts, displs, MPI_FLOAT,
                             MPI_COMM_WORLD);
    }
    return differs ? MPI_Bcast(send, COUNT, MPI_FLOAT, 0, MPI_COMM_WORLD)
                   : MPI_Allreduce(send, recv, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

/* Without XCCL_CHECK, and with the program's error handler: it may end the job. */
static void unequal_memory(void)
{
    struct mt_pair pair = mt_pair_make(MT_DEVICE, COUNT);
    struct mt_pair mine = mt_pair_make((mt_rank() == 1) ? MT_HOST : MT_DEVICE, COUNT);

    mt_pair_allreduce(&pair, COUNT, MPI_COMM_WORLD, 0);
    if (mt_rank() == 2) {
        sleep(2);
    }
    mt_pair_allreduce(&mine, COUNT, MPI_COMM_WORLD, 1);
    mt_pair_free(&mine);
    mt_pair_free(&pair);
}

static void unequal_first(void)
{
    struct mt_pair pair = mt_pair_make(MT_DEVICE, COUNT);
    int            never;

    if (mt_rank() == 1) {
        MPI_Recv(&never, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    mt_pair_allreduce(&pair, COUNT, MPI_COMM_WORLD, 0);
}

static void unequal_arguments(const char *what)
{
    char text[MPI_MAX_ERROR_STRING];
    int  length;

    bool seen = (strcmp(what, "collective") == 0) || (strcmp(what, "length") == 0);

    if (seen) { /* the ranks see each other's calls after the first */
        struct mt_pair pair = mt_pair_make(MT_DEVICE, COUNT);
        mt_pair_allreduce(&pair, COUNT, MPI_COMM_WORLD, 0);
        mt_pair_free(&pair);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int code =
        unequal_call(what, mt_rank() == 1, mt_alloc(MT_DEVICE, ROOM), mt_alloc(MT_DEVICE, ROOM));
    mt_expect(code != MPI_SUCCESS, "no error came");
    MPI_Error_string(code, text, &length);
    printf("rank %d: %s\n", mt_rank(), text);
}

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv, true);
    if (strcmp(argv[2], "memory") == 0) {
        unequal_memory();
    } else if (strcmp(argv[2], "first") == 0) {
        unequal_first();
    } else {
        roots = argv[3];
        unequal_arguments(argv[2]);
    }
    mt_summary();
    MPI_Finalize();
    return mt_status();
}
