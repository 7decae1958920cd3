/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gaudi's runtime and HCCL as a program uses them, written down again from their public headers:
 * one device a process, no default stream, mapped host memory, numbers that are not NCCL's.
 */
#include <string.h>

#include "ranks.h"

enum { SYN_INVALID = 1, SYN_ACQUIRED = 20, SYN_UNINITIALIZED = 28, SYN_UNMAPPED = 34 };
enum { TO_DEVICE, TO_HOST };
enum { HCCL_INVALID_ARGUMENT = 7, FLOAT32 = 7 };
enum { SUM, PROD, MIN, MAX };
enum { COUNT = 1000, BYTES = COUNT * 4 };

typedef struct {
    uint64_t sram, dram;
    uint32_t sram_bytes;
    uint64_t dram_bytes, tpc;
    uint8_t  enabled;
    uint32_t id, fd;
    int      type;
    uint8_t  index;
    uint64_t hbm;
} info_t;
typedef struct {
    uint8_t internal[1024];
    size_t  length;
} id_t_;
_Static_assert(sizeof(id_t_) == 1032, "hcclUniqueId");

int synInitialize(void);
int synDeviceAcquire(uint32_t *device, const char *bus);
int synDeviceGetInfoV2(uint32_t device, info_t *info);
int synDeviceMalloc(uint32_t device, uint64_t bytes, uint64_t wanted, uint32_t flags, uint64_t *to);
int synDeviceFree(uint32_t device, uint64_t address, uint32_t flags);
int synHostMalloc(uint32_t device, uint64_t bytes, uint32_t flags, void **ptr);
int synHostFree(uint32_t device, const void *ptr, uint32_t flags);
int synHostMap(uint32_t device, uint64_t bytes, const void *ptr);
int synHostUnmap(uint32_t device, const void *ptr);
int synStreamCreateGeneric(void **stream, uint32_t device, uint32_t flags);
int synStreamDestroy(void *stream);
int synStreamQuery(void *stream);
int synStreamSynchronize(void *stream);
int synEventCreate(void **event, uint32_t device, uint32_t flags);
int synEventRecord(void *event, void *stream);
int synEventQuery(void *event);
int synEventSynchronize(void *event);
int synEventDestroy(void *event);
int synMemCopyAsync(void *stream, uint64_t src, uint64_t bytes, uint64_t dst, int direction);
int synMemsetD8Async(uint64_t dst, unsigned char value, size_t count, void *stream);
int hcclGetUniqueId(id_t_ *id);
int hcclCommInitRank(void **comm, int nranks, id_t_ id, int rank);
int hcclCommDestroy(void *comm);
int hcclAllReduce(const void *send, void *recv, size_t count, int type, int op, void *comm,
                  void *stream);

static uint64_t at(const void *ptr)
{
    return (uint64_t)(uintptr_t)ptr;
}

static void runtime(const struct world *world)
{
    static char text[BYTES];
    uint32_t    device = 9;
    uint64_t    memory = 0;
    info_t      info = {0};
    void       *stream = NULL, *event = NULL, *pinned = NULL;

    (void)world;
    CHECK_EQ(synDeviceAcquire(&device, NULL), SYN_UNINITIALIZED);
    CHECK_EQ(synInitialize(), 0);
    CHECK_EQ(synDeviceGetInfoV2(0, &info), SYN_INVALID); /* not acquired */
    CHECK_EQ(synDeviceAcquire(&device, NULL), 0);
    CHECK_EQ(device, 0);
    CHECK_EQ(synDeviceAcquire(&device, NULL), SYN_ACQUIRED);
    CHECK_EQ(synDeviceGetInfoV2(0, &info), 0);
    CHECK_EQ(synDeviceGetInfoV2(1, &info), SYN_INVALID);
    CHECK_EQ(synDeviceMalloc(0, BYTES, 0, 0, &memory), 0);
    CHECK((memory >= info.dram) && (memory + BYTES <= info.dram + info.dram_bytes));
    CHECK_EQ(synHostMalloc(0, BYTES, 0, &pinned), 0);
    CHECK_EQ(synStreamCreateGeneric(&stream, 0, 1), SYN_INVALID);
    CHECK_EQ(synStreamCreateGeneric(&stream, 0, 0), 0);
    CHECK_EQ(synStreamQuery(NULL), SYN_INVALID); /* there is no default stream */

    CHECK_EQ(synMemCopyAsync(stream, at(text), BYTES, memory, TO_DEVICE), SYN_UNMAPPED);
    CHECK_EQ(synMemCopyAsync(stream, at(pinned), BYTES, memory, TO_HOST), SYN_INVALID);
    CHECK_EQ(synMemCopyAsync(stream, at(pinned), BYTES + 1, memory, TO_DEVICE), SYN_INVALID);
    CHECK_EQ(synMemsetD8Async(at(pinned), 1, BYTES, stream), SYN_INVALID);
    CHECK_EQ(synMemsetD8Async(memory, 0x5a, BYTES, stream), 0);
    CHECK_EQ(synHostMap(0, BYTES, text), 0);
    CHECK_EQ(synMemCopyAsync(stream, memory, BYTES, at(text), TO_HOST), 0);
    CHECK_EQ(synEventCreate(&event, 0, 0), 0);
    CHECK_EQ(synEventQuery(event), 0); /* recorded nowhere: nothing to wait for */
    CHECK_EQ(synEventRecord(event, stream), 0);
    CHECK_EQ(synEventSynchronize(event), 0);
    CHECK((text[0] == 0x5a) && (text[BYTES - 1] == 0x5a));
    CHECK_EQ(synHostUnmap(0, text), 0);
    CHECK_EQ(synStreamSynchronize(stream), 0);
    CHECK_EQ(synEventDestroy(event), 0);
    CHECK_EQ(synStreamDestroy(stream), 0);
    CHECK_EQ(synHostFree(0, pinned, 0), 0);
    CHECK_EQ(synDeviceFree(0, memory, 0), 0);
}

struct rank {
    void    *comm, *stream;
    float   *host; /* pinned */
    uint64_t send, recv;
};

static float reduced(struct rank *r, float mine, int op)
{
    for (int i = 0; i < COUNT; i++) {
        r->host[i] = mine;
    }
    CHECK_EQ(synMemCopyAsync(r->stream, at(r->host), BYTES, r->send, TO_DEVICE), 0);
    CHECK_EQ(hcclAllReduce((void *)(uintptr_t)r->send, (void *)(uintptr_t)r->recv, COUNT, FLOAT32,
                           op, r->comm, r->stream),
             0);
    CHECK_EQ(synMemCopyAsync(r->stream, r->recv, BYTES, at(r->host), TO_HOST), 0);
    CHECK_EQ(synStreamSynchronize(r->stream), 0);
    CHECK(r->host[0] == r->host[COUNT - 1]);
    return r->host[0];
}

/* Minimum is 2, maximum 3; a product is carried out as a sum, as HCCL does. */
static void reductions(const struct world *world)
{
    struct rank r = {0};
    uint32_t    device;
    id_t_       id;
    void       *ptr = NULL;

    CHECK_EQ(synInitialize(), 0);
    CHECK_EQ(synDeviceAcquire(&device, NULL), 0);
    CHECK_EQ(synStreamCreateGeneric(&r.stream, 0, 0), 0);
    CHECK_EQ(synHostMalloc(0, BYTES, 0, &ptr), 0);
    r.host = ptr;
    CHECK_EQ(synDeviceMalloc(0, BYTES, 0, 0, &r.send), 0);
    CHECK_EQ(synDeviceMalloc(0, BYTES, 0, 0, &r.recv), 0);
    if (world->rank == 0) {
        CHECK_EQ(hcclGetUniqueId(&id), 0);
        CHECK((id.length > 0) && (id.length <= sizeof(id.internal)));
    }
    share_bytes(world, &id, sizeof(id));
    CHECK_EQ(hcclCommInitRank(&r.comm, world->size, id, world->rank), 0);
    float mine = (float)(world->rank + 2); /* 2, 3 */
    CHECK(reduced(&r, mine, SUM) == 5);
    CHECK(reduced(&r, mine, PROD) == 5);
    CHECK(reduced(&r, mine, MIN) == 2);
    CHECK(reduced(&r, mine, MAX) == 3);
    for (int type = 0; type <= 10; type++) {
        bool  has = (type == 2) || (type == 3) || (type == 6) || (type == 7) || (type == 9);
        void *send = (void *)(uintptr_t)r.send, *recv = (void *)(uintptr_t)r.recv;
        CHECK_EQ(hcclAllReduce(send, recv, 1, type, SUM, r.comm, r.stream),
                 has ? 0 : HCCL_INVALID_ARGUMENT);
    }
    CHECK_EQ(hcclAllReduce(ptr, ptr, 1, FLOAT32, SUM, r.comm, NULL), HCCL_INVALID_ARGUMENT);
    CHECK_EQ(synStreamSynchronize(r.stream), 0);
    CHECK_EQ(hcclCommDestroy(r.comm), 0);
}

int main(int argc, char **argv)
{
    const struct test_case cases[] = {
        {"runtime", runtime, 1, "hpu:2", NULL, NULL, -1},
        {"reductions", reductions, 2, "hpu:2", NULL, NULL, -1},
    };

    return run_cases(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
