/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Allreduce through the interposer against ncclAllReduce and a stream synchronisation, both on
 * the same buffers of the same process, in blocks that alternate.
 * Usage: mpirun -n N xccl-run device_overhead [--large BYTES] [--no-limit] [json]
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "bench.h"
#include "device/device.h"
#include "vendor/vendor.h"

enum { NCCL_FLOAT32 = 7, NCCL_SUM = 0, ROUNDS = 15 };

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

static void call_direct(const struct bench *b, size_t count)
{
    if ((b->fns.all_reduce(b->send, b->recv, count, NCCL_FLOAT32, NCCL_SUM, b->comm, b->stream) !=
         XC_NCCL_SUCCESS) ||
        (b->dev->stream_sync(b->stream) != xcclSuccess)) {
        die(b, "ncclAllReduce");
    }
}

/* µs a call, the slowest rank's. */
static double time_block(const struct bench *b, bool direct, size_t count, int calls)
{
    double mine, all = 0;

    PMPI_Barrier(MPI_COMM_WORLD);
    double start = bench_now_ns();
    for (int i = 0; i < calls; i++) {
        if (direct) {
            call_direct(b, count);
        } else {
            MPI_Allreduce(b->send, b->recv, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        }
    }
    mine = (bench_now_ns() - start) / 1e3 / calls;
    PMPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all;
}

static void check_path(const struct bench *b, size_t count)
{
    const char *(*last)(void) = (const char *(*)(void))dlsym(RTLD_DEFAULT, "xccl_mpi_last_path");

    MPI_Allreduce(b->send, b->recv, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    if ((last == NULL) || (strcmp(last(), "ccl") != 0)) {
        fprintf(stderr,
                "device_overhead: rank %d: MPI_Allreduce took the path '%s', not 'ccl'; run it "
                "under xccl-run, and see XCCL_LOG=info\n",
                b->rank, (last != NULL) ? last() : "no interposer");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static void measure(const struct bench *b, size_t bytes, int calls, bool percent,
                    struct bench_bar *bar)
{
    double direct[ROUNDS], through[ROUNDS], extra[ROUNDS];
    size_t count = bytes / sizeof(float);

    (void)time_block(b, true, count, calls);
    (void)time_block(b, false, count, calls);
    check_path(b, count);
    for (int i = 0; i < ROUNDS; i++) {
        if (i % 2 == 0) {
            direct[i] = time_block(b, true, count, calls);
        }
        through[i] = time_block(b, false, count, calls);
        if (i % 2 == 1) {
            direct[i] = time_block(b, true, count, calls);
        }
        extra[i] = percent ? (through[i] / direct[i] - 1) * 100 : through[i] - direct[i];
    }
    bar->without = bench_median(direct, ROUNDS);
    bar->with = bench_median(through, ROUNDS);
    bar->measured = bench_median(extra, ROUNDS);
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

int main(int argc, char **argv)
{
    struct bench b = {0};
    const char  *json = NULL;
    size_t       large = (size_t)1 << 30;
    bool         limits = true, good = true;

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
    struct bench_bar bars[2] = {
        {.unit = "us", .limit = limits ? 2 : -1},
        {.unit = "%", .limit = limits ? 1 : -1},
    };
    snprintf(bars[0].name, sizeof(bars[0].name), "device allreduce 8 B, %d ranks (us)", b.nranks);
    snprintf(bars[1].name, sizeof(bars[1].name), "device allreduce %zu MiB, %d ranks (us)",
             large >> 20, b.nranks);
    measure(&b, 8, 200, false, &bars[0]);
    measure(&b, large, 3, true, &bars[1]);
    for (int i = 0; (b.rank == 0) && (i < 2); i++) {
        good = bench_report(&bars[i]) && good;
    }
    if ((b.rank == 0) && (json != NULL)) {
        good = bench_write_json(json, "device_overhead", b.where, bars, 2) && good;
    }
    (void)b.fns.comm_destroy(b.comm);
    (void)b.dev->mem_free(b.send);
    (void)b.dev->mem_free(b.recv);
    MPI_Finalize();
    return good ? 0 : 1;
}
