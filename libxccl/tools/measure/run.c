/* SPDX-License-Identifier: BSD-3-Clause */
/* The ranks of a run, its cases from their buffers on, and the watch over them. */
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "measure/measure.h"

enum { EXIT_TIMEOUT = 124 };

/* What the watchdog says; made beforehand, as a signal handler may only write. */
static char watched[256];

/* Seconds that MPI has to end the job. */
enum { ABORT_TIME = 10 };

static void on_last_alarm(int signal_number)
{
    (void)signal_number;
    _exit(EXIT_TIMEOUT);
}

/*
 * Not every launcher ends the other ranks when one has left (srun does not by itself), and those
 * that take no part in the call would wait for ever: MPI has to tell it. That is nothing that a
 * signal handler may do, but the process ends either way: where MPI waits for a lock that the
 * interrupted call holds, by the next alarm.
 */
static void on_alarm(int signal_number)
{
    const struct timespec second = {1, 0};

    (void)signal_number;
    (void)!write(STDERR_FILENO, watched, strlen(watched));
    signal(SIGALRM, on_last_alarm);
    alarm(ABORT_TIME);
    /* The launcher ends with the job, and is to pass on before what the ranks have written. */
    nanosleep(&second, NULL);
    PMPI_Abort(MPI_COMM_WORLD, EXIT_TIMEOUT);
    _exit(EXIT_TIMEOUT);
}

/* The handler itself can be interrupted by the next alarm. */
static void catch_alarm(void)
{
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_NODEFER | SA_RESTART};

    sigemptyset(&action.sa_mask);
    sigaction(SIGALRM, &action, NULL);
}

void perf_watch(const struct perf_run *run, const struct perf_case *pc)
{
    if (run->opt.timeout == 0) {
        return;
    }
    snprintf(watched, sizeof(watched),
             "%s: TIMEOUT: rank %d: %s of %zu bytes took more than %ld s (--timeout)\n", run->tool,
             run->rank, perf_test_name(pc->test), pc->bytes, run->opt.timeout);
    catch_alarm();
    alarm((unsigned)run->opt.timeout);
}

bool perf_agree(const struct perf_run *run, bool ok)
{
    int mine = ok, all = 0;

    PMPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, run->all);
    return all != 0;
}

void perf_take_part(struct perf_run *run, MPI_Comm comm)
{
    run->comm = comm;
    run->all = comm;
    PMPI_Comm_rank(comm, &run->rank);
    PMPI_Comm_size(comm, &run->nranks);
    run->all_rank = run->rank;
    run->all_size = run->nranks;
}

void perf_find_place(struct perf_run *run)
{
    MPI_Comm host, same;

    perf_take_part(run, run->comm);
    run->memory = run->opt.memory[perf_pair_end(run->rank, run->nranks) == 1];
    PMPI_Comm_split_type(run->comm, MPI_COMM_TYPE_SHARED, run->rank, MPI_INFO_NULL, &host);
    /* Ranks on host memory leave their devices to the others. */
    PMPI_Comm_split(host, run->memory == PERF_HOST, run->rank, &same);
    PMPI_Comm_rank(same, &run->local_rank);
    PMPI_Comm_size(same, &run->local_size);
    PMPI_Comm_free(&same);
    PMPI_Comm_free(&host);
}

void perf_agree_on_seed(struct perf_run *run)
{
    struct timespec ts;

    if (run->opt.seed == 0) {
        clock_gettime(CLOCK_REALTIME, &ts);
        run->opt.seed = (uint64_t)ts.tv_sec * 1000000U + (uint64_t)ts.tv_nsec / 1000U;
    }
    PMPI_Bcast(&run->opt.seed, 1, MPI_UINT64_T, 0, run->all);
}

static bool make_buffers(const struct perf_run *run, struct perf_case *pc)
{
    size_t send = pc->send_elems * run->type->size, recv = pc->recv_elems * run->type->size;

    pc->sendbuf = (send > 0) ? perf_memory_alloc(run, send) : NULL;
    pc->recvbuf = (recv > 0) ? perf_memory_alloc(run, recv) : NULL;
    return ((send == 0) || (pc->sendbuf != NULL)) && ((recv == 0) || (pc->recvbuf != NULL));
}

bool perf_case_begin(const struct perf_run *run, enum perf_test test, size_t bytes,
                     struct perf_case *pc)
{
    bool ok = perf_case_plan(run, test, bytes, pc) && make_buffers(run, pc);

    if (!perf_agree(run, ok)) {
        perf_case_end(run, pc);
        return false;
    }
    /* Different for every test and size: a result left from before is never right. */
    pc->seed = run->opt.seed ^ ((uint64_t)(test + 1) << 56) ^ ((uint64_t)bytes << 8);
    return true;
}

void perf_case_end(const struct perf_run *run, struct perf_case *pc)
{
    perf_memory_free(run, pc->sendbuf);
    perf_memory_free(run, pc->recvbuf);
    perf_case_free(pc);
}

bool perf_on_terminal(void)
{
    return isatty(STDERR_FILENO) == 1;
}

void perf_report_progress(const struct perf_run *run, const char *fmt, ...)
{
    struct winsize window = {0};
    char           text[256];
    va_list        args;

    if ((run->all_rank != 0) || !perf_on_terminal()) {
        return;
    }
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    /* Of a line that takes two, the first would stay. */
    if ((ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0) && (window.ws_col > 0) &&
        (window.ws_col <= strlen(text))) {
        text[window.ws_col - 1] = '\0';
    }
    fprintf(stderr, "\r\033[K%s", text);
    fflush(stderr);
}
