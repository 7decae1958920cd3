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
 *   mpi_missed cuda blocking_up|nonblocking_up|persistent_up
 * On the device, from host memory: all ranks give up the communicator, and none waits for another.
 */
#include <dlfcn.h>

#include "support.h"

enum { COUNT = 5000, ROUNDS = 8, MEETINGS = 3, CROWD = 64 };

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

static void case_persistent_crowded(void)
{
    allreduce_init *init = (allreduce_init *)dlsym(RTLD_DEFAULT, "MPI_Allreduce_init");
    MPI_Request     crowd[CROWD];
    float          *in = mt_alloc(MT_DEVICE, sizeof(*in)), *out = mt_alloc(MT_DEVICE, sizeof(*out));

    for (int i = 0; i < CROWD; i++) {
        init(in, out, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &crowd[i]);
    }
    case_persistent();
    for (int i = 0; i < CROWD; i++) {
        MPI_Request_free(&crowd[i]);
    }
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
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
                                                 {"blocking_up", case_blocking_up},
                                                 {"nonblocking_up", case_nonblocking_up},
                                                 {"persistent_up", case_persistent_up},
                                                 {NULL, NULL}};

    mt_begin(&argc, &argv, true);
    return mt_run_to_end(cases, argc, argv);
}
