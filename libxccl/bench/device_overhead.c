/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI calls through the interposer against the vendor's call and a stream synchronisation, both on
 * the same buffers of the same process, in blocks that alternate; alltoallv against alltoall; what
 * a split, one small call and a free cost; and how much of a non-blocking call is hidden.
 * Usage: XCCL_COMM_CREATE=first XCCL_TUNE='*:*:*:*:ccl' mpirun -n N xccl-run device_overhead
 *        [--large BYTES] [--no-limit] [json]
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "bench.h"
#include "device.h"

enum { ROUNDS = 15 };

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

static void check_path(const struct bench *b, bench_call_fn *call, size_t bytes)
{
    const char *(*last)(void) = (const char *(*)(void))dlsym(RTLD_DEFAULT, "xccl_mpi_last_path");

    call(b, bytes);
    if ((last == NULL) || (strcmp(last(), "ccl") != 0)) {
        fprintf(
            stderr,
            "device_overhead: rank %d: a call took the path '%s', not 'ccl'; run it under "
            "xccl-run with XCCL_COMM_CREATE=first and XCCL_TUNE='*:*:*:*:ccl', and see XCCL_LOG=info\n",
            b->rank, (last != NULL) ? last() : "no interposer");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

enum measure { DIFFERENCE, PERCENT, RATIO };

struct comparison {
    const char      *name;
    enum bench_which which;
    bench_call_fn   *against; /* MPI's call by this one, instead of the vendor's by it */
    size_t           bytes;   /* 0: the large size */
    int              calls;
    enum measure     measure;
    double           limit;
};

static void measure(const struct bench *b, const struct comparison *c, size_t bytes,
                    struct bench_bar *bar)
{
    const struct bench_collective *both = &bench_collectives[c->which];
    bench_call_fn                 *reference = (c->against != NULL) ? both->mpi : both->vendor;
    bench_call_fn                 *tried = (c->against != NULL) ? c->against : both->mpi;
    double                         direct[ROUNDS], through[ROUNDS], value[ROUNDS];

    (void)bench_time_calls(b, reference, bytes, c->calls);
    (void)bench_time_calls(b, tried, bytes, c->calls);
    check_path(b, tried, bytes);
    for (int i = 0; i < ROUNDS; i++) {
        if (i % 2 == 0) {
            direct[i] = bench_time_calls(b, reference, bytes, c->calls);
        }
        through[i] = bench_time_calls(b, tried, bytes, c->calls);
        if (i % 2 == 1) {
            direct[i] = bench_time_calls(b, reference, bytes, c->calls);
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
    {"allreduce 8 B", BENCH_ALLREDUCE, NULL, 8, 200, DIFFERENCE, 0.5},
    {"allreduce 4 KiB", BENCH_ALLREDUCE, NULL, 4096, 200, DIFFERENCE, 0.5},
    {"bcast 8 B", BENCH_BCAST, NULL, 8, 200, DIFFERENCE, 0.5},
    {"reduce 8 B", BENCH_REDUCE, NULL, 8, 200, DIFFERENCE, 0.5},
    {"allreduce large", BENCH_ALLREDUCE, NULL, 0, 3, PERCENT, 1},
    {"gather 64 MiB", BENCH_GATHER, NULL, 64 << 20, 5, RATIO, 1.02},
    {"scatter 64 MiB", BENCH_SCATTER, NULL, 64 << 20, 5, RATIO, 1.02},
    {"alltoallv against alltoall 8 B", BENCH_ALLTOALL, mpi_alltoallv, 8, 200, RATIO, 1.1},
    {"alltoallv against alltoall 1 MiB", BENCH_ALLTOALL, mpi_alltoallv, 1 << 20, 50, RATIO, 1.1},
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
        double      alone = bench_time_calls(b, bench_collectives[BENCH_ALLREDUCE].mpi, bytes, 1);
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
        bench_die(b, "device memory");
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
    bench_start_device(&b);
    bench_start_vendor(&b);
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
