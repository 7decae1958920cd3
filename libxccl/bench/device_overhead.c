/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI calls through the interposer against the vendor's call and a stream synchronisation, both on
 * the same buffers of the same process, in blocks that alternate; alltoallv against alltoall; what
 * a split, one small call and a free cost; and how much of a non-blocking call is hidden.
 * Usage: XCCL_COMM_CREATE=first mpirun -n N xccl-run device_overhead [--large BYTES] [--no-limit]
 *        [json]
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "bench.h"
#include "device/device.h"
#include "vendor/vendor.h"

enum { NCCL_UINT8 = 1, NCCL_FLOAT32 = 7, NCCL_SUM = 0, ROUNDS = 15 };

struct bench {
    int                         rank, nranks, device;
    const struct xc_device_ops *dev;
    xcclStream_t                stream;
    struct xc_nccl_fns          fns;
    xc_nccl_comm_t              comm;
    char                        where[256];
    float                      *send, *recv;
};

static void die(const struct bench *b, const char *what)
{
    fprintf(stderr, "device_overhead: rank %d: %s: %s\n", b->rank, what, xc_last_detail());
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void start_device(struct bench *b)
{
    MPI_Comm local;
    int      local_rank, count = 0;
    void    *saved;

    PMPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, b->rank, MPI_INFO_NULL, &local);
    PMPI_Comm_rank(local, &local_rank);
    PMPI_Comm_free(&local);
    if ((xc_device_start("auto", &b->dev) != xcclSuccess) ||
        (b->dev->count(&count) != xcclSuccess)) {
        die(b, "no device");
    }
    b->device = local_rank % count;
    if ((b->dev->enter(b->device, &saved) != xcclSuccess) ||
        (b->dev->stream_create(&b->stream) != xcclSuccess)) {
        die(b, "device");
    }
}

/* The vendor library called directly, past everything of xccl but its search for the file. */
static void start_nccl(struct bench *b)
{
    size_t                    count;
    const struct xc_nccl_row *rows = xc_nccl_rows(&count), *row = rows;
    struct xc_vendor_lib      lib;
    xc_nccl_id_t              id;
    int                       version = 0;
    char                      name[128] = "", text[16];

    while ((row < rows + count) && (strcmp(row->device, b->dev->name) != 0)) {
        row++;
    }
    if ((row == rows + count) ||
        (xc_nccl_open(row, NULL, &lib, &b->fns, &version) != xcclSuccess)) {
        die(b, "no vendor library");
    }
    memset(&id, 0, sizeof(id));
    if ((b->rank == 0) && (b->fns.get_unique_id(&id) != XC_NCCL_SUCCESS)) {
        die(b, "ncclGetUniqueId");
    }
    PMPI_Bcast(&id, (int)sizeof(id), MPI_BYTE, 0, MPI_COMM_WORLD);
    if (b->fns.comm_init_rank(&b->comm, b->nranks, id, b->rank) != XC_NCCL_SUCCESS) {
        die(b, "ncclCommInitRank");
    }
    (void)b->dev->name_of(b->device, name, sizeof(name));
    snprintf(b->where, sizeof(b->where), "%d x %s, %s %s", b->nranks, name, row->name,
             xc_nccl_version_text(version, text, sizeof(text)));
}

static void need(const struct bench *b, int result, const char *what)
{
    if ((result != XC_NCCL_SUCCESS) || (b->dev->stream_sync(b->stream) != xcclSuccess)) {
        die(b, what);
    }
}

/* One side of a comparison: bytes as OSU's benchmarks count them. */
typedef void call_fn(const struct bench *b, size_t bytes);

static void nccl_allreduce(const struct bench *b, size_t bytes)
{
    need(b,
         b->fns.all_reduce(b->send, b->recv, bytes / 4, NCCL_FLOAT32, NCCL_SUM, b->comm, b->stream),
         "ncclAllReduce");
}

static void mpi_allreduce(const struct bench *b, size_t bytes)
{
    MPI_Allreduce(b->send, b->recv, (int)(bytes / 4), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void nccl_bcast(const struct bench *b, size_t bytes)
{
    need(b, b->fns.broadcast(b->send, b->send, bytes, NCCL_UINT8, 0, b->comm, b->stream),
         "ncclBroadcast");
}

static void mpi_bcast(const struct bench *b, size_t bytes)
{
    MPI_Bcast(b->send, (int)(bytes / 4), MPI_FLOAT, 0, MPI_COMM_WORLD);
}

static void nccl_reduce(const struct bench *b, size_t bytes)
{
    need(b,
         b->fns.reduce(b->send, b->recv, bytes / 4, NCCL_FLOAT32, NCCL_SUM, 0, b->comm, b->stream),
         "ncclReduce");
}

static void mpi_reduce(const struct bench *b, size_t bytes)
{
    MPI_Reduce(b->send, b->recv, (int)(bytes / 4), MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
}

/* As nccl-tests does it: a group of sends and receives. */
static void nccl_gather(const struct bench *b, size_t bytes)
{
    (void)b->fns.group_start();
    (void)b->fns.send(b->send, bytes, NCCL_UINT8, 0, b->comm, b->stream);
    for (int i = 0; (b->rank == 0) && (i < b->nranks); i++) {
        (void)b->fns.recv((char *)b->recv + (size_t)i * bytes, bytes, NCCL_UINT8, i, b->comm,
                          b->stream);
    }
    need(b, b->fns.group_end(), "gather");
}

static void mpi_gather(const struct bench *b, size_t bytes)
{
    MPI_Gather(b->send, (int)(bytes / 4), MPI_FLOAT, b->recv, (int)(bytes / 4), MPI_FLOAT, 0,
               MPI_COMM_WORLD);
}

static void nccl_scatter(const struct bench *b, size_t bytes)
{
    (void)b->fns.group_start();
    for (int i = 0; (b->rank == 0) && (i < b->nranks); i++) {
        (void)b->fns.send((char *)b->send + (size_t)i * bytes, bytes, NCCL_UINT8, i, b->comm,
                          b->stream);
    }
    (void)b->fns.recv(b->recv, bytes, NCCL_UINT8, 0, b->comm, b->stream);
    need(b, b->fns.group_end(), "scatter");
}

static void mpi_scatter(const struct bench *b, size_t bytes)
{
    MPI_Scatter(b->send, (int)(bytes / 4), MPI_FLOAT, b->recv, (int)(bytes / 4), MPI_FLOAT, 0,
                MPI_COMM_WORLD);
}

static void mpi_alltoall(const struct bench *b, size_t bytes)
{
    MPI_Alltoall(b->send, (int)(bytes / 4), MPI_FLOAT, b->recv, (int)(bytes / 4), MPI_FLOAT,
                 MPI_COMM_WORLD);
}

static void mpi_alltoallv(const struct bench *b, size_t bytes)
{
    int counts[64], displs[64];

    for (int i = 0; i < b->nranks; i++) {
        counts[i] = (int)(bytes / 4);
        displs[i] = i * (int)(bytes / 4);
    }
    MPI_Alltoallv(b->send, counts, displs, MPI_FLOAT, b->recv, counts, displs, MPI_FLOAT,
                  MPI_COMM_WORLD);
}

/* us per call, the slowest rank's. */
static double time_block(const struct bench *b, call_fn *call, size_t bytes, int calls)
{
    double mine, all = 0;

    PMPI_Barrier(MPI_COMM_WORLD);
    double start = bench_now_ns();
    for (int i = 0; i < calls; i++) {
        call(b, bytes);
    }
    mine = (bench_now_ns() - start) / 1e3 / calls;
    PMPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all;
}

static void check_path(const struct bench *b, call_fn *call, size_t bytes)
{
    const char *(*last)(void) = (const char *(*)(void))dlsym(RTLD_DEFAULT, "xccl_mpi_last_path");

    call(b, bytes);
    if ((last == NULL) || (strcmp(last(), "ccl") != 0)) {
        fprintf(stderr,
                "device_overhead: rank %d: a call took the path '%s', not 'ccl'; run it under "
                "xccl-run with XCCL_COMM_CREATE=first, and see XCCL_LOG=info\n",
                b->rank, (last != NULL) ? last() : "no interposer");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

enum measure { DIFFERENCE, PERCENT, RATIO };

struct comparison {
    const char  *name;
    call_fn     *direct, *through;
    size_t       bytes; /* 0: the large size */
    int          calls;
    enum measure measure;
    double       limit;
};

static void measure(const struct bench *b, const struct comparison *c, size_t bytes,
                    struct bench_bar *bar)
{
    double direct[ROUNDS], through[ROUNDS], value[ROUNDS];

    (void)time_block(b, c->direct, bytes, c->calls);
    (void)time_block(b, c->through, bytes, c->calls);
    check_path(b, c->through, bytes);
    for (int i = 0; i < ROUNDS; i++) {
        if (i % 2 == 0) {
            direct[i] = time_block(b, c->direct, bytes, c->calls);
        }
        through[i] = time_block(b, c->through, bytes, c->calls);
        if (i % 2 == 1) {
            direct[i] = time_block(b, c->direct, bytes, c->calls);
        }
        double ratio = through[i] / direct[i];
        value[i] = (c->measure == DIFFERENCE) ? through[i] - direct[i]
                   : (c->measure == PERCENT)  ? (ratio - 1) * 100
                                              : ratio;
    }
    bar->without = bench_median(direct, ROUNDS);
    bar->with = bench_median(through, ROUNDS);
    bar->measured = bench_median(value, ROUNDS);
    bar->unit = (c->measure == DIFFERENCE) ? "us" : (c->measure == PERCENT) ? "%" : "x";
}

static const struct comparison comparisons[] = {
    {"allreduce 8 B", nccl_allreduce, mpi_allreduce, 8, 200, DIFFERENCE, 0.5},
    {"allreduce 4 KiB", nccl_allreduce, mpi_allreduce, 4096, 200, DIFFERENCE, 0.5},
    {"bcast 8 B", nccl_bcast, mpi_bcast, 8, 200, DIFFERENCE, 0.5},
    {"reduce 8 B", nccl_reduce, mpi_reduce, 8, 200, DIFFERENCE, 0.5},
    {"allreduce large", nccl_allreduce, mpi_allreduce, 0, 3, PERCENT, 1},
    {"gather 64 MiB", nccl_gather, mpi_gather, 64 << 20, 5, RATIO, 1.02},
    {"scatter 64 MiB", nccl_scatter, mpi_scatter, 64 << 20, 5, RATIO, 1.02},
    {"alltoallv against alltoall 8 B", mpi_alltoall, mpi_alltoallv, 8, 200, RATIO, 1.1},
    {"alltoallv against alltoall 1 MiB", mpi_alltoall, mpi_alltoallv, 1 << 20, 50, RATIO, 1.1},
};
enum { COMPARISONS = sizeof(comparisons) / sizeof(comparisons[0]), BARS = COMPARISONS + 2 };

/*
 * 50 times a split, one 8 B allreduce and a free: seconds. With XCCL_COMM_CREATE=first each of them
 * has a vendor communicator, made once and used again.
 */
static double time_splits(const struct bench *b)
{
    double mine, all = 0;

    PMPI_Barrier(MPI_COMM_WORLD);
    double start = bench_now_ns();
    for (int i = 0; i < 50; i++) {
        MPI_Comm comm;
        MPI_Comm_split(MPI_COMM_WORLD, b->rank % 2, b->rank, &comm);
        MPI_Allreduce(b->send, b->recv, 2, MPI_FLOAT, MPI_SUM, comm);
        MPI_Comm_free(&comm);
    }
    mine = (bench_now_ns() - start) / 1e9;
    PMPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all;
}

static void work_on_host(double us)
{
    double end = bench_now_ns() + us * 1e3;

    while (bench_now_ns() < end) {}
}

/* The part of host work that a non-blocking allreduce runs beside, in percent. */
static double measure_overlap(const struct bench *b, size_t bytes, double work_us)
{
    double values[ROUNDS], worst = 0;

    for (int i = 0; i < ROUNDS; i++) {
        MPI_Request request;
        double      alone = time_block(b, mpi_allreduce, bytes, 1);
        PMPI_Barrier(MPI_COMM_WORLD);
        double start = bench_now_ns();
        MPI_Iallreduce(b->send, b->recv, (int)(bytes / 4), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                       &request);
        work_on_host(work_us);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        double both = (bench_now_ns() - start) / 1e3;
        /* Nothing hidden: both one after the other. */
        double least = (alone < work_us) ? alone : work_us;
        values[i] = 100 * (alone + work_us - both) / least;
    }
    double mine = bench_median(values, ROUNDS);
    PMPI_Allreduce(&mine, &worst, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
    return worst;
}

static void allocate(struct bench *b, size_t bytes)
{
    void *send = NULL, *recv = NULL;

    if ((b->dev->mem_alloc(&send, bytes) != xcclSuccess) ||
        (b->dev->mem_alloc(&recv, bytes) != xcclSuccess) ||
        (b->dev->set_async(send, 0, bytes, b->stream) != xcclSuccess) ||
        (b->dev->stream_sync(b->stream) != xcclSuccess)) {
        die(b, "device memory");
    }
    b->send = send;
    b->recv = recv;
}

static void measure_all(const struct bench *b, size_t large, bool limits, struct bench_bar *bars)
{
    size_t most = large / (size_t)b->nranks; /* a block per rank fits the buffers */

    for (int i = 0; i < COMPARISONS; i++) {
        const struct comparison *c = &comparisons[i];
        size_t bytes = (c->bytes == 0) ? large : (c->bytes < most) ? c->bytes : most;
        bars[i].limit = limits ? c->limit : -1;
        snprintf(bars[i].name, sizeof(bars[i].name), "device %s, %d ranks", c->name, b->nranks);
        measure(b, c, bytes, &bars[i]);
    }
    struct bench_bar *splits = &bars[COMPARISONS], *overlap = &bars[COMPARISONS + 1];
    snprintf(splits->name, sizeof(splits->name), "50 x (split, allreduce, free), %d ranks",
             b->nranks);
    splits->unit = "s";
    splits->limit = limits ? 0.2 : -1;
    splits->measured = splits->with = time_splits(b);
    snprintf(overlap->name, sizeof(overlap->name), "not hidden of a 64 MiB iallreduce, %d ranks",
             b->nranks);
    overlap->unit = "%";
    overlap->limit = limits ? 10 : -1;
    overlap->measured = 100 - measure_overlap(b, (most < (64 << 20)) ? most : (64 << 20), 10000);
}

int main(int argc, char **argv)
{
    struct bench     b = {0};
    const char      *json = NULL;
    size_t           large = (size_t)1 << 30;
    bool             limits = true, good = true;
    struct bench_bar bars[BARS] = {{{0}, NULL, 0, 0, 0, 0}};

    for (int i = 1; i < argc; i++) {
        if ((strcmp(argv[i], "--large") == 0) && (i + 1 < argc)) {
            large = strtoull(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--no-limit") == 0) {
            limits = false;
        } else {
            json = argv[i];
        }
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &b.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &b.nranks);
    start_device(&b);
    start_nccl(&b);
    allocate(&b, large);
    measure_all(&b, large, limits, bars);
    for (int i = 0; (b.rank == 0) && (i < BARS); i++) {
        good = bench_report(&bars[i]) && good;
    }
    if ((b.rank == 0) && (json != NULL)) {
        good = bench_write_json(json, "device_overhead", b.where, bars, BARS) && good;
    }
    (void)b.fns.comm_destroy(b.comm);
    (void)b.dev->mem_free(b.send);
    (void)b.dev->mem_free(b.recv);
    MPI_Finalize();
    return good ? 0 : 1;
}
