/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rooted collectives in place, where the root's long buffer is on another device of its process
 * than the communicator's, so that the vendor's library cannot reach it. Two ranks, four devices.
 * Usage: mpi_rooted cuda|rocm gather|gatherv|scatter|scatterv
 */
#include <stdlib.h>
#include <string.h>

#include "support.h"

enum { COUNT = 300000, ROOT = 1, RANKS = 2 };

static int *all, *one;
static int  counts[RANKS] = {COUNT, COUNT - 100}, displs[RANKS] = {COUNT, 0}; /* of the v ones */

static void prepare(void)
{
    struct mt_pair pair = mt_pair_make(MT_DEVICE, COUNT);

    mt_pair_allreduce(&pair, COUNT, MPI_COMM_WORLD, 0); /* its device is the communicator's */
    mt_pair_free(&pair);
    mt_memory_open(mt_runtime(), mt_rank() + 1);
    all = mt_ints_make(MT_DEVICE, RANKS * COUNT, RANKS * COUNT, 5);
    mt_memory_open(mt_runtime(), mt_rank());
    one = mt_ints_make(MT_DEVICE, COUNT, COUNT, 6);
}

/* A block of all: of rank, where it was sent as seed; count values from first on. */
static void expect_block(int at, int count, int rank, int seed, int first, const char *what)
{
    int *host = malloc(sizeof(int) * COUNT);
    int  wrong = 0;

    mt_get(host, all + at, MT_DEVICE, sizeof(int) * (size_t)count);
    for (int i = 0; i < count; i++) {
        wrong += (host[i] != mt_value(rank, seed, first + i));
    }
    mt_expect(wrong == 0, "%s: %d of %d values are wrong", what, wrong, count);
    free(host);
}

static void gather(bool v)
{
    bool root = (mt_rank() == ROOT);

    prepare();
    const void *in = root ? MPI_IN_PLACE : one;
    if (v) {
        MPI_Gatherv(in, counts[mt_rank()], MPI_INT, all, counts, displs, MPI_INT, ROOT,
                    MPI_COMM_WORLD);
    } else {
        MPI_Gather(in, COUNT, MPI_INT, all, COUNT, MPI_INT, ROOT, MPI_COMM_WORLD);
    }
    int other = v ? displs[0] : 0, own = v ? displs[ROOT] : COUNT;
    if (root) {
        expect_block(other, COUNT, 0, 6, 0, "the other rank's block");
        expect_block(own, counts[ROOT], ROOT, 5, own, "the root's own block");
    }
}

static void scatter(bool v)
{
    bool root = (mt_rank() == ROOT);

    prepare();
    void *out = root ? MPI_IN_PLACE : one;
    if (v) {
        MPI_Scatterv(all, counts, displs, MPI_INT, out, counts[mt_rank()], MPI_INT, ROOT,
                     MPI_COMM_WORLD);
    } else {
        MPI_Scatter(all, COUNT, MPI_INT, out, COUNT, MPI_INT, ROOT, MPI_COMM_WORLD);
    }
    int first = v ? displs[0] : 0;
    if (root) {
        expect_block(0, COUNT, ROOT, 5, 0, "the first block at the root");
    } else {
        all = one;
        expect_block(0, COUNT, ROOT, 5, first, "the other rank's block");
    }
}

static void case_gather(void)
{
    gather(false);
}

static void case_gatherv(void)
{
    gather(true);
}

static void case_scatter(void)
{
    scatter(false);
}

static void case_scatterv(void)
{
    scatter(true);
}

int main(int argc, char **argv)
{
    static const struct mt_named_case cases[] = {{"gather", case_gather},
                                                 {"gatherv", case_gatherv},
                                                 {"scatter", case_scatter},
                                                 {"scatterv", case_scatterv},
                                                 {NULL, NULL}};

    mt_begin(&argc, &argv, true);
    return mt_run_to_end(cases, argc, argv);
}
