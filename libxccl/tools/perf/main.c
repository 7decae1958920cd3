/* SPDX-License-Identifier: BSD-3-Clause */
/* xccl-perf: time and verify MPI collectives and messages on device, host or managed memory. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/params.h"
#include "perf.h"

enum { EXIT_WRONG = 1, EXIT_USAGE = 2, EXIT_TIMEOUT = 124 };

/* What the watchdog says; made beforehand, as a signal handler may only write. */
static char watched[256];

static void on_alarm(int signal_number)
{
    (void)signal_number;
    (void)!write(STDERR_FILENO, watched, strlen(watched));
    _exit(EXIT_TIMEOUT);
}

static void watch(const struct perf_run *run, const struct perf_case *pc)
{
    if (run->opt.timeout == 0) {
        return;
    }
    snprintf(watched, sizeof(watched),
             "xccl-perf: TIMEOUT: rank %d: %s of %zu bytes took more than %ld s (--timeout)\n",
             run->rank, perf_test_name(pc->test), pc->bytes, run->opt.timeout);
    signal(SIGALRM, on_alarm);
    alarm((unsigned)run->opt.timeout);
}

/* True if ok on every rank. */
static bool agree(bool ok)
{
    int mine = ok, all = 0;

    PMPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return all != 0;
}

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

static bool check_names(struct perf_run *run)
{
    const char                *unpaired = test_without_pair(run);
    const struct perf_options *opt = &run->opt;
    const char                *problem = xc_params_error();

    run->type = perf_type_find(opt->type_name);
    run->op = perf_op_find(opt->op_name);
    if (run->rank != 0) {
        return (problem == NULL) && (run->type != NULL) && (run->op != NULL) &&
               perf_type_has_op(run->type, run->op->id) && (opt->root < run->nranks) &&
               (unpaired == NULL);
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

static void find_place(struct perf_run *run)
{
    MPI_Comm host, same;

    MPI_Comm_rank(MPI_COMM_WORLD, &run->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &run->nranks);
    run->memory = run->opt.memory[perf_pair_end(run->rank, run->nranks) == 1];
    PMPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, run->rank, MPI_INFO_NULL, &host);
    /* Ranks on host memory leave their devices to the others. */
    PMPI_Comm_split(host, run->memory == PERF_HOST, run->rank, &same);
    PMPI_Comm_rank(same, &run->local_rank);
    PMPI_Comm_size(same, &run->local_size);
    PMPI_Comm_free(&same);
    PMPI_Comm_free(&host);
}

static void agree_on_seed(struct perf_run *run)
{
    struct timespec ts;

    if (run->opt.seed == 0) {
        clock_gettime(CLOCK_REALTIME, &ts);
        run->opt.seed = (uint64_t)ts.tv_sec * 1000000U + (uint64_t)ts.tv_nsec / 1000U;
    }
    PMPI_Bcast(&run->opt.seed, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
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
    watch(run, pc);
    if (!agree(perf_case_fill(run, pc))) {
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

/* One size: buffers of its own, so that nothing is left of the size before. */
static bool run_size(struct perf_run *run, enum perf_test test, size_t bytes, bool *used_ccl_p)
{
    struct perf_case   pc;
    struct perf_result result = {0};
    bool               ok;

    if (!perf_case_plan(run, test, bytes, &pc)) {
        return false;
    }
    /* Different for every test and size: a result left from before is never right. */
    pc.seed = run->opt.seed ^ ((uint64_t)(test + 1) << 56) ^ ((uint64_t)bytes << 8);
    size_t send = pc.send_elems * run->type->size, recv = pc.recv_elems * run->type->size;
    pc.sendbuf = (send > 0) ? perf_memory_alloc(run, send) : NULL;
    pc.recvbuf = (recv > 0) ? perf_memory_alloc(run, recv) : NULL;
    ok = agree(((send == 0) || (pc.sendbuf != NULL)) && ((recv == 0) || (pc.recvbuf != NULL)));
    if (ok) {
        ok = run_case(run, &pc, &result);
    }
    alarm(0);
    if (ok) {
        perf_report_case(run, &pc, &result);
    }
    if (result.path != NULL) {
        perf_json_case(run, &pc, &result);
        *used_ccl_p = *used_ccl_p || (strcmp(result.path, "ccl") == 0);
    }
    free(result.times);
    perf_memory_free(run, pc.sendbuf);
    perf_memory_free(run, pc.recvbuf);
    perf_case_free(&pc);
    return ok;
}

static bool run_sizes(struct perf_run *run, enum perf_test test, bool *used_ccl_p)
{
    size_t last = SIZE_MAX;

    for (size_t bytes = first_size(run); bytes <= run->opt.max_bytes;
         bytes = next_size(run, bytes)) {
        size_t rounded = perf_test_round(run, test, bytes);
        if (rounded == last) {
            continue; /* two sizes may come to the same block */
        }
        if (!run_size(run, test, rounded, used_ccl_p)) {
            return false;
        }
        last = rounded;
    }
    return true;
}

static bool run_tests(struct perf_run *run, bool *used_ccl_p)
{
    for (int test = 0; test < PERF_NUM_TESTS; test++) {
        if ((run->opt.tests & (1U << test)) == 0) {
            continue;
        }
        perf_report_test(run, (enum perf_test)test);
        if (!run_sizes(run, (enum perf_test)test, used_ccl_p)) {
            return false;
        }
    }
    return true;
}

static int run_all(struct perf_run *run)
{
    bool used_ccl = false, passed = false;
    int  status = EXIT_WRONG;

    if (!agree(check_names(run))) {
        return EXIT_USAGE;
    }
    agree_on_seed(run);
    if (agree(perf_memory_start(run)) && agree(perf_memory_allowed(run)) &&
        agree(perf_json_begin(run))) {
        perf_report_header(run);
        passed = run_tests(run, &used_ccl);
        status = agree(perf_json_end(run, passed, used_ccl)) && passed ? 0 : EXIT_WRONG;
        perf_report_progress(run, "%s", "");
    }
    perf_memory_stop(run);
    return status;
}

int main(int argc, char **argv)
{
    struct perf_run run = {0};

    /* --help and --version work without a launcher, so before MPI_Init. */
    int early = perf_options_parse(&run.opt, argc, argv, false);
    if (early == 1) {
        (void)perf_options_parse(&run.opt, argc, argv, true);
        return 0;
    }
    MPI_Init(&argc, &argv);
    find_place(&run);
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
