/* SPDX-License-Identifier: BSD-3-Clause */
/* The table on stdout, and a line of progress on stderr where that is a terminal. */
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "perf.h"

static void print_device(const struct perf_run *run)
{
    char name[128];

    if (run->dev == NULL) {
        printf("# memory: host\n");
        return;
    }
    if (run->dev->name_of(run->device, name, sizeof(name)) != xcclSuccess) {
        snprintf(name, sizeof(name), "unknown: %.100s", xc_last_detail());
    }
    printf("# memory: %s, %s (rank 0: device %d, %s)\n", perf_memory_name(run->opt.memory),
           run->dev->name, run->device, name);
}

void perf_report_header(const struct perf_run *run)
{
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int  len;

    if (run->rank != 0) {
        return;
    }
    MPI_Get_library_version(library, &len);
    library[strcspn(library, "\n,")] = '\0';
    for (char *tab = strchr(library, '\t'); tab != NULL; tab = strchr(tab, '\t')) {
        *tab = ' '; /* MPICH's has one */
    }
    printf("# xccl-perf %s, %d rank(s), %s\n", XCCL_PERF_VERSION, run->nranks, library);
    print_device(run);
    printf("# type %s, op %s, root %d%s, seed %llu\n", run->type->name, run->op->name,
           run->opt.root, run->opt.in_place ? ", in place" : "", (unsigned long long)run->opt.seed);
    printf("# times: average of each rank over its calls; least, average, largest of the ranks\n");
    fflush(stdout);
}

void perf_report_coll(const struct perf_run *run, enum perf_coll coll)
{
    if (run->rank != 0) {
        return;
    }
    printf("#\n# %s; bytes: %s; busbw = algbw * %.4g\n", perf_coll_name(coll),
           perf_coll_bytes(coll), perf_coll_bus(coll, run->nranks));
    printf("#%11s %11s %-13s %6s %11s %11s %11s %9s %9s %s\n", "bytes", "count", "path", "calls",
           "min us", "avg us", "max us", "algbw", "busbw", "check");
    fflush(stdout);
}

void perf_report_case(const struct perf_run *run, const struct perf_case *pc,
                      const struct perf_result *result)
{
    if (run->rank != 0) {
        return;
    }
    perf_report_progress(run, "%s", "");
    printf(" %11zu %11zu %-13s %6ld %11.2f %11.2f %11.2f %9.3f %9.3f %s\n", pc->bytes, pc->count,
           result->path, result->iters, result->min, result->avg, result->max, result->algbw,
           result->busbw, run->opt.check ? "ok" : "-");
    fflush(stdout);
}

void perf_report_progress(const struct perf_run *run, const char *fmt, ...)
{
    va_list args;

    if ((run->rank != 0) || (isatty(STDERR_FILENO) != 1)) {
        return;
    }
    fputs("\r\033[K", stderr);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fflush(stderr);
}
