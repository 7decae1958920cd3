/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A collective that looks like an earlier one on the communicator, but for which the vendor's
 * library has to connect anew; while rank 0 owes rank 1 a message, without which that one does not
 * come to the collective. Whoever connects must let MPI progress.
 * Usage: mpi_owed cuda|rocm|none CASE
 */
#include <stdlib.h>
#include <string.h>

#include "support.h"

enum { COUNT = 100000, MOST_RANKS = 8, OWED = 8 << 20, SMALL = 16384 };

static struct {
    int     *in, *out;
    char    *message; /* host memory */
    int      counts[MOST_RANKS], at[MOST_RANKS];
    MPI_Comm comm;
} s;

static MPI_Request owed;

static void owe(void)
{
    if (mt_rank() == 0) {
        MPI_Isend(s.message, OWED, MPI_BYTE, 1, 5, MPI_COMM_WORLD, &owed);
    } else if (mt_rank() == 1) {
        MPI_Recv(s.message, OWED, MPI_BYTE, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static void pay(void)
{
    if (mt_rank() == 0) {
        MPI_Wait(&owed, MPI_STATUS_IGNORE);
    }
}

/* Rank i gives or gets so many, and rank 0 so many more. */
static void parts(int each, int more)
{
    for (int i = 0; i < mt_size(); i++) {
        s.counts[i] = each;
    }
    s.counts[0] += more;
    s.counts[1] -= more;
    for (int i = 0, at = 0; i < mt_size(); at += s.counts[i], i++) {
        s.at[i] = at;
    }
}

/* The first rank's value, and the last one's, of count that each rank has filled with its number.
 */
static void expect(int first, int last, int count, const char *what)
{
    int *host = malloc(sizeof(int) * (size_t)count);

    mt_get(host, s.out, MT_DEVICE, sizeof(int) * (size_t)count);
    mt_expect((host[0] == first) && (host[count - 1] == last), "%s: %d and %d instead of %d and %d",
              what, host[0], host[count - 1], first, last);
    free(host);
}

static int sum(void)
{
    return mt_size() * (mt_size() + 1) / 2;
}

static void reduce_scatter(int more)
{
    parts(COUNT, more);
    MPI_Reduce_scatter(s.in, s.out, s.counts, MPI_INT, MPI_SUM, s.comm);
    expect(sum(), sum(), s.counts[mt_rank()], "a reduction of parts");
}

static void allgatherv(int more)
{
    parts(COUNT, more);
    MPI_Allgatherv(s.in, s.counts[mt_rank()], MPI_INT, s.out, s.counts, s.at, MPI_INT, s.comm);
    expect(1, mt_size(), COUNT * mt_size(), "parts of all");
}

static void allreduce(int count)
{
    MPI_Allreduce(s.in, s.out, count, MPI_INT, MPI_SUM, s.comm);
    expect(sum(), sum(), count, "a sum");
}

/* Equal parts go by another function than unequal ones. */
static void case_reduced(void)
{
    reduce_scatter(0);
    reduce_scatter(0);
    owe();
    reduce_scatter(COUNT / 2);
    pay();
}

static void case_gathered(void)
{
    allgatherv(0);
    allgatherv(0);
    owe();
    allgatherv(COUNT / 2);
    pay();
}

/* Who gives nothing is connected to nobody. */
static void case_empty_gather(void)
{
    memset(s.counts, 0, sizeof(s.counts));
    s.counts[0] = COUNT;
    MPI_Gatherv(s.in, s.counts[mt_rank()], MPI_INT, s.out, s.counts, s.at, MPI_INT, 0, s.comm);
    owe();
    MPI_Gather(s.in, COUNT, MPI_INT, s.out, COUNT, MPI_INT, 0, s.comm);
    pay();
    if (mt_rank() == 0) {
        expect(1, mt_size(), COUNT * mt_size(), "a gather");
    }
}

static void case_empty_scatter(void)
{
    memset(s.counts, 0, sizeof(s.counts));
    s.counts[0] = COUNT;
    MPI_Scatterv(s.in, s.counts, s.at, MPI_INT, s.out, s.counts[mt_rank()], MPI_INT, 0, s.comm);
    owe();
    MPI_Scatter(s.in, COUNT, MPI_INT, s.out, COUNT, MPI_INT, 0, s.comm);
    pay();
    expect(1, 1, COUNT, "a scatter");
}

/* The library may change its algorithm anywhere. */
static void case_sizes(void)
{
    allreduce(SMALL - 1);
    allreduce(SMALL);
    owe();
    allreduce(SMALL + 1);
    pay();
}

int main(int argc, char **argv)
{
    const struct mt_named_case cases[] = {
        {"reduced", case_reduced},       {"gathered", case_gathered}, {"gather", case_empty_gather},
        {"scatter", case_empty_scatter}, {"sizes", case_sizes},       {NULL, NULL},
    };

    mt_begin(&argc, &argv, true);
    int    all = COUNT * mt_size();
    size_t bytes = sizeof(int) * (size_t)all;
    int   *host = malloc(bytes);

    for (int i = 0; i < all; i++) {
        host[i] = mt_rank() + 1;
    }
    s.in = mt_alloc(MT_DEVICE, bytes);
    s.out = mt_alloc(MT_DEVICE, bytes);
    s.message = calloc(1, OWED);
    mt_put(s.in, MT_DEVICE, host, bytes);
    MPI_Comm_dup(MPI_COMM_WORLD, &s.comm);
    allreduce(4); /* the communicator of the library's is there from here on */
    int status = mt_run_to_end(cases, argc, argv);
    free(host);
    free(s.message);
    return status;
}
