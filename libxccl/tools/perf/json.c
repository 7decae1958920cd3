/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The JSON file of a run; its shape is described by xccl-perf.schema.json. Only rank 0 writes: into
 * memory, and after each size into FILE.part, which takes its name when the run is over. What is
 * left of one that is stopped has an end too, and says so. A FIFO or a device is written to itself,
 * as results come.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "backends/backend.h"
#include "base/params.h"
#include "common/json_text.h"
#include "common/sort.h"
#include "perf/perf.h"

/* What each rank tells rank 0 about where it is. */
struct place {
    char host[72], device[112], bus_id[32];
    int  index;
};

static bool first_result;

/* Value of an XCCL_* variable, NULL if the environment does not set it. */
static const char *variable(const char *name)
{
    size_t                     count;
    const struct xc_param_row *rows = xc_param_rows(&count);
    bool                       from_env;

    for (size_t i = 0; i < count; i++) {
        if (strcmp(rows[i].name, name) == 0) {
            const char *value = xc_param_value(i, &from_env);
            return from_env ? value : NULL;
        }
    }
    return NULL;
}

static void cpu_model(char *text, size_t len)
{
    FILE *f = fopen("/proc/cpuinfo", "re");
    char  line[256];

    snprintf(text, len, "unknown");
    while ((f != NULL) && (fgets(line, sizeof(line), f) != NULL)) {
        char *colon = strchr(line, ':');
        if ((strncmp(line, "model name", 10) == 0) && (colon != NULL)) {
            colon[1 + strcspn(colon + 1, "\n")] = '\0';
            snprintf(text, len, "%s", colon + 2);
            break;
        }
    }
    if (f != NULL) {
        fclose(f);
    }
}

static void put_places(FILE *f, const struct place *places, int nranks)
{
    fprintf(f, "  \"ranks\": [");
    for (int i = 0; i < nranks; i++) {
        fprintf(f, "%s\n    {\"rank\": %d, ", (i > 0) ? "," : "", i);
        json_field(f, "host", places[i].host);
        if (places[i].index >= 0) {
            fprintf(f, ", \"device\": %d, ", places[i].index);
            json_field(f, "device_name", places[i].device);
            fprintf(f, ", ");
            json_field(f, "bus_id", places[i].bus_id);
        }
        fputc('}', f);
    }
    fprintf(f, "\n  ],\n");
}

static void put_machine(FILE *f)
{
    struct utsname os;
    char           cpu[160], kernel[160];

    cpu_model(cpu, sizeof(cpu));
    uname(&os);
    snprintf(kernel, sizeof(kernel), "%.60s %.90s", os.sysname, os.release);
    fprintf(f, "  \"machine\": {");
    json_field(f, "cpu", cpu);
    fprintf(f, ", \"cores\": %ld, ", sysconf(_SC_NPROCESSORS_ONLN));
    json_field(f, "kernel", kernel);
    fprintf(f, "},\n");
}

static void put_tool(FILE *f)
{
    char      when[32], library[MPI_MAX_LIBRARY_VERSION_STRING];
    time_t    now = time(NULL);
    struct tm utc;
    int       len;

    gmtime_r(&now, &utc);
    strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &utc);
    fprintf(f, "{\n  \"schema\": \"xccl-perf-1\",\n  ");
    json_field(f, "version", XCCL_PERF_VERSION);
    fprintf(f, ",\n  ");
    json_field(f, "date", when);
    fprintf(f, ",\n  ");
    PMPI_Get_library_version(library, &len);
    json_field(f, "mpi", library);
    fprintf(f, ",\n  ");
    json_field(f, "mpi_family", XCCL_PERF_FAMILY);
    fprintf(f, ",\n");
}

static void put_options(FILE *f, const struct perf_run *run)
{
    const char *route = variable("XCCL_ROUTE");
    const char *simulated = variable("XCCL_SIM");
    bool        loaded = strcmp(perf_path_last(), "no interposer") != 0;

    fprintf(f, "  \"command\": [");
    for (int i = 0; i < run->argc; i++) {
        fputs((i > 0) ? ", " : "", f);
        json_text(f, run->argv[i]);
    }
    fprintf(f, "],\n  ");
    if (run->opt.vendor) {
        json_field(f, "route", "vendor");
    } else {
        json_field(f, "route", !loaded ? "none" : ((route != NULL) ? route : "xccl"));
    }
    fprintf(f, ",\n  ");
    json_field(f, "simulated", simulated);
    fprintf(f, ",\n  \"options\": {");
    json_field(f, "type", run->type->name);
    fprintf(f, ", ");
    json_field(f, "op", run->op->name);
    fprintf(f, ", ");
    json_field(f, "memory", perf_memory_name(run->opt.memory[0]));
    fprintf(f, ", ");
    json_field(f, "memory_second", perf_memory_name(run->opt.memory[1]));
    fprintf(f, ", ");
    json_field(f, "runtime", (run->runtime != NULL) ? run->runtime : "none");
    fprintf(f, ", ");
    json_field(f, "faces", run->opt.contiguous ? "contiguous" : "derived");
    if (run->opt.groups != NULL) {
        fprintf(f, ", ");
        json_field(f, "groups", run->opt.groups);
    }
    if (run->opt.nonblocking) {
        fprintf(f, ", \"nonblocking\": true, \"work_us\": %g", run->opt.work);
    }
    fprintf(f,
            ", \"in_place\": %s, \"root\": %d, \"check\": %s, \"barrier\": %s, \"iters\": %ld, "
            "\"warmup\": %ld, \"max_time\": %g, \"seed\": \"%llu\"},\n",
            run->opt.in_place ? "true" : "false", run->opt.root, run->opt.check ? "true" : "false",
            run->opt.barrier ? "true" : "false", run->opt.iters, run->opt.warmup, run->opt.max_time,
            (unsigned long long)run->opt.seed);
}

bool perf_json_to_stdout(const struct perf_run *run)
{
    return (run->opt.json != NULL) && (strcmp(run->opt.json, "-") == 0);
}

/* Where the file goes, links resolved, and its part; NULL: the file itself is opened. */
static char *target, *part;
/* What the part will hold; of that, how much it has, but for an end. */
static char  *text;
static size_t text_len, text_written;
static int    part_fd = -1;

static void forget_part(void)
{
    if (part_fd >= 0) {
        close(part_fd);
    }
    part_fd = -1;
    text_written = 0;
}

static void forget_names(void)
{
    forget_part();
    free(target);
    free(part);
    free(text);
    target = part = text = NULL;
}

/* Sets target and part. A link stays one: the file that it leads to is replaced. */
static bool find_names(const char *file)
{
    struct stat there;
    bool        exists = (stat(file, &there) == 0);

    if (exists && S_ISDIR(there.st_mode)) {
        fprintf(stderr, "xccl-perf: --json: '%s' is a folder; name a file\n", file);
        return false;
    }
    if (exists ? !S_ISREG(there.st_mode) : (lstat(file, &there) == 0)) {
        return true; /* a FIFO, a device, or a link to a file that is still to be made */
    }
    target = exists ? realpath(file, NULL) : strdup(file);
    size_t len = (target != NULL) ? strlen(target) + sizeof(".part") : 0;
    part = (len > 0) ? malloc(len) : NULL;
    if (part == NULL) {
        fprintf(stderr, "xccl-perf: --json: cannot write '%s': %s\n", file, strerror(errno));
        forget_names();
        return false;
    }
    snprintf(part, len, "%s.part", target);
    return true;
}

/* Asked before anything is measured. Leaves the folder as it is. */
static bool may_write_part(void)
{
    int  fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    bool is_new = (fd >= 0);

    if (!is_new && (errno == EEXIST)) {
        fd = open(part, O_WRONLY | O_CLOEXEC);
    }
    if (fd < 0) {
        return false;
    }
    close(fd);
    if (is_new) {
        (void)unlink(part);
    }
    return true;
}

static bool open_file(struct perf_run *run)
{
    if (perf_json_to_stdout(run)) {
        run->json = stdout;
        return true;
    }
    if (!find_names(run->opt.json)) {
        return false;
    }
    if (part == NULL) {
        run->json = fopen(run->opt.json, "we");
    } else {
        run->json = may_write_part() ? open_memstream(&text, &text_len) : NULL;
    }
    if (run->json == NULL) {
        fprintf(stderr, "xccl-perf: --json: cannot write '%s': %s\n", run->opt.json,
                strerror(errno));
        forget_names();
    }
    return run->json != NULL;
}

static void describe_place(const struct perf_run *run, struct place *place)
{
    memset(place, 0, sizeof(*place));
    place->index = (run->dev != NULL) ? run->device : -1;
    if (gethostname(place->host, sizeof(place->host) - 1) != 0) {
        snprintf(place->host, sizeof(place->host), "unknown");
    }
    if (run->dev != NULL) {
        (void)run->dev->name_of(run->device, place->device, sizeof(place->device));
        (void)run->dev->bus_id_of(run->device, place->bus_id, sizeof(place->bus_id));
    }
}

bool perf_json_begin(struct perf_run *run)
{
    struct place mine, *places = NULL;
    int          ok = 1;

    if (run->opt.json == NULL) {
        return true;
    }
    if (run->all_rank == 0) {
        places = calloc((size_t)run->all_size, sizeof(*places));
        ok = (places != NULL) && open_file(run);
    }
    PMPI_Bcast(&ok, 1, MPI_INT, 0, run->all);
    if (!ok) {
        free(places);
        return false;
    }
    describe_place(run, &mine);
    PMPI_Gather(&mine, (int)sizeof(mine), MPI_BYTE, places, (int)sizeof(mine), MPI_BYTE, 0,
                run->all);
    if (run->all_rank == 0) {
        put_tool(run->json);
        put_options(run->json, run);
        put_machine(run->json);
        put_places(run->json, places, run->all_size);
        fprintf(run->json, "  \"results\": [");
        first_result = true;
    }
    free(places);
    return true;
}

/* One rank's calls: summary, and each of them if asked for. Sorts times. */
static void put_rank(FILE *f, int rank, double *times, long iters, bool samples)
{
    double sum = 0;

    fprintf(f, "{\"rank\": %d, ", rank);
    if (samples) {
        fprintf(f, "\"times_us\": [");
        for (long i = 0; i < iters; i++) {
            fprintf(f, "%s%.3f", (i > 0) ? ", " : "", times[i]);
        }
        fprintf(f, "], ");
    }
    for (long i = 0; i < iters; i++) {
        sum += times[i];
    }
    sort_doubles(times, (size_t)iters);
    double median = (times[(iters - 1) / 2] + times[iters / 2]) / 2;
    fprintf(f, "\"min_us\": %.3f, \"avg_us\": %.3f, \"median_us\": %.3f, \"max_us\": %.3f}",
            times[0], sum / (double)iters, median, times[iters - 1]);
}

static void put_ranks(FILE *f, const struct perf_run *run, const struct perf_result *result)
{
    const char *comma = "";

    fprintf(f, ",\n     \"ranks\": [");
    for (int rank = 0; rank < run->all_size; rank++) {
        double *times = result->times + rank * result->iters;
        if (times[0] >= 0) {
            fputs(comma, f);
            put_rank(f, rank, times, result->iters, run->opt.samples);
            comma = ", ";
        }
    }
    fputc(']', f);
}

/* What only tests of messages have. */
static void put_messages(FILE *f, const struct perf_run *run, const struct perf_case *pc)
{
    char grid[40];

    fprintf(f, ", \"messages\": %d, \"message_bytes\": %zu", pc->messages, pc->message_bytes);
    if (perf_test_is_halo(pc->test)) {
        perf_halo_grid(run, pc->test, ", ", grid, sizeof(grid));
        fprintf(f, ", \"grid\": [%s]", grid);
    }
}

static void put_case(FILE *f, const struct perf_run *run, const struct perf_case *pc,
                     const struct perf_result *result)
{
    bool message = perf_test_is_message(pc->test);

    fprintf(f, "%s\n    {", first_result ? "" : ",");
    first_result = false;
    json_field(f, message ? "msg" : "coll", perf_test_name(pc->test));
    fprintf(f, ", \"bytes\": %zu, \"count\": %zu, ", pc->bytes, pc->count);
    json_field(f, "path", result->path);
    fprintf(f, ", \"verified\": %s",
            !run->opt.check ? "null" : (result->verified ? "true" : "false"));
    if (message) {
        put_messages(f, run, pc);
    }
    if (result->times != NULL) {
        fprintf(f, ", \"calls\": %ld, \"min_us\": %.3f, \"avg_us\": %.3f, \"max_us\": %.3f, ",
                result->iters, result->min, result->avg, result->max);
        fprintf(f,
                message ? "\"bw_gbs\": %.6g, \"total_gbs\": %.6g"
                        : "\"algbw_gbs\": %.6g, \"busbw_gbs\": %.6g",
                message ? result->bw : result->algbw, message ? result->total_bw : result->busbw);
        put_ranks(f, run, result);
    }
    fputc('}', f);
}

static void put_ccl(FILE *f, bool used_ccl)
{
    const struct xc_backend_ops *ops;
    const struct xc_library     *lib;

    fprintf(f, "\n  ],\n  \"ccl\": ");
    /* Asked only if it was used: the answer comes from the library itself, which is loaded then. */
    if (!used_ccl || (xc_backend_get(&ops, &lib) != xcclSuccess)) {
        fprintf(f, "null,\n");
        return;
    }
    fputc('{', f);
    json_field(f, "name", lib->name);
    fprintf(f, ", \"version\": %d, ", lib->version);
    json_field(f, "path", lib->path);
    fprintf(f, "},\n");
}

static bool write_all(const char *bytes, size_t count, off_t at)
{
    while (count > 0) {
        ssize_t n = pwrite(part_fd, bytes, count, at);
        if (n < 0) {
            return false;
        }
        bytes += n;
        count -= (size_t)n;
        at += n;
    }
    return true;
}

/* Bring the part up to the text so far, with an end behind it: in one write, for it may be the
 * last. */
static bool write_part(const char *end)
{
    size_t more = text_len - text_written, len = strlen(end);
    char  *bytes = malloc(more + len);

    if (part_fd < 0) {
        part_fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    }
    bool ok = (part_fd >= 0) && (bytes != NULL);
    if (ok) {
        memcpy(bytes, text + text_written, more);
        memcpy(bytes + more, end, len);
        ok = write_all(bytes, more + len, (off_t)text_written);
        text_written = text_len;
    }
    free(bytes);
    return ok;
}

/* The text, under its own name once it is complete; what is not is removed. */
static bool finish_part(void)
{
    bool ok = write_part("") && (ftruncate(part_fd, (off_t)text_len) == 0);
    int  why = errno;

    forget_part();
    if (ok && (rename(part, target) == 0)) {
        return true;
    }
    why = ok ? errno : why;
    (void)unlink(part);
    errno = why;
    return false;
}

static void put_end(FILE *f, bool used_ccl, bool passed, bool stopped)
{
    put_ccl(f, used_ccl);
    fprintf(f, "  \"passed\": %s%s\n}\n", passed ? "true" : "false",
            stopped ? ",\n  \"stopped\": true" : "");
}

/* What cannot be written now is tried again with the next size, and told at the end. */
static void write_so_far(const struct perf_run *run, bool used_ccl)
{
    char  *end = NULL;
    size_t len;
    FILE  *f = open_memstream(&end, &len);

    if (f == NULL) {
        return;
    }
    put_end(f, used_ccl, false, true);
    if ((fclose(f) == 0) && (fflush(run->json) == 0) && !write_part(end)) {
        forget_part();
    }
    free(end);
}

void perf_json_case(const struct perf_run *run, const struct perf_case *pc,
                    const struct perf_result *result, bool used_ccl)
{
    if (run->json == NULL) {
        return;
    }
    put_case(run->json, run, pc, result);
    if (part != NULL) {
        write_so_far(run, used_ccl);
    }
}

/* Keeps errno of what failed. */
static bool close_file(struct perf_run *run)
{
    bool whole = (ferror(run->json) == 0);

    errno = 0; /* an earlier write may have failed, and its reason is gone then */
    if (perf_json_to_stdout(run)) {
        return (fflush(stdout) == 0) && whole;
    }
    bool ok = (fclose(run->json) == 0) && whole && ((part == NULL) || finish_part());
    int  why = errno;
    forget_names();
    errno = why;
    return ok;
}

bool perf_json_end(struct perf_run *run, bool passed, bool used_ccl)
{
    if (run->json == NULL) {
        return true;
    }
    put_end(run->json, used_ccl, passed, false);
    bool ok = close_file(run);
    if (!ok) {
        fprintf(stderr, "xccl-perf: --json: cannot write '%s': %s\n", run->opt.json,
                (errno != 0) ? strerror(errno) : "not all of it could be written");
    }
    run->json = NULL;
    return ok;
}
