/* SPDX-License-Identifier: BSD-3-Clause */
/* Timing of one case: every call of every rank, and what follows from them. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "measure/measure.h"

static double now_us(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec * 1e-3;
}

const char *perf_path_last(void)
{
    const char *(*last)(void) = (const char *(*)(void))dlsym(RTLD_DEFAULT, "xccl_mpi_last_path");
    const char *path = (last != NULL) ? last() : NULL;

    if (last == NULL) {
        return "no interposer";
    }
    return (path != NULL) ? path : "none";
}

void perf_leave_warnings(void)
{
    if (strcmp(perf_path_last(), "no interposer") != 0) {
        xc_log_leave_warning();
    }
}

const char *perf_case_path(const struct perf_run *run, const struct perf_case *pc)
{
    static char path[16], first[16];
    const char *mine = perf_path_last(); /* before any other call, as those have paths too */
    int         same, all_same = 0;

    if (run->vendor != NULL) {
        return "vendor";
    }
    if (perf_test_is_message(pc->test)) {
        return perf_memory_path(run, pc->message_bytes);
    }
    snprintf(path, sizeof(path), "%s", mine);
    memcpy(first, path, sizeof(first));
    PMPI_Bcast(first, (int)sizeof(first), MPI_CHAR, 0, run->all);
    same = strcmp(path, first) == 0;
    PMPI_Allreduce(&same, &all_same, 1, MPI_INT, MPI_MIN, run->all);
    return all_same ? path : "mixed";
}

double perf_case_time(const struct perf_run *run, const struct perf_case *pc)
{
    if (run->opt.barrier) {
        PMPI_Barrier(run->all);
    }
    if (perf_case_ready(run, pc) != MPI_SUCCESS) {
        return -1;
    }
    double start = now_us();
    if (perf_case_call(run, pc) != MPI_SUCCESS) {
        return -1;
    }
    return now_us() - start - run->opt.work;
}

void perf_work(double us)
{
    for (double end = now_us() + us; now_us() < end;) {}
}

/* Calls that fit into max_time, from one that is timed here; the same number on all ranks. */
static bool warm_up(const struct perf_run *run, const struct perf_case *pc, long *iters_p)
{
    double limit = run->opt.max_time * 1e6, one = 0, slowest = 0;
    long   warmup = run->opt.warmup, iters = run->opt.iters;

    if (limit > 0) {
        one = perf_case_time(run, pc);
        if (one < 0) {
            return false;
        }
        PMPI_Allreduce(&one, &slowest, 1, MPI_DOUBLE, MPI_MAX, run->all);
        if (2 * slowest < limit) { /* the first of a size may pay for more than itself */
            one = perf_case_time(run, pc);
            if (one < 0) {
                return false;
            }
            PMPI_Allreduce(&one, &slowest, 1, MPI_DOUBLE, MPI_MAX, run->all);
            warmup--;
        }
        slowest = (slowest > 0.01) ? slowest : 0.01;
        double fit = limit / slowest;
        iters = (fit < (double)iters) ? (long)fit : iters;
        iters = (iters > 0) ? iters : 1;
        warmup = (fit / 5 < (double)warmup) ? (long)(fit / 5) : warmup - 1;
    }
    for (long i = 0; i < warmup; i++) {
        if (perf_case_time(run, pc) < 0) {
            return false;
        }
    }
    *iters_p = iters;
    return true;
}

static void summarise(const struct perf_run *run, const struct perf_case *pc,
                      struct perf_result *result)
{
    double total = 0;
    int    ranks = 0;

    for (int rank = 0; rank < run->all_size; rank++) {
        double sum = 0;
        if (result->times[rank * result->iters] < 0) {
            continue;
        }
        for (long i = 0; i < result->iters; i++) {
            sum += result->times[rank * result->iters + i];
        }
        double average = sum / (double)result->iters;
        total += average;
        result->min = ((ranks++ == 0) || (average < result->min)) ? average : result->min;
        result->max = (average > result->max) ? average : result->max;
    }
    result->avg = total / ranks;
    perf_case_bandwidth(run, pc, result);
}

static bool time_calls(const struct perf_run *run, const struct perf_case *pc, double *times,
                       long iters)
{
    for (long i = 0; i < iters; i++) {
        double one = perf_case_time(run, pc);
        if (one < 0) {
            return false;
        }
        times[i] = pc->timed ? one / pc->share : -1;
    }
    return true;
}

bool perf_case_measure(const struct perf_run *run, const struct perf_case *pc,
                       struct perf_result *result)
{
    long    iters;
    double *mine = NULL;
    int     ok, all_ok = 0;

    if (!warm_up(run, pc, &iters)) {
        return false;
    }
    mine = malloc((size_t)iters * sizeof(*mine));
    result->iters = iters;
    if (run->all_rank == 0) {
        result->times = malloc((size_t)iters * (size_t)run->all_size * sizeof(*mine));
    }
    ok = (mine != NULL) && ((run->all_rank != 0) || (result->times != NULL));
    PMPI_Allreduce(&ok, &all_ok, 1, MPI_INT, MPI_MIN, run->all);
    if (!all_ok) {
        fprintf(stderr, "%s: out of memory for the times of %ld iterations\n", run->tool, iters);
        free(mine);
        return false;
    }
    ok = time_calls(run, pc, mine, iters);
    if (ok) {
        result->path = perf_case_path(run, pc);
        PMPI_Gather(mine, (int)iters, MPI_DOUBLE, result->times, (int)iters, MPI_DOUBLE, 0,
                    run->all);
        if (run->all_rank == 0) {
            summarise(run, pc, result);
        }
    }
    free(mine);
    return ok;
}
