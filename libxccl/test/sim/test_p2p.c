/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends and receives: alone, in groups, with collectives, over several communicators. */
#include <string.h>
#include <unistd.h>

#include "device.h"
#include "nccl_abi.h"
#include "ranks.h"

#ifdef TEST_ROCM
#define SIM "rocm:8"
#else
#define SIM "cuda:8"
#endif
#define ROOM 4096

struct setup {
    const struct world *world;
    ncclComm_t          comm;
    dev_stream_t        stream;
    int                *send;
    int                *recv;
    int                 host[ROOM];
};

static void begin(struct setup *s, const struct world *world)
{
    ncclUniqueId id;

    s->world = world;
    dev_use(world->rank);
    if (world->rank == 0) {
        CHECK_EQ(ncclGetUniqueId(&id), ncclSuccess);
    }
    share_bytes(world, &id, sizeof(id));
    CHECK_EQ(ncclCommInitRank(&s->comm, world->size, id, world->rank), ncclSuccess);
    s->stream = dev_stream();
    s->send = dev_alloc(ROOM * sizeof(int));
    s->recv = dev_alloc(ROOM * sizeof(int));
    for (int i = 0; i < ROOM; i++) {
        s->host[i] = world->rank * 100000 + i;
    }
    dev_put(s->send, s->host, sizeof(s->host));
    memset(s->host, 0xff, sizeof(s->host));
    dev_put(s->recv, s->host, sizeof(s->host));
}

static void get(struct setup *s)
{
    dev_sync(s->stream);
    dev_get(s->host, s->recv, sizeof(s->host));
}

static void finish(struct setup *s)
{
    CHECK_EQ(ncclCommDestroy(s->comm), ncclSuccess);
}

static void pair(const struct world *world)
{
    static struct setup s;

    begin(&s, world);
    if (world->rank == 0) {
        CHECK_EQ(ncclSend(s.send, 100, ncclInt32, 1, s.comm, s.stream), ncclSuccess);
        CHECK_EQ(ncclSend(s.send + 100, 50, ncclInt32, 1, s.comm, s.stream), ncclSuccess);
    } else {
        CHECK_EQ(ncclRecv(s.recv, 100, ncclInt32, 0, s.comm, s.stream), ncclSuccess);
        CHECK_EQ(ncclRecv(s.recv + 100, 50, ncclInt32, 0, s.comm, s.stream), ncclSuccess);
        get(&s);
        for (int i = 0; i < 150; i++) {
            CHECK_EQ(s.host[i], i);
        }
        CHECK_EQ(s.host[150], -1);
    }
    finish(&s);
}

/* A send outside of a group holds its stream until the other side receives, once connected. */
static void lone_send_waits(const struct world *world)
{
    static struct setup s;

    begin(&s, world);
    if (world->rank == 0) {
        CHECK_EQ(ncclSend(s.send, 1, ncclInt32, 1, s.comm, s.stream), ncclSuccess);
        dev_sync(s.stream);
        CHECK_EQ(ncclSend(s.send, 1, ncclInt32, 1, s.comm, s.stream), ncclSuccess);
        usleep(50000);
        CHECK_EQ(dev_idle(s.stream), 0);
    } else {
        CHECK_EQ(ncclRecv(s.recv, 1, ncclInt32, 0, s.comm, s.stream), ncclSuccess);
    }
    meet(world);
    if (world->rank == 1) {
        CHECK_EQ(ncclRecv(s.recv, 1, ncclInt32, 0, s.comm, s.stream), ncclSuccess);
    }
    get(&s);
    finish(&s);
}

/* All to all by hand, more messages a pair than the ring holds, each rank in an order of its own.
 */
static void exchange(const struct world *world)
{
    enum { MESSAGES = 21, EACH = 8 };
    static struct setup s;
    int                 n = world->size;

    begin(&s, world);
    CHECK_EQ(ncclGroupStart(), ncclSuccess);
    for (int step = 0; step < n; step++) {
        int peer = (world->rank * 3 + step) % n;

        for (int m = 0; m < MESSAGES; m++) {
            CHECK_EQ(ncclRecv(s.recv + (peer * MESSAGES + m) * EACH, EACH, ncclInt32, peer, s.comm,
                              s.stream),
                     ncclSuccess);
        }
        for (int m = 0; m < MESSAGES; m++) {
            CHECK_EQ(ncclSend(s.send + (peer * MESSAGES + m) * EACH, EACH, ncclInt32, peer, s.comm,
                              s.stream),
                     ncclSuccess);
        }
    }
    CHECK_EQ(ncclGroupEnd(), ncclSuccess);
    get(&s);
    for (int peer = 0; peer < n; peer++) {
        for (int i = 0; i < MESSAGES * EACH; i++) {
            CHECK_EQ(s.host[peer * MESSAGES * EACH + i],
                     peer * 100000 + world->rank * MESSAGES * EACH + i);
        }
    }
    finish(&s);
}

/* Nested groups, a collective and messages together, and messages on two streams. */
static void mixed(const struct world *world)
{
    static struct setup s;
    dev_stream_t        other;
    int                 peer = 1 - world->rank;

    begin(&s, world);
    other = dev_stream();
    CHECK_EQ(ncclGroupStart(), ncclSuccess);
    CHECK_EQ(ncclSend(s.send, 4, ncclInt32, peer, s.comm, s.stream), ncclSuccess);
    CHECK_EQ(ncclGroupStart(), ncclSuccess);
    CHECK_EQ(ncclAllReduce(s.send + 10, s.recv + 10, 4, ncclInt32, ncclSum, s.comm, s.stream),
             ncclSuccess);
    CHECK_EQ(ncclGroupEnd(), ncclSuccess);
    CHECK_EQ(ncclRecv(s.recv, 4, ncclInt32, peer, s.comm, other), ncclSuccess);
    usleep(2000);
    CHECK_EQ(dev_idle(s.stream), 1); /* nothing has begun yet */
    CHECK_EQ(ncclGroupEnd(), ncclSuccess);
    dev_sync(other);
    get(&s);
    CHECK_EQ(s.host[1], peer * 100000 + 1);
    CHECK_EQ(s.host[11], 100022);
    CHECK_EQ(ncclGroupEnd(), ncclInvalidUsage);
    dev_stream_free(other);
    finish(&s);
}

/* An error in a group is the group's, and nothing of the group is done. */
static void group_error(const struct world *world)
{
    static struct setup s;

    begin(&s, world);
    CHECK_EQ(ncclGroupStart(), ncclSuccess);
    CHECK_EQ(ncclSend(s.send, 4, ncclInt32, 1 - world->rank, s.comm, s.stream), ncclSuccess);
    CHECK_EQ(ncclRecv(s.recv, 4, ncclInt32, 7, s.comm, s.stream), ncclInvalidArgument);
    CHECK_EQ(ncclGroupEnd(), ncclInvalidArgument);
    CHECK_EQ(dev_idle(s.stream), 1);
    CHECK_EQ(ncclAllReduce(s.send, s.recv, 1, ncclInt32, ncclMin, s.comm, s.stream), ncclSuccess);
    get(&s);
    CHECK_EQ(s.host[0], 0);
    finish(&s);
}

static void different_sizes(const struct world *world)
{
    static struct setup s;
    ncclResult_t        error = ncclSuccess;

    begin(&s, world);
    if (world->rank == 0) {
        CHECK_EQ(ncclSend(s.send, 4, ncclInt32, 1, s.comm, s.stream), ncclSuccess);
    } else {
        CHECK_EQ(ncclRecv(s.recv, 5, ncclInt32, 0, s.comm, s.stream), ncclSuccess);
    }
    while (error == ncclSuccess) {
        CHECK_EQ(ncclCommGetAsyncError(s.comm, &error), ncclSuccess);
    }
    CHECK_EQ(error, ncclInvalidUsage);
    if (world->rank == 1) {
        CHECK(strstr(ncclGetLastError(s.comm), "sends 16 bytes, rank 1 receives 20") != NULL);
    }
    CHECK_EQ(ncclCommAbort(s.comm), ncclSuccess);
    dev_sync(s.stream);
}

#ifdef TEST_ROCM
/* Blocks of different sizes, some empty. */
static void alltoallv(const struct world *world)
{
    static struct setup s;
    size_t              sends[8] = {0};
    size_t              recvs[8] = {0};
    size_t              from[8];
    size_t              to[8];

    begin(&s, world);
    for (int i = 0; i < world->size; i++) {
        sends[i] = (size_t)((world->rank + i) % 3);
        recvs[i] = sends[i];
        from[i] = (size_t)i * 5;
        to[i] = (size_t)i * 7;
    }
    CHECK_EQ(ncclAllToAllv(s.send, sends, from, s.recv, recvs, to, ncclInt32, s.comm, s.stream),
             ncclSuccess);
    get(&s);
    for (int i = 0; i < world->size; i++) {
        for (int k = 0; k < 7; k++) {
            CHECK_EQ(s.host[i * 7 + k],
                     (k < (int)recvs[i]) ? i * 100000 + world->rank * 5 + k : -1);
        }
    }
    finish(&s);
}
#endif

int main(int argc, char **argv)
{
    const struct test_case cases[] = {
        {"pair", pair, 2, SIM, NULL, NULL, -1},
        {"lone_send_waits", lone_send_waits, 2, SIM, NULL, NULL, -1},
        {"exchange_1", exchange, 1, SIM, NULL, NULL, -1},
        {"exchange_5", exchange, 5, SIM, NULL, NULL, -1},
        {"mixed", mixed, 2, SIM, NULL, NULL, -1},
        {"group_error", group_error, 2, SIM, NULL, NULL, -1},
        {"different_sizes", different_sizes, 2, SIM, NULL, NULL, -1},
#ifdef TEST_ROCM
        {"alltoallv", alltoallv, 4, SIM, NULL, NULL, -1},
#endif
    };

    return run_cases(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
