/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Allreduces of which a copy fails on rank 1, once.
 *
 *   mpi_missed cuda blocking|nonblocking|persistent|nonblocking_alone|persistent_alone
 *   mpi_missed cuda persistent_crowded
 * Staged: whoever gets a wrong result is told, and all that come later are right. alone: there are
 * no blocking calls, in which the ranks would agree. crowded: behind many persistent requests, so
 * that MPI's own serves.
 *
 *   mpi_missed cuda kinds|kinds_crowded|kinds_apart|kinds_far|short
 * Staged: rank 1 cannot copy its data, as it reduces memory of two kinds, or gets no host memory
 * for it (with XCCL_STAGING=1). apart, far: between the two lies more than MPI can allocate, or
 * more than there are addresses for.
 *
 *   mpi_missed cuda vectors
 * Staged: calls with counts of each rank's own, of which every rank has as many as the others when
 * they ask each other whether to go on like that.
 *
 *   mpi_missed cuda blocking_up|nonblocking_up|persistent_up
 * On the device, from host memory: all ranks give up the communicator, and none waits for another.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "support.h"

enum { COUNT = 5000, ROUNDS = 8, MEETINGS = 3, CROWD = 64 };
enum { LONG = 6 << 20 };

typedef int allreduce_init(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Info,
                           MPI_Request *);

static struct mt_pair pair;
static MPI_Comm       apart; /* what is said there is on host memory */
static MPI_Request    kept;  /* the persistent one */

static int blocking(void)
{
    return MPI_Allreduce(pair.in, pair.out, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static int waited(int code, MPI_Request *request)
{
    return (code == MPI_SUCCESS) ? MPI_Wait(request, MPI_STATUS_IGNORE) : code;
}

static int nonblocking(void)
{
    MPI_Request request;
    int         code =
        MPI_Iallreduce(pair.in, pair.out, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);

    return waited(code, &request);
}

static int persistent(void)
{
    allreduce_init *init = (allreduce_init *)dlsym(RTLD_DEFAULT, "MPI_Allreduce_init");
    int             code = MPI_SUCCESS;

    if (kept == MPI_REQUEST_NULL) {
        code = init(pair.in, pair.out, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                    &kept);
    }
    return (code == MPI_SUCCESS) ? waited(MPI_Start(&kept), &kept) : code;
}

static void look(int round, int code)
{
    int mine[2] = {code != MPI_SUCCESS, (mt_rank() == 1) && (code != MPI_SUCCESS)}, all[2];

    if (code == MPI_SUCCESS) {
        mt_pair_expect_sum(&pair, COUNT, mt_size(), round, "a result without an error");
    }
    MPI_Allreduce(mine, all, 2, MPI_INT, MPI_SUM, apart);
    mt_expect((all[0] == 0) || (all[1] == 1), "round %d: the rank that failed says nothing", round);
}

static void rounds_of(int (*work)(void), int rounds, int *failed)
{
    for (int round = 0; round < rounds; round++) {
        mt_pair_fill(&pair, COUNT, MPI_COMM_WORLD, round);
        int code = work();
        *failed += (code != MPI_SUCCESS);
        look(round, code);
    }
}

/* First some blocking ones, if any, in which the ranks come to know each other. */
static void run(int (*work)(void), int meetings)
{
    int failed = 0;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_dup(MPI_COMM_WORLD, &apart);
    pair = mt_pair_make(MT_DEVICE, COUNT);
    rounds_of(blocking, meetings, &failed);
    rounds_of(work, ROUNDS, &failed);
    if (mt_rank() == 1) {
        mt_expect(failed == 1, "%d calls failed", failed);
    } else {
        mt_expect(failed <= 1, "%d calls failed", failed);
    }
    mt_pair_free(&pair);
    MPI_Comm_free(&apart);
}

/* After those on device memory, which no rank copies. */
static void run_up(int (*work)(void))
{
    void *on_device;
    int   failed = 0, all = 0, before = 0;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_dup(MPI_COMM_WORLD, &apart);
    pair = mt_pair_make(MT_DEVICE, COUNT);
    rounds_of(blocking, MEETINGS, &failed);
    mt_expect(failed == 0, "%d calls on device memory failed", failed);
    mt_pair_fill(&pair, COUNT, MPI_COMM_WORLD, 0);
    on_device = pair.in;
    pair.in = mt_alloc(MT_HOST, COUNT * sizeof(float));
    mt_get(pair.in, on_device, MT_DEVICE, COUNT * sizeof(float));
    for (int round = 0; round < ROUNDS; round++) {
        int code = work();
        int wrong = (code != MPI_SUCCESS);
        if (code == MPI_SUCCESS) {
            mt_pair_expect_sum(&pair, COUNT, mt_size(), 0, "a result before the failure");
        }
        MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, apart);
        mt_expect((all == 0) || (all == mt_size()), "round %d: %d ranks failed", round, all);
        mt_expect(all >= before, "round %d: a call after one that failed", round);
        before = all;
    }
    mt_expect(all > 0, "no call failed");
    mt_free(MT_HOST, pair.in);
    pair.in = on_device;
    mt_pair_free(&pair);
    MPI_Comm_free(&apart);
}

static void case_blocking(void)
{
    run(blocking, MEETINGS);
}

static void case_nonblocking(void)
{
    run(nonblocking, MEETINGS);
}

static void case_persistent(void)
{
    kept = MPI_REQUEST_NULL;
    run(persistent, MEETINGS);
    MPI_Request_free(&kept);
}

static void case_nonblocking_alone(void)
{
    run(nonblocking, 0);
}

static void case_persistent_alone(void)
{
    kept = MPI_REQUEST_NULL;
    run(persistent, 0);
    MPI_Request_free(&kept);
}

static void with_crowd(void (*work)(void))
{
    allreduce_init *init = (allreduce_init *)dlsym(RTLD_DEFAULT, "MPI_Allreduce_init");
    MPI_Request     crowd[CROWD];
    float          *in = mt_alloc(MT_DEVICE, sizeof(*in)), *out = mt_alloc(MT_DEVICE, sizeof(*out));

    for (int i = 0; i < CROWD; i++) {
        init(in, out, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &crowd[i]);
    }
    work();
    for (int i = 0; i < CROWD; i++) {
        MPI_Request_free(&crowd[i]);
    }
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
}

static void case_persistent_crowded(void)
{
    with_crowd(case_persistent);
}

static MPI_Aint places[2]; /* of all floats but one, and of that one */
static size_t   between;   /* these two on rank 1; 0: they are neighbours */

/* Not by arithmetic of pointers: absolute places are far from a base that MPI makes up. */
static float *at(void *base, MPI_Aint place)
{
    return (float *)((uintptr_t)base + (uintptr_t)place);
}

/* Of the plain type, or the one with these places. */
static void add(void *in, void *inout, int *count, MPI_Datatype *type)
{
    bool plain = (*type == MPI_FLOAT);
    int  floats = plain ? *count : COUNT;

    for (int i = 0; i < floats; i++) {
        MPI_Aint place = (i < COUNT - 1) ? places[0] + i * (MPI_Aint)sizeof(float) : places[1];
        place = plain ? i * (MPI_Aint)sizeof(float) : place;
        *at(inout, place) += *at(in, place);
    }
}

/* The floats of the result; the last one of rank 1 lies on the host. */
static MPI_Datatype two_kinds(void)
{
    int          lengths[] = {COUNT - 1, 1};
    MPI_Datatype types[] = {MPI_FLOAT, MPI_FLOAT}, both;
    void        *last = pair.out + COUNT - 1;

    if (mt_rank() == 1) {
        void *near = (between > 0) ? (void *)((uintptr_t)pair.out - between) : NULL;
        last =
            mmap(near, sizeof(float), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    MPI_Get_address(pair.out, &places[0]);
    MPI_Get_address(last, &places[1]);
    MPI_Type_create_struct(2, lengths, places, types, &both);
    MPI_Type_commit(&both);
    return both;
}

/* All ranks fail alike, and the next call is right. */
static void all_fail(int code, MPI_Op sum, const char *what)
{
    int told = (code != MPI_SUCCESS), all = 0;

    MPI_Allreduce(&told, &all, 1, MPI_INT, MPI_SUM, apart);
    mt_expect(all == mt_size(), "%s: %d of %d ranks were told", what, all, mt_size());
    mt_pair_fill(&pair, COUNT, MPI_COMM_WORLD, 1);
    MPI_Allreduce(pair.in, pair.out, COUNT, MPI_FLOAT, sum, MPI_COMM_WORLD);
    mt_pair_expect_sum(&pair, COUNT, mt_size(), 1, what);
}

static void reduce_kinds(MPI_Op sum)
{
    allreduce_init *init = (allreduce_init *)dlsym(RTLD_DEFAULT, "MPI_Allreduce_init");
    MPI_Datatype    type = two_kinds();
    MPI_Request     request = MPI_REQUEST_NULL;

    int code = MPI_Allreduce(MPI_IN_PLACE, MPI_BOTTOM, 1, type, sum, MPI_COMM_WORLD);
    all_fail(code, sum, "blocking");
    code = MPI_Iallreduce(MPI_IN_PLACE, MPI_BOTTOM, 1, type, sum, MPI_COMM_WORLD, &request);
    all_fail(waited(code, &request), sum, "non-blocking");
    code = init(MPI_IN_PLACE, MPI_BOTTOM, 1, type, sum, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    mt_expect(code == MPI_SUCCESS, "no persistent request: %d", code);
    for (int i = 0; (i < 2) && (code == MPI_SUCCESS); i++) {
        all_fail(waited(MPI_Start(&request), &request), sum, "persistent");
    }
    MPI_Request_free(&request);
    MPI_Type_free(&type);
}

static void case_kinds(void)
{
    MPI_Op sum;
    int    failed = 0;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_dup(MPI_COMM_WORLD, &apart);
    pair = mt_pair_make(MT_DEVICE, COUNT);
    rounds_of(blocking, MEETINGS, &failed);
    MPI_Op_create(add, 1, &sum);
    reduce_kinds(sum);
    MPI_Op_free(&sum);
    mt_pair_free(&pair);
    MPI_Comm_free(&apart);
}

static void case_kinds_crowded(void)
{
    with_crowd(case_kinds);
}

static void case_kinds_apart(void)
{
    between = (size_t)1 << 40;
    case_kinds();
    with_crowd(case_kinds);
}

static void case_kinds_far(void)
{
    between = (size_t)100 << 40;
    case_kinds();
    with_crowd(case_kinds);
}

/* What counts for RLIMIT_DATA. */
static rlim_t data_of_process(void)
{
    char          line[128];
    unsigned long kib = 0;
    FILE         *file = fopen("/proc/self/status", "r");

    while ((file != NULL) && (fgets(line, sizeof(line), file) != NULL)) {
        if (strncmp(line, "VmData:", 7) == 0) {
            kib = strtoul(line + 7, NULL, 10);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return (rlim_t)kib << 10;
}

/* What MPI itself takes is there; twice, as what is for nothing is given back. */
static void case_short(void)
{
    struct rlimit before, limit;
    int          *data = mt_ints_make(MT_DEVICE, LONG, (mt_rank() == 0) ? LONG : 0, 7);
    int           failed = 0;
    MPI_Request   request;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_dup(MPI_COMM_WORLD, &apart);
    pair = mt_pair_make(MT_DEVICE, COUNT);
    rounds_of(blocking, MEETINGS, &failed);
    getrlimit(RLIMIT_DATA, &before);
    limit = before;
    limit.rlim_cur = data_of_process() + LONG;
    for (int round = 0; round < 2; round++) {
        if (mt_rank() == 1) {
            mt_expect(setrlimit(RLIMIT_DATA, &limit) == 0, "no limit for the process's data");
        }
        int code = (round == 0) ? MPI_Bcast(data, LONG, MPI_INT, 0, MPI_COMM_WORLD)
                                : MPI_Ibcast(data, LONG, MPI_INT, 0, MPI_COMM_WORLD, &request);
        code = (round == 1) ? waited(code, &request) : code;
        setrlimit(RLIMIT_DATA, &before);
        all_fail(code, MPI_SUM, "a long broadcast");
    }
    MPI_Bcast(data, LONG, MPI_INT, 0, MPI_COMM_WORLD);
    mt_ints_expect(data, MT_DEVICE, LONG, LONG, 0, 7, "a broadcast with memory again");
    mt_free(MT_DEVICE, data);
    mt_pair_free(&pair);
    MPI_Comm_free(&apart);
}

/* Equal blocks, as only each rank itself knows. */
static int alltoallv(enum mt_where where)
{
    enum { MOST_RANKS = 8, BLOCK = 600 };
    int  counts[MOST_RANKS], displs[MOST_RANKS], size = mt_size();
    int *in = mt_ints_make(where, BLOCK * size, BLOCK * size, 0);
    int *out = mt_ints_make(where, BLOCK * size, 0, 0);

    for (int i = 0; i < size; i++) {
        counts[i] = BLOCK;
        displs[i] = i * BLOCK;
    }
    int code =
        MPI_Alltoallv(in, counts, displs, MPI_INT, out, counts, displs, MPI_INT, MPI_COMM_WORLD);
    mt_free(where, in);
    mt_free(where, out);
    return code;
}

/* In the first the ranks learn that none has device memory yet. */
static void case_vectors(void)
{
    int failed = 0;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    alltoallv(MT_HOST);
    for (int round = 0; round < ROUNDS; round++) {
        failed += (alltoallv(MT_DEVICE) != MPI_SUCCESS);
    }
    mt_expect((mt_rank() == 1) ? (failed == 1) : (failed <= 1), "%d calls failed", failed);
}

static void case_blocking_up(void)
{
    run_up(blocking);
}

static void case_nonblocking_up(void)
{
    run_up(nonblocking);
}

static void case_persistent_up(void)
{
    kept = MPI_REQUEST_NULL;
    run_up(persistent);
    MPI_Request_free(&kept);
}

int main(int argc, char **argv)
{
    static const struct mt_named_case cases[] = {{"blocking", case_blocking},
                                                 {"nonblocking", case_nonblocking},
                                                 {"persistent", case_persistent},
                                                 {"nonblocking_alone", case_nonblocking_alone},
                                                 {"persistent_alone", case_persistent_alone},
                                                 {"persistent_crowded", case_persistent_crowded},
                                                 {"kinds", case_kinds},
                                                 {"kinds_crowded", case_kinds_crowded},
                                                 {"kinds_apart", case_kinds_apart},
                                                 {"kinds_far", case_kinds_far},
                                                 {"short", case_short},
                                                 {"vectors", case_vectors},
                                                 {"blocking_up", case_blocking_up},
                                                 {"nonblocking_up", case_nonblocking_up},
                                                 {"persistent_up", case_persistent_up},
                                                 {NULL, NULL}};

    mt_begin(&argc, &argv, true);
    return mt_run_to_end(cases, argc, argv);
}
