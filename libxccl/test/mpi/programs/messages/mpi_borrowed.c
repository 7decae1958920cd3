/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Device memory that calls borrow is given back: with many of them there is as much free memory as
 * after a few. Two ranks. Usage: mpi_borrowed cuda|rocm CASE
 */
#include <stdlib.h>

#include "support.h"

enum { COUNT = 1 << 18, FEW = 4, MANY = 64, TAG = 4 };

static int         *memory, *other;
static MPI_Datatype holes;

static size_t free_bytes(void)
{
    size_t free_now = 0, total = 0;
    int (*ask)(size_t *, size_t *);

    *(void **)&ask = mt_driver("cuMemGetInfo_v2", "hipMemGetInfo");
    mt_expect((ask != NULL) && (ask(&free_now, &total) == 0), "nobody knows how much is free");
    return free_now;
}

static void replace(void)
{
    int peer = 1 - mt_rank();

    MPI_Sendrecv_replace(memory, COUNT, MPI_INT, peer, TAG, peer, TAG, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
}

static void gather_alone(void)
{
    MPI_Request request;

    MPI_Allgather(memory, 1, holes, other, 1, holes, MPI_COMM_SELF);
    MPI_Iallgather(memory, 1, holes, other, 1, holes, MPI_COMM_SELF, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void send_holes(void)
{
    int peer = 1 - mt_rank();

    MPI_Sendrecv(memory, 1, holes, peer, TAG, other, 1, holes, peer, TAG, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}

static void often(void (*call)(void))
{
    for (int i = 0; i < FEW; i++) {
        call();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    size_t before = free_bytes();
    for (int i = 0; i < MANY; i++) {
        call();
    }
    size_t after = free_bytes();
    mt_expect(after >= before, "%zu bytes of the device are gone", before - after);
}

static void case_replace(void)
{
    often(replace);
}

static void case_self(void)
{
    often(gather_alone);
}

static void case_holes(void)
{
    often(send_holes);
}

int main(int argc, char **argv)
{
    static const struct mt_named_case cases[] = {
        {"replace", case_replace}, {"self", case_self}, {"holes", case_holes}, {NULL, NULL}};

    mt_begin(&argc, &argv, true);
    memory = mt_ints_make(MT_DEVICE, COUNT, COUNT, 1);
    other = mt_ints_make(MT_DEVICE, COUNT, COUNT, 2);
    MPI_Type_vector(COUNT / 4, 1, 3, MPI_INT, &holes);
    MPI_Type_commit(&holes);
    mt_meet_on_device();
    mt_run_case(cases, argc, argv);
    MPI_Type_free(&holes);
    mt_free(MT_DEVICE, memory);
    mt_free(MT_DEVICE, other);
    mt_summary();
    MPI_Finalize();
    return mt_status();
}
