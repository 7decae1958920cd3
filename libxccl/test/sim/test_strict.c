/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the real libraries wait on the host, so does the simulation: creating, using, destroying.
 */
#include <pthread.h>
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

/* Let the last rank come late, and return when it did. */
static double come_late(const struct world *world)
{
    if (world->rank == world->size - 1) {
        usleep(100000);
    }
    return now();
}

/* Did rank 0 come back from its call only when the last rank had begun its own? */
static bool rank_0_waited(const struct world *world, double begun)
{
    double ended = now();

    share_bytes(world, &ended, sizeof(ended));
    return (world->rank != world->size - 1) || (ended >= begun);
}

/* Rank 0 leaves destroy only once the last rank has called it. */
static void destroy_waits(const struct world *world)
{
    ncclComm_t comm = make(world);
    double     begun = come_late(world);

    CHECK_EQ(ncclCommDestroy(comm), ncclSuccess);
    CHECK(rank_0_waited(world, begun));
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

static void sum(ncclComm_t comm, float *memory, dev_stream_t stream)
{
    CHECK_EQ(ncclAllReduce(memory, memory, 1, ncclFloat32, ncclSum, comm, stream), ncclSuccess);
}

/* It waits for what this rank has outstanding, which waits for the last rank. */
static void finalize_waits(const struct world *world)
{
    ncclComm_t   comm = make(world);
    dev_stream_t stream = dev_stream();
    float       *memory = dev_alloc(sizeof(*memory));

    sum(comm, memory, stream);
    dev_sync(stream);
    double begun = come_late(world);
    sum(comm, memory, stream);
    CHECK_EQ(ncclCommFinalize(comm), ncclSuccess);
    CHECK(rank_0_waited(world, begun));
    CHECK_EQ(ncclCommDestroy(comm), ncclSuccess);
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
    begun = now();
    CHECK_EQ(ncclCommDestroy(part), ncclSuccess);
    CHECK(now() - begun >= 0.2);
    CHECK_EQ(ncclCommAbort(comm), ncclSuccess);
    dup2(before, STDERR_FILENO);
    CHECK(pread(log, text, sizeof(text) - 1, 0) > 0);
    CHECK_EQ(count_lines(text, "Init COMPLETE"), 2);
    CHECK_EQ(count_lines(text, "Destroy COMPLETE"), 1);
    CHECK_EQ(count_lines(text, "Abort COMPLETE"), 1);
}

struct setup {
    ncclComm_t   comm;
    dev_stream_t stream;
    char        *data;
};

static struct setup begin(const struct world *world)
{
    struct setup s = {.comm = make(world)};

    s.stream = dev_stream();
    s.data = dev_alloc(1 << 20);
    return s;
}

static void finish(const struct setup *s)
{
    dev_sync(s->stream);
    CHECK_EQ(ncclCommDestroy(s->comm), ncclSuccess);
}

typedef ncclResult_t call_fn(const struct setup *s, size_t count);

static ncclResult_t allreduce(const struct setup *s, size_t count)
{
    return ncclAllReduce(s->data, s->data, count, ncclInt8, ncclMax, s->comm, s->stream);
}

static ncclResult_t reduce(const struct setup *s, size_t count)
{
    return ncclReduce(s->data, s->data, count, ncclInt8, ncclMax, 1, s->comm, s->stream);
}

static ncclResult_t bcast(const struct setup *s, size_t count)
{
    return ncclBcast(s->data, count, ncclInt8, 1, s->comm, s->stream);
}

static ncclResult_t allgather(const struct setup *s, size_t count)
{
    return ncclAllGather(s->data, s->data + (1 << 19), count, ncclInt8, s->comm, s->stream);
}

static ncclResult_t reduce_scatter(const struct setup *s, size_t count)
{
    return ncclReduceScatter(s->data, s->data + (1 << 19), count, ncclInt8, ncclMax, s->comm,
                             s->stream);
}

static ncclResult_t alltoall(const struct setup *s, size_t count)
{
    return TEST_ALLTOALL(s->data, s->data + (1 << 19), count, ncclInt8, s->comm, s->stream);
}

/* 20 launches of 0 to 50 ms each; without the variable they take no time worth the name. */
static void slow_launch(const struct world *world)
{
    struct setup s = begin(world);

    CHECK_EQ(allreduce(&s, 1), ncclSuccess); /* connects */
    dev_sync(s.stream);
    double begun = now();
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(allreduce(&s, 1), ncclSuccess);
    }
    CHECK((now() - begun > 0.2) && (now() - begun < 5));
    finish(&s);
}

/* Once connected, the call returns, and the stream waits for the others. */
static void check_enqueues(const struct world *world, const struct setup *s, call_fn *call,
                           size_t count)
{
    dev_sync(s->stream);
    if (world->rank == 0) {
        CHECK_EQ(call(s, count), ncclSuccess);
        usleep(5000);
        CHECK_EQ(dev_idle(s->stream), 0);
    }
    meet(world);
    if (world->rank != 0) {
        CHECK_EQ(call(s, count), ncclSuccess);
    }
    dev_sync(s->stream);
}

/* The first use of an algorithm waits in the call for all ranks. */
static void connect_collectives(const struct world *world)
{
    static call_fn *const calls[] = {allreduce, reduce, bcast, allgather, reduce_scatter, alltoall};
    struct setup          s = begin(world);

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        double begun = come_late(world);
        CHECK_EQ(calls[i](&s, 16), ncclSuccess);
        CHECK(rank_0_waited(world, begun));
        check_enqueues(world, &s, calls[i], 32);
    }
    double begun = come_late(world);
    CHECK_EQ(allreduce(&s, (64 << 10) + 1), ncclSuccess); /* another algorithm */
    CHECK(rank_0_waited(world, begun));
    check_enqueues(world, &s, allreduce, 1 << 20);
    finish(&s);
}

static void connect_eager(const struct world *world)
{
    struct setup s = begin(world);

    check_enqueues(world, &s, allreduce, 16);
    check_enqueues(world, &s, alltoall, 16);
    finish(&s);
}

/* A send waits for that receive, in that direction, and nobody else. */
static void connect_pair(const struct world *world)
{
    struct setup s = begin(world);

    for (int from = 0; from < 2; from++) {
        double begun = 0;

        if (world->rank == from) {
            usleep((from == 1) ? 100000 : 0);
            begun = now();
            CHECK_EQ(ncclSend(s.data, 8, ncclInt8, 1 - from, s.comm, s.stream), ncclSuccess);
        } else if (world->rank == 1 - from) {
            usleep((from == 0) ? 100000 : 0);
            begun = now();
            CHECK_EQ(ncclRecv(s.data, 8, ncclInt8, from, s.comm, s.stream), ncclSuccess);
        }
        double ended = now();
        share_bytes(world, &ended, sizeof(ended));
        CHECK((world->rank != 1) || (ended >= begun));
    }
    dev_sync(s.stream);
    if (world->rank == 0) { /* connected: the call returns */
        CHECK_EQ(ncclSend(s.data, 8, ncclInt8, 1, s.comm, s.stream), ncclSuccess);
    }
    meet(world);
    if (world->rank == 1) {
        CHECK_EQ(ncclRecv(s.data, 8, ncclInt8, 0, s.comm, s.stream), ncclSuccess);
    }
    finish(&s);
}

/* In a gather a rank waits for the root, and the root for all. */
static void connect_gather(const struct world *world)
{
    struct setup s = begin(world);
    struct setup part = {NULL, dev_stream(), dev_alloc(64)}; /* ranks 1 and 2 */
    double       begun = 0;

    CHECK_EQ(
        ncclCommSplit(s.comm, (world->rank == 0) ? NCCL_SPLIT_NOCOLOR : 0, 0, &part.comm, NULL),
        ncclSuccess);
    if (world->rank == 2) { /* after rank 1, which is back then */
        CHECK_EQ(allreduce(&part, 8), ncclSuccess);
        begun = come_late(world);
    }
    CHECK_EQ(ncclGather(s.data, s.data + 64, 8, ncclInt8, 0, s.comm, s.stream), ncclSuccess);
    if (world->rank == 1) {
        CHECK_EQ(allreduce(&part, 8), ncclSuccess);
    }
    CHECK(rank_0_waited(world, begun));
    if (world->rank != 0) {
        finish(&part);
    }
    finish(&s);
}

/* In a group all is connected together: of peers and of communicators, in any order. */
static void connect_group(const struct world *world)
{
    struct setup s[2] = {begin(world), begin(world)};
    int          peer = 1 - world->rank;

    CHECK_EQ(ncclGroupStart(), ncclSuccess);
    for (int i = 0; i < 2; i++) {
        const struct setup *which = &s[i ^ world->rank];

        CHECK_EQ(ncclSend(which->data, 8, ncclInt8, peer, which->comm, which->stream), ncclSuccess);
        CHECK_EQ(ncclRecv(which->data + 8, 8, ncclInt8, peer, which->comm, which->stream),
                 ncclSuccess);
        CHECK_EQ(allreduce(which, 16), ncclSuccess);
    }
    CHECK_EQ(ncclGroupEnd(), ncclSuccess);
    finish(&s[0]);
    finish(&s[1]);
}

/* Waiting for a rank that dies ends with an error. */
static void connect_deserted(const struct world *world)
{
    struct setup s = begin(world);

    if (world->rank == 1) {
        usleep(50000);
        _exit(0);
    }
    CHECK_EQ(allreduce(&s, 16), ncclRemoteError);
    CHECK_EQ(dev_idle(s.stream), 1);
    CHECK_EQ(ncclCommAbort(s.comm), ncclSuccess);
}

static void *abort_later(void *arg)
{
    usleep(50000);
    CHECK_EQ(ncclCommAbort(arg), ncclSuccess);
    return NULL;
}

/* So does waiting on a communicator that another thread aborts. */
static void connect_aborted(const struct world *world)
{
    struct setup s = begin(world);
    pthread_t    thread;

    if (world->rank == 0) {
        CHECK_EQ(pthread_create(&thread, NULL, abort_later, s.comm), 0);
        CHECK_EQ(ncclGroupStart(), ncclSuccess);
        CHECK_EQ(ncclSend(s.data, 8, ncclInt8, 1, s.comm, s.stream), ncclSuccess);
        CHECK_EQ(ncclGroupEnd(), ncclInternalError);
        meet(world);
        pthread_join(thread, NULL);
    } else {
        meet(world);
        CHECK_EQ(ncclCommAbort(s.comm), ncclSuccess);
    }
}

static void use_both(const struct setup *s, bool swap)
{
    CHECK_EQ(allreduce(&s[swap ? 1 : 0], 16), ncclSuccess);
    CHECK_EQ(allreduce(&s[swap ? 0 : 1], 16), ncclSuccess);
}

/* Two communicators of one device, used in the same order on both ranks, then in different ones. */
static void orders(const struct world *world, bool serial)
{
    struct setup s[2] = {begin(world), begin(world)};

    use_both(s, false); /* connects */
    use_both(s, true);
    dev_sync(s[0].stream);
    dev_sync(s[1].stream);
    meet(world);
    use_both(s, world->rank == 1);
    if (!serial) {
        finish(&s[0]);
        finish(&s[1]);
        return;
    }
    usleep(200000);
    CHECK_EQ(dev_idle(s[0].stream), 0);
    CHECK_EQ(dev_idle(s[1].stream), 0);
    meet(world);
    CHECK_EQ(ncclCommAbort(s[0].comm), ncclSuccess);
    dev_sync(s[0].stream); /* one abort lets the other go on */
    finish(&s[1]);
}

static void serial(const struct world *world)
{
    orders(world, true);
}

static void parallel(const struct world *world)
{
    orders(world, false);
}

/* The collective of one rank is launched in the call, also in a group, and in one that fails. */
static void alone_in_group(const struct world *world)
{
    ncclComm_t   comm = make(world);
    dev_stream_t stream = dev_stream();
    float        value = 3, back = 0;
    float       *from = dev_alloc(sizeof(value)), *to = dev_alloc(sizeof(value));

    dev_put(from, &value, sizeof(value));
    dev_put(to, &back, sizeof(back));
    CHECK_EQ(ncclGroupStart(), ncclSuccess);
    CHECK_EQ(ncclAllReduce(from, to, 1, ncclFloat32, ncclSum, comm, stream), ncclSuccess);
    CHECK_EQ(ncclBroadcast(from, to, 1, ncclFloat32, 1, comm, stream), ncclInvalidArgument);
    CHECK_EQ(ncclGroupEnd(), ncclInvalidArgument);
    dev_sync(stream);
    dev_get(&back, to, sizeof(back));
    CHECK(back == 3);
    CHECK_EQ(ncclCommDestroy(comm), ncclSuccess);
}

int main(int argc, char **argv)
{
    const struct test_case cases[] = {
        {"destroy_waits", destroy_waits, 3, SIM, NULL, NULL, -1},
        {"destroy_other_node", destroy_alone, 2, SIM, NULL, "XCCL_SIM_NODES=2", -1},
        {"destroy_free", destroy_alone, 2, SIM, NULL, "XCCL_SIM_DESTROY=free", -1},
        {"finalize_counts", finalize_counts, 2, SIM, NULL, NULL, -1},
        {"finalize_waits", finalize_waits, 2, SIM, NULL, NULL, -1},
        {"destroy_deserted", destroy_deserted, 2, SIM, NULL, NULL, -1},
        {"abort_patience", abort_patience, 2, SIM, NULL, NULL, -1},
        {"destroy_group", destroy_group, 2, SIM, NULL, NULL, -1},
        {"connect_collectives", connect_collectives, 3, SIM, NULL, NULL, -1},
        {"connect_eager", connect_eager, 3, SIM, NULL, "XCCL_SIM_CONNECT=eager", -1},
        {"connect_pair", connect_pair, 3, SIM, NULL, NULL, -1},
        {"connect_gather", connect_gather, 3, SIM, NULL, NULL, -1},
        {"connect_group", connect_group, 2, SIM, NULL, NULL, -1},
        {"connect_deserted", connect_deserted, 2, SIM, NULL, NULL, -1},
        {"connect_aborted", connect_aborted, 2, SIM, NULL, NULL, -1},
        {"alone_in_group", alone_in_group, 1, SIM, NULL, NULL, -1},
        {"parallel", parallel, 2, SIM, NULL, NULL, -1},
        {"serial", serial, 2, SIM, NULL, "XCCL_SIM_SERIAL=1", -1},
#ifndef TEST_ROCM
        {"one_connection", serial, 2, SIM, NULL, "CUDA_DEVICE_MAX_CONNECTIONS=1", -1},
        {"connections", parallel, 2, SIM, NULL, "CUDA_DEVICE_MAX_CONNECTIONS=1 XCCL_SIM_SERIAL=0",
         -1},
#endif
        {"slow_launch", slow_launch, 2, SIM, NULL, "XCCL_SIM_LAUNCH_US=50000", -1},
        {"slow_and_logged", slow_and_logged, 2, SIM, NULL,
         "XCCL_SIM_LOG=info XCCL_SIM_CONNECT_MS=200 XCCL_SIM_DESTROY_MS=200", -1},
    };

    return run_cases(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
