/* SPDX-License-Identifier: BSD-3-Clause */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "common/options.h"
#include "tune/tune.h"

static const char usage[] =
    "Usage: mpirun -n N xccl-run xccl-tune [options]\n"
    "       xccl-tune --compare A B\n"
    "       xccl-run xccl-tune --check FILE\n"
    "\n"
    "Measures every path for every collective on this machine, and writes a tuning table. A run that\n"
    "was stopped goes on when the same command is given again.\n"
    "\n"
    "  --output FOLDER         folder of the tables, raw.json and the state (default: xccl-tables)\n"
    "  --coll LIST             collectives, or all (default: all): allreduce bcast reduce\n"
    "                          reduce_scatter reduce_scatter_block allgather allgatherv alltoall\n"
    "                          alltoallv gather gatherv scatter scatterv scan exscan\n"
    "  --min, --max BYTES      sizes (default: 8 to 64m)\n"
    "  --factor F              ratio of the sizes that are always measured (default: 4)\n"
    "  --resolution F          narrow a border down to sizes of this ratio (default: 1.2)\n"
    "  --nodes LIST            numbers of nodes (default: powers of two, and all)\n"
    "  --ranks-per-node LIST   numbers of ranks per node (default: powers of two, and all)\n"
    "  --samples N             least number of samples of a path at a size (default: 3)\n"
    "  --max-samples N         largest number, while two paths are level within the noise (default: 9)\n"
    "  --iters N               most calls of a sample (default: 50)\n"
    "  --max-time SECONDS      longest time of a sample (default: 0.2)\n"
    "  --minutes N             stop after N minutes, to go on later; 0: no limit (default)\n"
    "  --mem KIND              device or managed (default: device)\n"
    "  --device RUNTIME        auto, cuda or rocm (default: auto)\n"
    "  --seed N                seed of the input (default: from the clock)\n"
    "  --timeout SECONDS       give up if a call does not return; 0: never (default: 300)\n"
    "  --progress SECONDS      print progress every N seconds, except on a terminal; 0: never (30)\n"
    "  --compare A B           print where two tables choose differently; needs no launcher\n"
    "  --check FILE            print what has changed here since a table was measured\n"
    "  -h, --help, -V, --version\n"
    "\n"
    "Exit status: 0; 1 if a result is wrong, a call fails, or --compare or --check finds a\n"
    "difference; 2 for a wrong option, or if --check finds no GPU; 3 if it was stopped; 124 after\n"
    "--timeout.\n";

enum option_id {
    OUTPUT = 256,
    COLL,
    MIN,
    MAX,
    FACTOR,
    RESOLUTION,
    NODES,
    PER_NODE,
    SAMPLES,
    MAX_SAMPLES,
    ITERS,
    MAX_TIME,
    MINUTES,
    MEM,
    DEVICE,
    SEED,
    TIMEOUT,
    PROGRESS,
    COMPARE,
    CHECK,
    HELP = 'h',
    VERSION = 'V',
};

static const struct option long_options[] = {
    {"output", 1, NULL, OUTPUT},
    {"coll", 1, NULL, COLL},
    {"min", 1, NULL, MIN},
    {"max", 1, NULL, MAX},
    {"factor", 1, NULL, FACTOR},
    {"resolution", 1, NULL, RESOLUTION},
    {"nodes", 1, NULL, NODES},
    {"ranks-per-node", 1, NULL, PER_NODE},
    {"samples", 1, NULL, SAMPLES},
    {"max-samples", 1, NULL, MAX_SAMPLES},
    {"iters", 1, NULL, ITERS},
    {"max-time", 1, NULL, MAX_TIME},
    {"minutes", 1, NULL, MINUTES},
    {"mem", 1, NULL, MEM},
    {"device", 1, NULL, DEVICE},
    {"seed", 1, NULL, SEED},
    {"timeout", 1, NULL, TIMEOUT},
    {"compare", 1, NULL, COMPARE},
    {"check", 1, NULL, CHECK},
    {"progress", 1, NULL, PROGRESS},
    {"help", 0, NULL, HELP},
    {"version", 0, NULL, VERSION},
    {NULL, 0, NULL, 0},
};

static bool parse_long(const char *name, const char *text, long low, long high, long *value_p)
{
    return options_integer(text, low, high, value_p) ||
           options_refuse("--%s: invalid value '%s': expected an integer from %ld to %ld", name,
                          text, low, high);
}

static bool parse_int(const char *name, const char *text, long low, long high, int *value_p)
{
    long n = 0;

    if (!parse_long(name, text, low, high, &n)) {
        return false;
    }
    *value_p = (int)n;
    return true;
}

static bool parse_real(const char *name, const char *text, double low, double high, double *value_p)
{
    return options_real(text, low, high, value_p) ||
           options_refuse("--%s: invalid value '%s': expected a number from %g to %g", name, text,
                          low, high);
}

static bool parse_bytes(const char *name, const char *text, uint64_t *value_p)
{
    size_t bytes;

    if (!perf_parse_size(text, &bytes) || (bytes == 0)) {
        return options_refuse(
            "--%s: invalid value '%s': expected bytes >= 1, or a number with k, m or g", name,
            text);
    }
    *value_p = bytes;
    return true;
}

static bool parse_list(const char *name, const char *text, struct tune_list *list)
{
    list->count = 0;
    for (const char *p = text;; p++) {
        char *end;
        long  n = strtol(p, &end, 10);
        if ((end == p) || (n < 1) || (n > 1000000) || ((*end != ',') && (*end != '\0')) ||
            (list->count == TUNE_MAX_LIST)) {
            return options_refuse(
                "--%s: invalid value '%s': expected up to %d integers >= 1, as 1,2,4", name, text,
                TUNE_MAX_LIST);
        }
        list->values[list->count++] = (int)n;
        if (*end == '\0') {
            return true;
        }
        p = end;
    }
}

static bool add_coll(const char *name, size_t len, uint32_t *colls)
{
    bool all = (len == 3) && (strncmp(name, "all", 3) == 0), found = all;

    for (int test = 0; test < PERF_NUM_COLLS; test++) {
        const char *known = perf_test_name((enum perf_test)test);
        if (all || ((strlen(known) == len) && (strncmp(name, known, len) == 0))) {
            *colls |= 1u << test;
            found = true;
        }
    }
    return found;
}

static bool parse_colls(const char *text, uint32_t *colls)
{
    *colls = 0;
    for (const char *p = text;; p++) {
        size_t len = strcspn(p, ",");
        if (!add_coll(p, len, colls)) {
            const char *known[PERF_NUM_COLLS + 1] = {NULL};
            for (int test = 0; test < PERF_NUM_COLLS; test++) {
                known[test] = perf_test_name((enum perf_test)test);
            }
            return options_refuse_name("--coll", "collective", p, len, known);
        }
        p += len;
        if (*p == '\0') {
            return true;
        }
    }
}

static bool parse_memory(const char *text, enum perf_memory *memory)
{
    if (strcmp(text, "device") == 0) {
        *memory = PERF_DEVICE;
    } else if (strcmp(text, "managed") == 0) {
        *memory = PERF_MANAGED;
    } else {
        return options_refuse("--mem: invalid value '%s': expected device or managed", text);
    }
    return true;
}

static bool parse_device(const char *text, const char **device)
{
    if ((strcmp(text, "auto") != 0) && (strcmp(text, "cuda") != 0) && (strcmp(text, "rocm") != 0)) {
        return options_refuse("--device: invalid value '%s': expected auto, cuda or rocm", text);
    }
    *device = text;
    return true;
}

static bool parse_limit(struct tune_options *opt, int id, const char *value)
{
    struct tune_limits *l = &opt->limits;
    long                seed = 0;

    switch (id) {
    case MIN:
        return parse_bytes("min", value, &l->least);
    case MAX:
        return parse_bytes("max", value, &l->most);
    case FACTOR:
        return parse_real("factor", value, 1.1, 1024, &l->factor);
    case RESOLUTION:
        return parse_real("resolution", value, 1.05, 1024, &l->resolution);
    case SAMPLES:
        return parse_int("samples", value, 1, TUNE_MAX_SAMPLES, &l->fewest_samples);
    case MAX_SAMPLES:
        return parse_int("max-samples", value, 1, TUNE_MAX_SAMPLES, &l->most_samples);
    case ITERS:
        return parse_long("iters", value, 1, 1000000, &opt->iters);
    case MAX_TIME:
        return parse_real("max-time", value, 0, 3600, &opt->max_time);
    case MINUTES:
        return parse_real("minutes", value, 0, 100000, &opt->minutes);
    case TIMEOUT:
        return parse_long("timeout", value, 0, 86400, &opt->timeout);
    case PROGRESS:
        return parse_real("progress", value, 0, 86400, &opt->progress);
    default:
        if (!parse_long("seed", value, 0, INT64_MAX, &seed)) {
            return false;
        }
        opt->seed = (uint64_t)seed;
        return true;
    }
}

static bool parse_option(struct tune_options *opt, int id, char *value)
{
    switch (id) {
    case OUTPUT:
        opt->folder = value;
        return (value[0] != '\0') || options_refuse("--output: the folder has no name");
    case COLL:
        return parse_colls(value, &opt->colls);
    case NODES:
        return parse_list("nodes", value, &opt->nodes);
    case PER_NODE:
        return parse_list("ranks-per-node", value, &opt->per_node);
    case MEM:
        return parse_memory(value, &opt->memory);
    case DEVICE:
        return parse_device(value, &opt->device);
    case COMPARE:
        opt->compare[0] = value;
        return true;
    case CHECK:
        opt->check = value;
        return true;
    default:
        return parse_limit(opt, id, value);
    }
}

static bool check_together(const struct tune_options *opt)
{
    const struct tune_limits *l = &opt->limits;

    if (l->least > l->most) {
        return options_refuse("--min %llu is larger than --max %llu", (unsigned long long)l->least,
                              (unsigned long long)l->most);
    }
    if (l->fewest_samples > l->most_samples) {
        return options_refuse("--samples %d is larger than --max-samples %d", l->fewest_samples,
                              l->most_samples);
    }
    if ((opt->compare[0] != NULL) && (opt->check != NULL)) {
        return options_refuse("--compare and --check do not go together");
    }
    return true;
}

static void set_defaults(struct tune_options *opt)
{
    *opt = (struct tune_options){
        .limits = {.least = 8,
                   .most = 64u << 20,
                   .factor = 4,
                   .resolution = 1.2,
                   .granularity = sizeof(float),
                   .fewest_samples = 3,
                   .most_samples = 9},
        .folder = "xccl-tables",
        .iters = 50,
        .max_time = 0.2,
        .memory = PERF_DEVICE,
        .device = "auto",
        .timeout = 300,
        .progress = 30,
    };
    (void)add_coll("all", 3, &opt->colls);
}

/* What stands behind the options: the second file of --compare, and nothing else. */
static bool parse_rest(struct tune_options *opt, int argc, char **argv)
{
    if ((opt->compare[0] != NULL) && (optind < argc)) {
        opt->compare[1] = argv[optind++];
    }
    if ((opt->compare[0] != NULL) && (opt->compare[1] == NULL)) {
        return options_refuse("--compare needs two files");
    }
    return (optind >= argc) || options_refuse_word(argv[optind]);
}

int tune_options_parse(struct tune_options *opt, int argc, char **argv, bool speak)
{
    int id;

    options_begin("xccl-tune", long_options, speak);
    options_elsewhere("json", "raw.json in the folder of --output holds what was measured");
    set_defaults(opt);
    opterr = 0;
    optind = 1;
    while ((id = getopt_long(argc, argv, ":hV", long_options, NULL)) != -1) {
        switch (id) {
        case HELP:
            fputs(speak ? usage : "", stdout);
            return 1;
        case VERSION:
            if (speak) {
                printf("xccl-tune %s\n", XCCL_TUNE_VERSION);
            }
            return 1;
        case ':':
            options_refuse_missing(argv[optind - 1]);
            return 3;
        case '?':
            options_refuse_word(argv[optind - 1]);
            return 3;
        default:
            if (!parse_option(opt, id, optarg)) {
                return 3;
            }
        }
    }
    return (parse_rest(opt, argc, argv) && check_together(opt)) ? 0 : 3;
}
