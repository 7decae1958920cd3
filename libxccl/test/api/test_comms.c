/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Communicators on the simulated accelerator: asked, divided, made in groups and without waiting,
 * refused, broken and aborted. Each case is a run of its own, some with a planted fault.
 *
 * Usage: test_comms cuda|rocm
 */
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "colls.h"
#include "device.h"
#include "ranks.h"
#include "values.h"

enum { COUNT = 1021, ROOM = 1 << 16 };

static const char *flavour;

static const char *detail(void)
{
    return xcclGetLastError(NULL);
}

static void nap(void)
{
    struct timespec ms = {0, 1000000};
    nanosleep(&ms, NULL);
}

/* One collective on comm, compared. */
static void use(xcclComm_t comm, int nranks, int rank, enum xt_coll coll, xcclDataType_t type)
{
    struct xt_place place;
    struct xt_case  c = {.coll = coll, .type = type, .count = COUNT, .seed = 77 + (uint64_t)coll};

    xt_place_open(&place, comm, nranks, rank, ROOM * 8);
    CHECK(xt_case_call(&place, &c) == xcclSuccess, "%s", detail());
    CHECK(xt_case_compare(&place, &c), "wrong data");
    xt_place_close(&place);
}

static int queries(const struct xt_rank *self)
{
    xcclComm_t   comm = xt_comm(self);
    int          value = -1;
    xcclResult_t async = xcclInternalError;
    const char  *name = "";
    void        *memory = NULL;

    CHECK(xcclGetBackend(&name, &value) == xcclSuccess, "%s", detail());
    CHECK(strcmp(name, (strcmp(flavour, "rocm") == 0) ? "rccl" : "nccl") == 0, "%s", name);
    CHECK(value >= 20700, "version %d", value);
    CHECK((xcclCommCount(comm, &value) == xcclSuccess) && (value == self->nranks), "%d", value);
    CHECK((xcclCommUserRank(comm, &value) == xcclSuccess) && (value == self->rank), "%d", value);
    CHECK((xcclCommDevice(comm, &value) == xcclSuccess) && (value == self->rank), "%d", value);
    CHECK((xcclCommGetAsyncError(comm, &async) == xcclSuccess) && (async == xcclSuccess), "%d",
          async);
    CHECK(xcclMemAlloc(&memory, 4096) == xcclSuccess, "%s", detail());
    char bytes[64] = "written", back[64] = "";
    xt_put(memory, bytes, sizeof(bytes));
    xt_get(back, memory, sizeof(back));
    CHECK(strcmp(back, "written") == 0, "%s", back);
    CHECK(xcclMemFree(memory) == xcclSuccess, "%s", detail());
    use(comm, self->nranks, self->rank, XT_ALLREDUCE, xcclFloat32);
    CHECK(xcclCommFinalize(comm) == xcclSuccess, "%s", detail());
    CHECK(xcclCommDestroy(comm) == xcclSuccess, "%s", detail());
    CHECK(xcclCommDestroy(comm) == xcclInvalidArgument, "destroyed twice");
    return xt_failed;
}

/* Registered memory is used as any other; RCCL has no windows. */
static int windows(const struct xt_rank *self)
{
    enum { BYTES = 65536 };
    xcclComm_t   comm = xt_comm(self);
    xcclWindow_t win = NULL;
    char        *memory = NULL;
    void        *stream = xt_stream_new();
    int          value = self->rank + 1, sum = 0;
    bool         there = strcmp(flavour, "cuda") == 0;

    CHECK(xcclMemAlloc((void **)&memory, BYTES) == xcclSuccess, "%s", detail());
    xcclResult_t rc = xcclCommWindowRegister(comm, memory, BYTES, &win, XCCL_WIN_COLL_SYMMETRIC);
    CHECK(rc == (there ? xcclSuccess : xcclUnsupported), "%d: %s", (int)rc, detail());
    CHECK((win != NULL) == there, "a window");
    if (there) {
        rc = xcclCommWindowRegister(comm, memory + 8, BYTES, &win, XCCL_WIN_COLL_SYMMETRIC);
        CHECK(rc == xcclInvalidArgument, "no whole pages: %d", (int)rc);
    }
    CHECK(xcclGroupStart() == xcclSuccess, "%s", detail());
    rc = xcclCommWindowRegister(comm, NULL, BYTES, &win, XCCL_WIN_DEFAULT);
    CHECK(rc == xcclInvalidArgument, "no memory: %d", (int)rc);
    CHECK(xcclGroupEnd() == rc, "the end of the group says so, too");
    xt_put(memory, &value, sizeof(value));
    CHECK(xcclAllReduce(memory, memory, 1, xcclInt32, xcclSum, comm, stream) == xcclSuccess, "%s",
          detail());
    xt_stream_sync(stream);
    xt_stream_free(stream);
    xt_get(&sum, memory, sizeof(sum));
    CHECK(sum == self->nranks * (self->nranks + 1) / 2, "%d", sum);
    CHECK(xcclCommWindowDeregister(comm, win) == xcclSuccess, "%s", detail());
    CHECK(xcclMemFree(memory) == xcclSuccess, "%s", detail());
    CHECK(xcclCommDestroy(comm) == xcclSuccess, "%s", detail());
    return xt_failed;
}

/* With registration switched off the library succeeds without a window: there is nothing to undo.
 */
static int no_windows(const struct xt_rank *self)
{
    enum { BYTES = 65536 };
    static int   garbage;
    xcclWindow_t win = (xcclWindow_t)&garbage;
    void        *memory = NULL;

    setenv("NCCL_WIN_ENABLE", "0", 1);
    xcclComm_t comm = xt_comm(self);
    CHECK(xcclMemAlloc(&memory, BYTES) == xcclSuccess, "%s", detail());
    xcclResult_t rc = xcclCommWindowRegister(comm, memory, BYTES, &win, 9);
    CHECK((rc == xcclInvalidArgument) && ((void *)win == &garbage), "unchanged on failure");
    rc = xcclCommWindowRegister(comm, memory, BYTES, &win, XCCL_WIN_DEFAULT);
    if (strcmp(flavour, "cuda") == 0) {
        CHECK((rc == xcclSuccess) && (win == NULL), "%d, %p", (int)rc, (void *)win);
        CHECK(xcclCommWindowDeregister(comm, win) == xcclSuccess, "%s", detail());
    } else {
        CHECK((rc == xcclUnsupported) && ((void *)win == &garbage), "%d", (int)rc);
    }
    CHECK(xcclMemFree(memory) == xcclSuccess, "%s", detail());
    CHECK(xcclCommDestroy(comm) == xcclSuccess, "%s", detail());
    return xt_failed;
}

/* Even and odd ranks apart, in reverse order; the last has no part. */
static int split(const struct xt_rank *self)
{
    xcclComm_t comm = xt_comm(self);
    xcclComm_t part = comm;
    bool       outside = (self->rank == self->nranks - 1);
    int        color = outside ? XCCL_SPLIT_NOCOLOR : self->rank % 2;
    int        count = -1;
    int        rank = -1;

    CHECK(xcclCommSplit(comm, color, -self->rank, &part, NULL) == xcclSuccess, "%s", detail());
    if (outside) {
        CHECK(part == NULL, "no part is NULL");
    } else {
        int members = 0;
        int before = 0;
        for (int r = 0; r < self->nranks - 1; r++) {
            members += (r % 2 == color);
            before += (r % 2 == color) && (r > self->rank);
        }
        CHECK((xcclCommCount(part, &count) == xcclSuccess) && (count == members), "%d", count);
        CHECK((xcclCommUserRank(part, &rank) == xcclSuccess) && (rank == before), "%d", rank);
        use(part, members, before, XT_ALLTOALLV, xcclInt32);
        CHECK(xcclCommDestroy(part) == xcclSuccess, "%s", detail());
    }
    use(comm, self->nranks, self->rank, XT_ALLREDUCE, xcclFloat64);
    CHECK(xcclCommDestroy(comm) == xcclSuccess, "%s", detail());
    return xt_failed;
}

/* Of what a rank has no part in nothing is written when the group ends. */
static int split_without_part(const struct xt_rank *self)
{
    enum { SPLITS = 300, BLOCKS = 60, BYTES = 40, MARK = 0x5a };
    xcclComm_t comm = xt_comm(self), part = comm;
    char      *blocks[BLOCKS];
    int        wrong = 0;

    CHECK(xcclGroupStart() == xcclSuccess, "%s", detail());
    for (int i = 0; i < SPLITS; i++) {
        CHECK(xcclCommSplit(comm, XCCL_SPLIT_NOCOLOR, 0, &part, NULL) == xcclSuccess, "%s",
              detail());
        CHECK(part == NULL, "no part is NULL");
    }
    for (int i = 0; i < BLOCKS; i++) { /* of what was freed meanwhile */
        blocks[i] = malloc(BYTES);
        memset(blocks[i], MARK, BYTES);
    }
    CHECK(xcclGroupEnd() == xcclSuccess, "%s", detail());
    for (int i = 0; i < BLOCKS; i++) {
        for (int k = 0; k < BYTES; k++) {
            wrong += (blocks[i][k] != MARK);
        }
        free(blocks[i]);
    }
    CHECK(wrong == 0, "%d bytes were written", wrong);
    use(comm, self->nranks, self->rank, XT_ALLREDUCE, xcclFloat64);
    CHECK(xcclCommDestroy(comm) == xcclSuccess, "%s", detail());
    return xt_failed;
}

/* Several collectives, built in and composed, in one group: the composed ones nest theirs. */
static int grouped(const struct xt_rank *self)
{
    static const enum xt_coll colls[] = {XT_ALLTOALLV,  XT_ALLREDUCE, XT_GATHERV,
                                         XT_ALLGATHERV, XT_SCATTERV,  XT_ALLTOALL};
    enum { NUM = sizeof(colls) / sizeof(colls[0]) };
    struct xt_place places[NUM];
    struct xt_case  cases[NUM];
    xcclComm_t      comm = xt_comm(self);

    for (int i = 0; i < NUM; i++) {
        xt_place_open(&places[i], comm, self->nranks, self->rank, ROOM * 8);
        cases[i] = (struct xt_case){.coll = colls[i],
                                    .type = xcclInt32,
                                    .count = 100 + (size_t)i,
                                    .root = self->nranks - 1,
                                    .seed = 5 + (uint64_t)i};
        xt_stream_free(places[i].stream);
        places[i].stream = (i == 0) ? xt_stream_new() : places[0].stream;
    }
    CHECK(xcclGroupStart() == xcclSuccess, "%s", detail());
    for (int i = 0; i < NUM; i++) {
        CHECK(xt_case_call(&places[i], &cases[i]) == xcclSuccess, "%s", detail());
    }
    CHECK(xcclGroupEnd() == xcclSuccess, "%s", detail());
    for (int i = 0; i < NUM; i++) {
        CHECK(xt_case_compare(&places[i], &cases[i]), "%s in a group", xt_coll_name(colls[i]));
        if (i > 0) {
            places[i].stream = xt_stream_new(); /* of its own, for it to free */
        }
    }
    for (int i = 0; i < NUM; i++) {
        xt_place_close(&places[i]);
    }
    CHECK(xcclCommDestroy(comm) == xcclSuccess, "%s", detail());
    return xt_failed;
}

/* scalar * x summed over the ranks; each rank has a scalar of its own. */
static int own_operation(const struct xt_rank *self)
{
    xcclComm_t  comm = xt_comm(self);
    float       scalar = 0.5F * (float)(self->rank + 1);
    float       data[4] = {1, 2, -4, 8};
    float       sum = 0;
    float      *device = xt_alloc(sizeof(data) + sizeof(scalar));
    void       *stream = xt_stream_new();
    xcclRedOp_t op = xcclSum;

    for (int r = 0; r < self->nranks; r++) {
        sum += 0.5F * (float)(r + 1);
    }
    for (int residence = 0; residence <= 1; residence++) {
        float back[4] = {0};
        xt_put(device, data, sizeof(data));
        xt_put(device + 4, &scalar, sizeof(scalar));
        void *where = (residence == xcclScalarDevice) ? (void *)(device + 4) : (void *)&scalar;
        CHECK(xcclRedOpCreatePreMulSum(&op, where, xcclFloat32, (xcclScalarResidence_t)residence,
                                       comm) == xcclSuccess,
              "%s", detail());
        CHECK((int)op >= xcclNumOps, "%d", (int)op);
        CHECK(xcclAllReduce(device, device, 4, xcclFloat32, op, comm, stream) == xcclSuccess, "%s",
              detail());
        xt_stream_sync(stream);
        xt_get(back, device, sizeof(back));
        for (int i = 0; i < 4; i++) {
            CHECK(back[i] == sum * data[i], "%g instead of %g", (double)back[i],
                  (double)(sum * data[i]));
        }
        CHECK(xcclRedOpDestroy(op, comm) == xcclSuccess, "%s", detail());
    }
    CHECK(xcclAllReduce(device, device, 4, xcclFloat32, op, comm, stream) != xcclSuccess,
          "an operation that was destroyed");
    xt_stream_free(stream);
    xt_free(device);
    CHECK(xcclCommDestroy(comm) == xcclSuccess, "%s", detail());
    return xt_failed;
}

static void wait_until_ready(xcclComm_t comm)
{
    xcclResult_t state = xcclInProgress, rc = xcclSuccess;

    while ((comm != NULL) && (rc == xcclSuccess) && (state == xcclInProgress)) {
        rc = xcclCommGetAsyncError(comm, &state);
        nap();
    }
    CHECK((rc == xcclSuccess) && (state == xcclSuccess), "%d, %d: %s", rc, state, detail());
}

static xcclUniqueId shared_id(const struct xt_rank *self)
{
    xcclUniqueId id;

    if (self->rank == 0) {
        CHECK(xcclGetUniqueId(&id) == xcclSuccess, "%s", detail());
    }
    xt_share(self, &id, sizeof(id));
    return id;
}

static xcclComm_t make_without_waiting(const struct xt_rank *self)
{
    xcclConfig_t config = XCCL_CONFIG_INITIALIZER;
    xcclUniqueId id = shared_id(self);
    xcclComm_t   comm = NULL;

    config.blocking = 0;
    xcclResult_t rc = xcclCommInitRankConfig(&comm, self->nranks, id, self->rank, &config);
    CHECK((rc == xcclSuccess) || (rc == xcclInProgress), "%d: %s", rc, detail());
    CHECK(comm != NULL, "no communicator to poll");
    wait_until_ready(comm);
    return comm;
}

static int without_waiting(const struct xt_rank *self)
{
    xcclComm_t comm = make_without_waiting(self);

    use(comm, self->nranks, self->rank, XT_ALLGATHER, xcclInt64);
    xcclResult_t rc = xcclCommDestroy(comm);
    CHECK((rc == xcclSuccess) || (rc == xcclInProgress), "%d: %s", rc, detail());
    return xt_failed;
}

/* The other ranks have not begun the split. */
static void not_ready(xcclComm_t comm, xcclComm_t part)
{
    float       *memory = xt_alloc(64);
    xcclResult_t state = xcclSuccess;
    int          value = -7;

    CHECK((xcclCommGetAsyncError(part, &state) == xcclSuccess) && (state == xcclInProgress), "%d",
          (int)state);
    CHECK((xcclCommGetAsyncError(comm, &state) == xcclSuccess) && (state == xcclInProgress), "%d",
          (int)state);
    xcclResult_t rc = xcclCommCount(part, &value);
    CHECK((rc == xcclInProgress) && (value == -7), "%d, %d: %s", (int)rc, value, detail());
    CHECK_HAS(detail(), "xcclCommCount: comm is not ready yet; poll xcclCommGetAsyncError");
    CHECK(xcclCommDevice(part, &value) == xcclInProgress, "%s", detail());
    rc = xcclAllReduce(memory, memory, 1, xcclFloat32, xcclSum, part, NULL);
    CHECK(rc == xcclInvalidUsage, "%d: %s", (int)rc, detail());
    CHECK_HAS(detail(), "comm is not ready yet");
    CHECK(xcclCommDestroy(part) == xcclInvalidUsage, "it was lost: %s", detail());
    CHECK(xcclCommAbort(part) == xcclInvalidUsage, "it was lost: %s", detail());
    CHECK(xcclCommDestroy(comm) == xcclInvalidUsage, "it was lost: %s", detail());
    xt_free(memory);
}

/* Of a communicator that does not wait: the new one is there to be polled, and nothing else yet. */
static int split_without_waiting(const struct xt_rank *self)
{
    xcclComm_t comm = make_without_waiting(self), part = NULL, none = comm;
    int        turn = 0, value = -1;

    if (self->rank != 0) {
        xt_share(self, &turn, sizeof(turn));
    }
    xcclResult_t rc = xcclCommSplit(comm, 0, self->rank, &part, NULL);
    CHECK((rc == xcclInProgress) || ((rc == xcclSuccess) && (self->rank != 0)), "%d: %s", (int)rc,
          detail());
    CHECK(part != NULL, "nothing to poll");
    if (self->rank == 0) {
        not_ready(comm, part);
        xt_share(self, &turn, sizeof(turn));
    }
    wait_until_ready(part);
    CHECK((xcclCommCount(part, &value) == xcclSuccess) && (value == self->nranks), "%d", value);
    use(part, self->nranks, self->rank, XT_ALLGATHER, xcclInt64);
    CHECK(xcclCommDestroy(part) == xcclSuccess, "%s", detail());
    bool outside = (self->rank == 0);
    rc = xcclCommSplit(comm, outside ? XCCL_SPLIT_NOCOLOR : 0, 0, &none, NULL);
    CHECK((rc == xcclInProgress) || (rc == xcclSuccess), "%d: %s", (int)rc, detail());
    CHECK((none == NULL) == outside, "no part is NULL");
    wait_until_ready(comm); /* as good as the new one */
    CHECK(xcclCommDestroy(comm) == xcclSuccess, "%s", detail());
    if (!outside) {
        use(none, self->nranks - 1, self->rank - 1, XT_ALLREDUCE, xcclInt64);
        CHECK(xcclCommDestroy(none) == xcclSuccess, "%s", detail());
    }
    return xt_failed;
}

/* Before 2.17 the library itself knows no value that leaves it open. */
static int left_open(const struct xt_rank *self)
{
    xcclConfig_t config = XCCL_CONFIG_INITIALIZER;
    xcclUniqueId id = shared_id(self);
    xcclComm_t   comm = NULL;

    CHECK(xcclCommInitRankConfig(&comm, self->nranks, id, self->rank, &config) == xcclSuccess, "%s",
          detail());
    if (comm != NULL) {
        use(comm, self->nranks, self->rank, XT_ALLREDUCE, xcclFloat32);
        CHECK(xcclCommDestroy(comm) == xcclSuccess, "%s", detail());
    }
    return xt_failed;
}

/* One process, all devices: communicators made in a group, used in a group. */
static int one_process(const struct xt_rank *self)
{
    enum { DEVICES = 4 };
    xcclComm_t   comms[DEVICES] = {NULL};
    float       *memory[DEVICES];
    void        *streams[DEVICES];
    float        data[3] = {1, 2, 3};
    xcclUniqueId id;

    (void)self;
    CHECK(xcclGetUniqueId(&id) == xcclSuccess, "%s", detail());
    CHECK(xcclGroupStart() == xcclSuccess, "%s", detail());
    for (int d = 0; d < DEVICES; d++) {
        xt_device_open(flavour, d);
        streams[d] = xt_stream_new();
        memory[d] = xt_alloc(sizeof(data));
        xt_put(memory[d], data, sizeof(data));
        CHECK(xcclCommInitRank(&comms[d], DEVICES, id, d) == xcclSuccess, "%s", detail());
    }
    CHECK(xcclGroupEnd() == xcclSuccess, "%s", detail());
    CHECK(xcclGroupStart() == xcclSuccess, "%s", detail());
    for (int d = 0; d < DEVICES; d++) {
        CHECK(xcclAllReduce(memory[d], memory[d], 3, xcclFloat32, xcclSum, comms[d], streams[d]) ==
                  xcclSuccess,
              "%s", detail());
    }
    CHECK(xcclGroupEnd() == xcclSuccess, "%s", detail());
    for (int d = 0; d < DEVICES; d++) {
        float back[3];
        int   rank = -1;
        xt_device_open(flavour, d);
        xt_stream_sync(streams[d]);
        xt_get(back, memory[d], sizeof(back));
        CHECK((back[0] == 4) && (back[1] == 8) && (back[2] == 12), "device %d", d);
        CHECK((xcclCommDevice(comms[d], &rank) == xcclSuccess) && (rank == d), "device %d", rank);
        xt_stream_free(streams[d]);
        xt_free(memory[d]);
    }
    for (int d = 0; d < DEVICES; d++) {
        CHECK(xcclCommDestroy(comms[d]) == xcclSuccess, "%s", detail());
    }
    return xt_failed;
}

static int open_files(void)
{
    int  n = 0;
    DIR *dir = opendir("/proc/self/fd");

    while ((dir != NULL) && (readdir(dir) != NULL)) {
        n++;
    }
    closedir(dir);
    return n;
}

/* Communicators come and go, and leave no descriptors. */
static int many_lives(const struct xt_rank *self)
{
    int before = 0;

    for (int i = 0; i < 12; i++) {
        xcclComm_t comm = xt_comm(self);
        use(comm, self->nranks, self->rank, XT_BROADCAST, xcclUint8);
        CHECK(xcclCommDestroy(comm) == xcclSuccess, "%s", detail());
        before = (i == 3) ? open_files() : before; /* what stays for good is there by then */
    }
    CHECK(open_files() <= before, "%d descriptors instead of %d", open_files(), before);
    return xt_failed;
}

/* ---- refusals ---- */

static int same_device(const struct xt_rank *self)
{
    xcclComm_t comm = NULL;

    xt_device_open(flavour, 0);
    xcclUniqueId id = shared_id(self);
    CHECK(xcclCommInitRank(&comm, self->nranks, id, self->rank) == xcclInvalidUsage, "%s",
          detail());
    CHECK_HAS(detail(), "ncclCommInitRank failed");
    CHECK(comm == NULL, "the output was written");
    return xt_failed;
}

/* Rank 1 has another version than the one that made the id. Rank 0 does not wait for it. */
static int other_version(const struct xt_rank *self)
{
    xcclUniqueId id = shared_id(self);
    xcclComm_t   comm = NULL;

    if (self->rank == 1) {
        CHECK(xcclCommInitRank(&comm, self->nranks, id, 1) == xcclVersionMismatch, "%s", detail());
        CHECK_HAS(detail(), "rank 1 loaded ");
        CHECK_HAS(detail(), "2.26.2 from ");
        CHECK_HAS(detail(), "the id was made by ");
        CHECK(comm == NULL, "the output was written");
    }
    return xt_failed;
}

/* NCCL 2.23 has no float8: refused with nothing enqueued, so that the next call is in step. */
static int no_float8(const struct xt_rank *self)
{
    xcclComm_t comm = xt_comm(self);
    float     *buffer = xt_alloc(4096);

    CHECK(xcclAllReduce(buffer, buffer, 8, xcclFloat8e4m3, xcclSum, comm, NULL) == xcclUnsupported,
          "%s", detail());
    CHECK_HAS(detail(), "float8e4m3 sum");
    CHECK(xcclAlltoAll(buffer, buffer + 64, 8, xcclFloat8e5m2, comm, NULL) == xcclUnsupported, "%s",
          detail());
    use(comm, self->nranks, self->rank, XT_ALLREDUCE, xcclBfloat16);
    use(comm, self->nranks, self->rank, XT_ALLTOALLV, xcclFloat32);
    xt_free(buffer);
    CHECK(xcclCommDestroy(comm) == xcclSuccess, "%s", detail());
    return xt_failed;
}

static int host_memory(const struct xt_rank *self)
{
    xcclComm_t comm = xt_comm(self);
    float      data[8] = {0};

    CHECK(xcclAllReduce(data, data, 8, xcclFloat32, xcclSum, comm, NULL) == xcclInvalidArgument,
          "%s", detail());
    CHECK_HAS(detail(), "ncclAllReduce failed");
    CHECK_HAS(detail(), "not a valid pointer"); /* the vendor's own words */
    CHECK(xcclCommAbort(comm) == xcclSuccess, "%s", detail());
    return xt_failed;
}

/* Where the libraries are tried in turn, one that is not there is no failure of the call. */
static int not_the_first_library(const struct xt_rank *self)
{
    const char *name = "";
    int         version = 0;

    (void)self;
    CHECK(xcclCommCount(NULL, &version) == xcclInvalidArgument, "a failure");
    char before[256];
    snprintf(before, sizeof(before), "%s", detail());
    CHECK(xcclGetBackend(&name, &version) == xcclSuccess, "%s", detail());
    CHECK(strcmp(detail(), before) == 0, "the last failure is still: %s, not: %s", before,
          detail());
    return xt_failed;
}

static int no_library(const struct xt_rank *self)
{
    xcclUniqueId id;

    (void)self;
    CHECK(xcclGetUniqueId(&id) == xcclLibraryNotFound, "%s", detail());
    CHECK_HAS(detail(), (strcmp(flavour, "rocm") == 0) ? "librccl.so.1" : "libnccl.so.2");
    CHECK(xcclGetUniqueId(&id) == xcclLibraryNotFound, "asked again: %s", detail());
    CHECK(xcclGroupStart() == xcclLibraryNotFound, "%s", detail());
    return xt_failed;
}

static int no_symbol(const struct xt_rank *self)
{
    xcclUniqueId id;

    (void)self;
    CHECK(xcclGetUniqueId(&id) == xcclLibraryNotFound, "%s", detail());
    CHECK_HAS(detail(), "no symbol ncclRecv");
    CHECK_HAS(detail(), "XCCL_CCL_LIBRARY");
    return xt_failed;
}

/* ---- planted faults ---- */

static int failing_init(const struct xt_rank *self)
{
    xcclUniqueId id = shared_id(self);
    xcclComm_t   comm = NULL;

    xcclResult_t rc = xcclCommInitRank(&comm, self->nranks, id, self->rank);
    CHECK(rc != xcclSuccess, "rank %d made it", self->rank);
    CHECK((self->rank == 1) || (rc == xcclRemoteError), "%d: %s", rc, detail());
    CHECK_HAS(detail(), "ncclCommInitRank failed");
    CHECK(comm == NULL, "the output was written");
    xt_share(self, &id, sizeof(id)); /* the maker of the id is there until all have failed */
    return xt_failed;
}

static int failing_operation(const struct xt_rank *self)
{
    xcclComm_t comm = xt_comm(self);
    float     *buffer = xt_alloc(4096);

    xcclResult_t rc = xcclAllReduce(buffer, buffer, 8, xcclFloat32, xcclSum, comm, NULL);
    CHECK((rc != xcclSuccess) && (rc < xcclUnsupported), "%d: %s", rc, detail());
    CHECK_HAS(detail(), "ncclAllReduce failed");
    CHECK(xcclCommAbort(comm) == xcclSuccess, "%s", detail());
    (void)self;
    return xt_failed;
}

static int asynchronous_error(const struct xt_rank *self)
{
    xcclComm_t   comm = xt_comm(self);
    float       *buffer = xt_alloc(4096);
    void        *stream = xt_stream_new();
    xcclResult_t state = xcclSuccess;

    CHECK(xcclAllReduce(buffer, buffer, 8, xcclFloat32, xcclSum, comm, stream) == xcclSuccess, "%s",
          detail());
    for (int i = 0; (self->rank == 1) && (i < 5000) && (state == xcclSuccess); i++) {
        CHECK(xcclCommGetAsyncError(comm, &state) == xcclSuccess, "%s", detail());
        nap();
    }
    CHECK((self->rank != 1) || ((state != xcclSuccess) && (state != xcclInProgress)), "%d", state);
    CHECK(xcclCommAbort(comm) == xcclSuccess, "%s", detail());
    return xt_failed;
}

static void *abort_it(void *comm)
{
    nap();
    return (xcclCommAbort(comm) == xcclSuccess) ? comm : NULL;
}

/* An operation that never completes: another thread ends it, and the stream goes on. */
static int hanging_operation(const struct xt_rank *self)
{
    xcclComm_t comm = xt_comm(self);
    float     *buffer = xt_alloc(4096);
    void      *stream = xt_stream_new();
    void      *aborted = NULL;
    pthread_t  thread;

    (void)self;
    CHECK(xcclAllReduce(buffer, buffer, 8, xcclFloat32, xcclSum, comm, stream) == xcclSuccess, "%s",
          detail());
    pthread_create(&thread, NULL, abort_it, comm);
    xt_stream_sync(stream);
    pthread_join(thread, &aborted);
    CHECK(aborted == comm, "not aborted");
    CHECK(xcclCommDestroy(comm) == xcclInvalidArgument, "destroyed after it was aborted");
    xt_stream_free(stream);
    xt_free(buffer);
    return xt_failed;
}

/* ---- the runs ---- */

static const struct run {
    const char *what;
    int         nranks;
    int (*body)(const struct xt_rank *self);
    const char *variable, *value; /* set for this run */
    bool        own_device;       /* the body chooses it */
} runs[] = {
    {"queries, memory, one collective", 3, queries, NULL, NULL, false},
    {"memory registered as a window", 3, windows, NULL, NULL, false},
    {"no windows", 2, no_windows, "NCCL_LOCAL_REGISTER", "0", false},
    {"split", 6, split, NULL, NULL, false},
    {"splits without a part", 2, split_without_part, NULL, NULL, false},
    {"collectives in one group", 4, grouped, NULL, NULL, false},
    {"grouped, without the library's own", 3, grouped, "XCCL_SIM_FAIL",
     "symbol:ncclAlltoAll,symbol:ncclAllToAll,symbol:ncclAllToAllv,symbol:ncclGather", false},
    {"an operation of one's own", 3, own_operation, NULL, NULL, false},
    {"made without waiting", 3, without_waiting, NULL, NULL, false},
    {"split without waiting", 3, split_without_waiting, NULL, NULL, false},
    {"a configuration left open", 2, left_open, NULL, NULL, false},
    {"the same, of an old library", 2, left_open, "XCCL_SIM_VERSION", "21602", false},
    {"one process, four devices", 1, one_process, NULL, NULL, true},
    {"many lives", 2, many_lives, NULL, NULL, false},
    {"two ranks on one device", 2, same_device, NULL, NULL, true},
    {"another version", 2, other_version, "XCCL_SIM_VERSION", "22602@1", false},
    {"no float8", 2, no_float8, "XCCL_SIM_VERSION", "21805", false},
    {"host memory", 1, host_memory, "NCCL_CHECK_POINTERS", "1", false},
    {"the first library that there is", 1, not_the_first_library, NULL, NULL, true},
    {"no library", 1, no_library, "XCCL_SIM_FAIL", "load", false},
    {"no symbol", 1, no_symbol, "XCCL_SIM_FAIL", "symbol:ncclRecv", false},
    {"init fails on rank 1", 3, failing_init, "XCCL_SIM_FAIL", "init@1", false},
    {"an operation fails", 2, failing_operation, "XCCL_SIM_FAIL", "op:allreduce", false},
    {"an asynchronous error", 2, asynchronous_error, "XCCL_SIM_FAIL", "async:allreduce@1", false},
    {"an operation hangs", 2, hanging_operation, "XCCL_SIM_FAIL", "hang:allreduce", false},
};
enum { NUM_RUNS = sizeof(runs) / sizeof(runs[0]) };

static const struct run *current;

static int body(const struct xt_rank *self)
{
    if (!current->own_device) {
        xt_device_open(flavour, self->rank);
    }
    int failed = current->body(self);
    __atomic_fetch_add(&xt_shared->calls, xt_checked, __ATOMIC_RELAXED);
    return ((failed == 0) && (xt_checked > 0)) ? 0 : 1;
}

int main(int argc, char **argv)
{
    int failed = 0;

    if (argc < 2) {
        fprintf(stderr, "usage: %s cuda|rocm [run]\n", argv[0]);
        return 2;
    }
    flavour = argv[1];
    xt_ranks_open();
    for (int i = 0; i < NUM_RUNS; i++) {
        current = &runs[i];
        if ((argc > 2) && (atoi(argv[2]) != i)) {
            continue;
        }
        if (current->variable != NULL) {
            setenv(current->variable, current->value, 1);
        }
        bool ok = xt_run(current->nranks, 60, body);
        printf("%-6s %s: %s, %d ranks\n", ok ? "ok" : "FAILED", flavour, current->what,
               current->nranks);
        failed += !ok;
        if (current->variable != NULL) {
            unsetenv(current->variable);
        }
    }
    printf("%s: %d runs, %ld checks, %d runs failed\n", flavour, NUM_RUNS, xt_shared->calls,
           failed);
    return (failed == 0) ? 0 : 1;
}
