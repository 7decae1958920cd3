/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line, checked strictly. */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/options.h"
#include "perf/perf.h"

static const char *const memory_names[] = {"host", "device", "managed"};

const char *perf_memory_name(enum perf_memory memory)
{
    return memory_names[memory];
}

static const char usage[] =
    "Usage: mpirun -n RANKS [xccl-run] xccl-perf [options]\n"
    "\n"
    "Times MPI collectives and messages, and verifies every result on random data.\n"
    "\n"
    "  --coll LIST       collectives, separated by commas, or all (default allreduce, without --msg):\n"
    "                    allreduce bcast reduce reduce_scatter reduce_scatter_block allgather\n"
    "                    allgatherv alltoall alltoallv gather gatherv scatter scatterv scan exscan\n"
    "  --msg LIST        tests of messages, separated by commas, or all: latency bandwidth\n"
    "                    bibandwidth (ranks i and i + n/2 of n), halo2d halo3d (periodic grid)\n"
    "  --min SIZE        smallest size in bytes, suffix k, m or g (default 4)\n"
    "  --max SIZE        largest size (default 4m)\n"
    "  --factor F        from one size to the next (default 4)\n"
    "  --iters N         timed calls per size, at most (default 100)\n"
    "  --warmup N        calls before them, at most (default 10)\n"
    "  --max-time SEC    of timed calls per size: fewer where they are slow; 0: no limit (default 1)\n"
    "  --barrier yes|no  before each call (default yes)\n"
    "  --in-place        MPI_IN_PLACE wherever the collective allows it\n"
    "  --type T          int8 uint8 int16 uint16 int32 uint32 int64 uint64 float double cfloat\n"
    "                    cdouble (default float)\n"
    "  --op OP           sum prod max min land lor lxor band bor bxor (default sum)\n"
    "  --mem KIND[,KIND] device, host or managed (default device); two kinds: of the first and of\n"
    "                    the second rank of each pair, in latency, bandwidth and bibandwidth\n"
    "  --device RUNTIME  auto, cuda or rocm (default auto)\n"
    "  --root RANK       of rooted collectives (default 0)\n"
    "  --groups LIST     collectives on communicators of these ranks, all at once: 0/1+2/3 or 0-7\n"
    "  --nonblocking     the non-blocking form of collectives: the call, and MPI_Wait\n"
    "  --work US         compute for so many microseconds in between; the times are without it, so\n"
    "                    what is left is what the work does not hide (default 0)\n"
    "  --vendor          call the vendor's library (NCCL, RCCL) itself, past MPI and xccl; it has no\n"
    "                    scan and exscan, and all is without them\n"
    "  --window N        messages at once in bandwidth and bibandwidth (default 64, fewer where they\n"
    "                    would hold more than 256 MiB)\n"
    "  --faces KIND      of halo2d and halo3d: derived (types on the block) or contiguous (buffers\n"
    "                    of their own, without packing) (default derived)\n"
    "  --check yes|no    verify every size (default yes)\n"
    "  --seed N          of the random data (default: another each time, printed)\n"
    "  --json FILE       write the results there too; -: to stdout, and the table to stderr\n"
    "  --samples         with --json: every call's time instead of each rank's summary only\n"
    "  --timeout SEC     that one size may take, verification included; 0: no limit (default 300)\n"
    "  --force           device memory even if MPI does not say that it takes it\n"
    "  -h, --help, -V, --version\n"
    "\n"
    "Exit status: 0, 1 for a wrong result or a failure, 2 for a wrong option, 124 for a timeout.\n";

enum { MAX_WINDOW = 65536 };

enum option_id {
    COLL = 256,
    MSG,
    MIN,
    MAX,
    FACTOR,
    ITERS,
    WARMUP,
    MAX_TIME,
    BARRIER,
    IN_PLACE,
    TYPE,
    OP,
    MEM,
    DEVICE,
    ROOT,
    WINDOW,
    FACES,
    CHECK,
    SEED,
    JSON,
    SAMPLES,
    TIMEOUT,
    FORCE,
    GROUPS,
    VENDOR,
    NONBLOCKING,
    WORK,
    HELP = 'h',
    VERSION = 'V',
};

static const struct option long_options[] = {
    {"coll", 1, NULL, COLL},       {"msg", 1, NULL, MSG},
    {"min", 1, NULL, MIN},         {"max", 1, NULL, MAX},
    {"factor", 1, NULL, FACTOR},   {"iters", 1, NULL, ITERS},
    {"warmup", 1, NULL, WARMUP},   {"max-time", 1, NULL, MAX_TIME},
    {"barrier", 1, NULL, BARRIER}, {"in-place", 0, NULL, IN_PLACE},
    {"type", 1, NULL, TYPE},       {"op", 1, NULL, OP},
    {"mem", 1, NULL, MEM},         {"device", 1, NULL, DEVICE},
    {"root", 1, NULL, ROOT},       {"window", 1, NULL, WINDOW},
    {"faces", 1, NULL, FACES},     {"check", 1, NULL, CHECK},
    {"seed", 1, NULL, SEED},       {"json", 1, NULL, JSON},
    {"samples", 0, NULL, SAMPLES}, {"timeout", 1, NULL, TIMEOUT},
    {"force", 0, NULL, FORCE},     {"groups", 1, NULL, GROUPS},
    {"vendor", 0, NULL, VENDOR},   {"nonblocking", 0, NULL, NONBLOCKING},
    {"work", 1, NULL, WORK},       {"help", 0, NULL, HELP},
    {"version", 0, NULL, VERSION}, {NULL, 0, NULL, 0},
};

static bool parse_bytes(const char *option, const char *text, size_t *bytes_p)
{
    return perf_parse_size(text, bytes_p) ||
           options_refuse("%s: invalid value '%s': expected bytes, or a number with k, m or g",
                          option, text);
}

static bool parse_long(const char *option, const char *text, long low, long high, long *n_p)
{
    if (options_integer(text, low, high, n_p)) {
        return true;
    }
    return (high == LONG_MAX)
               ? options_refuse("%s: invalid value '%s': expected an integer >= %ld", option, text,
                                low)
               : options_refuse("%s: invalid value '%s': expected an integer from %ld to %ld",
                                option, text, low, high);
}

static bool parse_double(const char *option, const char *text, double low, double *x_p)
{
    return options_real(text, low, 1e9, x_p) ||
           options_refuse("%s: invalid value '%s': expected a number >= %g", option, text, low);
}

static bool parse_yes_no(const char *option, const char *text, bool *yes_p)
{
    if ((strcmp(text, "yes") != 0) && (strcmp(text, "no") != 0)) {
        return options_refuse("%s: invalid value '%s': expected yes or no", option, text);
    }
    *yes_p = text[0] == 'y';
    return true;
}

static bool parse_memory(const char *text, size_t len, enum perf_memory *memory_p)
{
    for (int i = PERF_HOST; i <= PERF_MANAGED; i++) {
        if ((strncmp(text, memory_names[i], len) == 0) && (memory_names[i][len] == '\0')) {
            *memory_p = (enum perf_memory)i;
            return true;
        }
    }
    return options_refuse("--mem: invalid value '%.*s': expected device, host or managed", (int)len,
                          text);
}

/* One kind, or one for each end of a pair. */
static bool parse_memories(const char *text, enum perf_memory memory[2])
{
    size_t      len = strcspn(text, ",");
    const char *second = (text[len] == ',') ? text + len + 1 : text;

    return parse_memory(text, len, &memory[0]) &&
           parse_memory(second, (second == text) ? len : strlen(second), &memory[1]);
}

static bool parse_faces(const char *text, struct perf_options *opt)
{
    opt->faces_given = true;
    opt->contiguous = strcmp(text, "contiguous") == 0;
    return opt->contiguous || (strcmp(text, "derived") == 0) ||
           options_refuse("--faces: invalid value '%s': expected derived or contiguous", text);
}

static bool parse_device(const char *text, const char **device_p)
{
    if ((strcmp(text, "auto") != 0) && (strcmp(text, "cuda") != 0) && (strcmp(text, "rocm") != 0)) {
        return options_refuse("--device: invalid value '%s': expected auto, cuda or rocm", text);
    }
    *device_p = text;
    return true;
}

static bool parse_name(const char *text, char *name, size_t len)
{
    snprintf(name, len, "%s", text);
    return true;
}

/* The tests that an option is about, as bits. */
enum {
    COLL_TESTS = (1 << PERF_NUM_COLLS) - 1,
    PAIR_TESTS = (1 << PERF_LATENCY) | (1 << PERF_BANDWIDTH) | (1 << PERF_BIBANDWIDTH),
    VENDOR_TESTS = (1 << PERF_SCAN) - 1,
    HALO_TESTS = (1 << PERF_HALO2D) | (1 << PERF_HALO3D),
    WINDOW_TESTS = (1 << PERF_BANDWIDTH) | (1 << PERF_BIBANDWIDTH)
};

/* The bit of a test, if it is one of these. */
static unsigned test_named(const char *name, size_t len, unsigned among)
{
    for (int i = 0; i < PERF_NUM_TESTS; i++) {
        const char *known = perf_test_name((enum perf_test)i);
        if ((strncmp(known, name, len) == 0) && (known[len] == '\0')) {
            return among & (1U << i);
        }
    }
    return 0;
}

static bool refuse_test(const char *option, const char *what, const char *word, size_t len,
                        unsigned among)
{
    const char *known[PERF_NUM_TESTS + 1] = {NULL};
    int         count = 0;

    for (int i = 0; i < PERF_NUM_TESTS; i++) {
        if ((among & (1U << i)) != 0) {
            known[count++] = perf_test_name((enum perf_test)i);
        }
    }
    return options_refuse_name(option, what, word, len, known);
}

/* Sets the bits of *tests_p that the option is about, and leaves the others. */
static bool parse_tests(const char *option, const char *what, const char *text, unsigned among,
                        unsigned *tests_p)
{
    unsigned tests = 0;

    if (strcmp(text, "all") == 0) {
        *tests_p |= among;
        return true;
    }
    for (const char *p = text;; p++) {
        size_t   len = strcspn(p, ",");
        unsigned test = test_named(p, len, among);
        if (test == 0) {
            return refuse_test(option, what, p, len, among);
        }
        tests |= test;
        p += len;
        if (*p == '\0') {
            *tests_p = (*tests_p & ~among) | tests;
            return true;
        }
    }
}

static bool parse_seed(const char *text, uint64_t *seed_p)
{
    char *end;

    errno = 0;
    *seed_p = strtoull(text, &end, 10);
    return (isdigit((unsigned char)text[0]) && (*end == '\0') && (errno == 0)) ||
           options_refuse("--seed: invalid value '%s': expected an integer from 0 to 2^64 - 1",
                          text);
}

static bool parse_number_option(struct perf_options *opt, int id, const char *value)
{
    long root = 0;

    switch (id) {
    case MIN:
        return parse_bytes("--min", value, &opt->min_bytes);
    case MAX:
        return parse_bytes("--max", value, &opt->max_bytes);
    case FACTOR:
        return parse_double("--factor", value, 1.01, &opt->factor);
    case ITERS:
        return parse_long("--iters", value, 1, LONG_MAX, &opt->iters);
    case WARMUP:
        return parse_long("--warmup", value, 0, LONG_MAX, &opt->warmup);
    case MAX_TIME:
        return parse_double("--max-time", value, 0, &opt->max_time);
    case ROOT:
        if (!parse_long("--root", value, 0, LONG_MAX, &root)) {
            return false;
        }
        opt->root = (root < INT_MAX) ? (int)root : INT_MAX; /* too large is found with the ranks */
        return true;
    case WINDOW:
        return parse_long("--window", value, 1, MAX_WINDOW, &opt->window);
    case WORK:
        return parse_double("--work", value, 0, &opt->work);
    case TIMEOUT:
        return parse_long("--timeout", value, 0, LONG_MAX, &opt->timeout);
    default:
        return parse_seed(value, &opt->seed);
    }
}

static bool parse_option(struct perf_options *opt, int id, const char *value)
{
    switch (id) {
    case COLL:
        opt->all_colls = strcmp(value, "all") == 0;
        return parse_tests("--coll", "collective", value, COLL_TESTS, &opt->tests);
    case MSG:
        return parse_tests("--msg", "test of messages", value, PAIR_TESTS | HALO_TESTS,
                           &opt->tests);
    case BARRIER:
        return parse_yes_no("--barrier", value, &opt->barrier);
    case IN_PLACE:
        opt->in_place = true;
        return true;
    case TYPE:
        return parse_name(value, opt->type_name, sizeof(opt->type_name));
    case OP:
        return parse_name(value, opt->op_name, sizeof(opt->op_name));
    case MEM:
        return parse_memories(value, opt->memory);
    case DEVICE:
        return parse_device(value, &opt->device);
    case FACES:
        return parse_faces(value, opt);
    case CHECK:
        return parse_yes_no("--check", value, &opt->check);
    case JSON:
        opt->json = value;
        return (value[0] != '\0') || options_refuse("--json: the file has no name; -: to stdout");
    case SAMPLES:
        opt->samples = true;
        return true;
    case FORCE:
        opt->force = true;
        return true;
    case GROUPS:
        opt->groups = value;
        return true;
    case VENDOR:
        opt->vendor = true;
        return true;
    case NONBLOCKING:
        opt->nonblocking = true;
        return true;
    default:
        return parse_number_option(opt, id, value);
    }
}

static bool check_together(const struct perf_options *opt)
{
    if (opt->min_bytes > opt->max_bytes) {
        return options_refuse("--min %zu is larger than --max %zu", opt->min_bytes, opt->max_bytes);
    }
    if (opt->samples && (opt->json == NULL)) {
        return options_refuse("--samples has no meaning without --json");
    }
    if ((opt->window > 0) && ((opt->tests & WINDOW_TESTS) == 0)) {
        return options_refuse("--window has no meaning without --msg bandwidth or bibandwidth");
    }
    if (opt->faces_given && ((opt->tests & HALO_TESTS) == 0)) {
        return options_refuse("--faces has no meaning without --msg halo2d or halo3d");
    }
    if ((opt->groups != NULL) && ((opt->tests & ~COLL_TESTS) != 0)) {
        return options_refuse("--groups is for collectives, not for --msg");
    }
    if (opt->vendor &&
        (opt->in_place || ((opt->tests & ~COLL_TESTS) != 0) || (opt->memory[0] != PERF_DEVICE))) {
        return options_refuse("--vendor is for collectives on device memory, and not --in-place");
    }
    if (opt->nonblocking && (opt->vendor || ((opt->tests & ~COLL_TESTS) != 0))) {
        return options_refuse("--nonblocking is for collectives, and not for --msg or --vendor");
    }
    if ((opt->work > 0) && !opt->nonblocking) {
        return options_refuse("--work has no meaning without --nonblocking");
    }
    if ((opt->memory[0] != opt->memory[1]) && ((opt->tests & ~PAIR_TESTS) != 0)) {
        return options_refuse("--mem: two kinds are for latency, bandwidth and bibandwidth alone");
    }
    return true;
}

static void set_defaults(struct perf_options *opt)
{
    *opt = (struct perf_options){
        .min_bytes = 4,
        .max_bytes = 4U << 20,
        .factor = 4,
        .iters = 100,
        .warmup = 10,
        .max_time = 1,
        .check = true,
        .barrier = true,
        .type_name = "float",
        .op_name = "sum",
        .memory = {PERF_DEVICE, PERF_DEVICE},
        .device = "auto",
        .timeout = 300,
    };
}

int perf_options_parse(struct perf_options *opt, int argc, char **argv, bool speak)
{
    int id;

    options_begin("xccl-perf", long_options, speak);
    set_defaults(opt);
    opterr = 0;
    optind = 1;
    while ((id = getopt_long(argc, argv, ":hV", long_options, NULL)) != -1) {
        switch (id) {
        case HELP:
            if (speak) {
                fputs(usage, stdout);
            }
            return 1;
        case VERSION:
            if (speak) {
                printf("xccl-perf %s\n", XCCL_PERF_VERSION);
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
    if (optind < argc) {
        options_refuse_word(argv[optind]);
        return 3;
    }
    if (opt->tests == 0) {
        opt->tests = 1U << PERF_ALLREDUCE;
    }
    if (opt->vendor && opt->all_colls) {
        opt->tests &= ~COLL_TESTS | VENDOR_TESTS;
    }
    return check_together(opt) ? 0 : 3;
}
