/* SPDX-License-Identifier: BSD-3-Clause */
/* xccl-perf: time and verify MPI collectives and messages on device, host or managed memory. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/launch.h"
#include "base/params.h"
#include "common/output.h"
#include "perf/perf.h"

enum { EXIT_WRONG = 1, EXIT_USAGE = 2 };

/* A test of pairs that was asked for and has too few ranks, or NULL. */
static const char *test_without_pair(const struct perf_run *run)
{
    for (int i = PERF_LATENCY; (run->nranks < 2) && (i <= PERF_BIBANDWIDTH); i++) {
        if ((run->opt.tests & (1U << i)) != 0) {
            return perf_test_name((enum perf_test)i);
        }
    }
    return NULL;
}

/* No size that was asked for holds an element: nothing would be measured. */
static bool is_too_little(const struct perf_run *run)
{
    return (run->type != NULL) && (run->opt.min_bytes > 0) &&
           (run->opt.max_bytes < run->type->size);
}

static bool check_names(struct perf_run *run)
{
    const char                *unpaired = test_without_pair(run);
    const struct perf_options *opt = &run->opt;
    const char                *problem = xc_params_error();

    /* The interposer has warned already. */
    xc_params_warn((run->all_rank == 0) && (strcmp(perf_path_last(), "no interposer") == 0));
    run->type = perf_type_find(opt->type_name);
    run->op = perf_op_find(opt->op_name);
    if (run->all_rank != 0) {
        return (problem == NULL) && (run->type != NULL) && (run->op != NULL) &&
               perf_type_has_op(run->type, run->op->id) && !is_too_little(run) &&
               (opt->root < run->nranks) && (unpaired == NULL);
    }
    if (problem != NULL) {
        fprintf(stderr, "xccl-perf: %s\n", problem);
    } else if (run->type == NULL) {
        fprintf(stderr, "xccl-perf: --type: no type is called '%s'; known: %s\n", opt->type_name,
                perf_type_names());
    } else if (run->op == NULL) {
        fprintf(stderr, "xccl-perf: --op: no operation is called '%s'; known: %s\n", opt->op_name,
                perf_op_names());
    } else if (!perf_type_has_op(run->type, run->op->id)) {
        fprintf(stderr, "xccl-perf: --op: %s is not defined for %s\n", opt->op_name,
                opt->type_name);
    } else if (is_too_little(run)) {
        fprintf(stderr,
                "xccl-perf: --max %zu is less than one element of %s, which has %zu bytes\n",
                opt->max_bytes, opt->type_name, run->type->size);
    } else if (opt->root >= run->nranks) {
        fprintf(stderr, "xccl-perf: --root: there is no rank %d, the last is %d\n", opt->root,
                run->nranks - 1);
    } else if (unpaired != NULL) {
        fprintf(stderr, "xccl-perf: --msg: %s needs two ranks or more\n", unpaired);
    } else {
        return true;
    }
    return false;
}

/* The size after bytes: larger by the factor, and a whole number of elements. */
static size_t next_size(const struct perf_run *run, size_t bytes)
{
    size_t size = run->type->size;

    if (bytes < size) {
        return size;
    }
    size_t next = (size_t)((double)bytes * run->opt.factor) / size * size;
    return (next > bytes) ? next : bytes + size;
}

static size_t first_size(const struct perf_run *run)
{
    size_t size = run->type->size, first = run->opt.min_bytes;

    return ((first == 0) || (first >= size)) ? first / size * size : size;
}

static bool run_case(struct perf_run *run, struct perf_case *pc, struct perf_result *result)
{
    perf_report_progress(run, "%s %zu bytes", perf_test_name(pc->test), pc->bytes);
    perf_watch(run, pc);
    /* Some paths are for communicators that have had a blocking call, as most programs make. */
    if (run->opt.nonblocking && (perf_coll_call_blocking(run, pc) != MPI_SUCCESS)) {
        return false;
    }
    if (!perf_agree(run, perf_case_fill(run, pc))) {
        return false;
    }
    if (perf_case_time(run, pc) < 0) {
        return false;
    }
    if (run->opt.check) {
        result->path = perf_case_path(run, pc);
        result->verified = perf_case_verify(run, pc);
        if (!result->verified) {
            return false;
        }
    }
    return perf_case_measure(run, pc, result);
}

/* What the sizes so far came to. */
struct progress {
    bool   used_ccl;
    bool   measured;                  /* one at least */
    size_t too_large[PERF_NUM_TESTS]; /* the first size that found no room; 0: all did */
};

/* One size: buffers of its own, so that nothing is left of the size before. */
static bool run_size(struct perf_run *run, enum perf_test test, size_t bytes,
                     struct progress *progress)
{
    struct perf_case   pc;
    struct perf_result result = {0};

    if (!perf_case_begin(run, test, bytes, &pc)) {
        progress->too_large[test] = bytes;
        return true;
    }
    progress->measured = true;
    bool ok = run_case(run, &pc, &result);
    alarm(0);
    if (ok) {
        perf_report_case(run, &pc, &result);
    }
    if (result.path != NULL) {
        progress->used_ccl =
            progress->used_ccl || (strcmp(result.path, "ccl") == 0) || run->opt.vendor;
        perf_json_case(run, &pc, &result, progress->used_ccl);
    }
    free(result.times);
    perf_case_end(run, &pc);
    return ok;
}

/* Sizes grow: behind one that finds no room there is none that does. */
static bool run_sizes(struct perf_run *run, enum perf_test test, struct progress *progress)
{
    size_t last = SIZE_MAX;

    for (size_t bytes = first_size(run);
         (bytes <= run->opt.max_bytes) && (progress->too_large[test] == 0);
         bytes = next_size(run, bytes)) {
        size_t rounded = perf_test_round(run, test, bytes);
        if (rounded == last) {
            continue; /* two sizes may come to the same block */
        }
        if (!run_size(run, test, rounded, progress)) {
            return false;
        }
        last = rounded;
    }
    return true;
}

static bool run_tests(struct perf_run *run, struct progress *progress)
{
    for (int test = 0; test < PERF_NUM_TESTS; test++) {
        if ((run->opt.tests & (1U << test)) == 0) {
            continue;
        }
        perf_report_test(run, (enum perf_test)test);
        if (!run_sizes(run, (enum perf_test)test, progress)) {
            return false;
        }
    }
    return progress->measured;
}

/* Where nothing at all was measured, the reasons that stand above are errors. */
static void say_left_out(const struct perf_run *run, const struct progress *progress)
{
    for (int test = 0; (test < PERF_NUM_TESTS) && progress->measured; test++) {
        if ((progress->too_large[test] > 0) && (run->all_rank == 0)) {
            fprintf(stderr, "xccl-perf: %s: sizes from %zu bytes on are left out: see above\n",
                    perf_test_name((enum perf_test)test), progress->too_large[test]);
        }
    }
}

/* What is needed before the first call. */
static bool start(struct perf_run *run)
{
    return perf_agree(run, perf_memory_start(run)) && perf_agree(run, perf_memory_allowed(run)) &&
           (!run->opt.vendor || perf_agree(run, perf_vendor_start(run)));
}

static int run_started(struct perf_run *run)
{
    struct progress progress = {0};

    if (!perf_agree(run, perf_json_begin(run))) {
        return EXIT_USAGE;
    }
    perf_report_header(run);
    bool passed = run_tests(run, &progress);
    bool written = perf_agree(run, perf_json_end(run, passed, progress.used_ccl));
    perf_report_progress(run, "%s", "");
    say_left_out(run, &progress);
    return (written && passed) ? 0 : EXIT_WRONG;
}

static int run_all(struct perf_run *run)
{
    bool idle = false;

    if ((run->opt.groups != NULL) && !perf_groups_split(run, run->opt.groups, &idle)) {
        return EXIT_USAGE;
    }
    if (idle) {
        return 0;
    }
    if (!perf_agree(run, check_names(run))) {
        return EXIT_USAGE;
    }
    perf_agree_on_seed(run);
    int status = start(run) ? run_started(run) : EXIT_WRONG;
    perf_vendor_stop(run);
    perf_memory_stop(run);
    return status;
}

int main(int argc, char **argv)
{
    struct perf_run  run = {0};
    struct xc_launch launch;

    output_watch("xccl-perf");
    /* What needs no ranks works without a launcher, and its faults are told, before MPI_Init. */
    int early = perf_options_parse(&run.opt, argc, argv, false);
    if ((early == 1) || ((early != 0) && !xc_launch_read(&launch))) {
        (void)perf_options_parse(&run.opt, argc, argv, true);
        return early - 1;
    }
    MPI_Init(&argc, &argv);
    perf_leave_warnings();
    run.tool = "xccl-perf";
    run.comm = MPI_COMM_WORLD;
    perf_find_place(&run);
    int status = early - 1;
    if (early != 0) {
        (void)perf_options_parse(&run.opt, argc, argv, run.rank == 0);
    } else {
        run.argc = argc;
        run.argv = argv;
        status = run_all(&run);
    }
    MPI_Finalize();
    return status;
}
