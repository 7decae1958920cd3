/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Wrong arguments: MPI on the memory under test must report the class that PMPI reports on host
 * memory, on every rank, through the communicator's own handler, and leave the communicator usable.
 *
 *   mpi_errors RUNTIME device|host          all wrong arguments in all collectives
 *   mpi_errors RUNTIME device|host fatal    one of them under MPI_ERRORS_ARE_FATAL: ends the job
 *   mpi_errors RUNTIME device|host W C      only wrong argument W in collective C, by number
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "support.h"

enum { COUNT = 4, BYTES = 1 << 16 };

static enum mt_where where = MT_DEVICE;
static int           rank;
static int           size;
static int           checks = 0;
static int           failures = 0;
static int           handled = 0; /* calls of the error handler */
static MPI_Datatype  uncommitted;

static void fill_counts(struct mt_args *a, MPI_Count count)
{
    a->sendcount = a->recvcount = count;
    for (int i = 0; i < MT_MAX_RANKS; i++) {
        a->sendcounts[i] = a->recvcounts[i] = count;
        a->senddispls[i] = a->recvdispls[i] = COUNT * i;
    }
}

static void negative_count(struct mt_args *a)
{
    fill_counts(a, -1);
}

static void null_type(struct mt_args *a)
{
    a->sendtype = a->recvtype = MPI_DATATYPE_NULL;
}

static void uncommitted_type(struct mt_args *a)
{
    a->sendtype = a->recvtype = uncommitted;
}

static void null_op(struct mt_args *a)
{
    a->op = MPI_OP_NULL;
}

static void bits_of_a_double(struct mt_args *a)
{
    a->op = MPI_BAND;
}

static void place_of_a_double(struct mt_args *a)
{
    a->op = MPI_MINLOC;
}

static void root_too_large(struct mt_args *a)
{
    a->root = size;
}

static void negative_root(struct mt_args *a)
{
    a->root = -7;
}

static void null_comm(struct mt_args *a)
{
    a->comm = MPI_COMM_NULL;
}

#define ALL ((1u << MT_NUM_COLLS) - 1)
/* What belongs to the arguments of a collective; elsewhere the wrong value would not be seen. */
static const struct wrong {
    const char *name;
    void (*spoil)(struct mt_args *);
    unsigned colls;
} wrongs[] = {
    {"negative count", negative_count, ALL},
    {"null datatype", null_type, ALL},
    {"datatype that was not committed", uncommitted_type, ALL},
    {"null operation", null_op, MT_REDUCTIONS},
    {"bitwise operation on doubles", bits_of_a_double, MT_REDUCTIONS},
    {"MPI_MINLOC on doubles", place_of_a_double, MT_REDUCTIONS},
    {"root too large", root_too_large, MT_ROOTED},
    {"negative root", negative_root, MT_ROOTED},
    {"null communicator", null_comm, ALL},
};

static void count_and_return(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    (void)code;
    handled++;
}

static void expect(bool good, const char *what, enum mt_coll coll, bool large, int class)
{
    static const char *const names[] = {
        "allreduce", "bcast",      "reduce",   "reduce_scatter", "reduce_scatter_block",
        "allgather", "allgatherv", "alltoall", "alltoallv",      "gather",
        "gatherv",   "scatter",    "scatterv"};

    checks++;
    if (!good && (failures++ < 5)) {
        fprintf(stderr, "FAIL rank %d: %s%s: %s (class %d, handler called %d times)\n", rank,
                names[coll], large ? "_c" : "", what, class, handled);
    }
}

static struct mt_args good_args(MPI_Comm comm, void *send, void *recv)
{
    struct mt_args a = {.send = send,
                        .recv = recv,
                        .sendtype = MPI_DOUBLE,
                        .recvtype = MPI_DOUBLE,
                        .op = MPI_SUM,
                        .comm = comm};

    fill_counts(&a, COUNT);
    return a;
}

/* What ends in a crash inside MPI itself, so that there is no class to compare with. */
static bool mpi_crashes(const struct wrong *wrong, enum mt_coll coll, bool large)
{
#ifdef MPICH_VERSION /* seen in 4.0.2 */
    (void)large;
#if MPICH_NUMVERSION >= 50000000 /* seen in 5.0.2 */
    if ((wrong->spoil == null_type) || (wrong->spoil == uncommitted_type)) {
        return true;
    }
#endif
    return (wrong->spoil == negative_count) &&
           ((coll == MT_ALLREDUCE) || (coll == MT_REDUCE) || (coll == MT_REDUCE_SCATTER_BLOCK));
#else /* seen in Open MPI 4.1.4 */
    (void)large;
    return ((wrong->spoil == uncommitted_type) &&
            ((coll == MT_SCATTER) || (coll == MT_SCATTERV))) ||
           ((wrong->spoil == null_comm) && (coll == MT_ALLGATHER));
#endif
}

/* One wrong call both ways. The handler is called as often as without xccl, and with that class. */
static void try_one(const struct wrong *wrong, enum mt_coll coll, bool large, MPI_Comm comm,
                    void *host[2], void *tested[2])
{
    struct mt_args reference = good_args(comm, host[0], host[1]);
    struct mt_args a = good_args(comm, tested[0], tested[1]);

    if (mpi_crashes(wrong, coll, large)) {
        return;
    }
    wrong->spoil(&reference);
    wrong->spoil(&a);
    handled = 0;
    int expected = mt_class_of(mt_call(coll, true, large, &reference));
    int handled_before = handled;
    handled = 0;
    int class = mt_class_of(mt_call(coll, false, large, &a));
    expect(class == expected, wrong->name, coll, large, class);
    expect(handled == handled_before, "calls of the error handler", coll, large, class);
}

/* only: the numbers of one wrong argument and one collective, or -1 for all. */
static void all_wrong_calls(MPI_Comm comm, void *host[2], void *tested[2], const int only[2])
{
    for (int w = 0; w < (int)(sizeof(wrongs) / sizeof(wrongs[0])); w++) {
        for (int coll = 0; coll < MT_NUM_COLLS; coll++) {
            bool wanted = (only[0] < 0) || ((only[0] == w) && (only[1] == coll));
            if (wanted && (((1u << coll) & wrongs[w].colls) != 0)) {
                try_one(&wrongs[w], coll, false, comm, host, tested);
                if (mt_has_large()) {
                    try_one(&wrongs[w], coll, true, comm, host, tested);
                }
            }
        }
    }
}

static void still_usable(MPI_Comm comm, void *tested[2])
{
    double ones[COUNT] = {1, 1, 1, 1};

    mt_put(tested[0], where, ones, sizeof(ones));
    MPI_Allreduce(tested[0], tested[1], COUNT, MPI_DOUBLE, MPI_SUM, comm);
    mt_get(ones, tested[1], where, sizeof(ones));
    expect(ones[0] == size && ones[3] == size, "a good call afterwards", MT_ALLREDUCE, false, 0);
}

int main(int argc, char **argv)
{
    void          *host[2] = {calloc(1, BYTES), calloc(1, BYTES)};
    void          *tested[2];
    int            only[2] = {-1, -1};
    MPI_Errhandler counting;
    MPI_Comm       comm;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 3) {
        fprintf(stderr, "usage: mpi_errors cuda|rocm|none device|host [fatal]\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    mt_memory_open(argv[1], rank);
    where = (strcmp(argv[2], "host") == 0) ? MT_HOST : MT_DEVICE;
    tested[0] = mt_alloc(where, BYTES);
    tested[1] = mt_alloc(where, BYTES);
    if (argc == 5) {
        only[0] = atoi(argv[3]);
        only[1] = atoi(argv[4]);
    } else if (argc == 4) {
        MPI_Bcast(tested[0], 1, MPI_DOUBLE, size, MPI_COMM_WORLD);
        printf("rank %d came back from a fatal error\n", rank);
        MPI_Finalize();
        return 0;
    }
    MPI_Type_vector(2, 1, 2, MPI_DOUBLE, &uncommitted);
    MPI_Comm_create_errhandler(count_and_return, &counting);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, counting);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, counting); /* gets what concerns no communicator */
    MPI_Comm_set_errhandler(MPI_COMM_SELF, counting);  /* the same in MPI-4 */
    still_usable(comm, tested);
    all_wrong_calls(comm, host, tested, only);
    still_usable(comm, tested);
    PMPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%d checks, %d failures\n", checks * size, failures);
    }
    MPI_Comm_free(&comm);
    MPI_Errhandler_free(&counting);
    MPI_Finalize();
    return failures != 0;
}
