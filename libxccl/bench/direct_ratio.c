/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The direct path against the vendor's library: collectives through MPI calls, and the vendor's
 * call with a stream synchronisation, in turns on the same buffers; every size checked on random
 * data first.
 * Usage: XCCL_COMM_CREATE=first mpirun -n N xccl-run direct_ratio [--gap US] [--least BYTES]
 *        [--most BYTES] [--only NAME] [--time SECONDS] [json]
 * --gap: so many microseconds of host work between the calls, which are not timed. All ranks then
 * begin at one time of the node's clock.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "device.h"

enum { ROUNDS = 11, SIZES = 64, MOST_CALLS = 500, LEAST_APART = 9 };

struct options {
    double      gap_us, seconds;
    size_t      least, most;
    const char *only, *json;
};

struct row {
    const char *name;
    size_t      bytes;
    double      vendor, mpi, ratio;
    char        path[16];
};

/*
 * Host work of so many us between the calls, which all ranks begin at one time of the node's clock:
 * so what they would wait for each other is in neither call's time. us from then to the end of the
 * slowest rank, the median of the calls.
 */
static double time_apart(const struct bench *b, bench_call_fn *call, size_t bytes, int calls,
                         double gap)
{
    double took[MOST_CALLS];

    for (int i = 0; i < calls; i++) {
        PMPI_Barrier(MPI_COMM_WORLD);
        double start = bench_now_ns() + gap * 1e3;
        PMPI_Bcast(&start, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        while (bench_now_ns() < start) {}
        call(b, bytes);
        took[i] = (bench_now_ns() - start) / 1e3;
    }
    PMPI_Allreduce(MPI_IN_PLACE, took, calls, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return bench_median(took, calls);
}

static double time_calls(const struct bench *b, bench_call_fn *call, size_t bytes, int calls,
                         double gap)
{
    return (gap > 0) ? time_apart(b, call, bytes, calls, gap)
                     : bench_time_calls(b, call, bytes, calls);
}

static void copy(const struct bench *b, void *to, const void *from, size_t bytes)
{
    if ((b->dev->copy_async(to, from, bytes, b->stream) != xcclSuccess) ||
        (b->dev->stream_sync(b->stream) != xcclSuccess)) {
        bench_die(b, "copy");
    }
}

static size_t length(const struct bench *b, int blocks, size_t bytes)
{
    return (blocks == 2) ? bytes * (size_t)b->nranks : (blocks == 1) ? bytes : 0;
}

/* Small whole numbers, whose sums are exact in any order. */
static void fill(const struct bench *b, float *host, size_t bytes, unsigned seed)
{
    uint64_t state = seed * 2654435761u + (unsigned)b->rank * 40503u + 1;

    for (size_t i = 0; i < bytes / sizeof(float); i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        host[i] = (float)((int)(state >> 50) - 8192);
    }
    copy(b, b->send, host, bytes);
}

/* The result of a call on fresh data, into host. */
static void result_of(const struct bench *b, const struct bench_collective *c, bench_call_fn *call,
                      size_t bytes, unsigned seed, float *host)
{
    size_t sent = length(b, c->sent, bytes), received = length(b, c->received, bytes);

    fill(b, host, sent, seed);
    if (received > 0) {
        memset(host, 0xff, received);
        copy(b, b->recv, host, received);
    }
    call(b, bytes);
    if (received > 0) {
        copy(b, host, b->recv, received);
    } else {
        copy(b, host, b->send, sent);
    }
}

static void check(const struct bench *b, const struct bench_collective *c, size_t bytes, float *one,
                  float *other)
{
    size_t sent = length(b, c->sent, bytes), received = length(b, c->received, bytes);
    size_t compared = (received > 0) ? received : sent;
    int    wrong, any = 0;

    for (unsigned seed = 1; seed < 4; seed++) {
        result_of(b, c, c->vendor, bytes, seed, one);
        result_of(b, c, c->mpi, bytes, seed, other);
        bool mine = !c->at_root || (b->rank == 0) || (c->received == 0);
        wrong = mine && (memcmp(one, other, compared) != 0);
        PMPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        if (any) {
            fprintf(stderr, "direct_ratio: rank %d: %s of %zu bytes is wrong (%d)\n", b->rank,
                    c->name, bytes, wrong);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
}

static void measure(const struct bench *b, const struct bench_collective *c, size_t bytes,
                    const struct options *o, struct row *row)
{
    const char *(*last)(void) = (const char *(*)(void))dlsym(RTLD_DEFAULT, "xccl_mpi_last_path");
    double vendor[ROUNDS], mpi[ROUNDS], ratio[ROUNDS];

    (void)time_calls(b, c->vendor, bytes, 3, o->gap_us);
    c->mpi(b, bytes);
    snprintf(row->path, sizeof(row->path), "%s", (last != NULL) ? last() : "no interposer");
    double once = time_calls(b, c->mpi, bytes, 3, o->gap_us) + o->gap_us;
    int    least = (o->gap_us > 0) ? LEAST_APART : 2;
    int    calls = (int)(o->seconds * 1e6 / (2 * ROUNDS) / once);
    calls = (calls < least) ? least : (calls > MOST_CALLS) ? MOST_CALLS : calls;
    PMPI_Bcast(&calls, 1, MPI_INT, 0, MPI_COMM_WORLD);
    for (int i = 0; i < ROUNDS; i++) {
        if (i % 2 == 0) {
            vendor[i] = time_calls(b, c->vendor, bytes, calls, o->gap_us);
        }
        mpi[i] = time_calls(b, c->mpi, bytes, calls, o->gap_us);
        if (i % 2 == 1) {
            vendor[i] = time_calls(b, c->vendor, bytes, calls, o->gap_us);
        }
        ratio[i] = mpi[i] / vendor[i];
    }
    row->name = c->name;
    row->bytes = bytes;
    row->vendor = bench_median(vendor, ROUNDS);
    row->mpi = bench_median(mpi, ROUNDS);
    row->ratio = bench_median(ratio, ROUNDS);
}

static bool write_json(const struct bench *b, const struct options *o, const struct row *rows,
                       int count)
{
    FILE *f = fopen(o->json, "w");

    if (f == NULL) {
        fprintf(stderr, "direct_ratio: cannot write %s\n", o->json);
        return false;
    }
    fprintf(f, "{\"program\": \"direct_ratio\", \"where\": \"%s\", \"gap_us\": %g, \"rows\": [\n",
            b->where, o->gap_us);
    for (int i = 0; i < count; i++) {
        fprintf(f,
                "  {\"collective\": \"%s\", \"bytes\": %zu, \"path\": \"%s\", "
                "\"vendor_us\": %.2f, \"mpi_us\": %.2f, \"ratio\": %.3f}%s\n",
                rows[i].name, rows[i].bytes, rows[i].path, rows[i].vendor, rows[i].mpi,
                rows[i].ratio, (i + 1 < count) ? "," : "");
    }
    fprintf(f, "]}\n");
    return fclose(f) == 0;
}

static void *must(const struct bench *b, size_t bytes)
{
    void *ptr = NULL;

    if (b->dev->mem_alloc(&ptr, bytes) != xcclSuccess) {
        bench_die(b, "device memory");
    }
    return ptr;
}

static void read_options(int argc, char **argv, struct options *o)
{
    for (int i = 1; i < argc; i++) {
        if ((strcmp(argv[i], "--gap") == 0) && (i + 1 < argc)) {
            o->gap_us = atof(argv[++i]);
        } else if ((strcmp(argv[i], "--least") == 0) && (i + 1 < argc)) {
            o->least = strtoull(argv[++i], NULL, 10);
        } else if ((strcmp(argv[i], "--most") == 0) && (i + 1 < argc)) {
            o->most = strtoull(argv[++i], NULL, 10);
        } else if ((strcmp(argv[i], "--only") == 0) && (i + 1 < argc)) {
            o->only = argv[++i];
        } else if ((strcmp(argv[i], "--time") == 0) && (i + 1 < argc)) {
            o->seconds = atof(argv[++i]);
        } else {
            o->json = argv[i];
        }
    }
}

static int run_all(const struct bench *b, const struct options *o, struct row *rows, float *one,
                   float *other)
{
    int count = 0;

    for (int i = 0; i < BENCH_COLLECTIVES; i++) {
        const struct bench_collective *c = &bench_collectives[i];
        bool                           all = (c->sent == 2) || (c->received == 2);
        if ((o->only != NULL) && (strcmp(o->only, c->name) != 0)) {
            continue;
        }
        for (size_t bytes = 8; bytes * (all ? (size_t)b->nranks : 1) <= o->most;
             bytes *= (bytes < 512)    ? 8
                      : (bytes == 512) ? 8
                                       : 2) {
            if (bytes < o->least) {
                continue;
            }
            check(b, c, bytes, one, other);
            measure(b, c, bytes, o, &rows[count]);
            if (b->rank == 0) {
                printf("%-20s %10zu %-10s vendor %9.2f us, mpi %9.2f us, ratio %.3f\n",
                       rows[count].name, bytes, rows[count].path, rows[count].vendor,
                       rows[count].mpi, rows[count].ratio);
                fflush(stdout);
            }
            count++;
        }
    }
    return count;
}

int main(int argc, char **argv)
{
    struct bench   b = {0};
    struct options o = {.seconds = 0.1, .most = (size_t)64 << 20};
    struct row    *rows = calloc((size_t)BENCH_COLLECTIVES * SIZES, sizeof(*rows));
    bool           good = true;

    read_options(argc, argv, &o);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &b.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &b.nranks);
    bench_start_device(&b);
    bench_start_vendor(&b);
    b.send = must(&b, o.most);
    b.recv = must(&b, o.most);
    float *one = malloc(o.most), *other = malloc(o.most);
    if ((rows == NULL) || (one == NULL) || (other == NULL)) {
        bench_die(&b, "out of memory");
    }
    int count = run_all(&b, &o, rows, one, other);
    if ((b.rank == 0) && (o.json != NULL)) {
        good = write_json(&b, &o, rows, count);
    }
    (void)b.fns.comm_destroy(b.comm);
    (void)b.dev->mem_free(b.send);
    (void)b.dev->mem_free(b.recv);
    free(one);
    free(other);
    free(rows);
    MPI_Finalize();
    return good ? 0 : 1;
}
