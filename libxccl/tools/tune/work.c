/* SPDX-License-Identifier: BSD-3-Clause */
/* The communicators of a run, and one measurement after the other on each. */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/sort.h"
#include "tune/tune.h"

/* Paths are chosen by rows, collectives by tests: both count in the same order, but for alltoallw,
 * which has no test. */
_Static_assert(((int)PERF_ALLREDUCE == (int)XM_ALLREDUCE) &&
                   ((int)PERF_REDUCE_SCATTER_BLOCK == (int)XM_REDUCE_SCATTER_BLOCK) &&
                   ((int)PERF_ALLTOALLV == (int)XM_ALLTOALLV) &&
                   ((int)PERF_SCATTERV == (int)XM_SCATTERV),
               "tests are collectives");

static enum xm_coll coll_of(enum perf_test test)
{
    switch (test) {
    case PERF_SCAN:
        return XM_SCAN;
    case PERF_EXSCAN:
        return XM_EXSCAN;
    default:
        return (enum xm_coll)test;
    }
}

static volatile sig_atomic_t asked_to_stop;

static volatile sig_atomic_t asked_at; /* seconds */

/*
 * A call that hangs keeps the run from stopping: who asks again wants its end. A launcher may pass
 * on at once what the terminal has sent to the ranks as well, which is no second wish.
 */
static void on_signal(int number)
{
    enum { APART = 2 };
    struct timespec ts = {0};

    clock_gettime(CLOCK_MONOTONIC, &ts);
    if (!asked_to_stop) {
        asked_at = (sig_atomic_t)ts.tv_sec;
        asked_to_stop = 1;
    } else if (ts.tv_sec - asked_at >= APART) {
        signal(number, SIG_DFL);
        raise(number); /* it is delivered when this handler returns */
    }
}

static double now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

void tune_find_nodes(struct tune_job *job)
{
    MPI_Comm host;
    int      rank = job->world.rank, first = 0, here = 0, leads, before = 0;

    PMPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &host);
    PMPI_Comm_size(host, &here);
    first = rank;
    PMPI_Bcast(&first, 1, MPI_INT, 0, host);
    leads = (first == rank);
    PMPI_Allreduce(&leads, &job->nodes, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    PMPI_Allreduce(&here, &job->per_node, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    /* How many nodes lead before this rank's: their order is that of their first ranks. */
    PMPI_Exscan(&leads, &before, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    job->node = (rank == 0) ? 0 : before;
    PMPI_Bcast(&job->node, 1, MPI_INT, 0, host);
    PMPI_Comm_free(&host);
}

static bool has(const struct tune_job *job, const char *option, const struct tune_list *asked,
                int most, const char *what)
{
    for (int i = 0; i < asked->count; i++) {
        if (asked->values[i] > most) {
            if (job->world.rank == 0) {
                fprintf(stderr, "xccl-tune: --%s %d: this job has %d %s\n", option,
                        asked->values[i], most, what);
            }
            return false;
        }
    }
    return true;
}

/* The largest that was asked for, or all there are. */
static int largest(const struct tune_list *asked, int most)
{
    int n = (asked->count > 0) ? asked->values[0] : most;

    for (int i = 1; i < asked->count; i++) {
        n = (asked->values[i] > n) ? asked->values[i] : n;
    }
    return n;
}

static bool has_pair(const struct tune_job *job)
{
    if (largest(&job->opt.nodes, job->nodes) * largest(&job->opt.per_node, job->per_node) > 1) {
        return true;
    }
    if (job->world.rank == 0) {
        fprintf(stderr, "xccl-tune: --nodes, --ranks-per-node: a communicator of one rank has "
                        "nothing to measure; ask for two ranks or more\n");
    }
    return false;
}

bool tune_has_shapes(const struct tune_job *job)
{
    return has(job, "nodes", &job->opt.nodes, job->nodes, "node(s)") &&
           has(job, "ranks-per-node", &job->opt.per_node, job->per_node,
               "rank(s) on the node with the fewest") &&
           has_pair(job);
}

/* Those that were asked for, or powers of two and all there are. */
static void list_numbers(const struct tune_list *asked, int most, struct tune_list *list)
{
    *list = *asked;
    for (int n = 1; (asked->count == 0) && (n <= most); n *= 2) {
        list->values[list->count++] = n;
        if ((n < most) && (2 * n > most)) {
            list->values[list->count++] = most;
        }
    }
}

/* The ranks of a shape, as a run of the measuring code; false on those that take no part. */
static bool open_shape(const struct tune_job *job, struct tune_shape shape, struct perf_run *run)
{
    bool mine = (job->node < shape.nodes) && (job->world.local_rank < shape.per_node);

    *run = job->world;
    run->comm = MPI_COMM_NULL;
    PMPI_Comm_split(MPI_COMM_WORLD, mine ? 0 : MPI_UNDEFINED, job->world.rank, &run->comm);
    if (mine) {
        perf_take_part(run, run->comm);
    }
    return mine;
}

/* Ranks that take no part leave the cores to those that do. */
static void wait_for_all(void)
{
    const struct timespec nap = {0, 2 * 1000 * 1000};
    MPI_Request           request;
    int                   over = 0;

    PMPI_Ibarrier(MPI_COMM_WORLD, &request);
    for (PMPI_Test(&request, &over, MPI_STATUS_IGNORE); !over;
         PMPI_Test(&request, &over, MPI_STATUS_IGNORE)) {
        nanosleep(&nap, NULL);
    }
}

/* What rank 0 tells the others to do. */
struct order {
    uint64_t bytes;
    int      path, stop, more;
};

/* The size that is measured now, with its buffers, and the paths whose results were right. */
struct at_size {
    struct perf_case pc;
    bool             open;
    unsigned         verified;
    char             why[256]; /* the last call was not carried by the path that was asked for */
};

static bool force(const struct perf_run *run, enum xm_path_id path)
{
    int (*tune)(const char *) = (int (*)(const char *))dlsym(RTLD_DEFAULT, "xcclTuneMPI");
    char rows[32];

    snprintf(rows, sizeof(rows), "*:*:*:*:%s", xm_path_name(path));
    if ((tune == NULL) || (tune(rows) != 0)) {
        fprintf(stderr, "xccl-tune: rank %d: the path cannot be chosen: xccl's interposer is %s\n",
                run->rank, (tune == NULL) ? "not loaded; put xccl-run in front" : "not ready");
        return false;
    }
    return true;
}

/* Did the call go where it was sent? Staging is MPI's path where MPI is not GPU-aware. */
static bool is_path(const char *name, enum xm_path_id path)
{
    return (path == XM_PATH_STAGED)
               ? (strcmp(name, "mpi-staged") == 0)
               : (strncmp(name, xm_path_name(path), strlen(xm_path_name(path))) == 0);
}

/* Of all calls, the time of the rank that took longest; of those, the median. Rank 0. */
static double median_of(const struct perf_run *run, const struct perf_result *result)
{
    double *slowest = calloc((size_t)result->iters, sizeof(*slowest));

    if (slowest == NULL) {
        return result->max;
    }
    for (long i = 0; i < result->iters; i++) {
        for (int r = 0; r < run->nranks; r++) {
            double us = result->times[r * result->iters + i];
            slowest[i] = (us > slowest[i]) ? us : slowest[i];
        }
    }
    sort_doubles(slowest, (size_t)result->iters);
    double median = (slowest[(result->iters - 1) / 2] + slowest[result->iters / 2]) / 2;
    free(slowest);
    return median;
}

/* One call by a path, with fresh data. */
static bool call_by(const struct perf_run *run, struct at_size *at, enum xm_path_id path)
{
    const char *(*obstacle)(const char *) =
        (const char *(*)(const char *))dlsym(RTLD_DEFAULT, "xccl_mpi_last_obstacle");

    if (!perf_agree(run, force(run, path)) || !perf_agree(run, perf_case_fill(run, &at->pc)) ||
        (perf_case_time(run, &at->pc) < 0)) {
        return false;
    }
    /* Before any other call, as those have reasons too. */
    const char *why = (obstacle != NULL) ? obstacle(xm_path_name(path)) : NULL;
    snprintf(at->why, sizeof(at->why), "%s", (why != NULL) ? why : "no reason is known");
    return true;
}

/* A path's first call of a size: is it carried, and is the result right? */
static bool try_path(const struct perf_run *run, struct at_size *at, enum xm_path_id path,
                     bool *carried_p)
{
    *carried_p = false;
    if (path == XM_PATH_STAGED) { /* one of its own only where MPI does something else */
        if (!call_by(run, at, XM_PATH_MPI)) {
            return false;
        }
        if (is_path(perf_case_path(run, &at->pc), XM_PATH_STAGED)) {
            snprintf(at->why, sizeof(at->why), "MPI takes no device memory, so mpi is the same");
            return true;
        }
    }
    if (!call_by(run, at, path)) {
        return false;
    }
    *carried_p = is_path(perf_case_path(run, &at->pc), path);
    return !*carried_p || perf_case_verify(run, &at->pc);
}

/* One sample; *us_p is negative where the path does not carry the call, and only rank 0's counts.
 */
static bool measure(const struct perf_run *run, struct at_size *at, enum perf_test test,
                    const struct order *order, double *us_p)
{
    enum xm_path_id    path = (enum xm_path_id)order->path;
    struct perf_result result = {0};
    bool               carried = true;

    if (at->open && (at->pc.bytes != order->bytes)) {
        perf_case_end(run, &at->pc);
        at->open = false;
    }
    if (!at->open) {
        if (!perf_case_begin(run, test, (size_t)order->bytes, &at->pc)) {
            return false;
        }
        at->open = true;
        at->verified = 0;
    }
    perf_watch(run, &at->pc);
    bool tried = ((at->verified >> path) & 1) != 0;
    if (!(tried ? perf_agree(run, force(run, path)) : try_path(run, at, path, &carried))) {
        return false;
    }
    *us_p = -1;
    if (carried) {
        snprintf(at->why, sizeof(at->why), "another path took over between its calls");
        at->verified |= 1u << path;
        bool ok = perf_case_measure(run, &at->pc, &result);
        /* A path may be left under way: its time would be that of another one. */
        if (ok && (run->rank == 0) && is_path(result.path, path)) {
            *us_p = median_of(run, &result);
        }
        free(result.times);
        return ok;
    }
    return true;
}

/* Sizes of five binary digits, as those that are measured. */
static uint64_t round_down(uint64_t bytes)
{
    uint64_t g = sizeof(float);

    while (g * 32 <= bytes) {
        g *= 2;
    }
    return bytes / g * g;
}

/* What of --max fits, for one collective on one communicator. Rank 0 says what is left out. */
static struct tune_limits limits_of(const struct tune_job *job, const struct perf_run *run,
                                    struct tune_shape shape, enum perf_test test)
{
    struct tune_limits limits = job->opt.limits;
    char               less[32], more[32];
    size_t             counted = perf_test_most(run, test, limits.most, SIZE_MAX);
    size_t             held = perf_test_most(run, test, limits.most, job->room);
    uint64_t           fits = round_down(held);

    if ((run->rank != 0) || (held / sizeof(float) == limits.most / sizeof(float))) {
        return limits;
    }
    fprintf(
        stderr, "xccl-tune: %s on %d x %d ranks: --max is %s there, not %s: %s\n",
        perf_test_name(test), shape.nodes, shape.per_node, tune_size_text(fits, less, sizeof(less)),
        tune_size_text(limits.most, more, sizeof(more)),
        (held < counted) ? "the buffers of larger sizes take more than 40 % of a device's memory"
                         : "larger counts and displacements do not fit MPI's int");
    limits.most = fits;
    return limits;
}

/* What is left of this run, in measurements: of series not begun, too. */
static size_t left_of(const struct tune_job *job, const struct tune_series *series,
                      const struct tune_limits *limits, size_t others)
{
    const struct tune_points none = {0};

    return tune_left(&series->points, limits) + others * tune_left(&none, &job->opt.limits);
}

static void show_progress(struct tune_job *job, const struct tune_series *series,
                          const struct tune_limits *limits, const struct order *order,
                          size_t others)
{
    size_t left = left_of(job, series, limits, others);
    double each = (job->done > 0) ? (now() - job->begun) / (double)job->done : 0;
    char   size[32], text[160];

    snprintf(text, sizeof(text),
             "%s on %d x %d ranks, %s, %s; %zu measurements or more left, about %.0f min",
             xm_coll_name(series->coll), series->shape.nodes, series->shape.per_node,
             tune_size_text(order->bytes, size, sizeof(size)),
             xm_path_name((enum xm_path_id)order->path), left, (double)left * each / 60);
    if (perf_on_terminal()) {
        perf_report_progress(&job->world, "%s", text);
    } else if ((job->opt.progress > 0) && (now() - job->said >= job->opt.progress)) {
        fprintf(stderr, "xccl-tune: %s\n", text);
        job->said = now();
    }
}

/* Rank 0: what comes next. */
static void give_order(struct tune_job *job, struct tune_series *series,
                       const struct tune_limits *limits, size_t others, struct order *order)
{
    struct tune_request request = {0};
    double              minutes = (now() - job->begun) / 60;

    order->stop = asked_to_stop || ((job->opt.minutes > 0) && (minutes >= job->opt.minutes));
    order->more = tune_next(&series->points, limits, &request);
    order->bytes = request.bytes;
    order->path = (int)request.path;
    if (order->more && !order->stop) {
        show_progress(job, series, limits, order, others);
    }
}

static bool keep(struct tune_job *job, struct tune_shape shape, enum xm_coll coll,
                 const struct order *order, double us, const char *why)
{
    const struct tune_request request = {order->bytes, (enum xm_path_id)order->path};

    job->done++;
    if (us < 0) {
        snprintf(job->why[order->path], sizeof(job->why[0]), "%s", why);
    }
    if (!tune_state_write(job->state, shape, coll, &request, us)) {
        fprintf(stderr, "xccl-tune: %s/state: cannot be written: %s\n", job->opt.folder,
                strerror(errno));
        return false;
    }
    if (!tune_sample_add(&job->store, shape, coll, &request, us)) {
        fprintf(stderr, "xccl-tune: out of memory\n");
        return false;
    }
    return true;
}

/* Nothing of a series is left to measure. */
static bool keep_whole(struct tune_job *job, struct tune_shape shape, enum xm_coll coll)
{
    struct tune_series *series = tune_series_of(&job->store, shape, coll);

    if ((series == NULL) || series->whole) {
        return series != NULL;
    }
    series->whole = true;
    series->again = false;
    if (!tune_state_write_whole(job->state, series)) {
        fprintf(stderr, "xccl-tune: %s/state: cannot be written: %s\n", job->opt.folder,
                strerror(errno));
        return false;
    }
    return true;
}

/* One collective on one communicator, on its ranks. */
static enum tune_outcome work_series(struct tune_job *job, struct perf_run *run,
                                     struct tune_shape shape, enum perf_test test, size_t others)
{
    enum xm_coll       coll = coll_of(test);
    struct at_size     at = {.open = false};
    enum tune_outcome  outcome = TUNE_FINISHED;
    struct tune_limits limits = limits_of(job, run, shape, test);

    for (;;) {
        struct order order = {0};
        double       us = -1;
        bool         ok = true;
        if (run->rank == 0) {
            struct tune_series *series = tune_series_of(&job->store, shape, coll);
            if (series != NULL) {
                give_order(job, series, &limits, others, &order);
            }
        }
        PMPI_Bcast(&order, (int)sizeof(order), MPI_BYTE, 0, run->comm);
        if (order.stop || !order.more) {
            outcome = (order.stop && order.more) ? TUNE_STOPPED : TUNE_FINISHED;
            break;
        }
        ok = measure(run, &at, test, &order, &us);
        if (ok && (run->rank == 0)) {
            ok = keep(job, shape, coll, &order, us, at.why);
        }
        if (!perf_agree(run, ok)) {
            outcome = TUNE_FAILED;
            break;
        }
    }
    alarm(0);
    if (at.open) {
        perf_case_end(run, &at.pc);
    }
    if ((outcome == TUNE_FINISHED) && (run->rank == 0) && !keep_whole(job, shape, coll)) {
        outcome = TUNE_FAILED; /* work_shape() tells the others */
    }
    return outcome;
}

static enum tune_outcome work_shape(struct tune_job *job, struct tune_shape shape, size_t shapes)
{
    struct perf_run   run;
    enum tune_outcome outcome = TUNE_FINISHED;
    size_t            all = (size_t)__builtin_popcount(job->opt.colls), behind = all;

    if (open_shape(job, shape, &run)) {
        for (int c = 0; (c < PERF_NUM_COLLS) && (outcome == TUNE_FINISHED); c++) {
            if (((job->opt.colls >> c) & 1) != 0) {
                behind--;
                outcome = work_series(job, &run, shape, (enum perf_test)c, behind + shapes * all);
            }
        }
        MPI_Comm_free(&run.comm);
    }
    wait_for_all();
    int told = (int)outcome; /* rank 0 has a part in every shape */
    PMPI_Bcast(&told, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return (enum tune_outcome)told;
}

enum tune_outcome tune_work(struct tune_job *job)
{
    struct tune_list  nodes, per_node;
    enum tune_outcome outcome = TUNE_FINISHED;

    list_numbers(&job->opt.nodes, job->nodes, &nodes);
    list_numbers(&job->opt.per_node, job->per_node, &per_node);
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    job->begun = now();
    job->said = job->begun;
    int left = nodes.count * per_node.count;
    for (int n = 0; n < nodes.count; n++) {
        for (int p = 0; (p < per_node.count) && (outcome == TUNE_FINISHED); p++) {
            struct tune_shape shape = {nodes.values[n], per_node.values[p]};
            left--;
            if (shape.nodes * shape.per_node > 1) {
                outcome = work_shape(job, shape, (size_t)left);
            }
        }
    }
    return outcome;
}
