/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that a program maps itself (virtual memory management), as growing heaps of frameworks
 * are: a buffer crosses mappings, a stretch is unmapped and mapped again with other content, and no
 * other process can map it by an IPC handle.
 * Usage: mpi_virtual cuda|rocm CASE
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support.h"

enum { TAG = 7, CHUNKS = 4, SHORT = 1000, ROUNDS = 4, MANY = 20 };

/* CUmemAllocationProp and CUmemAccessDesc; HIP's are the same. */
struct location {
    int type, id;
};
struct prop {
    int             type, handle_types;
    struct location location;
    void           *win32;
    unsigned char   flags[8];
};
struct desc {
    struct location location;
    int             flags;
};
enum { PINNED = 1, POSIX_FD = 1, DEVICE = 1, READ_WRITE = 3 };

static struct {
    int (*granularity)(size_t *, const struct prop *, int);
    int (*reserve)(void **, size_t, size_t, void *, unsigned long long);
    int (*address_free)(void *, size_t);
    int (*create)(unsigned long long *, size_t, const struct prop *, unsigned long long);
    int (*release)(unsigned long long);
    int (*map)(void *, size_t, size_t, unsigned long long, unsigned long long);
    int (*unmap)(void *, size_t);
    int (*set_access)(void *, size_t, const struct desc *, size_t);
    int (*export)(void *, unsigned long long, int, unsigned long long);
    int (*import)(unsigned long long *, void *, int);
    int (*current)(int *);
} vm;

static struct prop prop = {PINNED, POSIX_FD, {DEVICE, 0}, NULL, {0}};
static struct desc desc = {{DEVICE, 0}, READ_WRITE};
static size_t      chunk; /* bytes of a mapping */

static void find(void *slot, const char *cuda, const char *hip)
{
    void *function = mt_driver(cuda, hip);

    memcpy(slot, &function, sizeof(function));
}

static void open_functions(void)
{
    find(&vm.granularity, "cuMemGetAllocationGranularity", "hipMemGetAllocationGranularity");
    find(&vm.reserve, "cuMemAddressReserve", "hipMemAddressReserve");
    find(&vm.address_free, "cuMemAddressFree", "hipMemAddressFree");
    find(&vm.create, "cuMemCreate", "hipMemCreate");
    find(&vm.release, "cuMemRelease", "hipMemRelease");
    find(&vm.map, "cuMemMap", "hipMemMap");
    find(&vm.unmap, "cuMemUnmap", "hipMemUnmap");
    find(&vm.set_access, "cuMemSetAccess", "hipMemSetAccess");
    find(&vm.export, "cuMemExportToShareableHandle", "hipMemExportToShareableHandle");
    find(&vm.import, "cuMemImportFromShareableHandle", "hipMemImportFromShareableHandle");
    find(&vm.current, "cuCtxGetDevice", "hipGetDevice");
    vm.current(&prop.location.id);
    desc.location = prop.location;
    mt_expect(vm.granularity(&chunk, &prop, 0) == 0, "the granularity is not told");
}

static char *reserve(void)
{
    void *at = NULL;

    mt_expect(vm.reserve(&at, CHUNKS * chunk, 0, NULL, 0) == 0, "no addresses");
    return at;
}

static void map(char *at)
{
    unsigned long long handle = 0;

    mt_expect(vm.create(&handle, chunk, &prop, 0) == 0, "no memory");
    mt_expect(vm.map(at, chunk, 0, handle, 0) == 0, "not mapped");
    mt_expect(vm.release(handle) == 0, "not released");
    mt_expect(vm.set_access(at, chunk, &desc, 1) == 0, "no access");
}

static void unmap(char *at, int chunks)
{
    mt_expect(vm.unmap(at, (size_t)chunks * chunk) == 0, "not unmapped");
}

static int next_rank(void)
{
    return (mt_rank() + 1) % mt_size();
}

static int last_rank(void)
{
    return (mt_rank() + mt_size() - 1) % mt_size();
}

/* This rank's values into it; they are told apart by salt. */
static void fill(int *at, int count, int salt)
{
    size_t bytes = sizeof(int) * (size_t)count;
    int   *host = calloc(1, bytes);

    for (int i = 0; i < count; i++) {
        host[i] = mt_value(mt_rank(), salt, i);
    }
    mt_put(at, MT_DEVICE, host, bytes);
    free(host);
}

static void expect(const int *at, int count, int from, int salt, const char *what)
{
    mt_ints_expect(at, MT_DEVICE, count, count, from, salt, what);
}

static void ring(int *in, int *out, int count, int salt, const char *what)
{
    MPI_Request requests[2];

    fill(in, count, salt);
    fill(out, count, salt + 1000);
    MPI_Sendrecv(in, count, MPI_INT, next_rank(), TAG, out, count, MPI_INT, last_rank(), TAG,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    expect(out, count, last_rank(), salt, what);
    fill(in, count, salt + 1);
    MPI_Irecv(out, count, MPI_INT, last_rank(), TAG, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(in, count, MPI_INT, next_rank(), TAG, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    expect(out, count, last_rank(), salt + 1, what);
}

/* Every rank's first value in turn: the sums differ with salt. */
static void reduce(int *in, int *out, int count, int salt, const char *what)
{
    size_t      bytes = sizeof(int) * (size_t)count;
    int        *host = calloc(1, bytes);
    int         wrong = 0;
    MPI_Request request;

    for (int form = 0; form < 2; form++) {
        for (int i = 0; i < count; i++) {
            host[i] = mt_rank() + i % 1000 + salt + form;
        }
        mt_put(in, MT_DEVICE, host, bytes);
        if (form == 0) {
            MPI_Allreduce(in, out, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        } else {
            MPI_Iallreduce(in, out, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        mt_get(host, out, MT_DEVICE, bytes);
        for (int i = 0; i < count; i++) {
            int n = mt_size();
            wrong += (host[i] != n * (n - 1) / 2 + n * (i % 1000 + salt + form));
        }
    }
    mt_expect(wrong == 0, "%s: %d sums are wrong", what, wrong);
    free(host);
}

static void bcast(int *at, int count, int salt, const char *what)
{
    fill(at, count, salt + mt_rank());
    MPI_Bcast(at, count, MPI_INT, 0, MPI_COMM_WORLD);
    expect(at, count, 0, salt, what);
}

/* Columns of a matrix that crosses mappings. */
static void columns(int *in, int *out, int salt, const char *what)
{
    enum { ROWS = 700, WIDTH = 30, STRIDE = 40 };
    MPI_Datatype type;

    MPI_Type_vector(ROWS, WIDTH, STRIDE, MPI_INT, &type);
    MPI_Type_commit(&type);
    fill(in, ROWS * STRIDE, salt);
    fill(out, ROWS * STRIDE, salt);
    MPI_Sendrecv(in, 1, type, mt_rank(), TAG, out, 1, type, mt_rank(), TAG, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    expect(out, ROWS * STRIDE, mt_rank(), salt, what);
    MPI_Sendrecv(in, 1, type, next_rank(), TAG, out, 1, type, last_rank(), TAG, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv_replace(out, 1, type, last_rank(), TAG, next_rank(), TAG, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
    expect(out, ROWS * STRIDE, mt_rank(), salt, what);
    MPI_Type_free(&type);
}

/* From the middle of the first mapping to that of the third. */
static int large_count(void)
{
    return (int)(2 * chunk / sizeof(int));
}

static int *in_the_middle(char *heap)
{
    return (int *)(void *)(heap + chunk / 2);
}

/* From shortly before the end of the first mapping to shortly behind it. */
static int *at_the_seam(char *heap)
{
    return (int *)(void *)(heap + chunk - SHORT * sizeof(int) / 2);
}

static void call_all(char *from, char *to, int rounds, int salt, const char *what)
{
    for (int round = 0; round < rounds; round++) {
        ring(at_the_seam(from), at_the_seam(to), SHORT, salt + round, what);
        reduce(at_the_seam(from), at_the_seam(to), SHORT, salt + round, what);
        bcast(at_the_seam(to), SHORT, salt + round, what);
        reduce(at_the_seam(from), at_the_seam(to), 2, salt + round, what);
    }
    for (int round = 0; round < 2; round++) {
        ring(in_the_middle(from), in_the_middle(to), large_count(), salt + round, what);
        reduce(in_the_middle(from), in_the_middle(to), large_count(), salt + round, what);
        bcast(in_the_middle(to), large_count(), salt + round, what);
        columns(at_the_seam(from), at_the_seam(to), salt + round, what);
    }
}

static char *heap_of(int chunks)
{
    char *heap = reserve();

    for (int i = 0; i < chunks; i++) {
        map(heap + (size_t)i * chunk);
    }
    return heap;
}

static void heap_free(char *heap, int chunks)
{
    unmap(heap, chunks);
    mt_expect(vm.address_free(heap, CHUNKS * chunk) == 0, "addresses not freed");
}

/* Buffers that cross mappings, in both roles and in one. */
static void crossing(void)
{
    char *from = heap_of(CHUNKS), *to = heap_of(CHUNKS);

    call_all(from, to, MANY, 1, "crossing");
    heap_free(from, CHUNKS);
    heap_free(to, CHUNKS);
}

/* One of the two is plain memory. */
static void mixed(void)
{
    char *from = heap_of(CHUNKS), *plain = mt_alloc(MT_DEVICE, CHUNKS * chunk);

    call_all(from, plain, ROUNDS, 1, "to plain memory");
    call_all(plain, from, ROUNDS, 50, "from plain memory");
    mt_free(MT_DEVICE, plain);
    heap_free(from, CHUNKS);
}

/* Other memory at the same addresses, and plain memory at addresses that were mapped. */
static void remapped(void)
{
    char *from = heap_of(CHUNKS), *to = heap_of(CHUNKS);

    for (int round = 0; round < 3; round++) {
        call_all(from, to, ROUNDS, round * 10, "mapped again");
        MPI_Barrier(MPI_COMM_WORLD);
        unmap(from + chunk, 2);
        unmap(to, 1);
        map(from + 2 * chunk);
        map(from + chunk);
        map(to);
    }
    heap_free(from, CHUNKS);
    heap_free(to, CHUNKS);
}

/* The heap grows behind what it has, and shrinks. */
static void grown(void)
{
    char *from = heap_of(1), *to = heap_of(1);

    for (int round = 0; round < 2; round++) {
        ring((int *)(void *)from, (int *)(void *)to, SHORT, round, "one mapping");
        reduce((int *)(void *)from, (int *)(void *)to, (int)(chunk / sizeof(int)), round, "one");
        for (int i = 1; i < CHUNKS; i++) {
            map(from + (size_t)i * chunk);
            map(to + (size_t)i * chunk);
        }
        call_all(from, to, ROUNDS, round, "grown");
        unmap(from + chunk, CHUNKS - 1);
        unmap(to + chunk, CHUNKS - 1);
    }
    heap_free(from, 1);
    heap_free(to, 1);
}

/* A persistent message and collective, whose memory is another from one start to the next. */
static void persistent(void)
{
    char       *from = heap_of(CHUNKS), *to = heap_of(CHUNKS);
    int        *in = in_the_middle(from), *out = in_the_middle(to), count = large_count();
    MPI_Request requests[2];

    MPI_Send_init(in, count, MPI_INT, next_rank(), TAG, MPI_COMM_WORLD, &requests[0]);
    MPI_Recv_init(out, count, MPI_INT, last_rank(), TAG, MPI_COMM_WORLD, &requests[1]);
    for (int round = 0; round < ROUNDS; round++) {
        fill(in, count, round);
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        expect(out, count, last_rank(), round, "persistent");
        MPI_Barrier(MPI_COMM_WORLD);
        unmap(from + chunk, 1);
        unmap(to + chunk, 1);
        map(from + chunk);
        map(to + chunk);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    heap_free(from, CHUNKS);
    heap_free(to, CHUNKS);
}

/* Memory that came from a file descriptor, mapped twice. */
static void exported(void)
{
    char              *from = reserve(), *to = heap_of(CHUNKS);
    unsigned long long handle = 0, imported = 0;
    int                fd = -1;

    mt_expect(vm.create(&handle, chunk, &prop, 0) == 0, "no memory");
    mt_expect(vm.export(&fd, handle, POSIX_FD, 0) == 0, "not exported");
    mt_expect(vm.import(&imported, (void *)(intptr_t)fd, POSIX_FD) == 0, "not imported");
    close(fd);
    mt_expect(vm.map(from, chunk, 0, handle, 0) == 0, "not mapped");
    mt_expect(vm.map(from + chunk, chunk, 0, imported, 0) == 0, "not mapped");
    vm.release(handle);
    vm.release(imported);
    mt_expect(vm.set_access(from, 2 * chunk, &desc, 1) == 0, "no access");
    for (int round = 0; round < ROUNDS; round++) {
        int *other = (int *)(void *)(from + chunk);
        ring((int *)(void *)from, (int *)(void *)to, SHORT, round, "exported");
        expect(other, SHORT, mt_rank(), round + 1, "by its other address");
        reduce(other, (int *)(void *)to, SHORT, round, "imported");
    }
    unmap(from, 2);
    mt_expect(vm.address_free(from, CHUNKS * chunk) == 0, "addresses not freed");
    heap_free(to, CHUNKS);
}

/* MPI_Pack and MPI_Unpack. */
static void packed(void)
{
    char *from = heap_of(CHUNKS), *to = heap_of(CHUNKS);
    int  *in = at_the_seam(from), *out = at_the_seam(to), position = 0;
    int   bytes = SHORT * (int)sizeof(int);

    fill(in, SHORT, 1);
    MPI_Pack(in, SHORT, MPI_INT, out, bytes, &position, MPI_COMM_WORLD);
    fill(in, SHORT, 2);
    position = 0;
    MPI_Unpack(out, bytes, &position, in, SHORT, MPI_INT, MPI_COMM_WORLD);
    expect(in, SHORT, mt_rank(), 1, "packed");
    heap_free(from, CHUNKS);
    heap_free(to, CHUNKS);
}

/* A window over mappings, whose next rank puts into it (XCCL_WINDOWS=separate). */
static void window(void)
{
    char   *heap = heap_of(CHUNKS);
    int    *memory = at_the_seam(heap), *origin = mt_ints_make(MT_DEVICE, SHORT, SHORT, 3);
    MPI_Win win;

    fill(memory, SHORT, 1);
    MPI_Win_create(memory, SHORT * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_fence(0, win);
    MPI_Put(origin, SHORT, MPI_INT, next_rank(), 0, SHORT, MPI_INT, win);
    MPI_Win_fence(0, win);
    expect(memory, SHORT, last_rank(), 3, "window");
    MPI_Win_free(&win);
    mt_free(MT_DEVICE, origin);
    heap_free(heap, CHUNKS);
}

int main(int argc, char **argv)
{
    static const struct mt_named_case cases[] = {
        {"crossing", crossing}, {"mixed", mixed},           {"remapped", remapped},
        {"grown", grown},       {"persistent", persistent}, {"exported", exported},
        {"packed", packed},     {"window", window},         {NULL, NULL},
    };

    mt_begin(&argc, &argv, true);
    open_functions();
    return mt_run_to_end(cases, argc, argv);
}
