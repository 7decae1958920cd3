/* SPDX-License-Identifier: BSD-3-Clause */
/* Every collective, type, operation and in-place form, against a reference of its own. */
#include <string.h>

#include "device.h"
#include "nccl_abi.h"
#include "ranks.h"
#include "reference.h"

#ifdef TEST_ROCM
#define SIM "rocm:8"
#else
#define SIM "cuda:8"
#endif
#define LARGEST 5003

struct setup {
    const struct world *world;
    ncclComm_t          comm;
    dev_stream_t        stream;
    unsigned char      *host; /* room for LARGEST elements of 8 bytes from every rank */
    unsigned char      *send;
    unsigned char      *recv;
    size_t              room;
};

static struct setup begin(const struct world *world)
{
    struct setup s = {.world = world, .room = (size_t)LARGEST * 8 * (size_t)world->size};
    ncclUniqueId id;

    dev_use(world->rank);
    if (world->rank == 0) {
        CHECK_EQ(ncclGetUniqueId(&id), ncclSuccess);
    }
    share_bytes(world, &id, sizeof(id));
    CHECK_EQ(ncclCommInitRank(&s.comm, world->size, id, world->rank), ncclSuccess);
    s.stream = dev_stream();
    s.host = malloc(s.room);
    s.send = dev_alloc(s.room);
    s.recv = dev_alloc(s.room);
    return s;
}

static void finish(struct setup *s)
{
    CHECK_EQ(ncclCommDestroy(s->comm), ncclSuccess);
    dev_stream_free(s->stream);
    dev_free(s->send);
    dev_free(s->recv);
    free(s->host);
}

/* Numbers of this rank: count elements, whose places begin at first. */
static void put_samples(struct setup *s, unsigned char *to, size_t first, size_t count, int seed,
                        ncclDataType_t type)
{
    for (size_t i = 0; i < count; i++) {
        write_number(s->host, i, type, sample(s->world->rank, first + i, seed));
    }
    dev_put(to, s->host, count * type_bytes(type));
}

static void get(struct setup *s, const unsigned char *from, size_t count, ncclDataType_t type)
{
    dev_sync(s->stream);
    memset(s->host, 0xa5, s->room);
    dev_get(s->host, from, count * type_bytes(type));
}

static void check_reduced(struct setup *s, size_t at, size_t first, size_t count, int seed,
                          ncclDataType_t type, ncclRedOp_t op)
{
    for (size_t i = 0; i < count; i++) {
        double want = reduce_samples(s->world->size, first + i, seed, op);
        double got = read_number(s->host, at + i, type);

        if (!agrees(got, want, type)) {
            fprintf(stderr, "type %d op %d element %zu: %g, not %g\n", (int)type, (int)op, i, got,
                    want);
        }
        CHECK(agrees(got, want, type));
    }
}

static void check_copied(struct setup *s, size_t at, int rank, size_t first, size_t count, int seed,
                         ncclDataType_t type)
{
    for (size_t i = 0; i < count; i++) {
        CHECK_EQ(read_number(s->host, at + i, type), sample(rank, first + i, seed));
    }
}

static void reductions(struct setup *s, size_t count, ncclDataType_t type, ncclRedOp_t op,
                       bool in_place, int seed)
{
    size_t         n = (size_t)s->world->size;
    size_t         me = (size_t)s->world->rank;
    int            root = seed % s->world->size;
    unsigned char *recv = in_place ? s->send : s->recv;
    unsigned char *block = in_place ? s->send + me * count * type_bytes(type) : s->recv;

    put_samples(s, s->send, 0, count, seed, type);
    CHECK_EQ(ncclAllReduce(s->send, recv, count, type, op, s->comm, s->stream), ncclSuccess);
    get(s, recv, count, type);
    check_reduced(s, 0, 0, count, seed, type, op);

    put_samples(s, s->send, 0, count, seed, type);
    CHECK_EQ(ncclReduce(s->send, (s->world->rank == root) ? recv : NULL, count, type, op, root,
                        s->comm, s->stream),
             ncclSuccess);
    get(s, recv, count, type);
    if (s->world->rank == root) {
        check_reduced(s, 0, 0, count, seed, type, op);
    }

    put_samples(s, s->send, 0, n * count, seed, type);
    CHECK_EQ(ncclReduceScatter(s->send, block, count, type, op, s->comm, s->stream), ncclSuccess);
    get(s, block, count, type);
    check_reduced(s, 0, me * count, count, seed, type, op);
}

static void movements(struct setup *s, size_t count, ncclDataType_t type, bool in_place, int seed)
{
    size_t         n = (size_t)s->world->size;
    size_t         me = (size_t)s->world->rank;
    int            root = seed % s->world->size;
    bool           is_root = (s->world->rank == root);
    size_t         bytes = count * type_bytes(type);
    unsigned char *mine = in_place ? s->recv + me * bytes : s->send;

    put_samples(s, in_place ? s->recv : s->send, 0, count, seed, type);
    if (in_place) {
        CHECK_EQ(ncclBcast(s->recv, count, type, root, s->comm, s->stream), ncclSuccess);
    } else {
        CHECK_EQ(
            ncclBroadcast(is_root ? s->send : NULL, s->recv, count, type, root, s->comm, s->stream),
            ncclSuccess);
    }
    get(s, s->recv, count, type);
    check_copied(s, 0, root, 0, count, seed, type);

    put_samples(s, mine, 0, count, seed, type);
    CHECK_EQ(ncclAllGather(mine, s->recv, count, type, s->comm, s->stream), ncclSuccess);
    get(s, s->recv, n * count, type);
    for (size_t i = 0; i < n; i++) {
        check_copied(s, i * count, (int)i, 0, count, seed, type);
    }

    bool gathers_in_place = in_place && is_root;
    put_samples(s, gathers_in_place ? mine : s->send, 0, count, seed + 1, type);
    CHECK_EQ(ncclGather(gathers_in_place ? mine : s->send, is_root ? s->recv : NULL, count, type,
                        root, s->comm, s->stream),
             ncclSuccess);
    get(s, s->recv, n * count, type);
    for (size_t i = 0; is_root && (i < n); i++) {
        check_copied(s, i * count, (int)i, 0, count, seed + 1, type);
    }

    put_samples(s, s->send, 0, n * count, seed, type);
    unsigned char *to = gathers_in_place ? s->send + me * bytes : s->recv;
    CHECK_EQ(ncclScatter(is_root ? s->send : NULL, to, count, type, root, s->comm, s->stream),
             ncclSuccess);
    get(s, to, count, type);
    check_copied(s, 0, root, me * count, count, seed, type);

    put_samples(s, s->send, 0, n * count, seed, type);
    CHECK_EQ(TEST_ALLTOALL(s->send, s->recv, count, type, s->comm, s->stream), ncclSuccess);
    get(s, s->recv, n * count, type);
    for (size_t i = 0; i < n; i++) {
        check_copied(s, i * count, (int)i, me * count, count, seed, type);
    }
}

/* All types and operations, small odd counts, in place and not. */
static void all_types(const struct world *world)
{
    struct setup s = begin(world);
    int          seed = 0;

    for (ncclDataType_t type = ncclInt8; type < ncclNumTypes; type++) {
        for (ncclRedOp_t op = ncclSum; op < ncclNumOps; op++) {
            reductions(&s, 3, type, op, false, seed++);
            reductions(&s, 131, type, op, true, seed++);
        }
        movements(&s, 1, type, false, seed++);
        movements(&s, 77, type, true, seed++);
    }
    finish(&s);
}

/* Counts around the borders of shares and blocks. */
static void counts(const struct world *world)
{
    static const size_t some[] = {1, 2, 63, 64, 65, 1000, 2047, 2048, 2049, 4099, LARGEST};
    struct setup        s = begin(world);

    for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
        reductions(&s, some[i], ncclFloat64, ncclSum, (i % 2) == 0, (int)i);
        reductions(&s, some[i], ncclInt32, ncclMax, (i % 2) == 1, (int)i);
        movements(&s, some[i], ncclInt32, (i % 2) == 0, (int)i);
    }
    finish(&s);
}

/* Nothing to do is done at once, even when the others do not come. */
static void nothing(const struct world *world)
{
    struct setup s = begin(world);

    if (world->rank == 0) {
        CHECK_EQ(ncclAllReduce(NULL, NULL, 0, ncclInt8, ncclSum, s.comm, s.stream), ncclSuccess);
        dev_sync(s.stream);
    }
    finish(&s);
}

/* Integers wrap, small floats round to even, float8 saturates, float16 overflows to infinity. */
static void rounding(const struct world *world)
{
    struct setup   s = begin(world);
    unsigned char  bytes[] = {200, 0x70, 0x01};         /* uint8; e4m3 128 and the smallest one */
    unsigned short halves[] = {0x7bff, 0x6800, 0x3c01}; /* 65504, 2048, 1 + 2^-10 */
    unsigned short want[] = {0x7c00, 0x6c00, 0x4001};

    dev_put(s.send, bytes, 1);
    CHECK_EQ(ncclAllReduce(s.send, s.recv, 1, ncclUint8, ncclSum, s.comm, s.stream), ncclSuccess);
    get(&s, s.recv, 1, ncclUint8);
    CHECK_EQ(s.host[0], (200 * world->size) & 255);

    dev_put(s.send, bytes + 1, 2);
    CHECK_EQ(ncclAllReduce(s.send, s.recv, 2, ncclFloat8e4m3, ncclProd, s.comm, s.stream),
             ncclSuccess);
    get(&s, s.recv, 2, ncclFloat8e4m3);
    CHECK_EQ(s.host[0], 0x7e); /* 448 */
    CHECK_EQ(s.host[1], 0);

    dev_put(s.send, halves, sizeof(halves));
    CHECK_EQ(ncclAllReduce(s.send, s.recv, 3, ncclFloat16, ncclSum, s.comm, s.stream), ncclSuccess);
    get(&s, s.recv, 3, ncclFloat16);
    CHECK_EQ(memcmp(s.host, want, sizeof(want)), 0);
    finish(&s);
}

static void premultiplied(const struct world *world)
{
    struct setup s = begin(world);
    float        scalar = (float)(world->rank + 1);
    float        one = 2.0F;
    float        got;
    float        want = 0;
    ncclRedOp_t  op;

    for (int i = 1; i <= world->size; i++) {
        want += 2.0F * (float)i;
    }
    dev_put(s.send, &one, sizeof(one));
    CHECK_EQ(ncclRedOpCreatePreMulSum(&op, &scalar, ncclFloat32, 1, s.comm), ncclSuccess);
    CHECK_EQ(ncclAllReduce(s.send, s.recv, 1, ncclFloat32, op, s.comm, s.stream), ncclSuccess);
    dev_sync(s.stream);
    dev_get(&got, s.recv, sizeof(got));
    CHECK_EQ(got, want);
    CHECK_EQ(ncclAllReduce(s.send, s.recv, 1, ncclFloat64, op, s.comm, s.stream),
             ncclInvalidArgument);
    CHECK_EQ(ncclRedOpDestroy(op, s.comm), ncclSuccess);
    CHECK_EQ(ncclAllReduce(s.send, s.recv, 1, ncclFloat32, op, s.comm, s.stream),
             ncclInvalidArgument);
    finish(&s);
}

/* Pinned and registered host memory can be reached by the device, too. */
static void host_memory(const struct world *world)
{
    struct setup s = begin(world);
    int         *pinned = dev_pinned(64);
    int          plain[4] = {world->rank, 1, 2, 3};

    dev_register(plain, sizeof(plain));
    CHECK_EQ(ncclAllReduce(plain, pinned, 4, ncclInt32, ncclSum, s.comm, s.stream), ncclSuccess);
    dev_sync(s.stream);
    CHECK_EQ(pinned[0], world->size * (world->size - 1) / 2);
    CHECK_EQ(pinned[3], 3 * world->size);
    CHECK_EQ(ncclAllReduce(plain, plain, 4, ncclInt32, ncclMax, s.comm, s.stream), ncclSuccess);
    dev_sync(s.stream);
    CHECK_EQ(plain[0], world->size - 1);
    finish(&s);
}

/* Several streams on one communicator: operations keep the order in which they were called. */
static void several_streams(const struct world *world)
{
    struct setup s = begin(world);
    dev_stream_t other = dev_stream();
    int          one = 1;

    dev_put(s.send, &one, sizeof(one));
    for (int i = 0; i < 20; i++) {
        dev_stream_t on = (i % 3 == world->rank % 3) ? s.stream : other; /* as each rank likes */

        CHECK_EQ(ncclAllReduce(s.send, s.send, 1, ncclInt32, ncclMax, s.comm, on), ncclSuccess);
    }
    dev_sync(s.stream);
    dev_sync(other);
    dev_get(&one, s.send, sizeof(one));
    CHECK_EQ(one, 1);
    dev_stream_free(other);
    finish(&s);
}

int main(int argc, char **argv)
{
    const struct test_case cases[] = {
        {"all_types_1", all_types, 1, SIM, NULL, NULL, -1},
        {"all_types_2", all_types, 2, SIM, NULL, NULL, -1},
        {"all_types_3", all_types, 3, SIM, NULL, NULL, -1},
        {"counts_2", counts, 2, SIM, NULL, NULL, -1},
        {"counts_5", counts, 5, SIM, NULL, NULL, -1},
        {"counts_8", counts, 8, SIM, NULL, NULL, -1},
        {"nothing", nothing, 2, SIM, NULL, NULL, -1},
        {"rounding", rounding, 2, SIM, NULL, NULL, -1},
        {"premultiplied", premultiplied, 3, SIM, NULL, NULL, -1},
        {"host_memory", host_memory, 3, SIM, NULL, NULL, -1},
        {"several_streams", several_streams, 4, SIM, NULL, NULL, -1},
    };

    return run_cases(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
