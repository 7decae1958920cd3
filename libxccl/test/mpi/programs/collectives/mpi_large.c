/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions with large counts, found by their names as mpi4py's wheels find them: the
 * interposer has them all, so they must work with an MPI library that has none (Open MPI
 * before 6.0), on host and on device memory. Usage: mpi_large cuda|rocm
 */
#include <malloc.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "memory.h"

#if MPI_VERSION < 4
#define WEAK __attribute__((weak))
#define COUNTS const MPI_Count *
#define PLACES const MPI_Aint *
#define TYPE MPI_Datatype
WEAK int MPI_Allreduce_c(const void *, void *, MPI_Count, TYPE, MPI_Op, MPI_Comm);
WEAK int MPI_Bcast_c(void *, MPI_Count, TYPE, int, MPI_Comm);
WEAK int MPI_Reduce_c(const void *, void *, MPI_Count, TYPE, MPI_Op, int, MPI_Comm);
WEAK int MPI_Reduce_scatter_c(const void *, void *, COUNTS, TYPE, MPI_Op, MPI_Comm);
WEAK int MPI_Reduce_scatter_block_c(const void *, void *, MPI_Count, TYPE, MPI_Op, MPI_Comm);
WEAK int MPI_Allgather_c(const void *, MPI_Count, TYPE, void *, MPI_Count, TYPE, MPI_Comm);
WEAK int MPI_Allgatherv_c(const void *, MPI_Count, TYPE, void *, COUNTS, PLACES, TYPE, MPI_Comm);
WEAK int MPI_Alltoall_c(const void *, MPI_Count, TYPE, void *, MPI_Count, TYPE, MPI_Comm);
WEAK int MPI_Alltoallv_c(const void *, COUNTS, PLACES, TYPE, void *, COUNTS, PLACES, TYPE,
                         MPI_Comm);
WEAK int MPI_Ialltoallv_c(const void *, COUNTS, PLACES, TYPE, void *, COUNTS, PLACES, TYPE,
                          MPI_Comm, MPI_Request *);
WEAK int MPI_Alltoallv_init_c(const void *, COUNTS, PLACES, TYPE, void *, COUNTS, PLACES, TYPE,
                              MPI_Comm, MPI_Info, MPI_Request *);
WEAK int MPI_Gather_c(const void *, MPI_Count, TYPE, void *, MPI_Count, TYPE, int, MPI_Comm);
WEAK int MPI_Gatherv_c(const void *, MPI_Count, TYPE, void *, COUNTS, PLACES, TYPE, int, MPI_Comm);
WEAK int MPI_Scatter_c(const void *, MPI_Count, TYPE, void *, MPI_Count, TYPE, int, MPI_Comm);
WEAK int MPI_Scatterv_c(const void *, COUNTS, PLACES, TYPE, void *, MPI_Count, TYPE, int, MPI_Comm);
#endif

enum { PART = 100, MAX_RANKS = 8, ROOT = 0 };

static int       rank, nranks, checks, failures;
static MPI_Count counts[MAX_RANKS];
static MPI_Aint  places[MAX_RANKS];

static void check(int good, const char *what, const char *where)
{
    checks++;
    if (!good) {
        failures++;
        printf("FAIL rank %d: %s, %s memory\n", rank, what, where);
    }
}

/* Element i of rank r's part for rank `to` in every call below. */
static int value(int r, int to, int i)
{
    return 10000 * r + 1000 * to + i;
}

static void fill(int *data, int by_receiver)
{
    for (int to = 0; to < nranks; to++) {
        for (int i = 0; i < PART; i++) {
            data[to * PART + i] = value(rank, by_receiver ? to : 0, i);
        }
    }
}

/* The sum over ranks of value(r, to, i). */
static int sum(int to, int i)
{
    return 10000 * (nranks * (nranks - 1) / 2) + nranks * (1000 * to + i);
}

struct buffers {
    enum mt_where where;
    const char   *name;
    int           host[MAX_RANKS * PART];
    int          *send, *recv;
};

/* Input and a poisoned output; run() is between. */
static void prepare(struct buffers *b, int by_receiver)
{
    size_t bytes = sizeof(int) * (size_t)(nranks * PART);

    for (int i = 0; i < nranks * PART; i++) {
        b->host[i] = -1;
    }
    mt_put(b->recv, b->where, b->host, bytes);
    fill(b->host, by_receiver);
    mt_put(b->send, b->where, b->host, bytes);
}

static void finish(struct buffers *b, const int *from, int res, const char *what, int parts,
                   int (*expected)(int part, int i))
{
    int good = (res == MPI_SUCCESS);

    mt_get(b->host, from, b->where, sizeof(int) * (size_t)(nranks * PART));
    for (int p = 0; p < parts; p++) {
        for (int i = 0; i < PART; i++) {
            good = good && (b->host[p * PART + i] == expected(p, i));
        }
    }
    check(good, what, b->name);
}

static int sum_of_all(int part, int i)
{
    return sum(part, i);
}
static int sum_of_mine(int part, int i)
{
    (void)part;
    return sum(rank, i);
}
static int from_each_to_me(int part, int i)
{
    return value(part, rank, i);
}
static int from_each(int part, int i)
{
    return value(part, 0, i);
}
static int from_root_to_me(int part, int i)
{
    (void)part;
    return value(ROOT, rank, i);
}
static int from_root(int part, int i)
{
    return value(ROOT, part, i);
}

static void reductions(struct buffers *b)
{
    MPI_Comm w = MPI_COMM_WORLD;
    int      all = nranks * PART;

    prepare(b, 1);
    finish(b, b->recv, MPI_Allreduce_c(b->send, b->recv, all, MPI_INT, MPI_SUM, w), "allreduce",
           nranks, sum_of_all);
    prepare(b, 1);
    finish(b, b->recv, MPI_Reduce_c(b->send, b->recv, all, MPI_INT, MPI_SUM, ROOT, w), "reduce",
           (rank == ROOT) ? nranks : 0, sum_of_all);
    prepare(b, 1);
    finish(b, b->recv, MPI_Reduce_scatter_c(b->send, b->recv, counts, MPI_INT, MPI_SUM, w),
           "reduce_scatter", 1, sum_of_mine);
    prepare(b, 1);
    finish(b, b->recv, MPI_Reduce_scatter_block_c(b->send, b->recv, PART, MPI_INT, MPI_SUM, w),
           "reduce_scatter_block", 1, sum_of_mine);
}

static void all_to_all(struct buffers *b)
{
    MPI_Comm w = MPI_COMM_WORLD;

    prepare(b, 0);
    finish(b, b->recv, MPI_Allgather_c(b->send, PART, MPI_INT, b->recv, PART, MPI_INT, w),
           "allgather", nranks, from_each);
    prepare(b, 0);
    finish(b, b->recv,
           MPI_Allgatherv_c(b->send, PART, MPI_INT, b->recv, counts, places, MPI_INT, w),
           "allgatherv", nranks, from_each);
    prepare(b, 1);
    finish(b, b->recv, MPI_Alltoall_c(b->send, PART, MPI_INT, b->recv, PART, MPI_INT, w),
           "alltoall", nranks, from_each_to_me);
    prepare(b, 1);
    finish(b, b->recv,
           MPI_Alltoallv_c(b->send, counts, places, MPI_INT, b->recv, counts, places, MPI_INT, w),
           "alltoallv", nranks, from_each_to_me);
}

/* At all but the root the arrays mean nothing, and are no addresses. */
static void rooted(struct buffers *b)
{
    MPI_Comm         w = MPI_COMM_WORLD;
    int              parts = (rank == ROOT) ? nranks : 0;
    const MPI_Count *c = (rank == ROOT) ? counts : (const MPI_Count *)8;
    const MPI_Aint  *p = (rank == ROOT) ? places : (const MPI_Aint *)8;

    prepare(b, 1);
    finish(b, b->send, MPI_Bcast_c(b->send, nranks * PART, MPI_INT, ROOT, w), "bcast", nranks,
           from_root);
    prepare(b, 0);
    finish(b, b->recv, MPI_Gather_c(b->send, PART, MPI_INT, b->recv, PART, MPI_INT, ROOT, w),
           "gather", parts, from_each);
    prepare(b, 0);
    finish(b, b->recv, MPI_Gatherv_c(b->send, PART, MPI_INT, b->recv, c, p, MPI_INT, ROOT, w),
           "gatherv", parts, from_each);
    prepare(b, 1);
    finish(b, b->recv, MPI_Scatter_c(b->send, PART, MPI_INT, b->recv, PART, MPI_INT, ROOT, w),
           "scatter", 1, from_root_to_me);
    prepare(b, 1);
    finish(b, b->recv, MPI_Scatterv_c(b->send, c, p, MPI_INT, b->recv, PART, MPI_INT, ROOT, w),
           "scatterv", 1, from_root_to_me);
}

/* Arguments that MPI passes over may be anything. */
static void in_place(struct buffers *b)
{
    MPI_Comm         w = MPI_COMM_WORLD;
    const MPI_Count  any = (MPI_Count)1 << 40;
    const MPI_Count *c = (const MPI_Count *)8;
    const MPI_Aint  *p = (const MPI_Aint *)8;
    int              root = (rank == ROOT);
    MPI_Datatype     none = MPI_DATATYPE_NULL;

    prepare(b, 1);
    finish(b, b->send, MPI_Alltoall_c(MPI_IN_PLACE, any, none, b->send, PART, MPI_INT, w),
           "alltoall in place", nranks, from_each_to_me);
    prepare(b, 1);
    finish(b, b->send,
           MPI_Alltoallv_c(MPI_IN_PLACE, c, p, none, b->send, counts, places, MPI_INT, w),
           "alltoallv in place", nranks, from_each_to_me);
    prepare(b, 0);
    finish(b, root ? b->send : b->recv,
           MPI_Gather_c(root ? MPI_IN_PLACE : b->send, root ? any : PART, MPI_INT, b->send,
                        root ? PART : any, MPI_INT, ROOT, w),
           "gather in place", root ? nranks : 0, from_each);
    prepare(b, 1);
    finish(b, root ? b->send : b->recv,
           MPI_Scatter_c(b->send, root ? PART : any, MPI_INT, root ? MPI_IN_PLACE : b->recv,
                         root ? any : PART, MPI_INT, ROOT, w),
           "scatter in place", 1, from_root_to_me);
}

#if MPI_VERSION < 4
/* The arrays of int that are made for MPI go with the call, or with a start of the request. */
static void many(bool persistent, const char *what)
{
    enum { TIMES = 500, MOST = 16 };
    MPI_Comm    w = MPI_COMM_WORLD;
    MPI_Request request;
    size_t      before = 0;
    int         a[MAX_RANKS] = {0}, b[MAX_RANKS];
    MPI_Count   ones[MAX_RANKS];
    MPI_Aint    at[MAX_RANKS];

    for (int r = 0; r < nranks; r++) {
        ones[r] = 1;
        at[r] = r;
    }
    for (int i = 0; i < 2 * TIMES; i++) {
        before = (i == TIMES) ? mallinfo2().uordblks : before;
        if (persistent) {
            MPI_Alltoallv_init_c(a, ones, at, MPI_INT, b, ones, at, MPI_INT, w, MPI_INFO_NULL,
                                 &request);
            MPI_Start(&request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            MPI_Request_free(&request);
        } else {
            MPI_Ialltoallv_c(a, ones, at, MPI_INT, b, ones, at, MPI_INT, w, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
    }
    size_t after = mallinfo2().uordblks;
    check(after < before + (size_t)TIMES * MOST, what, "host");
}

/* What cannot be done is MPI's own error, not a truncated count. */
static void too_large(void)
{
    MPI_Count huge[MAX_RANKS] = {(MPI_Count)1 << 40};
    int       error_class = 0, a = 0, b = 0;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int res = MPI_Allreduce_c(&a, &b, (MPI_Count)1 << 32, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Error_class(res, &error_class);
    check(error_class == MPI_ERR_COUNT, "a count above INT_MAX is refused", "host");
    res = MPI_Reduce_scatter_c(&a, &b, huge, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Error_class(res, &error_class);
    check(error_class == MPI_ERR_COUNT, "and in an array", "host");
}
#endif

int main(int argc, char **argv)
{
    struct buffers b[2] = {{.where = MT_HOST, .name = "host"},
                           {.where = MT_DEVICE, .name = "device"}};
    int            sums[2], all[2];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    mt_memory_open((argc > 1) ? argv[1] : "cuda", rank);
    for (int r = 0; r < nranks; r++) {
        counts[r] = PART;
        places[r] = r * PART;
    }
    for (int i = 0; i < 2; i++) {
        b[i].send = mt_alloc(b[i].where, sizeof(b[i].host));
        b[i].recv = mt_alloc(b[i].where, sizeof(b[i].host));
        reductions(&b[i]);
        all_to_all(&b[i]);
        rooted(&b[i]);
        in_place(&b[i]);
        mt_free(b[i].where, b[i].send);
        mt_free(b[i].where, b[i].recv);
    }
#if MPI_VERSION < 4
    too_large();
    many(false, "a call that is not blocking keeps no memory");
    many(true, "nor does a persistent request");
#endif
    sums[0] = checks;
    sums[1] = failures;
    MPI_Reduce(sums, all, 2, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%d checks, %d failures\n", all[0], all[1]);
    }
    MPI_Finalize();
    return (failures == 0) ? 0 : 1;
}
