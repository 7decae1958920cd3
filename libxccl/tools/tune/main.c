/* SPDX-License-Identifier: BSD-3-Clause */
/* xccl-tune: measure every path of every collective on this machine, and write tuning tables. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/launch.h"
#include "base/log.h"
#include "base/params.h"
#include "common/output.h"
#include "tables/tables.h"
#include "tune/tune.h"

enum { EXIT_WRONG = 1, EXIT_USAGE = 2, EXIT_STOPPED = 3 };

static bool path_in(const struct tune_job *job, const char *name, char *path, size_t len)
{
    int n = snprintf(path, len, "%s/%s", job->opt.folder, name);

    if ((n < 0) || ((size_t)n >= len)) {
        fprintf(stderr, "xccl-tune: --output: the name of the folder is too long\n");
        return false;
    }
    return true;
}

static void describe_place(struct tune_job *job)
{
    char host[128] = "";

    gethostname(host, sizeof(host) - 1);
    snprintf(job->origin.where, sizeof(job->origin.where), "%d node%s with %d ranks each, first %s",
             job->nodes, (job->nodes == 1) ? "" : "s", job->per_node, host);
    snprintf(job->origin.memory, sizeof(job->origin.memory), "%s%s", job->world.runtime,
             (job->opt.memory == PERF_MANAGED) ? "_managed" : "");
    snprintf(job->origin.raw, sizeof(job->origin.raw), "raw.json beside this file");
}

static bool open_state(struct tune_job *job)
{
    char path[4096], key[TUNE_MAX_KEY], why[1200];

    if (job->world.rank != 0) {
        return true;
    }
    if ((mkdir(job->opt.folder, 0777) != 0) && (errno != EEXIST)) {
        fprintf(stderr, "xccl-tune: --output: %s cannot be made: %s\n", job->opt.folder,
                strerror(errno));
        return false;
    }
    if (!path_in(job, "state", path, sizeof(path))) {
        return false;
    }
    tune_key_make(job, key);
    job->state = tune_state_open(path, key, &job->store, why, sizeof(why));
    if (job->state == NULL) {
        fprintf(stderr, "xccl-tune: %s: %s\n", path, why);
    }
    return job->state != NULL;
}

/* Into a file that takes its name when it is whole. */
static bool write_file(const char *path, bool (*write)(FILE *f, const void *arg), const void *arg)
{
    char part[4200];
    snprintf(part, sizeof(part), "%s.part", path);
    FILE *f = fopen(part, "we");

    if (f == NULL) {
        fprintf(stderr, "xccl-tune: %s: cannot be opened: %s\n", part, strerror(errno));
        return false;
    }
    errno = 0; /* a write may fail long before this is told, and its reason is gone then */
    bool ok = write(f, arg);
    ok = (fclose(f) == 0) && ok && (rename(part, path) == 0);
    if (!ok) {
        fprintf(stderr, "xccl-tune: %s: cannot be written: %s\n", path,
                (errno != 0) ? strerror(errno) : "not all of it could be written");
        unlink(part);
    }
    return ok;
}

struct to_write {
    const struct tune_job *job;
    int                    nodes;
};

static bool put_raw(FILE *f, const void *arg)
{
    const struct to_write *w = arg;

    tune_raw_write(f, &w->job->store, &w->job->origin, XCCL_TUNE_VERSION);
    return ferror(f) == 0;
}

static bool put_table(FILE *f, const void *arg)
{
    const struct to_write *w = arg;

    return tune_table_write(f, &w->job->store, w->nodes, &w->job->origin);
}

static bool has_nodes(const struct tune_store *store, int nodes)
{
    for (size_t i = 0; i < store->count; i++) {
        if (tune_has_rows(&store->series[i], nodes)) {
            return true;
        }
    }
    return false;
}

/* Would a table of what is whole now lack rows that one of before has? */
static bool would_lose_rows(const struct tune_job *job, int nodes, const char *path)
{
    bool again = false;

    for (size_t i = 0; i < job->store.count; i++) {
        const struct tune_series *s = &job->store.series[i];
        again = again || (s->again && (s->shape.nodes == nodes));
    }
    return job->origin.partial && again && (access(path, F_OK) == 0);
}

/* In single quotes where a shell would take the name apart. */
static void print_for_shell(const char *name)
{
    const char *quote = (strpbrk(name, " \t\n\"'$`\\&;|<>()*?[]#~") != NULL) ? "'" : "";

    fputs(quote, stdout);
    for (const char *c = name; *c != '\0'; c++) {
        if (*c == '\'') {
            fputs("'\\''", stdout);
        } else {
            putchar(*c);
        }
    }
    fputs(quote, stdout);
}

static void print_next_step(const char *folder)
{
    char *whole = realpath(folder, NULL);

    printf("To use it, on all ranks: export XCCL_TABLE=");
    print_for_shell((whole != NULL) ? whole : folder);
    printf("\nSamples: %s/raw.json\n", folder);
    free(whole);
}

/* What an earlier run of the folder began, and this one was not asked for. */
static void say_left_out(const struct tune_store *store)
{
    for (size_t i = 0; i < store->count; i++) {
        const struct tune_series *s = &store->series[i];
        if (!s->whole && (s->points.count > 0)) {
            fprintf(
                stderr,
                "xccl-tune: %s on %d x %d ranks is not measured to the end, and left out of the "
                "table; to have it: --coll %s --nodes %d --ranks-per-node %d\n",
                xm_coll_name(s->coll), s->shape.nodes, s->shape.per_node, xm_coll_name(s->coll),
                s->shape.nodes, s->shape.per_node);
        }
    }
}

/* The table of so many nodes, which have rows. */
static bool write_table(const struct tune_job *job, int nodes)
{
    char             path[4096], name[64];
    struct to_write  w = {job, nodes};
    struct xm_table *table = NULL;

    snprintf(name, sizeof(name), "nodes-%d.table", nodes);
    if (!path_in(job, name, path, sizeof(path))) {
        return false;
    }
    if (would_lose_rows(job, nodes, path)) {
        printf("%s: left as it was: what is measured anew is not measured to the end yet\n", path);
        return true;
    }
    if (!write_file(path, put_table, &w)) {
        return false;
    }
    /* What the library would read is looked at here. */
    if (xm_table_file_parse(path, &table) != xcclSuccess) {
        fprintf(stderr, "xccl-tune: %s\n", xc_last_detail());
        return false;
    }
    printf("%s: %zu row%s%s\n", path, table->count, (table->count == 1) ? "" : "s",
           job->origin.partial ? ", of what was measured to the end so far" : "");
    xm_table_free(table);
    return true;
}

/* Paths that no sample is of, in this run and those before it. */
static void say_missing(const struct tune_job *job)
{
    bool carried[XM_NUM_PATHS] = {false};

    for (size_t i = 0; i < job->store.count; i++) {
        const struct tune_points *points = &job->store.series[i].points;
        for (size_t p = 0; p < points->count * XM_NUM_PATHS; p++) {
            size_t path = p % XM_NUM_PATHS;
            carried[path] =
                carried[path] || (points->points[p / XM_NUM_PATHS].paths[path].count > 0);
        }
    }
    for (int path = 0; path < XM_NUM_PATHS; path++) {
        if (!carried[path] && (job->why[path][0] != '\0')) {
            printf("%s carried no call: %s\n", xm_path_name((enum xm_path_id)path), job->why[path]);
        }
    }
}

static bool write_tables(const struct tune_job *job)
{
    char            path[4096];
    struct to_write w = {job, 0};
    int             tables = 0;

    if (!path_in(job, "raw.json", path, sizeof(path)) || !write_file(path, put_raw, &w)) {
        return false;
    }
    for (int nodes = 1; nodes <= job->nodes; nodes++) {
        if (has_nodes(&job->store, nodes)) {
            if (!write_table(job, nodes)) {
                return false;
            }
            tables++;
        }
    }
    if ((tables == 0) && !job->origin.partial) {
        fprintf(stderr, "xccl-tune: no size from --min to --max fits: nothing was measured\n");
        return false;
    }
    say_missing(job);
    say_left_out(&job->store);
    if (tables > 0) {
        print_next_step(job->opt.folder);
    }
    return true;
}

/* What was whole before a run ended early has cost its time, and makes rows, too. Rank 0. */
static bool write_part(struct tune_job *job, enum tune_outcome outcome)
{
    printf("xccl-tune: %s after %zu measurements; the same command goes on from here\n",
           (outcome == TUNE_STOPPED) ? "stopped" : "failed", job->done);
    job->origin.partial = true;
    return write_tables(job);
}

static int finish(struct tune_job *job, enum tune_outcome outcome)
{
    bool written = true;

    perf_report_progress(&job->world, "%s", "");
    if (job->world.rank == 0) {
        written = (outcome == TUNE_FINISHED) ? write_tables(job) : write_part(job, outcome);
    }
    if (!perf_agree(&job->world, written) || (outcome == TUNE_FAILED)) {
        return EXIT_WRONG;
    }
    return (outcome == TUNE_STOPPED) ? EXIT_STOPPED : 0;
}

static void set_up_run(struct tune_job *job)
{
    struct perf_run *run = &job->world;

    run->tool = "xccl-tune";
    run->comm = MPI_COMM_WORLD;
    run->opt = (struct perf_options){.iters = job->opt.iters,
                                     .warmup = 5,
                                     .max_time = job->opt.max_time,
                                     .check = true,
                                     .barrier = true,
                                     .memory = {job->opt.memory, job->opt.memory},
                                     .device = job->opt.device,
                                     .seed = job->opt.seed,
                                     .timeout = job->opt.timeout};
    run->type = perf_type_find("float");
    run->op = perf_op_find("sum");
    perf_find_place(run);
    perf_agree_on_seed(run);
}

static bool environment_is_good(const struct perf_run *run)
{
    const char *fault = xc_params_error();

    if (fault == NULL) {
        if (xc_params()->route != XC_ROUTE_XCCL) {
            fault = "XCCL_ROUTE is not xccl, so no path can be chosen; unset it";
        } else if (run->nranks < 2) {
            fault = "two ranks or more are needed: mpirun -n 2 xccl-run xccl-tune";
        }
    }
    if ((fault != NULL) && (run->rank == 0)) {
        fprintf(stderr, "xccl-tune: %s\n", fault);
    }
    return fault == NULL;
}

static int run_all(struct tune_job *job)
{
    struct perf_run *run = &job->world;
    int              status = EXIT_WRONG;

    if (!perf_agree(run, environment_is_good(run))) {
        return EXIT_USAGE;
    }
    if (perf_agree(run, perf_memory_start(run))) {
        tune_find_nodes(job);
        tune_origin_here(run->dev, run->device, &job->origin);
        describe_place(job);
        job->room = perf_memory_room(run);
        bool ready = tune_has_shapes(job) && perf_agree(run, open_state(job));
        status = ready ? finish(job, tune_work(job)) : EXIT_USAGE;
    }
    if (job->state != NULL) {
        fclose(job->state);
    }
    tune_store_free(&job->store);
    perf_memory_stop(run);
    return status;
}

static int compare(const char *const files[2])
{
    struct xm_table *tables[2] = {NULL, NULL};
    int              found = -1;

    for (int i = 0; i < 2; i++) {
        if (xm_table_file_parse(files[i], &tables[i]) != xcclSuccess) {
            fprintf(stderr, "xccl-tune: %s\n", xc_last_detail());
            goto free_tables;
        }
    }
    found = tune_compare(stdout, tables[0], tables[1]);
    if (found == 0) {
        printf("the same choices\n");
    }
free_tables:
    xm_table_free(tables[0]);
    xm_table_free(tables[1]);
    return (found < 0) ? EXIT_USAGE : (found > 0) ? EXIT_WRONG : 0;
}

static int check(const struct tune_options *opt)
{
    const struct xc_device_ops *dev = NULL;
    struct xm_table            *table = NULL;
    struct tune_origin          here;

    if (xm_table_file_parse(opt->check, &table) != xcclSuccess) {
        fprintf(stderr, "xccl-tune: %s\n", xc_last_detail());
        return EXIT_USAGE;
    }
    if (xc_device_start(opt->device, &dev) != xcclSuccess) {
        fprintf(stderr,
                "xccl-tune: --check: there is no GPU here to compare with: %s; run it on a node "
                "with GPUs\n",
                xc_last_detail());
        xm_table_free(table);
        return EXIT_USAGE;
    }
    tune_origin_here(dev, 0, &here);
    bool nobody = (strcmp(table->head.measured, "nobody") == 0);
    printf("%s: measured %s%s\n", opt->check, nobody ? "by " : "", table->head.measured);
    int changed = tune_check(stdout, &table->head, &here);
    if (changed == 0) {
        printf("nothing that it names has changed here\n");
    }
    xm_table_free(table);
    return (changed > 0) ? EXIT_WRONG : 0;
}

int main(int argc, char **argv)
{
    static struct tune_job job;
    struct xc_launch       launch;

    output_watch("xccl-tune");
    /* What needs no ranks works without a launcher, and its faults are told, before MPI_Init. */
    int early = tune_options_parse(&job.opt, argc, argv, false);
    if ((early == 1) || ((early != 0) && !xc_launch_read(&launch))) {
        (void)tune_options_parse(&job.opt, argc, argv, true);
        return early - 1;
    }
    if ((early == 0) && (job.opt.compare[0] != NULL)) {
        return compare(job.opt.compare);
    }
    if ((early == 0) && (job.opt.check != NULL)) {
        return check(&job.opt);
    }
    MPI_Init(&argc, &argv);
    perf_leave_warnings();
    int status = early - 1;
    if (early != 0) {
        int rank;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        (void)tune_options_parse(&job.opt, argc, argv, rank == 0);
    } else {
        set_up_run(&job);
        status = run_all(&job);
    }
    MPI_Finalize();
    return status;
}
