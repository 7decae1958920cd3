/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Allgatherv with parts and places of every kind that the interposer tells apart: equal and
 * side by side, equal but elsewhere (on some ranks only), nearly equal, unequal; small and large;
 * in place. Every byte of the receive buffer is compared, those between the parts too. Usage:
 * mpi_allgatherv cuda|rocm
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"

enum shape { EQUAL, NEARLY_EQUAL, UNEQUAL, NUM_SHAPES };
enum places { PACKED, GAPS, BACKWARDS, GAPS_ON_SOME, NUM_PLACES };

static int rank, nranks, checks, failures;

static int count_of(enum shape shape, int base, int r)
{
    return (shape == EQUAL) ? base : (shape == NEARLY_EQUAL) ? base + (r % 2) : base * (1 + 3 * r);
}

static unsigned char data_of(int r, int i)
{
    return (unsigned char)(r * 37 + i * 11 + 1);
}

/* Where the parts lie on this rank; the size of the buffer that holds them. */
static int place(enum places places, const int *counts, int *displs)
{
    int at = 5, gap = 0;

    if ((places == GAPS) || ((places == GAPS_ON_SOME) && (rank % 2 == 1))) {
        gap = 13;
    }
    for (int i = 0; i < nranks; i++) {
        int r = (places == BACKWARDS) ? nranks - 1 - i : i;
        displs[r] = at;
        at += counts[r] + gap;
    }
    return at + 3;
}

static void run(enum shape shape, enum places places, int base, int in_place)
{
    int *counts = malloc((size_t)nranks * sizeof(int));
    int *displs = malloc((size_t)nranks * sizeof(int));
    int  good = 1;

    for (int r = 0; r < nranks; r++) {
        counts[r] = count_of(shape, base, r);
    }
    size_t         bytes = (size_t)place(places, counts, displs);
    unsigned char *expected = malloc(bytes), *found = malloc(bytes);
    unsigned char *mine = malloc((size_t)counts[rank]);
    void          *send = mt_alloc(MT_DEVICE, (size_t)counts[rank]);
    void          *recv = mt_alloc(MT_DEVICE, bytes);
    memset(expected, 0xee, bytes);
    for (int i = 0; i < counts[rank]; i++) {
        mine[i] = data_of(rank, i);
    }
    if (in_place) {
        memcpy(expected + displs[rank], mine, (size_t)counts[rank]);
    }
    mt_put(recv, MT_DEVICE, expected, bytes);
    mt_put(send, MT_DEVICE, mine, (size_t)counts[rank]);
    for (int r = 0; r < nranks; r++) {
        for (int i = 0; i < counts[r]; i++) {
            expected[displs[r] + i] = data_of(r, i);
        }
    }
    MPI_Allgatherv(in_place ? MPI_IN_PLACE : send, counts[rank], MPI_BYTE, recv, counts, displs,
                   MPI_BYTE, MPI_COMM_WORLD);
    mt_get(found, recv, MT_DEVICE, bytes);
    int same = (memcmp(found, expected, bytes) == 0); /* fast, also with sanitizers */
    for (size_t i = 0; !same && good; i++) {
        good = (found[i] == expected[i]);
        if (!good) {
            printf("FAIL rank %d: shape %d, places %d, %d bytes%s: byte %zu is %d, not %d\n", rank,
                   shape, places, base, in_place ? ", in place" : "", i, found[i], expected[i]);
        }
    }
    checks++;
    failures += !good;
    mt_free(MT_DEVICE, send);
    mt_free(MT_DEVICE, recv);
    free(counts);
    free(displs);
    free(expected);
    free(found);
    free(mine);
}

int main(int argc, char **argv)
{
    static const int bases[] = {1, 1000, 300 << 10};
    int              sums[2], all[2];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    mt_memory_open((argc > 1) ? argv[1] : "cuda", rank);
    for (int shape = 0; shape < NUM_SHAPES; shape++) {
        for (int places = 0; places < NUM_PLACES; places++) {
            for (int b = 0; b < 3; b++) {
                run(shape, places, bases[b], 0);
                run(shape, places, bases[b], 1);
            }
        }
    }
    if (nranks == 2) { /* more than fits into the slots at once; with more ranks it takes long */
        run(NEARLY_EQUAL, PACKED, (64 << 20) + 99991, 0);
        run(EQUAL, GAPS_ON_SOME, (64 << 20) + 99991, 1);
    }
    sums[0] = checks;
    sums[1] = failures;
    MPI_Reduce(sums, all, 2, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%d checks, %d failures\n", all[0], all[1]);
    }
    MPI_Finalize();
    return (failures == 0) ? 0 : 1;
}
