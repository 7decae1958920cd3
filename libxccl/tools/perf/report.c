/* SPDX-License-Identifier: BSD-3-Clause */
/* The table. */
#include <string.h>
#include <strings.h>

#include "base/log.h"
#include "perf/perf.h"

/* JSON that goes to stdout has it for itself. */
static FILE *table(const struct perf_run *run)
{
    return perf_json_to_stdout(run) ? stderr : stdout;
}

static void print_device(const struct perf_run *run, FILE *out)
{
    char name[128];

    if (run->opt.memory[0] != run->opt.memory[1]) {
        fprintf(out, "# memory: %s at the first end of a pair, %s at the second; %s\n",
                perf_memory_name(run->opt.memory[0]), perf_memory_name(run->opt.memory[1]),
                run->runtime);
        return;
    }
    if (run->dev == NULL) {
        fprintf(out, "# memory: host\n");
        return;
    }
    if (run->dev->name_of(run->device, name, sizeof(name)) != xcclSuccess) {
        snprintf(name, sizeof(name), "unknown: %.100s", xc_last_detail());
    }
    fprintf(out, "# memory: %s, %s (rank 0: device %d, %s)\n", perf_memory_name(run->memory),
            run->dev->name, run->device, name);
}

static bool one_is(const struct perf_run *run, bool (*such)(enum perf_test))
{
    for (int test = 0; test < PERF_NUM_TESTS; test++) {
        if (((run->opt.tests & (1U << test)) != 0) && such((enum perf_test)test)) {
            return true;
        }
    }
    return false;
}

/* What the calls are given, as far as they take it. */
static void print_type(const struct perf_run *run, FILE *out)
{
    fprintf(out, "# type %s", run->type->name);
    if (one_is(run, perf_test_reduces)) {
        fprintf(out, ", op %s", run->op->name);
    }
    if (one_is(run, perf_test_rooted)) {
        fprintf(out, ", root %d", run->opt.root);
    }
    if (run->opt.in_place && one_is(run, perf_test_in_place)) {
        fprintf(out, ", in place%s", ((run->opt.tests >> PERF_BCAST) & 1) != 0 ? " but bcast" : "");
    }
}

void perf_report_header(const struct perf_run *run)
{
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int  len;

    if (run->all_rank != 0) {
        return;
    }
    FILE *out = table(run);
    MPI_Get_library_version(library, &len);
    library[strcspn(library, "\n,")] = '\0';
    for (char *tab = strchr(library, '\t'); tab != NULL; tab = strchr(tab, '\t')) {
        *tab = ' '; /* MPICH's has one */
    }
    fprintf(out, "# xccl-perf %s, %d rank(s), %s\n", XCCL_PERF_VERSION, run->all_size, library);
    if (run->opt.groups != NULL) {
        fprintf(out, "# communicators of %d: %s\n", run->nranks, run->opt.groups);
    }
    print_device(run, out);
    print_type(run, out);
    if (run->opt.nonblocking) {
        fprintf(out, ", nonblocking beside %g us of work", run->opt.work);
    }
    fprintf(out, ", seed %llu\n", (unsigned long long)run->opt.seed);
    fprintf(out,
            "# times: average of each rank over its calls; least, average, largest of the ranks\n");
    fflush(out);
}

static void print_columns(FILE *out, const char *bw, const char *wide, const char *more)
{
    fprintf(out, "#%11s %11s %-13s %6s %11s %11s %11s %9s %9s %scheck\n", "bytes", "count", "path",
            "calls", "min us", "avg us", "max us", bw, wide, more);
}

static void print_message_test(const struct perf_run *run, FILE *out, enum perf_test test)
{
    char grid[40];

    if (perf_test_is_halo(test)) {
        perf_halo_grid(run, test, " x ", grid, sizeof(grid));
        fprintf(out, "; grid %s, %s faces; bw: sent by a rank, total: by all %d", grid,
                run->opt.contiguous ? "contiguous" : "derived", run->nranks);
    } else {
        fprintf(out, "; us: %s; bw: of a pair, total: of all %d",
                (test == PERF_LATENCY) ? "half a round trip" : "a window / its messages",
                run->nranks / 2);
    }
    fprintf(out, "\n");
    print_columns(out, "bw", "total", "messages       each ");
}

void perf_report_test(const struct perf_run *run, enum perf_test test)
{
    if (run->all_rank != 0) {
        return;
    }
    FILE *out = table(run);
    fprintf(out, "#\n# %s; bytes: %s", perf_test_name(test), perf_test_bytes(test));
    if (perf_test_is_message(test)) {
        print_message_test(run, out, test);
    } else {
        fprintf(out, "; busbw = algbw * %.4g\n", perf_test_bus(test, run->nranks));
        print_columns(out, "algbw", "busbw", "");
    }
    fflush(out);
}

void perf_report_case(const struct perf_run *run, const struct perf_case *pc,
                      const struct perf_result *result)
{
    if (run->all_rank != 0) {
        return;
    }
    FILE *out = table(run);
    bool  message = perf_test_is_message(pc->test);
    perf_report_progress(run, "%s", "");
    fprintf(out, " %11zu %11zu %-13s %6ld %11.2f %11.2f %11.2f %9.3f %9.3f", pc->bytes, pc->count,
            result->path, result->iters, result->min, result->avg, result->max,
            message ? result->bw : result->algbw, message ? result->total_bw : result->busbw);
    if (message) {
        fprintf(out, " %8d %10zu", pc->messages, pc->message_bytes);
    }
    fprintf(out, " %s\n", run->opt.check ? "ok" : "-");
    fflush(out);
}
