/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks that drift apart in non-blocking collectives on device memory, just when they are to change
 * over to another path: rank 0 begins hundreds that no other rank has begun, and blocks in a call
 * on host memory that the others reach once they have completed them all.
 *
 * Usage: mpi_drift cuda|rocm barrier|receive
 */
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "support.h"

enum { MANY = 400, TAG = 7 };

/* Until rank 1 has completed all that it has begun. */
static void wait_on_host(bool in_barrier)
{
    int word = 0;

    if (in_barrier) {
        MPI_Barrier(MPI_COMM_WORLD);
    } else if (mt_rank() == 0) {
        MPI_Recv(&word, 1, MPI_INT, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (mt_rank() == 1) {
        MPI_Send(&word, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD);
    }
}

/* close: so many collectives in which no rank is ahead come before. */
static void drift(int close, bool in_barrier)
{
    int        *in = mt_ints_make(MT_DEVICE, MANY, MANY, close);
    int        *out = mt_ints_make(MT_DEVICE, MANY, 0, 0);
    MPI_Request requests[MANY];
    MPI_Comm    comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int i = 0; i < close; i++) {
        MPI_Iallreduce(in, out, 1, MPI_INT, MPI_MIN, comm, &requests[0]);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    usleep((mt_rank() > 0) ? 20000 : 0);
    for (int i = 0; i < MANY; i++) {
        MPI_Iallreduce(&in[i], &out[i], 1, MPI_INT, MPI_MIN, comm, &requests[i]);
    }
    if (mt_rank() > 0) {
        MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE);
    }
    wait_on_host(in_barrier);
    if (mt_rank() == 0) {
        MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE);
    }
    mt_ints_expect(out, MT_DEVICE, MANY, MANY, 0, close, "drifted apart");
    MPI_Comm_free(&comm);
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
}

static void in_all_places(bool in_barrier)
{
    enum { FARTHEST = 400, STEP = 16 };

    for (int close = 0; close <= FARTHEST; close += STEP) {
        drift(close, in_barrier);
    }
}

static void barrier(void)
{
    in_all_places(true);
}

static void receive(void)
{
    in_all_places(false);
}

int main(int argc, char **argv)
{
    static const struct mt_named_case cases[] = {
        {"barrier", barrier}, {"receive", receive}, {NULL, NULL}};

    mt_begin(&argc, &argv, true);
    return mt_run_to_end(cases, argc, argv);
}
