/* SPDX-License-Identifier: BSD-3-Clause */
/* The table on stdout. */
#include <string.h>
#include <strings.h>

#include "base/log.h"
#include "perf/perf.h"

static void print_device(const struct perf_run *run)
{
    char name[128];

    if (run->opt.memory[0] != run->opt.memory[1]) {
        printf("# memory: %s at the first end of a pair, %s at the second; %s\n",
               perf_memory_name(run->opt.memory[0]), perf_memory_name(run->opt.memory[1]),
               run->runtime);
        return;
    }
    if (run->dev == NULL) {
        printf("# memory: host\n");
        return;
    }
    if (run->dev->name_of(run->device, name, sizeof(name)) != xcclSuccess) {
        snprintf(name, sizeof(name), "unknown: %.100s", xc_last_detail());
    }
    printf("# memory: %s, %s (rank 0: device %d, %s)\n", perf_memory_name(run->memory),
           run->dev->name, run->device, name);
}

void perf_report_header(const struct perf_run *run)
{
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int  len;

    if (run->all_rank != 0) {
        return;
    }
    MPI_Get_library_version(library, &len);
    library[strcspn(library, "\n,")] = '\0';
    for (char *tab = strchr(library, '\t'); tab != NULL; tab = strchr(tab, '\t')) {
        *tab = ' '; /* MPICH's has one */
    }
    printf("# xccl-perf %s, %d rank(s), %s\n", XCCL_PERF_VERSION, run->all_size, library);
    if (run->opt.groups != NULL) {
        printf("# communicators of %d: %s\n", run->nranks, run->opt.groups);
    }
    print_device(run);
    printf("# type %s", run->type->name);
    if (!perf_test_is_message((enum perf_test)(ffs((int)run->opt.tests) - 1))) {
        printf(", op %s, root %d%s", run->op->name, run->opt.root,
               run->opt.in_place ? ", in place" : "");
    }
    printf(", seed %llu\n", (unsigned long long)run->opt.seed);
    printf("# times: average of each rank over its calls; least, average, largest of the ranks\n");
    fflush(stdout);
}

static void print_columns(const char *bw, const char *wide, const char *more)
{
    printf("#%11s %11s %-13s %6s %11s %11s %11s %9s %9s %scheck\n", "bytes", "count", "path",
           "calls", "min us", "avg us", "max us", bw, wide, more);
}

static void print_message_test(const struct perf_run *run, enum perf_test test)
{
    char grid[40];

    if (perf_test_is_halo(test)) {
        perf_halo_grid(run, test, " x ", grid, sizeof(grid));
        printf("; grid %s, %s faces; bw: sent by a rank, total: by all %d", grid,
               run->opt.contiguous ? "contiguous" : "derived", run->nranks);
    } else {
        printf("; us: %s; bw: of a pair, total: of all %d",
               (test == PERF_LATENCY) ? "half a round trip" : "a window / its messages",
               run->nranks / 2);
    }
    printf("\n");
    print_columns("bw", "total", "messages       each ");
}

void perf_report_test(const struct perf_run *run, enum perf_test test)
{
    if (run->all_rank != 0) {
        return;
    }
    printf("#\n# %s; bytes: %s", perf_test_name(test), perf_test_bytes(test));
    if (perf_test_is_message(test)) {
        print_message_test(run, test);
    } else {
        printf("; busbw = algbw * %.4g\n", perf_test_bus(test, run->nranks));
        print_columns("algbw", "busbw", "");
    }
    fflush(stdout);
}

void perf_report_case(const struct perf_run *run, const struct perf_case *pc,
                      const struct perf_result *result)
{
    if (run->all_rank != 0) {
        return;
    }
    bool message = perf_test_is_message(pc->test);
    perf_report_progress(run, "%s", "");
    printf(" %11zu %11zu %-13s %6ld %11.2f %11.2f %11.2f %9.3f %9.3f", pc->bytes, pc->count,
           result->path, result->iters, result->min, result->avg, result->max,
           message ? result->bw : result->algbw, message ? result->total_bw : result->busbw);
    if (message) {
        printf(" %8d %10zu", pc->messages, pc->message_bytes);
    }
    printf(" %s\n", run->opt.check ? "ok" : "-");
    fflush(stdout);
}
