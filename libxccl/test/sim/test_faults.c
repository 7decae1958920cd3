/* SPDX-License-Identifier: BSD-3-Clause */
/* Every form of XCCL_SIM_FAIL, and what a killed process leaves: nothing. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "device.h"
#include "nccl_abi.h"
#include "ranks.h"

#ifdef TEST_ROCM
#define SIM "rocm:4"
#else
#define SIM "cuda:4"
#endif

static ncclUniqueId shared_id(const struct world *world)
{
    ncclUniqueId id;

    dev_use(world->rank);
    if (world->rank == 0) {
        CHECK_EQ(ncclGetUniqueId(&id), ncclSuccess);
    }
    share_bytes(world, &id, sizeof(id));
    return id;
}

static ncclComm_t make(const struct world *world)
{
    ncclComm_t comm;

    CHECK_EQ(ncclCommInitRank(&comm, world->size, shared_id(world), world->rank), ncclSuccess);
    return comm;
}

static ncclResult_t wait_for_error(ncclComm_t comm)
{
    ncclResult_t error = ncclSuccess;

    while (error == ncclSuccess) {
        CHECK_EQ(ncclCommGetAsyncError(comm, &error), ncclSuccess);
        usleep(1000);
    }
    return error;
}

static ncclResult_t allreduce(ncclComm_t comm, dev_stream_t stream)
{
    return ncclAllReduce(dev_alloc(64), dev_alloc(64), 16, ncclInt32, ncclSum, comm, stream);
}

/* init@1: that rank's error, and a remote one for the rest. The next try works. */
static void init(const struct world *world)
{
    ncclComm_t comm;

    CHECK_EQ(ncclCommInitRank(&comm, world->size, shared_id(world), world->rank),
             (world->rank == 1) ? ncclSystemError : ncclRemoteError);
    CHECK(comm == NULL);
    comm = make(world);
    CHECK_EQ(ncclCommDestroy(comm), ncclSuccess);
}

/* init:alone@1 and init:hang@1: the others wait; a communicator made without blocking can go. */
static void init_stuck(const struct world *world)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t   comm;
    ncclResult_t state;
    ncclUniqueId id = shared_id(world);

    config.blocking = 0;
    CHECK_EQ(ncclCommInitRankConfig(&comm, world->size, id, world->rank, &config), ncclInProgress);
    usleep(300000);
    CHECK_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
    CHECK((state == ncclInProgress) || ((world->rank == 1) && (state == ncclSystemError)));
    meet(world); /* an abort of the others would show here */
    CHECK_EQ(ncclCommAbort(comm), ncclSuccess);
}

/* op:allreduce@2=3 */
static void op(const struct world *world)
{
    ncclComm_t   comm = make(world);
    dev_stream_t stream = dev_stream();

    for (int i = 1; i <= 3; i++) {
        CHECK_EQ(allreduce(comm, stream),
                 ((world->rank == 2) && (i == 3)) ? ncclSystemError : ncclSuccess);
    }
    meet(world);
    CHECK_EQ(ncclCommAbort(comm), ncclSuccess);
    dev_sync(stream);
}

/* async:allreduce@1=2: completes everywhere, and rank 1 hears of it. */
static void async(const struct world *world)
{
    ncclComm_t   comm = make(world);
    dev_stream_t stream = dev_stream();
    ncclResult_t error;

    CHECK_EQ(allreduce(comm, stream), ncclSuccess);
    dev_sync(stream);
    CHECK_EQ(ncclCommGetAsyncError(comm, &error), ncclSuccess);
    CHECK_EQ(error, ncclSuccess);
    CHECK_EQ(allreduce(comm, stream), ncclSuccess);
    dev_sync(stream);
    CHECK_EQ(ncclCommGetAsyncError(comm, &error), ncclSuccess);
    CHECK_EQ(error, (world->rank == 1) ? ncclInternalError : ncclSuccess);
    CHECK_EQ(ncclCommDestroy(comm), ncclSuccess);
}

/* hang:bcast@0: open everywhere, no error anywhere, until it is aborted. */
static void hang(const struct world *world)
{
    ncclComm_t   comm = make(world);
    dev_stream_t stream = dev_stream();
    ncclResult_t error;

    CHECK_EQ(ncclBcast(dev_alloc(64), 16, ncclInt32, 1, comm, stream), ncclSuccess);
    usleep(300000);
    CHECK_EQ(dev_idle(stream), 0);
    CHECK_EQ(ncclCommGetAsyncError(comm, &error), ncclSuccess);
    CHECK_EQ(error, ncclSuccess);
    meet(world);
    CHECK_EQ(ncclCommAbort(comm), ncclSuccess);
    dev_sync(stream);
}

/*
 * Does a file of this process lie in a file system? All shared memory must be nameless: then a
 * process that is killed cannot leave any. (Counting /dev/shm would count other programs' files.)
 */
static bool has_named_memory(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char  line[512];
    bool  found = false;

    while (fgets(line, sizeof(line), maps) != NULL) {
        bool shared = (strchr(line, ' ') != NULL) && (strchr(line, ' ')[4] == 's');

        found = found || (shared && (strstr(line, "/memfd:") == NULL));
    }
    fclose(maps);
    return found;
}

/* kill:allreduce@1: the rest hear of it, can leave, and find nothing left behind. */
static void killed(const struct world *world)
{
    ncclComm_t   comm = make(world);
    dev_stream_t stream = dev_stream();

    CHECK_EQ(allreduce(comm, stream), ncclSuccess);
    if (world->rank == 1) {
        dev_sync(stream);
        CHECK(!"alive");
    }
    CHECK_EQ(wait_for_error(comm), ncclRemoteError);
    CHECK(strstr(ncclGetLastError(comm), "rank 1") != NULL);
    CHECK_EQ(dev_idle(stream), 0);
    CHECK_EQ(ncclCommDestroy(comm), ncclSuccess); /* even destroying does not hang */
    dev_sync(stream);
    CHECK(!has_named_memory());
}

/* A rank killed from outside while all are busy. */
static void killed_busy(const struct world *world)
{
    ncclComm_t   comm = make(world);
    dev_stream_t stream = dev_stream();
    int         *data = dev_alloc(1 << 20);
    ncclResult_t error = ncclSuccess;

    for (int i = 0; error == ncclSuccess; i++) {
        CHECK_EQ(ncclAllReduce(data, data, 1 << 18, ncclFloat32, ncclSum, comm, stream),
                 ncclSuccess);
        if ((i == 20) && (world->rank == 0)) {
            kill(pid_of(2), SIGKILL);
        }
        while ((dev_idle(stream) == 0) && (error == ncclSuccess)) {
            CHECK_EQ(ncclCommGetAsyncError(comm, &error), ncclSuccess);
        }
    }
    CHECK_EQ(error, ncclRemoteError);
    CHECK_EQ(ncclCommAbort(comm), ncclSuccess);
    dev_sync(stream);
    CHECK(!has_named_memory());
}

/* A rank that ends without a word is noticed by those who wait for it. */
static void deserted(const struct world *world)
{
    ncclComm_t   comm = make(world);
    dev_stream_t stream = dev_stream();

    CHECK_EQ(allreduce(comm, stream), ncclSuccess); /* connects */
    dev_sync(stream);
    if (world->rank == 0) {
        _exit(0);
    }
    CHECK_EQ(allreduce(comm, stream), ncclSuccess);
    CHECK_EQ(wait_for_error(comm), ncclRemoteError);
    CHECK_EQ(ncclCommAbort(comm), ncclSuccess);
}

static void alloc(const struct world *world)
{
    void *ptr;

    dev_use(world->rank);
    CHECK_EQ(dev_try_alloc(16, &ptr), 0);
    CHECK_EQ(dev_try_alloc(16, &ptr), (world->rank > 0) ? 2 : 0);
    CHECK_EQ(dev_try_alloc(16, &ptr), 0);
}

static void copy(const struct world *world)
{
    dev_use(world->rank);
    char        *from = dev_alloc(16), *to = dev_alloc(16);
    dev_stream_t stream = dev_stream();

    CHECK_EQ(dev_try_copy(to, from, 16, stream), 0);
    CHECK_EQ(dev_try_copy(to, from, 16, stream), 304);
    CHECK_EQ(dev_try_copy(to, from, 16, stream), 0);
    dev_sync(stream);
}

#ifndef TEST_ROCM /* whose runtime ends the process */
/* The fourth call, after two allocations and a stream, and every one after it. */
static void crash(const struct world *world)
{
    dev_use(world->rank);
    char        *from = dev_alloc(16), *to = dev_alloc(16);
    dev_stream_t stream = dev_stream();
    void        *ptr;

    for (int i = 0; i < 2; i++) {
        CHECK_EQ(dev_try_copy(to, from, 16, stream), 700);
        CHECK_EQ(dev_try_alloc(16, &ptr), 700);
    }
}
#endif

int main(int argc, char **argv)
{
    const struct test_case cases[] = {
        {"init", init, 3, SIM, "init@1=1", NULL, -1},
        {"init_alone", init_stuck, 3, SIM, "init:alone@1", NULL, -1},
        {"init_hang", init_stuck, 3, SIM, "init:hang@1", NULL, -1},
        {"op", op, 3, SIM, "op:bcast@2,op:allreduce@2=3", NULL, -1},
        {"async", async, 3, SIM, "async:allreduce@1=2", NULL, -1},
        {"hang", hang, 3, SIM, "hang:bcast@0", NULL, -1},
        {"hang_any", hang, 3, SIM, "hang:any@1-2", NULL, -1},
        {"killed", killed, 4, SIM, "kill:allreduce@1", NULL, 1},
        {"killed_busy", killed_busy, 3, SIM, NULL, NULL, 2},
        {"deserted", deserted, 2, SIM, NULL, NULL, -1},
        {"alloc", alloc, 3, SIM, "alloc@1+2=2", NULL, -1},
        {"copy", copy, 1, SIM, "copy=2", NULL, -1},
#ifndef TEST_ROCM
        {"crash", crash, 1, SIM, "crash=4", NULL, -1},
#endif
    };

    return run_cases(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
