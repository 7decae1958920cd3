/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives in which the ranks differ where MPI lets them: what one of them has, or is told, must
 * not lead it another way than the others.
 *
 * Usage: mpi_local cuda|rocm late_device|two_comms|in_place|in_place_large, on three ranks
 */
#include <stdlib.h>
#include <unistd.h>

#include "support.h"

enum { COUNT = 1000, LATE_US = 1500000 };

/* Rank 1 leaves a call on host memory early, rank 0 does not: the last rank is late for it. */
static void reduce_late(void)
{
    int one = 1, sum = 0;

    usleep((mt_rank() == mt_size() - 1) ? LATE_US : 0);
    MPI_Reduce(&one, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    mt_expect((mt_rank() > 0) || (sum == mt_size()), "on host memory: %d", sum);
}

static void least_on_device(MPI_Comm comm)
{
    int *in = mt_ints_make(MT_DEVICE, COUNT, COUNT, 1), *out = mt_ints_make(MT_DEVICE, COUNT, 0, 0);

    MPI_Allreduce(in, out, COUNT, MPI_INT, MPI_MIN, comm);
    mt_ints_expect(out, MT_DEVICE, COUNT, COUNT, 0, 1, "on device memory");
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
}

static void open_device(void)
{
    mt_memory_open(mt_runtime(), mt_rank());
    mt_free(MT_DEVICE, mt_alloc(MT_DEVICE, COUNT));
}

/* Rank 1 comes to its device a collective after the others. */
static void late_device(void)
{
    if (mt_rank() != 1) {
        open_device();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (mt_rank() == 1) {
        open_device();
    }
    reduce_late();
    least_on_device(MPI_COMM_WORLD);
}

/* The first call of each of two communicators of the same ranks. */
static void two_comms(void)
{
    MPI_Comm twin;

    open_device();
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    reduce_late();
    least_on_device(twin);
    MPI_Comm_free(&twin);
}

/* MPI does not ask it of all ranks: some may have no receive buffer. */
static void scatter_sums(const int *counts, int who)
{
    int   total = 0, before = 0, wrong = 0;
    void *place = MPI_IN_PLACE;

    for (int i = 0; i < mt_size(); i++) {
        before += (i < mt_rank()) ? counts[i] : 0;
        total += counts[i];
    }
    int *in = mt_ints_make(MT_DEVICE, total, total, 2), *out = mt_ints_make(MT_DEVICE, total, 0, 0);
    int *found = calloc((size_t)total, sizeof(int)), mine = counts[mt_rank()];
    int *into = (mt_rank() == who) ? in : out;
    MPI_Reduce_scatter((mt_rank() == who) ? place : in, into, counts, MPI_INT, MPI_MIN,
                       MPI_COMM_WORLD);
    mt_get(found, into, MT_DEVICE, sizeof(int) * (size_t)total);
    for (int i = 0; i < mine; i++) {
        wrong += (found[i] != mt_value(0, 2, before + i));
    }
    mt_expect(wrong == 0, "rank %d in place: %d of %d are wrong", who, wrong, mine);
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
    free(found);
}

static void scatter_all(const int counts[][3], int many)
{
    open_device();
    least_on_device(MPI_COMM_WORLD);
    for (int i = 0; i < many; i++) {
        for (int who = 0; who <= mt_size(); who++) {
            scatter_sums(counts[i], who);
        }
    }
}

static void in_place(void)
{
    static const int counts[][3] = {
        {100, 200, 300}, {300, 200, 100}, {0, 100, 100}, {100, 0, 0}, {200000, 200000, 200000}};

    scatter_all(counts, (int)(sizeof(counts) / sizeof(counts[0])));
}

/* Without xccl, MPICH 4.0.2 copies overlapping memory in this one, and ends the program. */
static void in_place_large(void)
{
    static const int counts[][3] = {{100000, 200000, 300000}};

    scatter_all(counts, 1);
}

int main(int argc, char **argv)
{
    static const struct mt_named_case cases[] = {{"late_device", late_device},
                                                 {"two_comms", two_comms},
                                                 {"in_place", in_place},
                                                 {"in_place_large", in_place_large},
                                                 {NULL, NULL}};

    mt_begin(&argc, &argv, false);
    return mt_run_to_end(cases, argc, argv);
}
