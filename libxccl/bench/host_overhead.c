/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the interposer adds to an 8-byte MPI_Allreduce on host memory.
 *
 * Run with the interposer preloaded. MPI_Allreduce then goes through it; the MPI library's own
 * function is looked up past it, so that both are timed in one process, in blocks that take turns.
 * The figure is the difference of the fastest blocks: the work is the same each time, and what a
 * block takes longer is other load on the machine. With --device a device runtime is started
 * first: from then on an address alone does not tell what kind of memory it is.
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/log.h"
#include "bench.h"
#include "device/device.h"

/* Many short blocks: some of them find the machine quiet. */
enum { ROUNDS = 2001, CALLS = 200, WARMUP = 2000, MAX_BARS = 8 };

typedef int (*allreduce_fn)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);

static allreduce_fn     past_it; /* MPI's own allreduce */
static struct bench_bar bars[MAX_BARS];
static int              nbars;

/* The function in the MPI library itself: the interposer takes over MPI_ and PMPI_ names alike. */
static allreduce_fn find_past_it(void)
{
    Dl_info info;
    void   *address = dlsym(RTLD_DEFAULT, "MPI_Get_library_version"); /* not taken over */

    if ((address == NULL) || (dladdr(address, &info) == 0)) {
        return NULL;
    }
    void *mpi = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    return (mpi != NULL) ? (allreduce_fn)dlsym(mpi, "PMPI_Allreduce") : NULL;
}

/* ns a call, the slowest rank's. */
static double time_block(allreduce_fn call, const void *send, void *recv)
{
    double mine, all = 0;

    PMPI_Barrier(MPI_COMM_WORLD);
    double start = bench_now_ns();
    for (int i = 0; i < CALLS; i++) {
        call(send, recv, 2, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    }
    mine = (bench_now_ns() - start) / CALLS;
    PMPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all;
}

static void measure(const char *kind, const void *send, void *recv, double limit, int nranks,
                    const char *runtime)
{
    static double     past[ROUNDS], through[ROUNDS];
    struct bench_bar *bar = &bars[nbars++];

    for (int i = 0; i < WARMUP; i++) {
        MPI_Allreduce(send, recv, 2, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        past_it(send, recv, 2, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    }
    for (int i = 0; i < ROUNDS; i++) {
        /* Which of the two goes first alternates, so that a drift of the clock cancels. */
        if (i % 2 == 0) {
            past[i] = time_block(past_it, send, recv);
        }
        through[i] = time_block(MPI_Allreduce, send, recv);
        if (i % 2 == 1) {
            past[i] = time_block(past_it, send, recv);
        }
    }
    snprintf(bar->name, sizeof(bar->name), "host allreduce 8 B, %d rank(s), %s%s%s", nranks, kind,
             (runtime != NULL) ? ", device runtime active: " : "",
             (runtime != NULL) ? runtime : "");
    bar->unit = "ns";
    bar->limit = limit;
    bar->without = bench_least(past, ROUNDS);
    bar->with = bench_least(through, ROUNDS);
    bar->measured = bar->with - bar->without;
}

static bool measure_all(int nranks, const char *runtime, double limit)
{
    float  on_stack[4] = {1, 2, 0, 0};
    float *on_heap = calloc(4, sizeof(*on_heap));
    float *mapped = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if ((on_heap == NULL) || (mapped == MAP_FAILED)) {
        fprintf(stderr, "host_overhead: out of memory\n");
        free(on_heap);
        return false;
    }
    measure("stack", on_stack, on_stack + 2, limit, nranks, runtime);
    measure("heap", on_heap, on_heap + 2, limit, nranks, runtime);
    measure("mmap", mapped, mapped + 2, limit, nranks, runtime);
    munmap(mapped, 1 << 16);
    free(on_heap);
    return true;
}

int main(int argc, char **argv)
{
    int         rank, nranks;
    bool        good = true;
    const char *json = NULL, *runtime = NULL;
    double      limit = 100;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--device") == 0) {
            runtime = "auto";
        } else if (strcmp(argv[i], "--no-limit") == 0) {
            limit = -1;
        } else {
            json = argv[i];
        }
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    if (dlsym(RTLD_DEFAULT, "xccl_mpi_last_path") == NULL) {
        fprintf(stderr, "host_overhead: the interposer is not loaded; put xccl-run in front\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    past_it = find_past_it();
    if ((past_it == NULL) || (past_it == (allreduce_fn)dlsym(RTLD_DEFAULT, "MPI_Allreduce"))) {
        fprintf(stderr, "host_overhead: MPI's own MPI_Allreduce was not found\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (runtime != NULL) {
        const struct xc_device_ops *ops;
        void                       *saved;
        if ((xc_device_start(runtime, &ops) != xcclSuccess) ||
            (ops->enter(0, &saved) != xcclSuccess)) {
            fprintf(stderr, "host_overhead: %s\n", xc_last_detail());
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        runtime = ops->name;
    }
    good = measure_all(nranks, runtime, limit);
    for (int i = 0; (rank == 0) && (i < nbars); i++) {
        good = bench_report(&bars[i]) && good;
    }
    if ((rank == 0) && (json != NULL)) {
        good = bench_write_json(json, "host_overhead", "", bars, nbars) && good;
    }
    MPI_Finalize();
    return good ? 0 : 1;
}
