/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the real libraries wait on the host, so does the simulation: destroying and creating. */
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "device.h"
#include "nccl_abi.h"
#include "ranks.h"

#ifdef TEST_ROCM
#define SIM "rocm:4"
#else
#define SIM "cuda:4"
#endif

static ncclComm_t make(const struct world *world)
{
    ncclUniqueId id;
    ncclComm_t   comm;

    dev_use(world->rank);
    if (world->rank == 0) {
        CHECK_EQ(ncclGetUniqueId(&id), ncclSuccess);
    }
    share_bytes(world, &id, sizeof(id));
    CHECK_EQ(ncclCommInitRank(&comm, world->size, id, world->rank), ncclSuccess);
    return comm;
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* Rank 0 leaves destroy only once the last rank has called it. */
static void destroy_waits(const struct world *world)
{
    ncclComm_t comm = make(world);
    double     begun;
    double     ended;

    if (world->rank == world->size - 1) {
        usleep(100000);
    }
    begun = now();
    CHECK_EQ(ncclCommDestroy(comm), ncclSuccess);
    ended = now();
    share_bytes(world, &ended, sizeof(ended));
    if (world->rank == world->size - 1) {
        CHECK(ended >= begun);
    }
}

/* Rank 1 comes only after rank 0 is back: on another node, or where waiting is switched off. */
static void destroy_alone(const struct world *world)
{
    ncclComm_t comm = make(world);

    if (world->rank == 1) {
        meet(world);
    }
    CHECK_EQ(ncclCommDestroy(comm), ncclSuccess);
    if (world->rank == 0) {
        meet(world);
    }
}

/* Finalizing is enough for the others. */
static void finalize_counts(const struct world *world)
{
    ncclComm_t comm = make(world);

    if (world->rank == 1) {
        CHECK_EQ(ncclCommFinalize(comm), ncclSuccess);
        meet(world);
    }
    CHECK_EQ(ncclCommDestroy(comm), ncclSuccess);
    if (world->rank == 0) {
        meet(world);
    }
}

/* A dead rank is not waited for. */
static void destroy_deserted(const struct world *world)
{
    ncclComm_t comm = make(world);

    if (world->rank == 1) {
        usleep(50000);
        _exit(0);
    }
    CHECK_EQ(ncclCommDestroy(comm), ncclSuccess);
}

/* Nor is one that does not come to an abort, for ever; one that destroys after an abort is free. */
static void abort_patience(const struct world *world)
{
    ncclComm_t comm = make(world);

    if (world->rank == 0) {
        double begun = now();

        CHECK_EQ(ncclCommAbort(comm), ncclSuccess);
        CHECK((now() - begun > 4) && (now() - begun < 20));
        meet(world);
    } else {
        meet(world);
        CHECK_EQ(ncclCommDestroy(comm), ncclSuccess);
    }
}

/* In a group the order is free. */
static void destroy_group(const struct world *world)
{
    ncclComm_t comms[2];

    comms[world->rank] = make(world);
    comms[1 - world->rank] = make(world);
    CHECK_EQ(ncclGroupStart(), ncclSuccess);
    CHECK_EQ(ncclCommDestroy(comms[0]), ncclSuccess);
    CHECK_EQ(ncclCommDestroy(comms[1]), ncclSuccess);
    CHECK_EQ(ncclGroupEnd(), ncclSuccess);
}

static int count_lines(const char *text, const char *what)
{
    int count = 0;

    for (text = strstr(text, what); text != NULL; text = strstr(text + 1, what)) {
        count++;
    }
    return count;
}

/* Creating takes its time on each rank, and the log has a line for each creation and end. */
static void slow_and_logged(const struct world *world)
{
    static char text[65536];
    int         log = memfd_create("log", 0);
    int         before = dup(STDERR_FILENO);
    ncclComm_t  part;

    dup2(log, STDERR_FILENO);
    double     begun = now();
    ncclComm_t comm = make(world);
    CHECK(now() - begun >= 0.2);
    begun = now();
    CHECK_EQ(ncclCommSplit(comm, 0, 0, &part, NULL), ncclSuccess);
    CHECK(now() - begun >= 0.2);
    CHECK_EQ(ncclCommDestroy(part), ncclSuccess);
    CHECK_EQ(ncclCommAbort(comm), ncclSuccess);
    dup2(before, STDERR_FILENO);
    CHECK(pread(log, text, sizeof(text) - 1, 0) > 0);
    CHECK_EQ(count_lines(text, "Init COMPLETE"), 2);
    CHECK_EQ(count_lines(text, "Destroy COMPLETE"), 1);
    CHECK_EQ(count_lines(text, "Abort COMPLETE"), 1);
}

int main(int argc, char **argv)
{
    const struct test_case cases[] = {
        {"destroy_waits", destroy_waits, 3, SIM, NULL, NULL, -1},
        {"destroy_other_node", destroy_alone, 2, SIM, NULL, "XCCL_SIM_NODES=2", -1},
        {"destroy_free", destroy_alone, 2, SIM, NULL, "XCCL_SIM_DESTROY=free", -1},
        {"finalize_counts", finalize_counts, 2, SIM, NULL, NULL, -1},
        {"destroy_deserted", destroy_deserted, 2, SIM, NULL, NULL, -1},
        {"abort_patience", abort_patience, 2, SIM, NULL, NULL, -1},
        {"destroy_group", destroy_group, 2, SIM, NULL, NULL, -1},
        {"slow_and_logged", slow_and_logged, 2, SIM, NULL,
         "XCCL_SIM_LOG=info XCCL_SIM_CONNECT_MS=200", -1},
    };

    return run_cases(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
