/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators: made, split, refused, given up. */
#include <dirent.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "device.h"
#ifndef TEST_ROCM
#include "driver_abi.h"
#endif
#include "nccl_abi.h"
#include "ranks.h"

#ifdef TEST_ROCM
#define SIM(n) "rocm:" #n
#define VERSION 22203
#else
#define SIM(n) "cuda:" #n
#define VERSION 22803
#endif

static ncclUniqueId shared_id(const struct world *world)
{
    ncclUniqueId id;

    if (world->rank == 0) {
        CHECK_EQ(ncclGetUniqueId(&id), ncclSuccess);
    }
    share_bytes(world, &id, sizeof(id));
    return id;
}

/* An allreduce of one integer; the result. */
static int sum_up(ncclComm_t comm, int mine)
{
    dev_stream_t stream = dev_stream();
    int         *device = dev_alloc(sizeof(int));

    dev_put(device, &mine, sizeof(mine));
    CHECK_EQ(ncclAllReduce(device, device, 1, ncclInt32, ncclSum, comm, stream), ncclSuccess);
    dev_sync(stream);
    dev_get(&mine, device, sizeof(mine));
    dev_free(device);
    dev_stream_free(stream);
    return mine;
}

static int open_files(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int  count = 0;

    while (readdir(dir) != NULL) {
        count++;
    }
    closedir(dir);
    return count;
}

static void basics(const struct world *world)
{
    ncclComm_t comm;
    int        number;

    dev_use(world->size - 1 - world->rank);
    CHECK_EQ(ncclGetVersion(&number), ncclSuccess);
    CHECK_EQ(number, VERSION);
    CHECK_EQ(ncclCommInitRank(&comm, world->size, shared_id(world), world->rank), ncclSuccess);
    CHECK_EQ(ncclCommCount(comm, &number), ncclSuccess);
    CHECK_EQ(number, world->size);
    CHECK_EQ(ncclCommUserRank(comm, &number), ncclSuccess);
    CHECK_EQ(number, world->rank);
    CHECK_EQ(ncclCommCuDevice(comm, &number), ncclSuccess);
    CHECK_EQ(number, world->size - 1 - world->rank);
    CHECK_EQ(sum_up(comm, 1), world->size);
    CHECK_EQ(ncclCommFinalize(comm), ncclSuccess);
    CHECK_EQ(ncclCommDestroy(comm), ncclSuccess);
    CHECK_EQ(ncclCommCount(comm, &number), ncclInvalidArgument);
    CHECK_EQ(ncclCommDestroy(NULL), ncclSuccess);
}

/* Made and destroyed again and again: no descriptor stays. */
static void again(const struct world *world)
{
    int before = 0;

    dev_use(world->rank);
    for (int i = 0; i < 20; i++) {
        ncclComm_t comm;

        CHECK_EQ(ncclCommInitRank(&comm, world->size, shared_id(world), world->rank), ncclSuccess);
        CHECK_EQ(sum_up(comm, 1), world->size);
        CHECK_EQ(ncclCommDestroy(comm), ncclSuccess);
        meet(world);
        before = (i == 0) ? open_files() : before;
    }
    CHECK_EQ(open_files(), before);
}

static void id_twice(const struct world *world)
{
    ncclUniqueId id = shared_id(world);
    ncclComm_t   comm;
    ncclComm_t   other;

    dev_use(world->rank);
    CHECK_EQ(ncclCommInitRank(&comm, world->size, id, world->rank), ncclSuccess);
    meet(world);
    CHECK_EQ(ncclCommInitRank(&other, world->size, id, world->rank), ncclInvalidUsage);
    CHECK(strstr(ncclGetLastError(NULL), "used twice") != NULL);
    meet(world); /* with its maker gone, the answer would be another */
    memset(&id, 1, sizeof(id));
    CHECK_EQ(ncclCommInitRank(&other, world->size, id, world->rank), ncclInvalidArgument);
    CHECK_EQ(ncclCommDestroy(comm), ncclSuccess);
}

static void same_device(const struct world *world)
{
    ncclComm_t comm;

    dev_use((world->rank == 2) ? 0 : world->rank);
    CHECK_EQ(ncclCommInitRank(&comm, world->size, shared_id(world), world->rank), ncclInvalidUsage);
    CHECK(strstr(ncclGetLastError(NULL), "Duplicate GPU detected : rank 0 and rank 2 both on ") !=
          NULL);
    CHECK(comm == NULL);
}

/* The same device numbers on two pretend nodes are different devices. */
static void two_nodes(const struct world *world)
{
    ncclComm_t comm;

    dev_use(world->rank % 2);
    CHECK_EQ(ncclCommInitRank(&comm, world->size, shared_id(world), world->rank), ncclSuccess);
    CHECK_EQ(sum_up(comm, world->rank), 6);
    CHECK_EQ(ncclCommDestroy(comm), ncclSuccess);
}

static void mixed_versions(const struct world *world)
{
    ncclComm_t comm;
    int        version;

    dev_use(world->rank);
    CHECK_EQ(ncclGetVersion(&version), ncclSuccess);
    CHECK_EQ(version, (world->rank == 1) ? 22703 : VERSION);
    CHECK_EQ(ncclCommInitRank(&comm, world->size, shared_id(world), world->rank), ncclInvalidUsage);
    CHECK(strstr(ncclGetLastError(NULL), "rank 1 version 22703") != NULL);
}

static void splits(const struct world *world)
{
    ncclComm_t comm;
    ncclComm_t part;
    int        number;

    dev_use(world->rank);
    CHECK_EQ(ncclCommInitRank(&comm, world->size, shared_id(world), world->rank), ncclSuccess);
    for (int round = 0; round < 3; round++) {
        /* 0 2 4 and 1 3, in the reverse order */
        CHECK_EQ(ncclCommSplit(comm, world->rank % 2, -world->rank, &part, NULL), ncclSuccess);
        CHECK_EQ(ncclCommUserRank(part, &number), ncclSuccess);
        CHECK_EQ(number, (world->size - 1 - world->rank) / 2);
        CHECK_EQ(sum_up(part, world->rank), (world->rank % 2 == 0) ? 6 : 4);
        CHECK_EQ(sum_up(comm, 1), world->size);
        CHECK_EQ(ncclCommDestroy(part), ncclSuccess);
    }
    int color = (world->rank == 1) ? NCCL_SPLIT_NOCOLOR : 0;
    CHECK_EQ(ncclCommSplit(comm, color, 0, &part, NULL), ncclSuccess);
    CHECK_EQ(part == NULL, world->rank == 1);
    CHECK_EQ(ncclCommDestroy(comm), ncclSuccess); /* the part lives on */
    if (part != NULL) {
        CHECK_EQ(sum_up(part, 1), world->size - 1);
        CHECK_EQ(ncclCommDestroy(part), ncclSuccess);
    }
}

static void wait_for(ncclComm_t comm)
{
    ncclResult_t state;

    do {
        CHECK_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
        usleep(1000);
    } while (state == ncclInProgress);
    CHECK_EQ(state, ncclSuccess);
}

/* The one that is split says when that has ended: there is nothing else to ask before. */
static void split_not_blocking(const struct world *world, ncclComm_t comm)
{
    ncclComm_t   part = comm;
    ncclResult_t state;
    int          count;

    if (world->rank == 1) {
        meet(world);
    }
    CHECK_EQ(ncclCommSplit(comm, 0, 0, &part, NULL), ncclSuccess);
    if (world->rank == 0) {
        CHECK(__atomic_load_n(&part, __ATOMIC_ACQUIRE) == NULL);
        CHECK_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
        CHECK_EQ(state, ncclInProgress);
        CHECK_EQ(ncclCommCount(comm, &count), ncclInvalidArgument);
        CHECK_EQ(ncclCommDestroy(comm), ncclInvalidArgument);
        meet(world);
    }
    wait_for(comm);
    CHECK_EQ(sum_up(part, 2), 2 * world->size);
    CHECK_EQ(ncclCommDestroy(part), ncclSuccess);
}

/* blocking = 0: calls return at once, and the communicator says when it is there. */
static void not_blocking(const struct world *world)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id = shared_id(world);
    ncclComm_t   comm;
    ncclResult_t state;
    int         *device;

    dev_use(world->rank);
    device = dev_alloc(4);
    config.blocking = 0;
    if (world->rank == 1) {
        meet(world); /* rank 0 comes here only if its call returned without us */
    }
    CHECK_EQ(ncclCommInitRankConfig(&comm, world->size, id, world->rank, &config), ncclInProgress);
    if (world->rank == 0) {
        CHECK_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
        CHECK_EQ(state, ncclInProgress);
        CHECK_EQ(ncclAllReduce(device, device, 1, ncclInt32, ncclSum, comm, NULL),
                 ncclInvalidArgument);
        meet(world);
    }
    wait_for(comm);
    CHECK_EQ(sum_up(comm, 2), 2 * world->size);
    split_not_blocking(world, comm);
    CHECK_EQ(ncclCommDestroy(comm), ncclSuccess);
    config.magic = 0;
    CHECK_EQ(ncclCommInitRankConfig(&comm, world->size, id, world->rank, &config),
             ncclInvalidArgument);
}

/* One process, all devices: by ncclCommInitAll and by a group of ncclCommInitRank. */
static void one_process(const struct world *world)
{
    enum { DEVICES = 3 };
    ncclComm_t   comms[DEVICES];
    dev_stream_t streams[DEVICES];
    int         *device[DEVICES];
    ncclUniqueId id;
    int          value;

    (void)world;
    for (int way = 0; way < 2; way++) {
        dev_use(0);
        if (way == 0) {
            CHECK_EQ(ncclCommInitAll(comms, DEVICES, NULL), ncclSuccess);
        } else {
            CHECK_EQ(ncclGetUniqueId(&id), ncclSuccess);
            CHECK_EQ(ncclGroupStart(), ncclSuccess);
            for (int i = 0; i < DEVICES; i++) {
                dev_use(i);
                CHECK_EQ(ncclCommInitRank(&comms[i], DEVICES, id, i), ncclSuccess);
            }
            CHECK_EQ(ncclGroupEnd(), ncclSuccess);
        }
        CHECK_EQ(ncclGroupStart(), ncclSuccess);
        for (int i = 0; i < DEVICES; i++) {
            value = i + 1;
            dev_use(i);
            streams[i] = dev_stream();
            device[i] = dev_alloc(4);
            dev_put(device[i], &value, 4);
            CHECK_EQ(
                ncclAllReduce(device[i], device[i], 1, ncclInt32, ncclProd, comms[i], streams[i]),
                ncclSuccess);
        }
        CHECK_EQ(ncclGroupEnd(), ncclSuccess);
        for (int i = 0; i < DEVICES; i++) {
            dev_use(i);
            dev_sync(streams[i]);
            dev_get(&value, device[i], 4);
            CHECK_EQ(value, 6);
            CHECK_EQ(ncclCommDestroy(comms[i]), ncclSuccess);
        }
    }
}

/* Bad arguments of operations: refused at the call, the communicator stays good. */
static void bad_arguments(const struct world *world)
{
    ncclComm_t comm;
    int        host[4] = {0};
    int       *device;
    int       *elsewhere;
    void      *ptr;

    dev_use(1 - world->rank);
    elsewhere = dev_alloc(64);
    dev_use(world->rank);
    device = dev_alloc(64);
    CHECK_EQ(ncclCommInitRank(&comm, world->size, shared_id(world), world->rank), ncclSuccess);
    CHECK_EQ(ncclAllReduce(host, device, 4, ncclInt32, ncclSum, comm, NULL), ncclInvalidArgument);
    CHECK(strstr(ncclGetLastError(comm), "not a valid pointer") != NULL);
    CHECK_EQ(ncclAllReduce(device, NULL, 4, ncclInt32, ncclSum, comm, NULL), ncclInvalidArgument);
    CHECK_EQ(ncclAllReduce(device, device, 17, ncclInt32, ncclSum, comm, NULL),
             ncclInvalidArgument);
    CHECK_EQ(ncclAllReduce(elsewhere, device, 4, ncclInt32, ncclSum, comm, NULL),
             ncclInvalidArgument);
    CHECK_EQ(ncclAllReduce(device, device, 4, (ncclDataType_t)12, ncclSum, comm, NULL),
             ncclInvalidArgument);
    CHECK_EQ(ncclAllReduce(device, device, 4, ncclInt32, (ncclRedOp_t)5, comm, NULL),
             ncclInvalidArgument);
    CHECK_EQ(ncclBroadcast(device, device, 4, ncclInt32, 2, comm, NULL), ncclInvalidArgument);
    CHECK_EQ(ncclBroadcast(device, device, 4, ncclInt32, -1, comm, NULL), ncclInvalidArgument);
    CHECK_EQ(ncclAllReduce(device, device, 4, ncclInt32, ncclSum, NULL, NULL), ncclInvalidArgument);
    CHECK_EQ(ncclCommDestroy(comm), ncclSuccess);
    CHECK_EQ(ncclCommInitRank(&comm, 2, (ncclUniqueId){{0}}, 2), ncclInvalidArgument);
    CHECK_EQ(ncclMemAlloc(&ptr, 100), ncclSuccess);
    CHECK_EQ(ncclMemFree(ptr), ncclSuccess);
    CHECK_EQ(ncclMemFree(ptr), ncclUnhandledCudaError);
}

/* Of virtual memory management on CUDA: whole, and without a handle for other processes. */
static void vendor_memory(const struct world *world)
{
    enum { WHOLE = 2 << 20 };
    ncclUniqueId id = shared_id(world);
    ncclComm_t   comm;
    void        *ptr = NULL;
    int          value = world->rank + 1, sum = 0;

    dev_use(world->rank);
    CHECK_EQ(ncclCommInitRank(&comm, world->size, id, world->rank), ncclSuccess);
    CHECK_EQ(ncclMemAlloc(&ptr, 100), ncclSuccess);
#ifndef TEST_ROCM
    CUipcMemHandle handle;
    CHECK((uintptr_t)ptr % WHOLE == 0);
    CHECK_EQ(cuIpcGetMemHandle(&handle, (CUdeviceptr)(uintptr_t)ptr), CUDA_ERROR_INVALID_VALUE);
    dev_put((char *)ptr + WHOLE - sizeof(value), &value, sizeof(value));
#endif
    dev_put(ptr, &value, sizeof(value));
    CHECK_EQ(ncclAllReduce(ptr, ptr, 1, ncclInt32, ncclSum, comm, NULL), ncclSuccess);
    dev_sync(NULL);
    dev_get(&sum, ptr, sizeof(sum));
    CHECK_EQ(sum, world->size * (world->size + 1) / 2);
    CHECK_EQ(ncclMemFree(ptr), ncclSuccess);
    CHECK_EQ(ncclCommDestroy(comm), ncclSuccess);
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

/*
 * What ranks do not agree on is an asynchronous error that names both; the operation stays open.
 * (Where connecting blocks, ranks that call different collectives do not get that far.)
 */
static void disagreement(const struct world *world)
{
    for (int what = 0; what < 5; what++) {
        ncclComm_t   comm;
        dev_stream_t stream;
        bool         odd = (world->rank == 1);
        char        *d;

        dev_use(world->rank);
        d = dev_alloc(256);
        stream = dev_stream();
        CHECK_EQ(ncclCommInitRank(&comm, world->size, shared_id(world), world->rank), ncclSuccess);
        if (what == 4) {
            if (odd) {
                CHECK_EQ(ncclAllReduce(d, d, 4, ncclInt32, ncclSum, comm, stream), ncclSuccess);
            } else {
                CHECK_EQ(ncclBcast(d, 4, ncclInt32, 0, comm, stream), ncclSuccess);
            }
        } else if (what == 3) {
            CHECK_EQ(ncclBcast(d, 4, ncclInt32, odd ? 1 : 0, comm, stream), ncclSuccess);
        } else {
            CHECK_EQ(ncclAllReduce(d, d, ((what == 0) && odd) ? 5 : 4,
                                   ((what == 1) && odd) ? ncclUint32 : ncclInt32,
                                   ((what == 2) && odd) ? ncclMax : ncclSum, comm, stream),
                     ncclSuccess);
        }
        CHECK_EQ(wait_for_error(comm), ncclInvalidUsage);
        CHECK(strstr(ncclGetLastError(comm), "rank 0 called") != NULL);
        CHECK(strstr(ncclGetLastError(comm), "rank 1 called") != NULL);
        CHECK_EQ(dev_idle(stream), 0);
        CHECK_EQ(ncclCommAbort(comm), ncclSuccess);
        dev_sync(stream);
        dev_stream_free(stream);
    }
}

static void *abort_later(void *arg)
{
    usleep(50000);
    CHECK_EQ(ncclCommAbort(arg), ncclSuccess);
    return NULL;
}

/* Rank 1 never comes: another thread of rank 0 aborts, and the stream is free again. */
static void abort_alone(const struct world *world)
{
    ncclComm_t   comm;
    dev_stream_t stream;
    pthread_t    thread;
    void        *d;

    dev_use(world->rank);
    d = dev_alloc(64);
    stream = dev_stream();
    CHECK_EQ(ncclCommInitRank(&comm, world->size, shared_id(world), world->rank), ncclSuccess);
    CHECK_EQ(ncclBcast(d, 16, ncclInt32, 1, comm, stream), ncclSuccess); /* connects */
    dev_sync(stream);
    if (world->rank == 0) {
        CHECK_EQ(ncclBcast(d, 16, ncclInt32, 1, comm, stream), ncclSuccess);
        CHECK_EQ(ncclBcast(d, 16, ncclInt32, 1, comm, stream), ncclSuccess);
        CHECK_EQ(pthread_create(&thread, NULL, abort_later, comm), 0);
        dev_sync(stream);
        pthread_join(thread, NULL);
    } else {
        CHECK_EQ(wait_for_error(comm), ncclRemoteError);
        CHECK_EQ(ncclCommDestroy(comm), ncclSuccess);
    }
}

int main(int argc, char **argv)
{
    const struct test_case cases[] = {
        {"basics", basics, 3, SIM(3), NULL, NULL, -1},
        {"again", again, 2, SIM(2), NULL, NULL, -1},
        {"id_twice", id_twice, 2, SIM(2), NULL, NULL, -1},
        {"same_device", same_device, 3, SIM(3), NULL, NULL, -1},
        {"two_nodes", two_nodes, 4, SIM(2), NULL, "XCCL_SIM_NODES=2", -1},
        {"mixed_versions", mixed_versions, 3, SIM(3), NULL, "XCCL_SIM_VERSION=22703@1", -1},
        {"splits", splits, 5, SIM(5), NULL, NULL, -1},
        {"vendor_memory", vendor_memory, 2, SIM(2), NULL, NULL, -1},
        {"not_blocking", not_blocking, 2, SIM(2), NULL, NULL, -1},
        {"one_process", one_process, 1, SIM(3), NULL, NULL, -1},
        {"bad_arguments", bad_arguments, 2, SIM(2), NULL, NULL, -1},
        {"disagreement", disagreement, 3, SIM(3), NULL, "XCCL_SIM_CONNECT=eager", -1},
        {"abort_alone", abort_alone, 2, SIM(2), NULL, NULL, -1},
    };

    return run_cases(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
